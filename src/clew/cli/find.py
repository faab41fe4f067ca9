"""`clew find`: nodes by name, or by the words of their documents."""

from __future__ import annotations

from typing import Annotated

import typer

from clew.cli.options import AsJson, Base, EmbedderOption
from clew.cli.output import out, print_json, print_table
from clew.core.json_form import node_json
from clew.toolbox import Toolbox


def find(
    base: Base,
    text: Annotated[str, typer.Argument(help="A name, or words to look for with --text.")],
    type: Annotated[str | None, typer.Option("--type", help="Only nodes of this type.")] = None,
    in_text: Annotated[
        bool, typer.Option("--text", help="Search the documents with BM25 instead of the names.")
    ] = False,
    k: Annotated[int, typer.Option("-k", min=1, help="How many to show.")] = 10,
    embedder: EmbedderOption = None,
    as_json: AsJson = False,
) -> None:
    """Find nodes by name (exact, then fuzzy, then by meaning) or by their text."""
    tools = Toolbox.open(base, embedder=embedder)
    if in_text:
        among = None if type is None else tools.kb.nodes(type)
        found = [(node, "text", score, "") for node, score in tools.lexical.search(text, k, among=among)]
    else:
        found = [(link.node, link.how, link.score, link.alias) for link in tools.names.link(text, type=type, k=k)]
    refs = tools.kb.refs([row[0] for row in found])
    rows = [
        {**node_json(ref), "how": how, "score": round(float(score), 4), "alias": alias}
        for ref, (_, how, score, alias) in zip(refs, found, strict=True)
    ]
    if as_json:
        print_json(rows)
    elif rows:
        print_table("", ("key", "name", "type", "found by", "score", "as"), [tuple(row.values()) for row in rows])
    else:
        out.print(f"nothing found for {text!r}", markup=False)
