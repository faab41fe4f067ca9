"""Run a method on every question of a data set, with concurrency and resume, and judge each answer."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType

from clew.core import errors
from clew.core.trace import Recorder, as_completed
from clew.core.types import Answer
from clew.lab.datasets.questions import Question
from clew.lab.evaluation.judging import PRIMARY, NamesOf, score
from clew.lab.evaluation.run_folder import SHOWN_GOLD, QuestionRow, Setup, make_row, open_run

Answering = Callable[[Question, Recorder], Answer]
"""Answers a question and records its steps. Must use only the question's text, not its gold answers."""

Elsewhere = Callable[[Iterable[Question]], Iterator[tuple[int, QuestionRow | errors.PendingError]]]
"""Answers and judges questions in workers. Yields the results of `judged`."""

FATAL = (errors.MissingExtraError, errors.EmbedderMismatch, errors.StorageError)
"""Configuration errors: they end the run instead of scoring 0 for each question."""


@dataclass(frozen=True)
class Run:
    """The answers to the questions of a data set, in data set order."""

    setup: Setup
    rows: tuple[QuestionRow, ...]
    waiting: int = 0
    """Number of questions that wait for batch replies."""
    pending: str = ""
    """What the questions wait for, and the next step for the user."""

    @property
    def complete(self) -> bool:
        """Whether every question has an answer, right or wrong."""
        return len(self.rows) == self.setup.n


def evaluate(
    questions: Sequence[Question],
    answering: Answering,
    setup: Setup,
    *,
    names_of: NamesOf,
    name_of: Callable[[str], str] = lambda key: key,
    out: Path | None = None,
    concurrency: int = 1,
    elsewhere: Elsewhere | None = None,
    on_row: Callable[[QuestionRow], None] = lambda _: None,
    on_interrupt: Callable[[], None] = lambda: None,
) -> Run:
    """Answer and judge every open question. A failed question scores 0 and is counted.

    With `out`, answers are stored as they arrive, and a killed run can resume. Questions stay open if their batch
    replies are pending or the budget ends (BudgetError). After Ctrl-C, finish and store the running questions and raise
    KeyboardInterrupt. A second Ctrl-C stops immediately. `elsewhere` replaces local threads. `names_of` returns the
    aliases of a node. `name_of` returns the display name of a gold key.
    """
    opened = nullcontext() if out is None else open_run(out, setup)
    with opened as folder, _interrupts(on_interrupt) as interrupted:
        rows = {row.id: row for row in (() if folder is None else folder.rows)}
        for row in rows.values():
            on_row(row)
        todo = [question for question in questions if question.id not in rows]
        waiting, pending = 0, ""
        here = partial(judged, answering=answering, setup=setup, names_of=names_of, name_of=name_of)
        left = takewhile(lambda _: not interrupted(), todo)
        for _, done in elsewhere(left) if elsewhere else as_completed(here, left, concurrency):
            if isinstance(done, errors.PendingError):
                waiting, pending = waiting + 1, str(done)
                continue
            if folder is not None:
                folder.append(done)
            rows[done.id] = done
            on_row(done)
        if interrupted():
            raise KeyboardInterrupt
    return Run(setup, tuple(rows[question.id] for question in questions if question.id in rows), waiting, pending)


@contextmanager
def _interrupts(say: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether Ctrl-C was pressed. A second press raises KeyboardInterrupt."""
    pressed = False

    def press(_signal: int, _frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True
        say()

    if current_thread() is not main_thread():  # only the main thread may handle signals
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, press)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)


def judged(
    question: Question, answering: Answering, setup: Setup, names_of: NamesOf, name_of: Callable[[str], str]
) -> QuestionRow | errors.PendingError:
    """Answer and judge a question. Return its row, or the PendingError if its replies are pending."""
    answer: Answer | None = None
    error: str | None = None
    recorder = Recorder()
    begun = time.perf_counter()
    try:
        answer = answering(question, recorder)
    except errors.PendingError as pending:
        return pending
    except (*FATAL, errors.AccessError, errors.BudgetError):
        raise
    except errors.ClewError as failure:
        error = f"{type(failure).__name__}: {failure}"
    seconds = time.perf_counter() - begun
    _refuse_unfinished(recorder)
    judged = score(question, answer, setup.kind, setup.match, names_of)
    failed = judged.metrics[PRIMARY[setup.kind]] < 1
    gold = (question.passages or question.answers)[:SHOWN_GOLD]
    shown = tuple(map(name_of, gold)) if failed and setup.match == "key" else gold
    return make_row(question, shown, answer, judged, recorder, seconds=seconds, failed=failed, error=error)


def _refuse_unfinished(recorder: Recorder) -> None:
    """Raise if a spent budget or an outage cut the answer short. Its score would say nothing about the method."""
    for span in recorder.spans:
        for call in span.calls:
            if call.failure == "budget":
                raise errors.BudgetError(f"{call.error}; run again with a larger budget to continue")
            if call.failure == "outage":
                raise errors.OutageError(f"{call.error}; finished answers are stored, run again to continue")
