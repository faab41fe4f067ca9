"""What an evaluation adds to a question: recording, judging and the line on disk, for a method that takes no time.

    python benchmarks/evaluation.py

Limit: 1 ms per question. Prints JSON.
"""

import json
import tempfile
import time
from pathlib import Path

from clew.core.trace import Recorder, span
from clew.core.types import Answer, Candidate, Fact, NodeRef
from clew.core.types import Path as FactPath
from clew.lab.datasets.questions import Dataset, Kind, Question
from clew.lab.evaluation.report import load_runs, make_report, report_json
from clew.lab.evaluation.run_folder import Setup
from clew.lab.evaluation.runs import evaluate

QUESTIONS = 3000
LIMIT_MS = 1.0


def node(number: int) -> NodeRef:
    return NodeRef(number, f"N{number:06}", f"Name of node {number}", "thing")


def candidates(count: int) -> tuple[Candidate, ...]:
    path = FactPath(tuple(Fact(node(n), "leads_to", node(n + 1)) for n in range(3)))
    return tuple(Candidate(node(n), 1 - n / 1000, (path,)) for n in range(count))


def measure(kind: Kind, ranked: int, gold: int, concurrency: int) -> dict[str, float]:
    keys = tuple(f"N{ranked // 2 + n:06}" for n in range(gold))
    questions = tuple(Question(f"q{n}", f"which thing is {n}?", keys, passages=keys) for n in range(QUESTIONS))
    answer = Answer("q", method="free", candidates=candidates(ranked), text="some words")

    def free(_: Question, _recorder: Recorder) -> Answer:
        for step in range(6):
            with span(f"step {step}", given="a question of some length", found=ranked):
                pass
        return answer

    setup = Setup.of(Dataset("synthetic", questions, kind), "free", {})
    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time()  # of all threads; other processes do not count
        evaluate(questions, free, setup, names_of=lambda _: ("an alias",), out=Path(folder), concurrency=concurrency)
        seconds = time.process_time() - begun
        begun = time.process_time()
        report_json(make_report(load_runs([Path(folder)])))
        reporting = time.process_time() - begun
    return {"ms_per_question": round(1000 * seconds / QUESTIONS, 3), "report_seconds": round(reporting, 2)}


def main() -> None:
    cases: list[tuple[Kind, int, int, int]] = [
        ("retrieval", 20, 3, 1),
        ("graph", 20, 3, 1),
        ("graph", 200, 100, 1),
        ("documents", 30, 2, 1),
        ("graph", 20, 3, 8),
    ]
    found = {
        f"{kind}, {ranked} ranked, {gold} gold, {workers} at once": measure(kind, ranked, gold, workers)
        for kind, ranked, gold, workers in cases
    }
    worst = max(case["ms_per_question"] for case in found.values())
    print(json.dumps({"questions": QUESTIONS, "cases": found, "worst_ms": worst, "limit_ms": LIMIT_MS}, indent=2))
    raise SystemExit(worst > LIMIT_MS)


if __name__ == "__main__":
    main()
