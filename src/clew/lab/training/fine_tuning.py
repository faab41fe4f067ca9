"""From lessons to a folder that `hf:` opens: trained, written, measured as it was written, and sealed by a card."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from clew.core.errors import InputError
from clew.lab.training.folds import names_of_fold, parse_fold
from clew.lab.training.language import LORA, Descent, Lesson, Tuning, open_language_model, tokenised, write_merged
from clew.models.local import HuggingFaceModel
from clew.models.model_card import CARD, seal_language_model
from clew.models.protocol import LanguageModel

T = TypeVar("T")
STEPS = "steps"
"""The folder inside the output that keeps the last step of a run."""
MEASURED = 200
"""Examples of a set that a model is measured on."""
TRAINED_ON, LEFT_OUT = "trained on", "left out"


@dataclass(frozen=True)
class Course:
    """From which model to which folder, and how."""

    start: str
    """FOLDER or FOLDER#file.gguf."""
    out: Path
    left_out: str = "0/10"
    """The part of the examples that is kept back and measured on."""
    licence: str = ""
    """Of the data, for the card."""
    tuning: Tuning = field(default_factory=Tuning)
    say: Callable[[str], None] = print

    def parted(self, examples: Mapping[str, T]) -> tuple[list[T], list[T]]:
        """What is learned, and what is kept back."""
        apart = names_of_fold(examples, *parse_fold(self.left_out), self.tuning.seed)
        learned = [one for name, one in examples.items() if name not in apart]
        return learned, [examples[name] for name in sorted(apart)]


@dataclass(frozen=True)
class Part(Generic[T]):
    """What is trained, and how it is judged."""

    name: str
    sets: Mapping[str, Sequence[T]]
    """What it is measured on: some it was trained on, what was left out, and other sets."""
    measure: Callable[[Sequence[T], LanguageModel], dict[str, float]]
    decisive: str
    """The figure that has to grow on what was left out, or the result is not usable."""
    least: float = 0.0
    """What that figure is without any model."""


def sample(examples: Sequence[T], seed: int) -> list[T]:
    """Those that a model is measured on: all, or some at random."""
    return random.Random(seed).sample(list(examples), min(MEASURED, len(examples)))


def fine_tune(part: Part[T], lessons: Sequence[Lesson], data: Sequence[str], course: Course) -> dict[str, float]:
    """Train, write, measure; the figures of the model before and after, by set. `data` is named on the card."""
    out, tuning = course.out, course.tuning
    (out / CARD).unlink(missing_ok=True)
    local = open_language_model(course.start)
    taken = tokenised(local, lessons, tuning.longest)
    if not taken:
        raise InputError(f"none of {len(lessons)} lessons has at most {tuning.longest} tokens: there is none to learn")
    course.say(f"{len(taken)} of {len(lessons)} lessons, on {local.device}")
    lora, losses = Descent(local, taken, tuning, out / STEPS, course.say).run()
    lora.save(out / LORA)
    lora.merge()
    write_merged(local, out)
    del local, lora
    drawn = {name: sample(every, tuning.seed) for name, every in part.sets.items() if every}
    figures = {
        moment: {name: {"n": len(own), **part.measure(own, HuggingFaceModel(spec))} for name, own in drawn.items()}
        for moment, spec in (("before", course.start.removeprefix("hf:")), ("after", str(out)))
    }
    before, after = (figures[moment][LEFT_OUT][part.decisive] for moment in ("before", "after"))
    card: dict[str, Any] = {
        "part": part.name,
        "usable": after > max(before, part.least),
        "start": course.start,
        "data": list(data),
        "licence": course.licence,
        "left_out": course.left_out,
        "lessons": len(taken),
        "settings": asdict(tuning),
        "steps": len(losses),
        "losses": [losses[0], losses[-1]],
        "figures": figures,
        "without_model": {part.decisive: part.least},
    }
    seal_language_model(out, card)
    shutil.rmtree(out / STEPS)
    told = {
        f"{name}, {moment}: {figure}": value
        for moment, sets in figures.items()
        for name, own in sets.items()
        for figure, value in own.items()
    }
    return {"usable": float(card["usable"]), **told}
