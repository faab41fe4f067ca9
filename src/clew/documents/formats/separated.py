"""Tables of separated values, whatever separates them."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from clew.core.errors import SourceError
from clew.documents.extracted import Extracted
from clew.documents.formats.builder import TextBuilder
from clew.documents.formats.text_file import read_text

DELIMITERS = ",;\t|"
SAMPLE = 20
LONGEST_CELL = 10_000_000


def read_separated(file: Path) -> Extracted:
    """The header is the first row that is as wide as most; what stands alone above it is the caption."""
    text = read_text(file)
    lines = [line for line in text[:100_000].splitlines()[: 4 * SAMPLE] if line.strip()]
    delimiter = "\t" if file.suffix.lower() == ".tsv" else _delimiter(lines[-SAMPLE:])
    csv.field_size_limit(LONGEST_CELL)
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise SourceError(f"the table cannot be read: {error}", file=file) from error
    if not rows:
        raise SourceError("the table is empty", file=file)
    width = Counter(map(len, rows[: 10 * SAMPLE])).most_common(1)[0][0]
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows[:SAMPLE]]
    first = next((place for place, count in enumerate(filled) if count > 1), 0) if width > 1 else 0
    builder = TextBuilder()
    builder.table(rows[first:], ". ".join(" ".join(row).strip() for row in rows[:first]))
    return builder.extracted()


def _delimiter(lines: Sequence[str]) -> str:
    """The one that cuts the lines into the same number of cells, the more cells the better."""

    def quality(delimiter: str) -> tuple[bool, int]:
        try:
            counts = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        except csv.Error:
            return (False, 0)
        return (len(set(counts)) == 1 and counts[0] > 1, min(counts, default=0))

    return max(DELIMITERS, key=quality)
