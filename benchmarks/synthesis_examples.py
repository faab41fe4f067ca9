"""Ten random questions of a benchmark with their gold, as Markdown: benchmarks/synthesis_examples.py DIR [SEED]."""

import json
import random
import sys
from pathlib import Path


def main() -> None:
    rows = [json.loads(line) for line in (Path(sys.argv[1]) / "questions.jsonl").read_text("utf-8").splitlines()]
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    print("| question | wording | gold query | text | answers |\n| --- | --- | --- | --- | --- |")
    for row in random.Random(seed).sample(rows, min(10, len(rows))):
        text = "; ".join(one["text"] for one in row["textual"]["properties"]) if row["textual"] else "—"
        more = f" and {len(row['answers']) - 3} more" if len(row["answers"]) > 3 else ""
        cells = (
            row["question"],
            f"{row['role']}, {row['wording']['how']}",
            f"`{row['query']}`",
            text,
            f"{', '.join(row['answers'][:3])}{more} (of {len(row['relational_set'])} candidates)",
        )
        print("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")


if __name__ == "__main__":
    main()
