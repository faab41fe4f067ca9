"""What is sent for every prompt of STaRK, 4StepFocus and the reranking of answers, word for word.

The files in `tests/data/prompts` are what a reviewer reads; `CLEW_WRITE_PROMPTS=1 pytest -k prompts_sent`
writes them anew after a change that is meant.
"""

import json
import os
from pathlib import Path

import pytest
from test_official_bases import reply as product_reply
from test_synthesis_models import reply as other_reply

from clew.building import build
from clew.kb.sources import SourceOptions, read_sources
from clew.methods import catalog
from clew.methods.subgraph_reranking.graph_to_text import GraphWriter
from clew.methods.subgraph_reranking.subgraph import SubgraphExtractor
from clew.models.protocol import Request
from clew.models.scripted import ScriptedModel
from clew.roles.write import ModelWriter
from clew.synthesis.benchmark import Wanted, Writers, make_benchmark
from clew.toolbox import Toolbox
from conftest import TESTS, tables
from official_stark import BASES

GOLDEN = TESTS / "data" / "prompts"
QUESTION = "Which phenotype does Marfan syndrome have?"


def shown(request: Request) -> str:
    """A request as a reviewer reads it: its messages, then what holds the reply to a form."""
    parts = [f"[{message.role}]\n{message.content}" for message in request.messages]
    told = {"max_tokens": request.max_tokens, "temperature": request.temperature, "n": request.n}
    told |= {} if request.schema is None else {"schema": request.schema}
    return "\n\n".join([*parts, f"[settings]\n{json.dumps(told, ensure_ascii=False)}"]) + "\n"


@pytest.fixture(scope="module")
def sent(tmp_path_factory) -> dict[str, str]:
    """Every prompt by name, as it leaves for the model."""
    folder = tmp_path_factory.mktemp("prompts")
    build(tables(), folder / "tiny.kb")
    tools = Toolbox.open(folder / "tiny.kb", embedder="hash")
    found: dict[str, str] = {}

    def first(name: str, ask) -> None:
        model = ScriptedModel.saying("{}")
        ask(tools.with_model(model))
        found[name] = shown(model.asked[0])

    def by(method: str, **options):
        return lambda tools: catalog.ask(catalog.create(method, options), QUESTION, tools)

    first("four_step_focus_triplets", by("four_step_focus", reranker="none"))
    first("rerank_one_by_one", by("llm_reranker", k=3))
    first("rerank_by_likelihood", by("llm_reranker", k=3, reranker="likelihood"))
    first("rerank_as_a_list", by("llm_reranker", k=3, reranker="listwise"))
    first("rerank_in_pairs", by("llm_reranker", k=3, reranker="pairwise"))
    first("candidates_in_a_list", lambda tools: ModelWriter(tools.model).answers([QUESTION], 20))
    first("candidates_one_by_one", lambda tools: ModelWriter(tools.model, "samples").answers([QUESTION], 20))
    [subgraph] = SubgraphExtractor(tools.kb).extract([tools.kb.find("FBN1")], [tools.kb.find("P4")])
    first("graph_to_text", lambda tools: GraphWriter(tools.model, tools.kb).write([subgraph]))
    for base, reply, prefix in (("amazon", product_reply, "products"), ("mag", other_reply, "papers")):
        BASES[base](folder / base)
        build(read_sources([folder / base], SourceOptions(trust=True)), folder / f"{base}.kb")
        model = ScriptedModel(reply)
        official = Toolbox.open(folder / f"{base}.kb", embedder="hash")
        make_benchmark(official, folder / f"{base}-questions", Wanted(6, templates=base), Writers(model))
        for told in sorted(map(shown, model.asked)):  # several are asked at once, in any order
            found.setdefault(f"{prefix}_{_role(told)}", told)
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


NAMES = (
    "four_step_focus_triplets", "rerank_one_by_one", "rerank_by_likelihood", "rerank_as_a_list", "rerank_in_pairs",
    "candidates_in_a_list", "candidates_one_by_one", "graph_to_text",
    "products_extract", "products_draft", "products_draft_without_text", "products_rewrite", "products_survived",
    "products_judge_category", "products_judge_sources",
    "papers_extract", "papers_draft_without_text", "papers_rewrite", "papers_survived", "papers_judge_plain",
    "papers_judge_strict", "papers_judge_searcher",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_is_sent_as_it_was_reviewed(sent, name):
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("CLEW_WRITE_PROMPTS"):
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(sent[name], "utf-8")
    assert sent[name] == file.read_text("utf-8")


def test_nothing_is_reviewed_that_is_not_sent(sent):
    assert set(sent) == set(NAMES)
    assert {file.stem for file in Path(GOLDEN).glob("*.txt")} == set(NAMES)
