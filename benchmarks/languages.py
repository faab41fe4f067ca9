"""Questions in nine languages over one base: the first answer, language by language.

    clew build kb.txt.gz --class movie -o metaqa.kb
    python benchmarks/languages.py metaqa.kb benchmarks/data/languages/metaqa.jsonl [--show de]

A line of the file has the gold answers (names, a number or true/false) and one question a language, names as the base
spells them. They were translated one by one, before anything was tried with them.
"""

import argparse
import json
from pathlib import Path

import clew
from clew.core.types import Answer
from clew.lab.evaluation.comparison import bootstrap

parser = argparse.ArgumentParser()
parser.add_argument("base", type=Path)
parser.add_argument("questions", type=Path)
parser.add_argument("--method", default="auto")
parser.add_argument("--show", nargs="*", default=(), help="languages whose wrong answers are listed")
parser.add_argument("--only", nargs="*", default=(), help="languages to ask in")


def is_right(answer: Answer, gold: list[str] | bool | int) -> bool:
    if isinstance(gold, list):
        return bool(answer.candidates) and answer.candidates[0].node.name in gold
    return answer.value == gold and isinstance(answer.value, bool) == isinstance(gold, bool)


def main() -> None:
    given = parser.parse_args()
    base = clew.open(given.base)
    rows = [json.loads(line) for line in given.questions.read_text("utf-8").splitlines()]
    for code in given.only or [key for key in rows[0] if key not in ("id", "gold")]:
        right = []
        for row in rows:
            answer = base.ask(row[code], method=given.method)
            right.append(float(is_right(answer, row["gold"])))
            if code in given.show and not right[-1]:
                got = answer.candidates[0].node.name if answer.candidates else answer.value
                print(f"  {row['id']:>2} {row[code]}  got {got}  {(answer.text or '')[:60]!r}")
        mean, found = sum(right) / len(right), bootstrap(right)
        print(f"{code}  {100 * mean:5.1f}  [{100 * found.low:.1f}, {100 * found.high:.1f}]  n {len(right)}", flush=True)


main()
