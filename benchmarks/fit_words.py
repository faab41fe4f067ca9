"""Learns by which words questions in other languages are put into English (words.json, words.npz in reading/weights).

    python benchmarks/fit_words.py MINTAKA.json.gz SCHEMA_QUESTIONS

The lexicon: IBM model 1 (Brown et al., 1993) both ways on Mintaka's development questions beside their translations
(CC BY 4.0) and on data/languages/templates.txt; a pair counts where the geometric mean of both ways is high enough.
Everyday words and phrases with their forms are written down in data/languages/lexicon (a file a language), common words
of questions in data/languages/words.txt (`^` before a word: where a question begins with it); the latter goes before
the former, and both before what is learned. The nearest words: English words that stand in two or more questions, names
aside, with their vectors in eight bits.
"""

import argparse
import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from clew.answering.reading.encoders import SHIPPED
from clew.answering.reading.other_languages import FIRST, KANA, LEXICON, NEAREST, joined
from clew.models.embedding.multilingual import MultilingualEmbedder
from clew.store.index.tokens import is_spaceless, stop_words, tokenise

parser = argparse.ArgumentParser()
parser.add_argument("mintaka", type=Path)
parser.add_argument("schema_questions", type=Path)
DATA = Path(__file__).parent / "data" / "languages"
CODES = ("de", "es", "fr", "it", "pt", "ja", "ar", "hi")
NAME = re.compile(r"(?<![A-Za-zÀ-ÿ])[AB](?![A-Za-zÀ-ÿ])")
ROUNDS, LEAST_SEEN, LEAST_SURE = 8, 3, 0.3
Pair = tuple[list[str], list[str]]
Table = dict[str, dict[str, float]]


def words(text: str) -> list[str]:
    """Tokens; characters of scripts without spaces joined where the script stays the same."""
    kinds = groupby(
        tokenise(text), lambda token: "" if not is_spaceless(token.text) else str(KANA[0] <= token.text <= KANA[1])
    )
    return [word for kind, run in kinds for word in (_joined(run) if kind else (token.text for token in run))]


def _joined(run: Iterable) -> list[str]:
    return ["".join(token.text for token in run)]


def without(text: str, names: Iterable[str]) -> str:
    for name in names:
        text = text.replace(name, " ")
    return text


def pairs(mintaka: Sequence[dict], code: str) -> list[Pair]:
    found = []
    for question in mintaka:
        names = [one["mention"] for one in question["questionEntity"] if one["entityType"] == "entity"]
        said = question["translations"][code] or ""
        found.append((words(without(said, names)), words(without(question["question"], names))))
    for line in (DATA / "templates.txt").read_text("utf-8").splitlines()[1:]:
        _, english, *said = line.split("|")
        found.append((words(NAME.sub(" ", said[CODES.index(code)])), words(NAME.sub(" ", english))))
    return found


def translations(told: Sequence[Pair]) -> Table:
    """The probability of each word of the second language given one of the first, or none (an empty one)."""
    likely: Table = {}
    for round_ in range(ROUNDS):
        counts: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        for first, second in told:
            source = [*first, ""]
            for word in second:
                shares = [likely[one][word] if round_ else 1.0 for one in source]
                for one, share in zip(source, shares, strict=True):
                    counts[one][word] += share / sum(shares)
        likely = {one: {word: n / sum(row.values()) for word, n in row.items()} for one, row in counts.items()}
    return likely


def lexicon(told: Sequence[Pair]) -> dict[str, str]:
    there, back = translations(told), translations([(second, first) for first, second in told])
    seen = Counter(word for first, _ in told for word in first)
    found = {}
    for word, row in there.items():
        sure = {one: (share * back.get(one, {}).get(word, 0.0)) ** 0.5 for one, share in row.items()}
        best = max(sure, key=lambda one: sure[one])
        if word and seen[word] >= LEAST_SEEN and sure[best] * seen[word] / (seen[word] + 1) >= LEAST_SURE:
            found[word] = best
    return found


def written(code: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in (DATA / "words.txt").read_text("utf-8").splitlines()[1:]:
        english, *forms = line.split("|")
        for form in forms[CODES.index(code)].split():
            first, spelled = FIRST if form.startswith(FIRST) else "", form.removeprefix(FIRST).replace("_", " ")
            found.setdefault(first + _key(spelled, code, found), english)
    for line in (DATA / "lexicon" / f"{code}.tsv").read_text("utf-8").splitlines():
        spelled, english = line.split("\t")
        found.setdefault(_key(spelled, code, found), english)
    return found


def _key(spelled: str, code: str, known: Container[str]) -> str:
    """A word without its accents, but where it would be another then: French "né" is not "ne"."""
    plain = joined(tokenise(spelled))
    is_other = plain != spelled and (plain in stop_words(code) or plain in known)
    return spelled.casefold() if is_other else plain


def common(mintaka: Sequence[dict], schema_questions: Path) -> list[str]:
    told = [(one["question"], [name["mention"] for name in one["questionEntity"]]) for one in mintaka]
    for line in (schema_questions / "questions.jsonl").read_text("utf-8").splitlines():
        one = json.loads(line)
        told.append((one["question"], [name["text"] for name in one["mentions"]]))
    seen = Counter(word for text, names in told for word in set(words(without(text, names))))
    return sorted(word for word, n in seen.items() if n > 1 and len(word) > 1 and word.isascii() and word.isalpha())


def main() -> None:
    given = parser.parse_args()
    mintaka = json.loads(gzip.decompress(given.mintaka.read_bytes()))
    told = {code: {**lexicon(pairs(mintaka, code)), **written(code)} for code in CODES}
    known = {code: {word: said for word, said in own.items() if not word.isdigit()} for code, own in told.items()}
    (SHIPPED / LEXICON).write_text(
        json.dumps(known, ensure_ascii=False, indent=0, sort_keys=True, separators=(",", ":")) + "\n", "utf-8"
    )
    print({code: len(own) for code, own in known.items()}, flush=True)
    english = common(mintaka, given.schema_questions)
    vectors = MultilingualEmbedder().embed(english, role="query")
    scaled = np.rint(127 * vectors / np.abs(vectors).max(axis=1, keepdims=True)).astype(np.int8)
    np.savez_compressed(
        SHIPPED / NEAREST, words=np.frombuffer(" ".join(english).encode(), dtype=np.uint8), vectors=scaled
    )
    print(len(english))


main()
