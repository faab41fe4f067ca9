"""`clew embed`: compute vectors ahead, or switch to another embedder."""

from __future__ import annotations

from typing import Annotated

import typer

from clew.cli.options import AsJson, Base
from clew.cli.output import out, print_json, progress_bar
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
    else:
        with progress_bar("embedding") as move:
            count = Toolbox.switch_embedder(base, embedder, move)
    tools = Toolbox.open(base)
    if as_json:
        print_json({"base": str(base), "embedder": tools.embedder.name, "vectors": count})
    else:
        out.print(f"{base}: {count:,} vectors by {tools.embedder.name}", markup=False)


def embed_all(tools: Toolbox) -> int:
    """All vectors of a base, with a bar; returns their number."""
    with progress_bar("embedding") as move:
        return tools.vectors.embed_all(move)
