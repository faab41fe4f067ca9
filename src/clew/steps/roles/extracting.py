"""Reading without a model: two things compared by what is told of them, or else the span that most clues speak for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files

from clew.steps.extraction.asked import Asked
from clew.steps.extraction.clues import Candidate, Evidence
from clew.steps.extraction.comparing import compared
from clew.steps.roles.protocol import Read, Reading


@lru_cache(maxsize=1)
def shipped_weights() -> Mapping[str, float]:
    """What each clue weighs: a conditional logit over the spans of a question, fitted by benchmarks/reader.py."""
    weights: dict[str, float] = json.loads(files("clew.steps.extraction").joinpath("weights.json").read_text("utf-8"))
    return weights


@dataclass(frozen=True)
class BestSpan:
    """Answers with a span of the best sources, with one of two things the question names, or with yes or no.

    Yes or no it tells only of two things that both have a source; otherwise it cites the best sources and leaves the
    answer open.
    """

    closely: int = 6
    """Sources, best first, whose every span is weighed; two things are looked for in all."""
    citations: int = 2
    weights: Mapping[str, float] = field(default_factory=shipped_weights, repr=False)

    def read(self, readings: Sequence[Reading]) -> list[Read]:
        """One answer per reading; the best sentence where no span fits."""
        return [self._read(reading) for reading in readings]

    def _read(self, reading: Reading) -> Read:
        asked = Asked(reading.question)
        evidence = Evidence(asked, reading.sources[: self.closely])
        sentences = sorted(evidence.sentences, key=lambda sentence: -evidence.share(sentence.meanings))
        if not any(evidence.covered):
            return Read(None)
        answer = compared(asked, reading.sources)
        if answer is not None:
            return answer
        if asked.kind == "yes or no":
            best = tuple(dict.fromkeys(sentence.source for sentence in sentences))[: self.citations]
            return Read(None, best, problem="yes or no needs a language model")
        chosen = best_candidate(list(evidence.candidates()), self.weights)
        if chosen is None:
            return Read(sentences[0].text, (sentences[0].source,))
        return Read(chosen.text, (chosen.source,))


def best_candidate(candidates: Sequence[Candidate], weights: Mapping[str, float]) -> Candidate | None:
    """The likeliest answer where it stands best: the same words in several places speak for each other."""
    if not candidates:
        return None
    scores = [sum(weights.get(clue, 0.0) * value for clue, value in found.clues.items()) for found in candidates]
    highest = max(scores)
    likely: dict[str, float] = {}
    for found, score in zip(candidates, scores, strict=True):
        likely[found.key] = likely.get(found.key, 0.0) + math.exp(score - highest)
    answer = max(likely, key=lambda key: likely[key])
    return max(
        (pair for pair in zip(candidates, scores, strict=True) if pair[0].key == answer), key=lambda pair: pair[1]
    )[0]
