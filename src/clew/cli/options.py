"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clew.core.errors import InputError


def _folder(given: Path) -> Path:
    """A folder, not an address: that would be shown as one that does not exist, with its password."""
    from clew.store.postgres import SCHEMES as POSTGRES
    from clew.store.remote.bolt import SCHEMES as GRAPHS

    if given.parts and given.parts[0].endswith(":") and f"{given.parts[0]}//" in (*POSTGRES, *GRAPHS):
        raise InputError("this needs a knowledge base in a folder, not in a database")
    return given


Base = Annotated[
    Path,
    typer.Argument(metavar="KB", help="The folder of a knowledge base.", show_default=False, callback=_folder),
]
AnyBase = Annotated[
    str,
    typer.Argument(
        metavar="KB",
        help="A knowledge base, postgresql://…#BASE, sparql+http://HOST/query[#texts=KB], or bolt://HOST/DATABASE[#texts=KB].",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-O", metavar="NAME=VALUE", help="An option of the method; `clew methods` lists them."),
]
Method = Annotated[str, typer.Option("--method", "-m", help="How to answer; see `clew methods`.")]
Shown = Annotated[int, typer.Option("-k", min=1, help="How many answers to show.")]
ShownAll = Annotated[bool, typer.Option("--all", help="Show all answers.")]
NoKinds = Annotated[
    bool,
    typer.Option("--no-kinds", help="A name stands for itself alone, not for what lies below it in a hierarchy."),
]
EstimateOnly = Annotated[bool, typer.Option("--estimate", help="Only say what it would cost, spending nothing.")]
TraceFile = Annotated[Path | None, typer.Option("--trace", help="Write the steps to this file as JSON lines.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist already.")]
Fix = Annotated[
    list[str] | None,
    typer.Option("--fix", metavar="NAME=KEY", help="What a name in the question stands for; again for several nodes."),
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="NAME", help="Words of the question that name nothing.")
]

Groups = Annotated[
    str | None,
    typer.Option(
        "--groups", metavar="GROUP,…", help="See the base as somebody of these groups does; all of it where left out."
    ),
]
RelationFix = Annotated[
    list[str] | None,
    typer.Option(
        "--relation",
        metavar="OLD=NEW",
        help="Read the question by another relation than it was understood by; `OLD=^OLD` turns it round.",
    ),
]
TypeFix = Annotated[str | None, typer.Option("--type", help="What type the answers are meant to be of.")]

Model = Annotated[
    str,
    typer.Option(
        "--model", help="The language model: openai:NAME, ollama:NAME, lmstudio:NAME, http://…#NAME, gguf:FILE, none."
    ),
]
EmbedderOption = Annotated[
    str | None,
    typer.Option("--embedder", help="The embedder of the base's vectors, where it is none that ships with Clew."),
]
MaxCalls = Annotated[int | None, typer.Option("--max-calls", min=0, help="Stop after so many model calls.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=0, help="Stop after so many tokens.")]
MaxCost = Annotated[float | None, typer.Option("--max-cost", min=0, help="Stop after so many dollars.")]
MaxSeconds = Annotated[
    float | None, typer.Option("--max-seconds", min=0, help="Ask the model nothing after this time.")
]

Questions = Annotated[
    str,
    typer.Option(
        "--questions",
        "-q",
        metavar="FILE|DATASET:PATH[:SPLIT]",
        help="Questions with answers: JSON lines or a data set.",
    ),
]
DatasetBase = Annotated[str | None, typer.Option("--kb", help="The base; by default the one the data set brings.")]
Topics = Annotated[bool, typer.Option("--topics", help="Mark the topic entities in the questions.")]
Sample = Annotated[int | None, typer.Option("--limit", min=1, help="A random sample of so many questions.")]
SampleSeed = Annotated[int, typer.Option("--seed", help="Of the sample.")]
CandidateSource = Annotated[
    str, typer.Option("--source", help="Of candidates: nearby, another method, model, samples, beams or a file.")
]
MaxHops = Annotated[int, typer.Option("--max-hops", min=1, help="The longest path looked for.")]

Ray = Annotated[
    str | None,
    typer.Option(
        "--ray", metavar="auto|HOST:PORT", help="Share the work out: by Ray on this machine, or among a cluster's."
    ),
]


def assignments(given: list[str] | None, flag: str = "--option") -> dict[str, str]:
    """`["k=5"]` → `{"k": "5"}`."""
    pairs = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"{flag} {text}: expected NAME=VALUE")
        pairs[name.strip()] = value
    return pairs


def corrections(fix: list[str] | None, exclude: list[str] | None) -> dict[str, tuple[str, ...]]:
    """`["MFS=D1"], ["lens"]` → `{"lens": (), "MFS": ("D1",)}`; the first = parts them, so that keys may hold more."""
    found: dict[str, tuple[str, ...]] = dict.fromkeys((name.strip() for name in exclude or []), ())
    for text in fix or []:
        [(name, key)] = assignments([text], "--fix").items()
        if name in found and not found[name]:
            raise InputError(f"{name!r} is both fixed and excluded")
        found[name] = (*found.get(name, ()), key.strip())
    return found


def group_names(given: str | None) -> list[str] | None:
    """`"hr, board"` → `["hr", "board"]`; None where everything may be seen."""
    return None if given is None else [group.strip() for group in given.split(",") if group.strip()]
