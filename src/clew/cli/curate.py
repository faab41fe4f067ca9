"""`clew check` and `dedup`: what is doubtful about the data of a base, and what is in it twice."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from clew.cli.options import AsJson, Base, open_base
from clew.cli.output import out, print_json
from clew.curation.checks import check_data

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
    findings = check_data(open_base(base), most)
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
