"""`clew check` and `dedup`: what is doubtful about the data of a base, and what is in it twice."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from clew.cli.options import AsJson, Base, EmbedderOption, open_tools
from clew.cli.output import out, print_json, stages
from clew.core.errors import InputError
from clew.curation.checks import check_data
from clew.curation.duplicates import LEAST, find_duplicates, groups
from clew.curation.merging import merge as merge_groups
from clew.curation.merging import undo as undo_change
from clew.kb.storage import sweep
from clew.toolbox import Toolbox

PROBLEMS_FOUND = 3
"""The exit status of `clew check` where the data has problems."""


def check(
    base: Base,
    most: Annotated[int, typer.Option("--most", min=1, help="Examples shown of each problem.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Report what is doubtful about the data: dangling, cyclic, unnamed, repeated, isolated, disagreeing.

    The exit status is 0 where nothing was found, 3 where something was, 1 or 2 where the base cannot be read.
    """
    findings = check_data(open_tools(base).local, most)
    if as_json:
        print_json({"base": str(base), "problems": [asdict(finding) for finding in findings]})
    elif not findings:
        out.print(f"{base}: nothing doubtful found", markup=False)
    else:
        for finding in findings:
            out.print(f"{finding.kind}: {finding.count:,} {finding.what}", markup=False)
            for example in finding.examples:
                out.print(f"    {example}", markup=False)
            out.print(f"  → {finding.advice}", markup=False)
    if findings:
        raise typer.Exit(PROBLEMS_FOUND)


def dedup(
    base: Base,
    type: Annotated[str | None, typer.Option("--type", help="Only nodes of this type.")] = None,
    least: Annotated[
        float, typer.Option("--least", min=0, max=1, help="How sure a pair must be to be shown or merged.")
    ] = LEAST,
    merge: Annotated[
        bool, typer.Option("--merge", help="Make each group one node, instead of only showing it.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Put the base back as it was before the last --merge.")] = False,
    embedder: EmbedderOption = None,
    as_json: AsJson = False,
) -> None:
    """Show which nodes are likely the same thing, and why; with --merge make them one."""
    if merge and undo:
        raise InputError("--merge and --undo: give one of them")
    if undo:
        undone = undo_change(base)
        print_json({"base": str(base), "undone": undone}) if as_json else out.print(f"undone: {undone}", markup=False)
        return
    if merge:
        sweep(base)
    tools = Toolbox.open(base, embedder=embedder)
    with stages("comparing") as say:
        say("names, neighbours and documents")
        pairs = find_duplicates(tools, type, least=least)
        found = groups(tools.local, pairs)
    if as_json:
        shown = {"pairs": [pair.to_dict() for pair in pairs], "groups": [[node.key for node in one] for one in found]}
        print_json({"base": str(base), "merged": merge and bool(found), **shown})
    else:
        for pair in pairs:
            ends = " = ".join(f"{node.name} ({node.type}, {node.key})" for node in (pair.first, pair.second))
            out.print(f"{pair.certainty:.2f}  {ends}", markup=False)
            out.print(f"      {'; '.join(pair.evidence)}", markup=False)
    if merge and found:
        tools.local.release()  # or the generation that is replaced would stay until the next change
        with stages("merging") as say:
            report = merge_groups(base, found, say=say)
        told = f"merged into {len(found):,}: {report.nodes:,} nodes, {report.edges:,} edges; --undo takes it back"
    elif pairs:
        told = f"{len(pairs):,} pairs in {len(found):,} groups; --merge makes each group one node"
    else:
        told = "no duplicates found"
    if not as_json:
        out.print(told, markup=False)
