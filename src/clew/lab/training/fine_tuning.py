"""Fine-tune a model into a folder for `hf:`: train, write, measure the written model, and add a card."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from clew.core.errors import InputError
from clew.lab.training import language
from clew.lab.training.labelled import names_of_fold, parse_fold
from clew.models.local import HuggingFaceModel
from clew.models.model_card import CARD, seal_language_model
from clew.models.protocol import LanguageModel

T = TypeVar("T")
STEPS = "steps"
"""Folder inside the output with the last checkpoint of a run."""
MEASURED = 200
"""Maximum number of examples of a set to measure."""
TRAINED_ON, LEFT_OUT = "trained on", "left out"


@dataclass(frozen=True)
class Course:
    """The start model, the output folder and the settings."""

    start: str
    """FOLDER or FOLDER#file.gguf."""
    out: Path
    left_out: str = "0/10"
    """Fold of the examples held out for evaluation."""
    licence: str = ""
    """Licence of the data, for the card."""
    tuning: language.LanguageSettings = field(default_factory=language.LanguageSettings)
    say: Callable[[str], None] = print

    def parted(self, examples: Mapping[str, T]) -> tuple[list[T], list[T]]:
        """Split the examples into training and holdout."""
        apart = names_of_fold(examples, *parse_fold(self.left_out), self.tuning.seed)
        learned = [one for name, one in examples.items() if name not in apart]
        return learned, [examples[name] for name in sorted(apart)]


@dataclass(frozen=True)
class TunedTask(Generic[T]):
    """A task and its evaluation."""

    name: str
    sets: Mapping[str, Sequence[T]]
    """Evaluation sets: training examples, the holdout, and others."""
    measure: Callable[[Sequence[T], LanguageModel], dict[str, float]]
    decisive: str
    """Metric that must improve on the holdout, otherwise the result is not usable."""
    least: float = 0.0
    """Value of that metric without a model."""


def sample(examples: Sequence[T], seed: int) -> list[T]:
    """Sample up to `MEASURED` examples."""
    return random.Random(seed).sample(list(examples), min(MEASURED, len(examples)))


def fine_tune(
    part: TunedTask[T], lessons: Sequence[language.ChatExample], data: Sequence[str], course: Course
) -> dict[str, float]:
    """Train, write and measure. Return the figures before and after, by set. `data` is named on the card."""
    out, tuning = course.out, course.tuning
    (out / CARD).unlink(missing_ok=True)
    local = language.open_language_model(course.start)
    taken = language.tokenised(local, lessons, tuning.longest)
    if not taken:
        raise InputError(f"none of {len(lessons)} lessons has at most {tuning.longest} tokens: add shorter ones")
    course.say(f"{len(taken)} of {len(lessons)} lessons, on {local.device}")
    lora, losses = language.LanguageDescent(local, taken, tuning, out / STEPS, course.say).run()
    lora.save(out / language.LORA)
    lora.merge()
    language.write_merged(local, out)
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
    flat = {
        f"{name}, {moment}: {figure}": value
        for moment, sets in figures.items()
        for name, own in sets.items()
        for figure, value in own.items()
    }
    return {"usable": float(card["usable"]), **flat}
