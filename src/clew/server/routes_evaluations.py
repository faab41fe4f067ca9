"""Evaluations over HTTP: the runs of `clew eval` in a folder, with comparisons and failures."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Query

from clew.lab.evaluation.page import comparison_table, costs, overview, type_table
from clew.lab.evaluation.report import ReportSection, failure_json, load_runs, make_report, worst_failures
from clew.lab.evaluation.run_folder import ANSWERS
from clew.server.access import EVERY_BASE
from clew.server.state import GrantOf, StateOf
from clew.server.wire import EvaluationReply, FailureReply, TableReply

router = APIRouter(prefix="/v1/evaluations", tags=["evaluations"])


async def evaluations_of(state: StateOf, grant: GrantOf) -> Path:
    """Return the folder of runs, for users who may see everything, since runs contain data of all bases."""
    folder = state.served.settings.evaluations
    if folder is None:
        raise HTTPException(404, "evaluations are not enabled: start the server with --evaluations FOLDER")
    if not grant.allows(EVERY_BASE):
        raise HTTPException(403, "evaluations require access to all bases")
    seen = await state.asker.in_thread(lambda: [base.sees_everything() for base in state.seen_by(grant).values()])
    if not all(seen):
        raise HTTPException(403, "evaluations require membership in all groups, since they show restricted content")
    return folder


EvaluationsOf = Annotated[Path, Depends(evaluations_of)]
Files = tuple[tuple[Path, int, int], ...]
"""The runs of a folder, with the time and size of each."""


@router.get("")
async def evaluations(state: StateOf, folder: EvaluationsOf) -> list[EvaluationReply]:
    """Return every question set with its runs: metrics with intervals, paired comparisons, types, time and cost."""
    return await state.asker.in_thread(lambda: [_shown(section) for section in _sections(folder)])


@router.get("/failures")
async def failures(
    state: StateOf,
    folder: EvaluationsOf,
    set: Annotated[str, Query(max_length=500)],
    run: Annotated[str, Query(max_length=2000)],
    k: Annotated[int, Query(ge=1, le=500)] = 20,
) -> list[FailureReply]:
    """Return the worst questions of a run, worst first, with the wrong answers and the trace."""

    def work() -> list[FailureReply]:
        for section in _sections(folder):
            for label, one in section.runs:
                if (section.title, label) == (set, run):
                    return [FailureReply(**failure_json(row)) for row in worst_failures(one, section.metric, k)]
        raise HTTPException(404, f"no run {run[:100]!r} over {set[:100]!r}")

    return await state.asker.in_thread(work)


def _sections(folder: Path) -> list[ReportSection]:
    """Return one section per question set. Rebuild them when a file has changed."""
    files = sorted(folder.rglob(ANSWERS)) if folder.is_dir() else []
    return _reported(folder, tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in files))


@lru_cache(maxsize=1)
def _reported(folder: Path, files: Files) -> list[ReportSection]:
    return make_report(load_runs([folder])) if files else []


def _shown(section: ReportSection) -> EvaluationReply:
    tables = (overview(section), comparison_table(section), type_table(section), costs(section))
    return EvaluationReply(
        title=section.title,
        runs=tuple(label for label, _ in section.runs),
        tables=tuple(TableReply(**asdict(table)) for table in tables if table.rows),
    )
