"""From source tables to a finished knowledge base, graph and indexes committed together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from clew.errors import StorageError
from clew.kb.arrays import ArrayKnowledgeBase
from clew.kb.build import write_graph
from clew.kb.problems import Problem, Problems
from clew.kb.schema_file import SchemaEdits
from clew.kb.storage import commit, locked, staging, verify
from clew.kb.tables import Tables

Say = Callable[[str], None]


@dataclass(frozen=True)
class BuildReport:
    """What was built and which rows of the sources were left out."""

    folder: Path
    nodes: int
    edges: int
    skipped: int = 0
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def build(
    tables: Tables,
    folder: Path,
    *,
    edits: SchemaEdits | None = None,
    skip_bad: bool = False,
    say: Say = lambda _: None,
) -> BuildReport:
    """Build or replace a knowledge base; a kill at any moment leaves the old one or none."""
    problems = Problems(skip_bad)
    with locked(folder), staging(folder) as stage:
        say("graph")
        facts = write_graph(tables, stage, problems)
        if edits is not None:
            facts = replace(facts, schema=edits.apply(facts.schema))
        say("checksums")
        commit(folder, stage, facts.to_json())
    return BuildReport(folder, facts.nodes, facts.edges, problems.count, tuple(problems.listed), facts.notes)


def check(folder: Path) -> list[str]:
    """Everything that is wrong with a knowledge base: files first, then whether it opens and fits together."""
    problems = verify(folder)
    if problems:
        return problems
    try:
        kb = ArrayKnowledgeBase.open(folder)
    except StorageError as error:
        return [str(error)]
    return kb.inconsistencies()
