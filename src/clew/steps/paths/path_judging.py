"""Judges of a tournament over relation paths: scores that are known already, or a chooser that is shown the paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Protocol

from clew.steps.paths.relation_paths import Move, RelationPath, common_beginning
from clew.steps.roles.protocol import Choice, Chooser

EXAMPLE = files("clew.steps.paths").joinpath("path_example.txt").read_text("utf-8").strip()
"""What a few-shot prompt shows before the question."""


class PathJudge(Protocol):
    """What both kinds of tournament ask."""

    def keep_best(self, chunks: Sequence[Sequence[RelationPath]], counts: Sequence[int]) -> list[Sequence[int]]:
        """For every chunk the positions kept, best first."""
        ...

    def first_is_better(self, pairs: Sequence[tuple[RelationPath, RelationPath]]) -> list[bool]:
        """For every pair whether its first is the better one."""
        ...


@dataclass(frozen=True)
class ScoreJudge:
    """Compares by scores: what the aligner found, where there is no model."""

    scores: Mapping[RelationPath, float]

    def keep_best(self, chunks: Sequence[Sequence[RelationPath]], counts: Sequence[int]) -> list[Sequence[int]]:
        """By score, ties in the given order."""
        return [
            sorted(range(len(chunk)), key=lambda place: -self.scores[chunk[place]])[:count]
            for chunk, count in zip(chunks, counts, strict=True)
        ]

    def first_is_better(self, pairs: Sequence[tuple[RelationPath, RelationPath]]) -> list[bool]:
        """By score; the first wins a tie."""
        return [self.scores[first] >= self.scores[second] for first, second in pairs]


@dataclass(frozen=True)
class ChoosingJudge:
    """Shows paths to a chooser; with `diff`, only where two paths differ, what they share being given."""

    chooser: Chooser
    question: str
    topic: str
    diff: bool = True
    few_shot: bool = False

    def keep_best(self, chunks: Sequence[Sequence[RelationPath]], counts: Sequence[int]) -> list[Sequence[int]]:
        """One choice per chunk, all in one batch."""
        choices = [
            Choice(self.question, tuple(map(self._shown, chunk)), count, "relation path", self._before())
            for chunk, count in zip(chunks, counts, strict=True)
        ]
        return [chosen.kept for chosen in self.chooser.choose(choices)]

    def first_is_better(self, pairs: Sequence[tuple[RelationPath, RelationPath]]) -> list[bool]:
        """One choice per pair; where one path begins the other, whether what it adds is relevant."""
        choices, shorter_first = [], []
        for first, second in pairs:
            shared = common_beginning(first, second) if self.diff else ()
            given = f"{self.topic} {_moves(shared)}".strip()
            tails = _moves(first.moves[len(shared) :]), _moves(second.moves[len(shared) :])
            if all(tails):
                choices.append(Choice(self.question, tails, 1, "candidate", given))
            else:
                options = (f"[RELEVANT] {''.join(tails)}", "[NOT RELEVANT] nothing more is needed")
                choices.append(Choice(self.question, options, 1, "judgement of the candidate", given))
            shorter_first.append(not tails[0])
        chosen = self.chooser.choose(choices)
        return [(one.kept[0] == 0) != turned for one, turned in zip(chosen, shorter_first, strict=True)]

    def _shown(self, path: RelationPath) -> str:
        return f"{self.topic} {path.in_words()}"

    def _before(self) -> str:
        return EXAMPLE if self.few_shot else ""


def _moves(moves: Sequence[Move]) -> str:
    return " ".join(move.in_words() for move in moves)
