"""`clew embed`: compute vectors ahead, or switch to another embedder."""

from __future__ import annotations

from typing import Annotated

import typer

from clew.cli.options import AsJson, Base
from clew.cli.output import out, print_json, progress_bar
from clew.models.embedding.opening import SHIPPED
from clew.models.settings import Settings
from clew.toolbox import Toolbox


def embed(
    base: Base,
    embedder: Annotated[str | None, typer.Option("--embedder", help="Switch the base to this embedder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compute the vectors of all node documents ahead; a stopped run goes on where it was.

    Another embedder is switched to at the end, when all its vectors are there.
    """
    if embedder is None:
        count = embed_all(Toolbox.open(base))
        name = Toolbox.open(base).embedder.name
    else:
        with progress_bar("embedding") as move:
            count = Toolbox.switch_embedder(base, embedder, move)
        name = Toolbox.open(base, embedder=embedder).embedder.name
    if as_json:
        print_json({"base": str(base), "embedder": name, "vectors": count})
        return
    out.print(f"{base}: {count:,} vectors by {name}", markup=False)
    if embedder is not None and embedder not in SHIPPED | Settings.load().embedders:
        out.print(f"to ask it: --embedder {embedder}, or CLEW_EMBEDDER={embedder}", markup=False)


def embed_all(tools: Toolbox) -> int:
    """All vectors of a base, with a bar; returns their number."""
    with progress_bar("embedding") as move:
        return tools.vectors.embed_all(move)
