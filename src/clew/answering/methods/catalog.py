"""The names of the methods and their classes."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from clew.answering.methods.protocol import Method, describe_options, parse_options
from clew.answering.queries.sentences import sentence
from clew.core.errors import InputError, NotFoundError
from clew.core.states import DOUBTED, SATISFIES
from clew.core.texts import asked_text
from clew.core.trace import Recorder, recording
from clew.core.types import Answer, Evidence, Judgement
from clew.store.open_base import OpenBase

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

METHODS: dict[str, str | type[Method]] = {
    "auto": "auto:Auto",
    "query": "query:QueryMethod",
    "agent": "agent.method:Agent",
    "focus_plus": "focus.focus_plus:FocusPlus",
    "four_step_focus": "focus.four_step_focus:FourStepFocus",
    "bm25": "retrievers:Bm25",
    "vector_search": "retrievers:VectorSearch",
    "multi_vector_search": "retrievers:MultiVectorSearch",
    "hybrid": "retrievers:Hybrid",
    "llm_reranker": "retrievers:LlmReranker",
    "subgraph_reranking": "subgraph_reranking.method:SubgraphReranking",
    "aligned_paths": "paths.aligned_paths:AlignedPaths",
    "qa_gnn": "paths.qa_gnn:QaGnn",
    "tournament_on_path": "paths.tournament_on_path:TournamentOnPath",
    "think_on_graph": "paths.think_on_graph:ThinkOnGraph",
    "knowledge_graph_prompting": "knowledge_graph_prompting.method:KnowledgeGraphPrompting",
    "tf_idf": "knowledge_graph_prompting.baselines:TfIdf",
    "knn_passages": "knowledge_graph_prompting.baselines:KnnPassages",
    "dense_passages": "knowledge_graph_prompting.baselines:DensePassages",
    "two_hop_dense": "knowledge_graph_prompting.baselines:TwoHopDense",
    "iterative_passages": "knowledge_graph_prompting.baselines:IterativePassages",
    "no_passages": "knowledge_graph_prompting.baselines:NoPassages",
}
"""Name → module and class below `clew.answering.methods`. Imported on first use."""
DEFAULT_METHOD = "auto"
GROUP = "clew.methods"
"""Entry points of this group add methods from other packages."""


def method_names() -> tuple[str, ...]:
    """Return the names of all methods. Methods of other packages come last."""
    return (*METHODS, *_added())


def method_class(name: str) -> type[Method]:
    """Return the class of a method. Raise NotFoundError for an unknown name."""
    if name in METHODS:
        place = METHODS[name]
        if not isinstance(place, str):
            return place
        module, _, attribute = place.partition(":")
        found = getattr(import_module(f"clew.answering.methods.{module}"), attribute)
    elif name in _added():
        found = _added()[name].load()
        if not (inspect.isclass(found) and issubclass(found, Method)):
            raise InputError(f"the entry point {name!r} of {GROUP} is not a subclass of clew.methods.Method")
    else:
        raise NotFoundError(f"no method {name[:100]!r}; there are: {', '.join(method_names())}")
    kind: type[Method] = found
    return kind


def create(name: str, options: Mapping[str, object] | None = None) -> Method:
    """Create a method by name. Options given as text are parsed by the types of its fields."""
    kind = method_class(name)
    return kind(**parse_options(kind, options or {}))


def describe(name: str) -> tuple[str, dict[str, str]]:
    """Return a one-sentence description of a method, and its options with their defaults."""
    kind = method_class(name)
    return (inspect.getdoc(kind) or "").split("\n")[0], describe_options(kind)


def ask(method: Method, question: str, tools: OpenBase, recorder: Recorder | None = None) -> Answer:
    """Answer a question. Add the duration, and the fallbacks that occurred."""
    question = asked_text(question).strip()
    if not question:
        raise InputError("the question is empty: ask in words, such as “Which genes …?”")
    begun = time.perf_counter()
    with recording(recorder) as recorded:
        answer = method.answer(question, tools)
    cut_short = recorded.cut_short()
    answer = replace(
        answer,
        text=sentence(answer) if answer.text is None and answer.query else answer.text,
        method=answer.method or method.name,
        model=recorded.model(),
        seconds=time.perf_counter() - begun,
        fallbacks=tuple(dict.fromkeys((*answer.fallbacks, *recorded.fallbacks))),
        notes=answer.notes if cut_short is None else (*answer.notes, cut_short),
    )
    answer = answer if answer.found else _without_claims(answer)
    outage = recorded.outage()
    return answer if outage is None else answer.without_model(outage)


def _without_claims(answer: Answer) -> Answer:
    """Replace the reason "satisfies the query" in an answer that was not found, because its reading is uncertain."""

    def said(evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
        return tuple(
            replace(one, reason=DOUBTED) if isinstance(one, Judgement) and one.reason == SATISFIES else one
            for one in evidence
        )

    return replace(answer, candidates=tuple(replace(one, evidence=said(one.evidence)) for one in answer.candidates))


@cache
def _added() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # slower than a lookup in METHODS

    return {point.name: point for point in entry_points(group=GROUP) if point.name not in METHODS}
