"""Unknown names are reported, misspelled ones are linked: figures over questions that are answered rightly.

usage: python benchmarks/unknown_names.py BASE.kb=QUESTIONS.jsonl … [--each 10] [--seed 0] [--show]

In each question that is answered rightly, one name that the base has just so is replaced: by a made-up word, by a
name of another of the bases, by a plain English noun (none of them a name of the base), and by itself misspelled. The
first three should be reported as unknown, the last should be answered as before.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from fit_links import misspelled

import clew
from clew.core.types import Answer
from clew.lab.datasets.load import load_dataset
from clew.lab.datasets.questions import Question
from clew.lab.evaluation.judging import score
from clew.store.index.tokens import normalise

NOUNS = (
    "red deer", "wooden spoon", "bicycle", "umbrella", "kitchen table", "polar bear", "trombone", "lighthouse",
    "tea kettle", "pine tree", "garden hose", "chess piece", "goldfish", "parachute", "snowman", "leather boot",
    "walnut", "hammock", "paper plane", "steam engine", "blackbird", "pumpkin", "doorbell", "accordion",
    "sailing boat", "velvet curtain", "acorn", "rubber duck", "candlestick", "grey heron", "hot air balloon",
    "porridge", "skateboard", "wool sweater", "picnic basket", "sunflower", "toothbrush", "tractor", "fountain pen",
    "wild boar",
)  # fmt: skip
STARTS = (
    "b",
    "bl",
    "c",
    "cr",
    "d",
    "dr",
    "f",
    "fl",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "qu",
    "r",
    "sk",
    "tr",
)
VOWELS = "aeiou"
ENDS = ("b", "ck", "d", "ft", "g", "l", "m", "n", "nd", "p", "rk", "s", "st", "t", "x")


@dataclass(frozen=True)
class Case:
    """A question answered rightly, and the name in it."""

    question: Question
    start: int
    end: int

    def with_name(self, name: str) -> str:
        text = self.question.text
        return text[: self.start] + name + text[self.end :]

    @property
    def name(self) -> str:
        return self.question.text[self.start : self.end]


def made_up(rng: random.Random) -> str:
    syllables = [rng.choice(STARTS) + rng.choice(VOWELS) for _ in range(rng.choice((1, 2, 2)))]
    return "".join((*syllables, rng.choice(STARTS), rng.choice(VOWELS), rng.choice(ENDS)))


def is_right(question: Question, answer: Answer) -> bool:
    return answer.found and score(question, answer, "graph", "key", lambda _node: ()).metrics["hit@1"] > 0


def cases(base: clew.Base, questions: Path, count: int, rng: random.Random) -> list[Case]:
    found = []
    every = list(load_dataset(str(questions)).questions)
    for question in rng.sample(every, len(every)):
        answer = base.ask(question.text)
        if len(found) < count and is_right(question, answer):
            for constant in answer.query.get("constants", ()):
                is_exact = constant["nodes"] and constant["nodes"][0]["how"] == "exact"
                match = re.search(rf"(?<!\w){re.escape(constant['text'])}(?!\w)", question.text, re.IGNORECASE)
                if is_exact and match:
                    found.append(Case(question, *match.span()))
                    break
        if len(found) == count:
            break
    return found


def cased(name: str, like: str) -> str:
    return name.title() if like[:1].isupper() else name.lower() if like.islower() else name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", nargs="+")
    parser.add_argument("--each", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    pairs = [tuple(map(Path, pair.split("="))) for pair in given.pairs]
    taken = {base: cases(clew.open(base), questions, given.each, rng) for base, questions in pairs}
    counts: Counter[tuple[str, str]] = Counter()
    for base, own in taken.items():
        opened = clew.open(base)
        others = [case.name for other, some in taken.items() if other != base for case in some]
        for case in own:
            foreign = rng.choice([name for name in others if not is_known(opened, name)])
            noun = rng.choice([name for name in NOUNS if not is_known(opened, name)])
            named = {"made up": cased(made_up(rng), case.name), "other base": foreign, "noun": noun}
            for kind, name in named.items():
                answer = opened.ask(case.with_name(name))
                words = {word for one in answer.unknown for word in normalise(one.text).split()}
                is_reported = words & set(normalise(name).split())
                what = "reported" if is_reported else "put forward" if answer.found else "refused"
                count(counts, kind, what, case.with_name(name), answer, show=given.show and what != "reported")
            mistake, wrong = misspelled(rng, case.name)
            if wrong != case.name and mistake != "short":
                answer = opened.ask(case.with_name(wrong))
                what = "right" if is_right(case.question, answer) else "other" if answer.found else "refused"
                what = "reported" if answer.unknown else what
                count(
                    counts,
                    f"misspelled: {mistake}",
                    what,
                    case.with_name(wrong),
                    answer,
                    show=given.show and what != "right",
                )
    for kind in sorted({kind for kind, _ in counts}):
        print(json.dumps({"kind": kind} | {what: n for (own, what), n in sorted(counts.items()) if own == kind}))


def is_known(base: clew.Base, name: str) -> bool:
    return any(link.how == "exact" for link in base.tools.names.link(name, k=1))


def count(counts: Counter[tuple[str, str]], kind: str, what: str, asked: str, answer: Answer, *, show: bool) -> None:
    counts[kind, what] += 1
    if show:
        print(f"{kind} | {what} | {asked} | {answer.text} | {answer.certainty}")


if __name__ == "__main__":
    main()
