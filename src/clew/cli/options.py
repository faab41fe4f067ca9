"""Arguments shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from clew.core.addresses import BOLT, POSTGRES
from clew.core.errors import InputError


def _folder(given: Path) -> Path:
    """Reject database addresses, since an error about a missing folder would show their password."""
    if given.parts and given.parts[0].endswith(":") and f"{given.parts[0]}//" in (*POSTGRES, *BOLT):
        raise InputError("this command does not support databases: pass the folder of a knowledge base")
    return given


Base = Annotated[
    Path, Argument(metavar="KB", help="The folder of a knowledge base.", show_default=False, callback=_folder)
]
AnyBase = Annotated[
    str,
    Argument(
        metavar="KB",
        help="A knowledge base, postgresql://…#BASE, sparql+http://HOST/query[#texts=KB], or bolt://HOST/DATABASE[#texts=KB].",
        show_default=False,
    ),
]
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]
Options = Annotated[
    list[str] | None,
    Option("--option", "-O", metavar="NAME=VALUE", help="Set an option of the method, see `clew methods`."),
]
Method = Annotated[str, Option("--method", "-m", help="Method for answering, see `clew methods`.")]
Shown = Annotated[int, Option("-k", min=1, help="Number of answers to show.")]
ShownAll = Annotated[bool, Option("--all", help="Show all answers.")]
NoKinds = Annotated[bool, Option("--no-kinds", help="Match names exactly, without their descendants in a hierarchy.")]
EstimateOnly = Annotated[bool, Option("--estimate", help="Estimate the cost without calling the model.")]
TraceFile = Annotated[Path | None, Option("--trace", help="Write the steps to this file as JSON lines.")]
Force = Annotated[bool, Option("--force", help="Overwrite files that exist already.")]

Groups = Annotated[
    str | None,
    Option("--groups", metavar="GROUP,…", help="Show the base as visible to these groups. Default: the whole base."),
]

Model = Annotated[
    str,
    Option(
        "--model", help="The language model: openai:NAME, ollama:NAME, lmstudio:NAME, http://…#NAME, gguf:FILE, none."
    ),
]
EmbedderOption = Annotated[
    str | None, Option("--embedder", help="Embedder of the base's vectors, if it is not one of Clew's.")
]
MaxCalls = Annotated[int | None, Option("--max-calls", min=0, help="Maximum number of model calls.")]
MaxTokens = Annotated[int | None, Option("--max-tokens", min=0, help="Maximum number of tokens.")]
MaxCost = Annotated[float | None, Option("--max-cost", min=0, help="Maximum cost in dollars.")]
MaxSeconds = Annotated[float | None, Option("--max-seconds", min=0, help="Time limit for model calls in seconds.")]

Questions = Annotated[
    str,
    Option(
        "--questions",
        "-q",
        metavar="FILE|DATASET:PATH[:SPLIT]",
        help="Questions with answers, as JSON lines or a data set.",
    ),
]
DatasetBase = Annotated[str | None, Option("--kb", help="Knowledge base. Default: the base of the data set.")]
Topics = Annotated[bool, Option("--topics", help="Mark the topic entities in the questions.")]
Sample = Annotated[int | None, Option("--limit", min=1, help="Use a random sample of N questions.")]
SampleSeed = Annotated[int, Option("--seed", help="Random seed for the sample.")]
CandidateSource = Annotated[
    str, Option("--source", help="Source of candidates: nearby, another method, model, samples, beams or a file.")
]
MaxHops = Annotated[int, Option("--max-hops", min=1, help="Maximum path length in edges.")]

Ray = Annotated[
    str | None,
    Option("--ray", metavar="auto|HOST:PORT", help="Distribute the work with Ray, on this machine or a cluster."),
]


def assignments(given: list[str] | None, flag: str = "--option") -> dict[str, str]:
    """Parse assignments: `["k=5"]` → `{"k": "5"}`."""
    pairs = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"{flag} {text}: expected NAME=VALUE")
        pairs[name.strip()] = value
    return pairs


def corrections(fix: list[str] | None, exclude: list[str] | None) -> dict[str, tuple[str, ...]]:
    """Parse corrections: `["MFS=D1"], ["lens"]` → `{"lens": (), "MFS": ("D1",)}`. Keys may contain "="."""
    found: dict[str, tuple[str, ...]] = dict.fromkeys((name.strip() for name in exclude or []), ())
    for text in fix or []:
        [(name, key)] = assignments([text], "--fix").items()
        if name in found and not found[name]:
            raise InputError(f"{name!r} is in both --fix and --exclude: leave out one of them")
        found[name] = (*found.get(name, ()), key.strip())
    return found


def listed(given: str) -> tuple[str, ...]:
    """Parse a list: `"hr, board"` → `("hr", "board")`."""
    return tuple(part.strip() for part in given.split(",") if part.strip())


def group_names(given: str | None) -> tuple[str, ...] | None:
    """Parse groups. None means access to the whole base."""
    return None if given is None else listed(given)
