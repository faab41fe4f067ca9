"""Evaluations over HTTP: the runs of `clew eval` below one folder, compared, and what went wrong in them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Query

from clew.core.wire import EvaluationReply, FailureReply, TableReply
from clew.evaluation.page import comparison_table, costs, overview, type_table
from clew.evaluation.report import Section, failure_json, worst_failures
from clew.web.access import EVERY_BASE
from clew.web.evaluations import Evaluations
from clew.web.state import GrantOf, StateOf

router = APIRouter(prefix="/v1/evaluations", tags=["evaluations"])


async def evaluations_of(state: StateOf, grant: GrantOf) -> Evaluations:
    """The evaluations of the server, for those who may read every base: they show questions and answers of all."""
    if state.evaluations is None:
        raise HTTPException(404, "this server shows no evaluations: start it with --evaluations FOLDER")
    if not grant.allows(EVERY_BASE):
        raise HTTPException(403, "evaluations are for those who may read all bases")
    return state.evaluations


EvaluationsOf = Annotated[Evaluations, Depends(evaluations_of)]


@router.get("")
async def evaluations(state: StateOf, found: EvaluationsOf) -> list[EvaluationReply]:
    """Every set of questions with its runs: metrics with intervals, paired comparisons, types, time and cost."""
    return await state.asker.in_thread(lambda: [_shown(section) for section in found.sections()])


@router.get("/failures")
async def failures(
    state: StateOf,
    found: EvaluationsOf,
    set: Annotated[str, Query(max_length=500)],
    run: Annotated[str, Query(max_length=2000)],
    k: Annotated[int, Query(ge=1, le=500)] = 20,
) -> list[FailureReply]:
    """The worst questions of a run, the worst first, with what was found instead and the trace."""

    def work() -> list[FailureReply]:
        for section in found.sections():
            for label, one in section.runs:
                if (section.title, label) == (set, run):
                    return [FailureReply(**failure_json(row)) for row in worst_failures(one, section.metric, k)]
        raise HTTPException(404, f"no run {run[:100]!r} over {set[:100]!r}")

    return await state.asker.in_thread(work)


def _shown(section: Section) -> EvaluationReply:
    tables = (overview(section), comparison_table(section), type_table(section), costs(section))
    return EvaluationReply(
        title=section.title,
        runs=tuple(label for label, _ in section.runs),
        tables=tuple(
            TableReply(title=table.title, columns=table.columns, rows=table.rows, note=table.note)
            for table in tables
            if table.rows
        ),
    )
