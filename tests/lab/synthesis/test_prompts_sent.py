"""What is sent for every prompt of STaRK, 4StepFocus and the reranking of answers, word for word."""

import pytest
from test_official_bases import reply as product_reply
from test_synthesis_models import reply as other_reply

from clew.answering.methods import catalog
from clew.answering.methods.subgraph_reranking.graph_to_text import GraphWriter
from clew.answering.methods.subgraph_reranking.subgraph import SubgraphExtractor
from clew.answering.roles.write import ModelWriter
from clew.lab.synthesis.benchmark import BenchmarkOptions, Writers, make_benchmark
from clew.models.scripted import ScriptedModel
from clew.store.building import build
from clew.store.open_base import OpenBase
from clew.store.sources.files import SourceOptions
from clew.store.sources.read import read_sources
from conftest import tables
from official_stark import BASES
from prompts_sent import GOLDEN, matches_golden, shown

QUESTION = "Which phenotype does Marfan syndrome have?"


@pytest.fixture(scope="module")
def sent(tmp_path_factory) -> dict[str, str]:
    """Every prompt by name, as it leaves for the model."""
    folder = tmp_path_factory.mktemp("prompts")
    build(tables(), folder / "tiny.kb")
    tools = OpenBase.open(folder / "tiny.kb", embedder="hash")
    found: dict[str, str] = {}

    def first(name: str, ask) -> None:
        model = ScriptedModel.saying("{}")
        ask(tools.with_model(model))
        found[name] = shown(model.asked[0])

    def by(method: str, **options):
        return lambda tools: catalog.ask(catalog.create(method, options), QUESTION, tools)

    first("retrieval/four_step_focus_triplets", by("four_step_focus", reranker="none"))
    first("retrieval/rerank_one_by_one", by("llm_reranker", k=3))
    first("retrieval/rerank_by_likelihood", by("llm_reranker", k=3, reranker="likelihood"))
    first("retrieval/rerank_as_a_list", by("llm_reranker", k=3, reranker="listwise"))
    first("retrieval/rerank_in_pairs", by("llm_reranker", k=3, reranker="pairwise"))
    first("retrieval/candidates_in_a_list", lambda tools: ModelWriter(tools.model).answers([QUESTION], 20))
    first("retrieval/candidates_one_by_one", lambda tools: ModelWriter(tools.model, "samples").answers([QUESTION], 20))
    [subgraph] = SubgraphExtractor(tools.kb).extract([tools.kb.find("FBN1")], [tools.kb.find("P4")])
    first("retrieval/graph_to_text", lambda tools: GraphWriter(tools.model, tools.kb).write([subgraph]))
    for base, reply, prefix in (("amazon", product_reply, "products"), ("mag", other_reply, "papers")):
        BASES[base](folder / base)
        build(read_sources([folder / base], SourceOptions(trust=True)), folder / f"{base}.kb")
        model = ScriptedModel(reply)
        official = OpenBase.open(folder / f"{base}.kb", embedder="hash")
        make_benchmark(official, folder / f"{base}-questions", BenchmarkOptions(6, templates=base), Writers(model))
        for told in sorted(map(shown, model.asked)):  # several are asked at once, in any order
            found.setdefault(f"synthesis/{prefix}_{_role(told)}", told)
    return found


def _role(told: str) -> str:
    """The step of the construction, by the first words of its prompt."""
    steps = {
        "You collect": "extract", "You write what": "draft", "You write questions": "draft_without_text",
        "You rephrase": "rewrite", "You check whether": "survived", "You check which": "judge_sources",
        "You say whether": "judge_category", "You judge": "judge_plain", "You are a strict": "judge_strict",
        "You decide": "judge_searcher",
    }  # fmt: skip
    return next(step for begin, step in steps.items() if told.removeprefix("[system]\n").startswith(begin))


NAMES = [
    f"{folder}/{file.stem}" for folder in ("retrieval", "synthesis") for file in sorted((GOLDEN / folder).iterdir())
]


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_is_sent_as_it_was_reviewed(sent, name):
    assert matches_golden(name, [sent[name]])


def test_nothing_is_sent_that_was_not_reviewed(sent):
    assert set(sent) == set(NAMES)
