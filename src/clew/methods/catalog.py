"""The one table: names of methods and the classes behind them."""

from __future__ import annotations

import inspect
import time
import types
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol, Union, cast, get_args, get_origin, get_type_hints

from clew.core.errors import InputError, NotFoundError
from clew.core.trace import Recorder, recording
from clew.core.types import Answer
from clew.methods.auto import Auto
from clew.methods.focus.focus_plus import FocusPlus
from clew.methods.focus.four_step_focus import FourStepFocus
from clew.methods.knowledge_graph_prompting.baselines import (
    DensePassages,
    GoldenPassages,
    IterativePassages,
    KnnPassages,
    NoPassages,
    TfIdf,
    TwoHopDense,
)
from clew.methods.knowledge_graph_prompting.method import KnowledgeGraphPrompting
from clew.methods.paths.think_on_graph import ThinkOnGraph
from clew.methods.paths.tournament_on_path import TournamentOnPath
from clew.methods.protocol import Method
from clew.methods.stark.llm_reranker import LlmReranker
from clew.methods.stark.retrievers import Bm25, Hybrid, MultiVectorSearch, VectorSearch
from clew.methods.subgraph_reranking.method import SubgraphReranking
from clew.models.opening import open_estimating
from clew.models.prices import Estimate
from clew.toolbox import Toolbox


class MethodClass(Protocol):
    """A method's class: `build` takes the toolbox and the method's options as keyword arguments."""

    def build(self, toolbox: Toolbox, **options: Any) -> Method:
        """A method ready to answer."""
        ...


METHODS: dict[str, type] = {
    "auto": Auto,
    "bm25": Bm25,
    "vector_search": VectorSearch,
    "multi_vector_search": MultiVectorSearch,
    "hybrid": Hybrid,
    "knowledge_graph_prompting": KnowledgeGraphPrompting,
    "tf_idf": TfIdf,
    "knn_passages": KnnPassages,
    "dense_passages": DensePassages,
    "two_hop_dense": TwoHopDense,
    "iterative_passages": IterativePassages,
    "golden_passages": GoldenPassages,
    "no_passages": NoPassages,
    "subgraph_reranking": SubgraphReranking,
    "think_on_graph": ThinkOnGraph,
    "llm_reranker": LlmReranker,
    "four_step_focus": FourStepFocus,
    "focus_plus": FocusPlus,
    "tournament_on_path": TournamentOnPath,
}
DEFAULT_METHOD = "auto"


def create(name: str, toolbox: Toolbox, options: Mapping[str, str] | None = None) -> Method:
    """A method by name; options arrive as text and are read by the types of the method's `build`."""
    checked = check_options(name, options or {})
    return cast(MethodClass, METHODS[name]).build(toolbox, **checked)


def check_options(name: str, options: Mapping[str, str]) -> dict[str, Any]:
    """The options of a method as the values it wants; raises where there is no such method or option."""
    if name not in METHODS:
        raise NotFoundError(f"no method {name!r}; there are: {', '.join(METHODS)}")
    return parse_options(name, cast(MethodClass, METHODS[name]).build, options)


def ask(method: Method, question: str, recorder: Recorder | None = None) -> Answer:
    """Answer one question with the time it took and the fallbacks on the way."""
    if not question.strip():
        raise InputError("the question is empty: ask in words, such as “Which genes …?”")
    begun = time.perf_counter()
    with recording(recorder) as recorded:
        answer = method.answer(question.strip())
    fallbacks = tuple(dict.fromkeys((*answer.fallbacks, *recorded.fallbacks)))
    cut_short = recorded.cut_short()
    notes = answer.notes if cut_short is None else (*answer.notes, cut_short)
    return replace(answer, seconds=time.perf_counter() - begun, fallbacks=fallbacks, notes=notes)


def estimate(folder: str | Path, question: str, name: str, options: Mapping[str, str], model: str) -> Estimate:
    """What a question would cost: the method runs with a model that answers typically and is paid nothing."""
    return Estimate() if model == "none" else estimate_with(Toolbox.open(folder), question, name, options, model)


def estimate_with(toolbox: Toolbox, question: str, name: str, options: Mapping[str, str], model: str) -> Estimate:
    """The same with tools that are open already."""
    if model == "none":
        return Estimate()
    counting = open_estimating(model)
    ask(create(name, toolbox.with_model(counting), options), question)
    return counting.estimate()


def describe(name: str) -> tuple[str, dict[str, str]]:
    """What a method does, in a sentence, and its options with their defaults."""
    kind = METHODS[name]
    options = {
        option.name: f"{_shown(option.annotation)} = {option.default}"
        for option in _options(cast(MethodClass, kind).build).values()
    }
    return (inspect.getdoc(kind) or "").split("\n")[0], options


def plain_options(name: str) -> frozenset[str]:
    """The options of a method that hold a number, a switch or a choice: no free text and no path can be given there."""
    return frozenset(
        option.name
        for option in _options(cast(MethodClass, METHODS[name]).build).values()
        if _is_plain(option.annotation)
    )


def parse_options(name: str, build: Any, options: Mapping[str, str]) -> dict[str, Any]:
    """Options of the command line as the values the method wants."""
    known = _options(build)
    parsed = {}
    for option, text in options.items():
        if option not in known:
            there = ", ".join(known) or "none"
            raise InputError(f"{name} has no option {option!r}; it has: {there}")
        parsed[option] = _value(f"{name}: {option}", text, known[option].annotation)
    return parsed


@cache
def _options(build: Any) -> dict[str, inspect.Parameter]:
    hints = get_type_hints(build)
    parameters = list(inspect.signature(build).parameters.values())[1:]
    return {p.name: p.replace(annotation=hints.get(p.name, str)) for p in parameters}


def _value(what: str, text: str, kind: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        optional = type(None) in get_args(kind)
        kind = next(part for part in get_args(kind) if part is not type(None))
        if optional and text.lower() == "none" and "none" not in get_args(kind):  # a choice may be called none
            return None
    if get_origin(kind) is Literal:
        literals = {str(choice): choice for choice in get_args(kind)}
        if text not in literals:
            raise InputError(f"{what} must be one of {', '.join(literals)}, not {text!r}")
        return literals[text]
    if kind is bool:
        if text.lower() not in ("true", "false", "yes", "no", "1", "0"):
            raise InputError(f"{what} must be true or false, not {text!r}")
        return text.lower() in ("true", "yes", "1")
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            raise InputError(f"{what} must be a number, not {text!r}") from None
    if get_origin(kind) is tuple:
        return tuple(_value(what, part, get_args(kind)[0]) for part in text.split(",") if part)
    return text


def _is_plain(kind: Any) -> bool:
    if get_origin(kind) in (Union, types.UnionType, tuple):
        return all(part in (type(None), Ellipsis) or _is_plain(part) for part in get_args(kind))
    return get_origin(kind) is Literal or kind in (bool, int, float)


def _shown(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "|".join(str(choice) for choice in get_args(kind))
    return getattr(kind, "__name__", str(kind))
