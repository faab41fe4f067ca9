"""A data set of subgraphs (Salnikov et al., section 4.1): for every candidate of a question what connects the two.

One JSON object a line: question, its entities, the candidate, whether it is right, the subgraph with its features and
in words. Where a model tells the subgraphs, the rates of table 3 say how faithfully: the share of entities it keeps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clew.core.disk import written_whole
from clew.datasets.questions import Question
from clew.evaluation.rankers import PoolMaker
from clew.methods.subgraph_reranking.drawing import subgraph_json
from clew.methods.subgraph_reranking.graph_to_text import FaithfulnessRates, GraphWriter, WrittenGraph, rates
from clew.training.labelled import LabelledPool


@dataclass(frozen=True, slots=True)
class SubgraphSet:
    """What was written: how many questions and subgraphs, how many of them right, and how faithfully they are told."""

    file: Path
    questions: int
    subgraphs: int
    right: int
    disconnected: int
    told: FaithfulnessRates | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "file": str(self.file)}


def write_subgraphs(
    maker: PoolMaker,
    questions: Sequence[Question],
    file: Path,
    writer: GraphWriter | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> SubgraphSet:
    """Write the subgraphs of all candidates of some questions; `writer` tells each in sentences as well."""
    subgraphs = right = disconnected = 0
    checks = []
    with written_whole(file) as lines:
        for question, pool in zip(questions, maker.pools(questions, progress), strict=True):
            told = [None] * len(pool.pool) if writer is None else writer.write(pool.pool.subgraphs)
            for row in _rows(maker, question, pool, told):
                lines.write(json.dumps(row, ensure_ascii=False) + "\n")
            subgraphs += len(pool.pool)
            right += int(pool.right.sum())
            disconnected += sum(one.disconnected for one in pool.pool.subgraphs)
            checks += [one.check for one in told if one is not None and one.check is not None]
    rated = rates(checks) if writer is not None else None
    return SubgraphSet(file, len(questions), subgraphs, right, disconnected, rated)


def _rows(
    maker: PoolMaker, question: Question, pool: LabelledPool, told: Sequence[WrittenGraph | None]
) -> Iterator[dict[str, Any]]:
    kb = maker.kb
    for place, subgraph in enumerate(pool.pool.subgraphs):
        written = told[place]
        yield {
            "id": question.id,
            "question": pool.pool.question,
            "type": pool.type,
            "question_entities": [ref.key for ref in kb.refs(subgraph.entities)],
            "candidate": kb.refs([subgraph.candidate])[0].key,
            "candidate_name": pool.pool.names[place],
            "place": place + 1,
            "right": bool(pool.right[place]),
            **subgraph_json(kb, subgraph),
            **({} if written is None else {"written": written.written, "problem": written.problem}),
        }
