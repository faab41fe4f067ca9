"""Questions in four languages over manual pages in them: at which place a passage that says the answer stands.

    python benchmarks/languages_documents.py FOLDER benchmarks/data/languages/manuals.jsonl [--method bm25] [--only de]

FOLDER holds one base a language, `de.kb` and so on, built from the pages of Debian's manpages-de, -es, -fr and -ja as
text (`groff -Tutf8 -mandoc -Kutf8`). A passage is right where it stands in the page and has the words of the gold.
The questions were written before anything was tried with them.
"""

import argparse
import json
from pathlib import Path

import clew
from clew.core.types import Candidate, Passage

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path)
parser.add_argument("questions", type=Path)
parser.add_argument("--method", default="auto")
parser.add_argument("--only", nargs="*", default=("de", "es", "fr", "ja"))
parser.add_argument("--embedder")


def is_right(row: dict[str, str], found: Candidate, text: str) -> bool:
    """Passages that stand side by side share a place: their quotations are its evidence."""
    texts = [text, *(piece.text for piece in found.evidence if isinstance(piece, Passage))]
    return row["file"] in found.node.key and any(row["says"] in one for one in texts)


def main() -> None:
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.questions.read_text("utf-8").splitlines()]
    for code in given.only:
        base = clew.open(given.folder / f"{code}.kb", embedder=given.embedder)
        places = []
        for row in rows:
            answer = base.ask(row[code], method=given.method)
            found = [(place, one) for place, one in enumerate(answer.candidates, 1) if one.node.type == "passage"]
            right = [place for place, one in found if is_right(row, one, str(base.show(one.node.key)))]
            places.append(right[0] if right else None)
        first, five, ten = (sum(place is not None and place <= most for place in places) for most in (1, 5, 10))
        print(
            f"{code} {given.method}: first {first}, in five {five}, in ten {ten} of {len(rows)}  {places}", flush=True
        )


main()
