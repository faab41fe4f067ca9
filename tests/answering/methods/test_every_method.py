"""Every method of the catalogue answers from Python, with a language model that is handed to `clew.open`."""

import pytest

import clew
from clew.answering.methods.catalog import METHODS, method_class
from clew.core.errors import InputError
from clew.models.scripted import ScriptedModel

WITHOUT_MODEL = {
    "query",
    "bm25",
    "vector_search",
    "multi_vector_search",
    "hybrid",
    "subgraph_reranking",
    "aligned_paths",
    "qa_gnn",
}
"""Methods that never call a language model."""
NODES = [
    {"key": "emma", "name": "Emma", "type": "novel", "text": "A novel of manners by Jane Austen."},
    {"key": "persuasion", "name": "Persuasion", "type": "novel", "text": "Her last novel."},
    {"key": "austen", "name": "Jane Austen", "type": "person", "text": "An English writer."},
]
EDGES = [{"head": "austen", "relation": "wrote", "tail": novel} for novel in ("emma", "persuasion")]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("novels") / "novels.kb"
    clew.build(clew.from_tables(NODES, EDGES), folder)
    return folder


def question_for(name):
    return 'find x where (x) and x.name = "Emma"' if name == "query" else "Who wrote Emma?"


@pytest.mark.parametrize("name", METHODS)
def test_a_method_runs_with_a_model_that_was_handed_over(base, name):
    opened = clew.open(base, model=ScriptedModel.saying("1"))
    answer = opened.ask(question_for(name), method=method_class(name)())
    assert answer.method == name or name == "auto"
    assert (answer.model == "none") == (name in WITHOUT_MODEL), "a method that never calls a model is in WITHOUT_MODEL"
    assert answer.candidates or name in {"agent", "think_on_graph", "no_passages"}  # "1" is no answer to these


@pytest.mark.parametrize("name", METHODS)
def test_a_method_runs_without_a_model_unless_its_needs_model_is_true(base, name):
    opened, question = clew.open(base), question_for(name)
    if method_class(name).needs_model:
        with pytest.raises(InputError, match="needs a language model"):
            opened.ask(question, method=name)
    else:
        assert opened.ask(question, method=name).model == "none"
