"""How well and how fast PDFs are read: python benchmarks/pdf_text.py FOLDER

For each PDF below the folder: pages per second of CPU time with and without tables; tables, headings and contents
found; and the share of words (line-end hyphens left aside) that are not among the words of pdfium's own text of the
page, so glued or split on the way. Prints a Markdown table.
"""

import re
import sys
import time
from collections import Counter
from pathlib import Path

import pypdfium2 as pdfium

from clew.documents.extracted import Extracted
from clew.documents.formats.pdf import read_pdf
from clew.documents.formats.pdf_words import PLAIN, mended


def own_words(file: Path) -> list[Counter]:
    """The words of each page as pdfium writes them, words divided at a line end as their halves."""
    opened = pdfium.PdfDocument(file)
    pages = []
    for page in opened:
        text = page.get_textpage().get_text_range()
        text = re.sub(r"[\ufffe\x02]", "- ", text)
        words = (mended(word.translate(PLAIN)) for word in re.split(r"[\s\x00-\x1f]+", text))
        pages.append(Counter(word for word in words if word))
    return pages


def foreign_words(extracted: Extracted, own: list[Counter]) -> tuple[int, int, list[str]]:
    """Words read, and those that the page does not have."""
    total, foreign, examples = 0, 0, []
    left = [Counter(words) for words in own]
    for line in extracted.lines:
        words = extracted.text[line.start : line.end].replace("\\|", "|").split()
        block_is_table = extracted.text[line.start : line.start + 2] == "| "
        words = [word for word in words if word not in ("|", "---")] if block_is_table else words
        for place, word in enumerate(words):
            total += 1
            page = left[line.page - 1]
            if page[word] > 0:
                page[word] -= 1
            elif page[f"{word}-"] > 0 and place == len(words) - 1:
                page[f"{word}-"] -= 1
            elif block_is_table and line.page < len(left) and left[line.page][word] > 0:
                left[line.page][word] -= 1  # the rest of a row that the end of the page has cut
            else:
                foreign += 1
                examples.append(f"{line.page}:{word}")
    return total, foreign, examples


def main(folder: Path) -> None:
    print("| file | pages | pages/s | words | foreign | tables | headings | contents |")
    print("| --- |" + " ---: |" * 7)
    pages = seconds = words = foreign = 0
    for file in sorted(folder.rglob("*.pdf")):
        began = time.process_time()
        extracted = read_pdf(file)
        own_seconds = time.process_time() - began
        total, strange, examples = foreign_words(extracted, own_words(file))
        kinds = Counter(block.kind for block in extracted.blocks)
        speed = f"{extracted.pages / own_seconds:.0f}"
        counts = f"{kinds['table']} | {kinds['heading']} | {kinds['contents']}"
        print(f"| {file.name} | {extracted.pages} | {speed} | {total} | {strange} | {counts} |")
        if "--examples" in sys.argv:
            print(" ".join(examples[:30]))
        pages, words, foreign = pages + extracted.pages, words + total, foreign + strange
        seconds += own_seconds
    print(f"| all | {pages} | {pages / seconds:.0f} | {words} | {foreign / words:.3%} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
