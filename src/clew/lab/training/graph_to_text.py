"""Trains a language model to tell the facts of a subgraph in sentences (Graph2Text; Salnikov et al., section 3.2.3).

The paper fine-tunes T5 on WebNLG with "convert the [graph] to [text]:"; here a causal model learns from the prompt
that `GraphWriter` sends. Texts that do not spell every name as the facts do are left out: they would teach to respell.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import AliasChoices, BaseModel, Field, field_validator

from clew.answering.methods.subgraph_reranking.graph_to_text import (
    MOST_FACTS,
    names_in,
    names_kept,
    strangers_in,
    telling,
)
from clew.core.errors import InputError
from clew.core.schema import words_of
from clew.lab.datasets.files import find_file, read_records
from clew.lab.training.fine_tuning import LEFT_OUT, TRAINED_ON, Course, Part, fine_tune
from clew.lab.training.language import Lesson
from clew.models.protocol import LanguageModel
from clew.models.structured import ask

TOGETHER = (2, 5)
"""How many texts one lesson joins; half of all texts are in such a lesson too."""


class _Record(BaseModel):
    triples: list[tuple[str, str, str]] = Field(min_length=1)
    texts: list[str] = Field(validation_alias=AliasChoices("texts", "text"), min_length=1)

    @field_validator("texts", mode="before")
    @classmethod
    def _as_list(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Told:
    """Facts, with texts that people wrote about them."""

    facts: tuple[tuple[str, str, str], ...]
    texts: tuple[str, ...]


def read_told(file: Path) -> list[Told]:
    """JSON lines {"triples": [[subject, relation, object], …], "text": "…"}, or with several "texts" (WebNLG)."""
    told = []
    for record in read_records(find_file(file), _Record):
        facts = [(_name(head), words_of(relation), _name(tail)) for head, relation, tail in record.triples]
        told.append(Told(tuple(facts[:MOST_FACTS]), tuple(" ".join(text.split()) for text in record.texts)))
    return told


def _name(identifier: str) -> str:
    """`Aarhus_Airport` and `"Aarhus, Denmark"` as people write them."""
    return " ".join(identifier.strip().strip('"').replace("_", " ").split())


def lessons_from(told: Sequence[Told], seed: int = 0) -> list[Lesson]:
    """One for each text that keeps every name, and some in which several are told one after another."""
    faithful = [
        (one.facts, text) for one in told for text in one.texts if names_kept(one.facts, text) == names_in(one.facts)
    ]
    if not faithful:
        raise InputError("no text spells every name of its facts as they do: there is nothing to learn from")
    pairs = list(faithful)
    rng = random.Random(seed)
    drawn = rng.sample(faithful, len(faithful) // 2)
    while drawn:  # subgraphs of questions are larger than what people are asked to tell
        together, drawn = drawn[: (count := rng.randint(*TOGETHER))], drawn[count:]
        pairs.append((tuple(fact for facts, _ in together for fact in facts), " ".join(text for _, text in together)))
    return [Lesson(_messages(facts), text) for facts, text in pairs if len(facts) <= MOST_FACTS]


def _messages(facts: Sequence[tuple[str, str, str]]) -> tuple[dict[str, str], ...]:
    return tuple({"role": part.role, "content": part.content} for part in telling(facts).messages)


def measure(told: Sequence[Told], model: LanguageModel) -> dict[str, float]:
    """Of the texts that a model writes: names kept, texts that invent one, texts that would be used, and BLEU."""
    outcomes = ask(model, [telling(one.facts) for one in told], role="write")
    kept = names = inventing = used = 0
    for one, outcome in zip(told, outcomes, strict=True):
        text = outcome.value or ""
        own, found = len(names_in(one.facts)), len(names_kept(one.facts, text))
        strange = bool(strangers_in(text, [word for fact in one.facts for word in fact]))
        names, kept = names + own, kept + found
        inventing, used = inventing + strange, used + (found == own and not strange)
    count = max(len(told), 1)
    return {
        "entity_accuracy": kept / max(names, 1),
        "inventing": inventing / count,
        "used": used / count,
        "bleu": bleu([outcome.value or "" for outcome in outcomes], [one.texts for one in told]),
    }


MOST_WORDS = 4
"""Of the runs of words that BLEU compares."""


def bleu(written: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Corpus BLEU with several references (Papineni et al., ACL 2002), 0 to 1; cased, words as in sacrebleu."""
    right, made = [0] * MOST_WORDS, [0] * MOST_WORDS
    length = closest = 0
    for text, others in zip(written, references, strict=True):
        words, told = _words(text), [_words(other) for other in others]
        length += len(words)
        closest += min((abs(len(one) - len(words)), len(one)) for one in told)[1]
        for size in range(1, MOST_WORDS + 1):
            runs, most = _runs(words, size), Counter[tuple[str, ...]]()
            for one in told:
                most |= _runs(one, size)
            right[size - 1] += (runs & most).total()
            made[size - 1] += runs.total()
    if not all(right):
        return 0.0
    precision = sum(math.log(own / every) for own, every in zip(right, made, strict=True)) / MOST_WORDS
    return math.exp(precision + min(0.0, 1 - closest / length))


SPLIT = (r"([!-&(-+:-@\[-`{-~/])", r"(?<=\D)([.,])", r"([.,])(?=\D)", r"(?<=\d)(-)")
"""Where words end, as WMT's mteval-v13a has it: at signs, at points and commas outside numbers, at dashes after one."""


def _words(text: str) -> list[str]:
    spaced = f" {text} "
    for pattern in SPLIT:
        spaced = re.sub(pattern, r" \1 ", spaced)
    return spaced.split()


def _runs(words: Sequence[str], size: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[at : at + size]) for at in range(len(words) - size + 1))


def train_graph_to_text(sources: Sequence[Path], course: Course, measured_on: Sequence[Path] = ()) -> dict[str, float]:
    """Train on all graphs but a part; measured on some that were learned, on that part, and on other files."""
    told = {f"{file} {number}": one for file in sources for number, one in enumerate(read_told(file))}
    learned, apart = course.parted(told)
    sets = {TRAINED_ON: learned, LEFT_OUT: apart} | {file.name: read_told(file) for file in measured_on}
    part = Part("graph_to_text", sets, measure, decisive="used")
    return fine_tune(part, lessons_from(learned, course.tuning.seed), list(map(str, sources)), course)
