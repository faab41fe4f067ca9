"""Train a language model to describe a subgraph in sentences (Graph2Text; Salnikov et al., section 3.2.3).

The paper fine-tunes T5 on WebNLG with "convert the [graph] to [text]:". Here a causal model learns from the prompt
of `GraphWriter`. Texts that change the spelling of a name are omitted, to avoid teaching that.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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
from clew.lab.training.fine_tuning import LEFT_OUT, TRAINED_ON, Course, TunedTask, fine_tune
from clew.lab.training.language import ChatExample
from clew.models.protocol import LanguageModel
from clew.models.structured import ask

TOGETHER = (2, 5)
"""Minimum and maximum number of texts in a joined example. Half of all texts are also in one."""


class _TextOfTriples(BaseModel):
    triples: list[tuple[str, str, str]] = Field(min_length=1)
    texts: list[str] = Field(validation_alias=AliasChoices("texts", "text"), min_length=1)

    @field_validator("texts", mode="before")
    @classmethod
    def _as_list(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class WrittenFacts:
    """Facts and human-written texts about them."""

    facts: tuple[tuple[str, str, str], ...]
    texts: tuple[str, ...]


def read_told(file: Path) -> list[WrittenFacts]:
    """Read JSON lines {"triples": [[subject, relation, object], …], "text": "…"}, or with several "texts" (WebNLG)."""
    told = []
    for record in read_records(find_file(file), _TextOfTriples):
        facts = [(_name(head), words_of(relation), _name(tail)) for head, relation, tail in record.triples]
        told.append(WrittenFacts(tuple(facts[:MOST_FACTS]), tuple(" ".join(text.split()) for text in record.texts)))
    return told


def _name(identifier: str) -> str:
    """Convert `Aarhus_Airport` and `"Aarhus, Denmark"` to plain names."""
    return " ".join(identifier.strip().strip('"').replace("_", " ").split())


def lessons_from(told: Sequence[WrittenFacts], seed: int = 0) -> list[ChatExample]:
    """Build one example per text that keeps every name, and some examples that join several texts."""
    faithful = [
        (one.facts, text) for one in told for text in one.texts if names_kept(one.facts, text) == names_in(one.facts)
    ]
    if not faithful:
        raise InputError("no text keeps the spelling of all names in its facts: nothing to train on")
    pairs = list(faithful)
    rng = random.Random(seed)
    drawn = rng.sample(faithful, len(faithful) // 2)
    while drawn:  # subgraphs of questions are larger than those in the data
        together, drawn = drawn[: (count := rng.randint(*TOGETHER))], drawn[count:]
        pairs.append((tuple(fact for facts, _ in together for fact in facts), " ".join(text for _, text in together)))
    short = [(facts, text) for facts, text in pairs if len(facts) <= MOST_FACTS]
    return [ChatExample(tuple(map(asdict, telling(facts).messages)), text) for facts, text in short]


def measure(told: Sequence[WrittenFacts], model: LanguageModel) -> dict[str, float]:
    """Measure a model's texts: names kept, texts with invented names, usable texts, and BLEU."""
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


MAX_WORDS = 4
"""Maximum length of n-grams in BLEU."""


def bleu(written: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Compute corpus BLEU with several references (Papineni et al., ACL 2002), 0 to 1, cased, tokens of sacrebleu."""
    right, made = [0] * MAX_WORDS, [0] * MAX_WORDS
    length = closest = 0
    for text, others in zip(written, references, strict=True):
        words, reference_words = _words(text), [_words(other) for other in others]
        length += len(words)
        closest += min((abs(len(one) - len(words)), len(one)) for one in reference_words)[1]
        for size in range(1, MAX_WORDS + 1):
            runs, most = _runs(words, size), Counter[tuple[str, ...]]()
            for one in reference_words:
                most |= _runs(one, size)
            right[size - 1] += (runs & most).total()
            made[size - 1] += runs.total()
    if not all(right):
        return 0.0
    precision = sum(math.log(own / every) for own, every in zip(right, made, strict=True)) / MAX_WORDS
    return math.exp(precision + min(0.0, 1 - closest / length))


SPLIT = (r"([!-&(-+:-@\[-`{-~/])", r"(?<=\D)([.,])", r"([.,])(?=\D)", r"(?<=\d)(-)")
"""Token boundaries of WMT's mteval-v13a: symbols, periods and commas outside numbers, dashes after digits."""


def _words(text: str) -> list[str]:
    spaced = f" {text} "
    for pattern in SPLIT:
        spaced = re.sub(pattern, r" \1 ", spaced)
    return spaced.split()


def _runs(words: Sequence[str], size: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[at : at + size]) for at in range(len(words) - size + 1))


def train_graph_to_text(sources: Sequence[Path], course: Course, measured_on: Sequence[Path] = ()) -> dict[str, float]:
    """Train on all graphs except the holdout. Measure on training examples, the holdout and other files."""
    told = {f"{file} {number}": one for file in sources for number, one in enumerate(read_told(file))}
    learned, apart = course.parted(told)
    sets = {TRAINED_ON: learned, LEFT_OUT: apart} | {file.name: read_told(file) for file in measured_on}
    part = TunedTask("graph_to_text", sets, measure, decisive="used")
    return fine_tune(part, lessons_from(learned, course.tuning.seed), list(map(str, sources)), course)
