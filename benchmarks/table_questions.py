"""Count the questions of WikiTableQuestions that are answered correctly.

    python benchmarks/table_questions.py ../shared/data/wikitablequestions WORK --count 300 [--model batch:WORK/batch]

Questions are about the fifth of the tables whose names have a SHA-1 that 5 divides, in a random order. Each table is
built by `clew.build` and asked. An answer is right if its rows, its value or its matches are the
gold texts, compared as the benchmark's own evaluator does: numbers as numbers, texts without marks and capitals. With
a batch folder the first run collects the prompts.
"""

import argparse
import datetime
import gzip
import hashlib
import json
import random
import re
import tarfile
import unicodedata
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import clew
from clew.core.errors import ClewError, PendingError
from clew.core.types import Answer, NodeRef


def is_left_out(table: str) -> bool:
    """Return whether a table is in the fifth to measure on."""
    return int(hashlib.sha1(table.encode()).hexdigest(), 16) % 5 == 0


def plain(cell: Any) -> str | float:
    """Return a cell as it is compared."""
    text = unicodedata.normalize("NFKD", str(getattr(cell, "name", cell)))
    text = "".join(letter for letter in text if not unicodedata.combining(letter)).casefold()
    text = re.sub(r"[‘’´`]", "'", re.sub(r"[‐‑‒–—−]", "-", text)).strip(' "')
    text = re.sub(r"(\s*(\[[^]]*\]|\([^)]*\)|[*†‡#]))+$", "", text).strip(' ".')
    for way in ("%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y"):
        with suppress(ValueError):
            return datetime.datetime.strptime(text, way).date().isoformat()
    text = {"true": "yes", "false": "no"}.get(text, text)
    try:
        return float(text.replace(",", "").lstrip("$€£").rstrip("%"))
    except ValueError:
        return re.sub(r"\s+", " ", text)


def said(answer: Answer) -> list[Any]:
    """Return the cells that an answer contains, of the last column if its rows are named."""
    if answer.rows:
        return [row[-1] if len(row) > 1 and isinstance(row[0], NodeRef) else row[0] for row in answer.rows]
    if answer.value is not None:
        return [answer.value]
    return [candidate.node for candidate in answer.matches]


def rounded(cells: list[Any], gold: list[str]) -> list[Any]:
    """Return the cells, with numbers as precise as those of the data set."""
    places = max((len(text.partition(".")[2]) for text in gold if "." in text), default=None)
    return [round(cell, places) if isinstance(cell, float) and places is not None else cell for cell in cells]


def without_type(cell: Any) -> Any:
    """Return only the key of a row without a name, which is called by its type and key: "plot 24", "order 2015-01"."""
    if not isinstance(cell, NodeRef):
        return cell
    return re.sub(rf"^{re.escape(cell.type)} (?=\S*\d\S*$)", "", cell.name, flags=re.IGNORECASE)


def is_right(found: Iterable[Any], gold: Iterable[str]) -> bool:
    """Return whether two lists of cells are equal as sets."""
    cells, wanted = list(found), {plain(cell) for cell in gold}
    return wanted in ({plain(cell) for cell in cells}, {plain(without_type(cell)) for cell in cells})


def ask(case: dict[str, Any], bases: Path, tables: Path, model: str | None, method: str = "auto") -> dict[str, Any]:
    """Ask a question over its table, and compare the answer."""
    base = bases / f"{case['table']}.kb"
    try:
        if not base.exists():
            clew.build([tables / case["table"]], base)
        answer = clew.open(base, model=model).ask(case["question"], method=method)
    except PendingError:
        return {**case, "verdict": "pending"}
    except ClewError as error:
        return {**case, "verdict": "error", "error": str(error)}
    found = [str(getattr(cell, "name", cell)) for cell in said(answer)]
    verdict = "refused" if answer.state == "not_found" else "right" if is_right(found, case["answers"]) else "wrong"
    query = answer.query.get("query") or answer.query.get("text")
    told = {
        "state": answer.state,
        "certainty": answer.certainty,
        "said": found[:20],
        "text": answer.text,
        "query": query,
    }
    return {**case, "verdict": verdict, **told}


def cases(data: Path, work: Path, *, trained: bool, seed: int = 0) -> list[dict[str, Any]]:
    """Return the questions of the tables to measure on, or of the others, in a random order. Unpack the tables."""
    tables = work / "tables"
    (work / "bases").mkdir(parents=True, exist_ok=True)
    if not tables.exists():
        with tarfile.open(data / "tables.tar.xz") as archive:
            archive.extractall(tables, filter="data")
    with gzip.open(data / "train.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [case for case in map(json.loads, lines) if is_left_out(case["table"]) != trained]
    random.Random(seed).shuffle(found)
    return found


def main() -> None:
    """Ask the questions and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--trained", action="store_true", help="the other four fifths of the tables, to develop on")
    given = parser.parse_args()
    tables, bases = given.work / "tables", given.work / "bases"
    asked = cases(given.data, given.work, trained=given.trained, seed=given.seed)
    results = [ask(case, bases, tables, given.model, given.method) for case in asked[: given.count]]
    text = "".join(json.dumps(result, ensure_ascii=False) + "\n" for result in results)
    (given.work / "results.jsonl").write_text(text, encoding="utf-8")
    print(len(results), dict(Counter(result["verdict"] for result in results)))
    for least in (0.5, 0.7, 0.8):
        sure = [
            one["verdict"] for one in results if (one.get("certainty") or 0) >= least and one["verdict"] != "refused"
        ]
        print(f"certainty of {least} or more: {len(sure)}, wrong {sure.count('wrong')}")


if __name__ == "__main__":
    main()
