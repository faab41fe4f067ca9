"""Reader for manual pages with man(7) macros: sections, paragraphs, items and examples without markup."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from clew.core.errors import SourceError
from clew.documents.extracted import Extracted
from clew.documents.formats.builder import TextBuilder
from clew.documents.formats.text_file import read_text

REQUEST = re.compile(r"[.'][ \t]*(\w+)?[ \t]*(.*)")
IS_PAGE = re.compile(r"^[.'](?:TH|Dd)[ \t]", re.MULTILINE)
OTHER_MACROS = re.compile(r"^\.Dd[ \t]", re.MULTILINE)
DEFINITION = re.compile(r"\.[ \t]*(?:de|ig)\b")
CONDITION = re.compile(r"[.'][ \t]*(?:if|ie|el)\b")
ESCAPE = re.compile(r"""\\(?:f(?:\[\w*\]|\(..|.)|s[-+]?\d|[hvk]'[^']*'|\*?(?:\[([^\]]*)\]|\((..))|\*.|(.))""")
NAMES_AND_LETTERS = """
aq ' dq " cq ’ oq ‘ lq “ rq ” em — en – hy - mi - bu • co © rg ® rs \\ ti ~ ha ^ ga ` at @ sh # bv | -> → <- ← <= ≤ >= ≥
mu × de ° Aq ' L" “ R" ” -- — - - e \\ \\ \\ ' ' ` ` . .
"""
NAMED = NAMES_AND_LETTERS.split()
LETTERS = dict.fromkeys(" ~0t", " ") | dict(zip(NAMED[::2], NAMED[1::2], strict=True))
"""Text of each escape. All other escapes print nothing."""
FONTS = frozenset({"B", "I", "R", "SM", "SB"})
PARAGRAPHS = frozenset({"PP", "P", "LP", "TP", "TQ", "HP", "IP", "RS", "RE", "sp", "br", "Sp", "Pp"})
VERBATIM = {"nf": True, "EX": True, "Vb": True, "fi": False, "EE": False, "Ve": False}


def is_manual_page(text: str) -> bool:
    """Return whether a text starts like a manual page."""
    return IS_PAGE.search(text) is not None


def read_manual_page(file: Path) -> Extracted:
    """Read a manual page. Raise SourceError for pages with other macros."""
    text = read_text(file)
    if OTHER_MACROS.search(text) or not is_manual_page(text):
        raise SourceError("the manual page does not use man(7) macros: run `man FILE > FILE.txt`", file=file)
    page = _Page()
    for line in _printable(text.split("\n")):
        page.take(line)
    page.end()
    return page.builder.extracted(page.title)


def _printable(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines without macro definitions and conditional parts."""
    defining, depth = False, 0
    for line in lines:
        if defining or DEFINITION.match(line):
            defining = line.strip() != ".."
            continue
        inside = depth > 0 or CONDITION.match(line) is not None
        depth = max(0, depth + (line.count("\\{") - line.count("\\}")) * inside)
        if not inside:
            yield line.removesuffix("\\")


class _Page:
    def __init__(self) -> None:
        self.builder = TextBuilder()
        self.title = ""
        self._lines: list[str] = []
        self._verbatim = False
        self._heading = 0  # level of a heading whose text is on the next line
        self._tag = 0  # number of lines left in the name of an item

    def take(self, line: str) -> None:
        """Process a request or a line of text."""
        request = REQUEST.fullmatch(line)
        if request is None:
            self._add(printed(line))
            return
        name, rest = request.group(1) or "", request.group(2)
        if name == "TH":
            words = arguments(rest)
            self.title = f"{words[0].lower()}({words[1]})" if len(words) > 1 else "".join(words)
        elif name in {"SH", "SS"}:
            self.end()
            self._heading = 1 + (name == "SS")
            self._add(" ".join(arguments(rest)))
        elif name in VERBATIM:
            self.end()
            self._verbatim = VERBATIM[name]
        elif name in PARAGRAPHS:
            self.end()
            self._tag = int(name == "TP")
            if name == "IP":
                self._add(f"{' '.join(arguments(rest)[:1])}:".removeprefix(":").replace("•:", "•"))
        elif name in FONTS:
            self._add(" ".join(arguments(rest)))
        elif name and set(name) <= set("BIRS") and len(name) == 2:
            self._add("".join(arguments(rest)))

    def end(self) -> None:
        """Add the collected lines as a paragraph."""
        text = "\n".join(self._lines)
        self._lines = []
        if self._verbatim:
            self.builder.preformatted(text)
        else:
            self.builder.paragraph(text)

    def _add(self, text: str) -> None:
        if not text.strip() and not self._verbatim:
            self.end()
        elif self._heading and text:
            self.builder.heading(text, self._heading)
            self._heading = 0
        else:
            self._lines.append(f"{text.rstrip(':')}:" if self._tag else text)
            self._tag = 0


def arguments(rest: str) -> list[str]:
    """Split the arguments of a request. Quoted words stay together."""
    words = shlex.shlex(rest, posix=False)
    words.whitespace_split, words.commenters, words.quotes = True, "", '"'
    try:
        return [printed(word.strip('"')) for word in words]
    except ValueError:
        return [printed(rest.replace('"', ""))]


def printed(text: str) -> str:
    """Return a line as printed: escapes replaced, comments removed."""
    text = re.sub(r'\\".*', "", text)
    return ESCAPE.sub(lambda match: LETTERS.get(next(filter(None, match.groups()), ""), ""), text)
