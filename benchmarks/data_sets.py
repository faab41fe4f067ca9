"""Count the questions about people's own data that are answered correctly.

    python benchmarks/data_sets.py WORK FOLDER … [--out RESULTS.jsonl]

Each FOLDER has `data/`, which is built without options, and `questions.jsonl`: `question`, `answers` (texts, none if
the data has no answer), perhaps `kind` and `between` for questions that go through rows in between. Answers are
compared as in table_questions.py, and numbers as precisely as the data set gives them. To refuse a question without an
answer is right.
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from table_questions import is_right, rounded, said

import clew
from clew.core.errors import ClewError


def built(folder: Path, work: Path) -> clew.Base | None:
    """Return the base of a data set. Build it first if needed."""
    base = work / f"{folder.parent.name}_{folder.name}.kb"
    try:
        if not base.exists():
            clew.build([folder / "data"], base)
        return clew.open(base)
    except ClewError as error:
        print(folder.name, error)
        return None


def questions(folder: Path) -> list[dict[str, Any]]:
    """Return the questions of a data set."""
    return [json.loads(line) for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()]


def judged(base: clew.Base, question: dict[str, Any]) -> dict[str, Any]:
    """Ask a question and compare the answer."""
    answer, gold = base.ask(question["question"]), question["answers"]
    found = [str(getattr(cell, "name", cell)) for cell in said(answer)]
    is_refused = answer.state == "not_found"
    is_same = is_refused if not gold else not is_refused and is_right(rounded(said(answer), gold), gold)
    told = {"state": answer.state, "certainty": answer.certainty, "said": found[:20], "text": answer.text}
    told["unknown"] = [one.text for one in answer.unknown]
    verdict = "right" if is_same else "refused" if is_refused else "wrong"
    return {**question, "verdict": verdict, **told, "query": answer.query.get("query")}


def asked(folders: list[Path], work: Path) -> Iterator[dict[str, Any]]:
    """Yield the results of all questions. Those over data that is not built are refused."""
    for folder in folders:
        base = built(folder, work)
        for question in questions(folder):
            told = {"verdict": "refused"} if base is None else judged(base, question)
            yield {**question, **told, "folder": folder.name}


def report(results: list[dict[str, Any]]) -> None:
    """Print the counts: all, by data set, through rows in between, and of what is put forward."""
    groups = defaultdict(list)
    for one in results:
        groups[one["folder"]].append(one)
        groups["all"].append(one)
        if one.get("between"):
            groups["through rows in between"].append(one)
        if not one["answers"]:
            groups["without an answer"].append(one)
        if one.get("state") == "found":
            groups["found"].append(one)
        if (one.get("certainty") or 0) >= 0.7 and one["verdict"] != "refused":
            groups["certainty of 0.7 or more"].append(one)
    for name, group in groups.items():
        print(f"{name}: n {len(group)}", dict(Counter(one["verdict"] for one in group)))


def main() -> None:
    """Ask the questions and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    results = list(asked(given.folders, given.work))
    if given.out:
        given.out.write_text(
            "".join(json.dumps(one, ensure_ascii=False, default=str) + "\n" for one in results), "utf-8"
        )
    report(results)


if __name__ == "__main__":
    main()
