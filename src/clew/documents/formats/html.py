"""HTML and EPUB reader based on the standard library. It skips menus and reads layout tables as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree.ElementTree import Element

from clew.core.errors import SourceError
from clew.core.limits import spend
from clew.documents.extracted import Extracted
from clew.documents.formats.builder import TextBuilder
from clew.documents.formats.grid import Cell, spread
from clew.documents.formats.packed import Package, resolve, text_of, unpacked, whole_number
from clew.documents.formats.text_file import decoded, read_text

SKIPPED_TAGS = "script style template noscript svg nav head button select textarea iframe object audio video"
SKIPPED = frozenset(SKIPPED_TAGS.split())
BOLD = frozenset({"b", "strong"})
MENUS = frozenset({"navigation", "search", "banner", "contentinfo"})
"""ARIA roles of elements around the text."""
MENU_CLASS = re.compile(r"(?i:\bnav(?:igation|header|footer|bar)?\b)")
"""Classes and summaries of elements with links to other pages."""
MAX_MENU_LETTERS = 200
"""Maximum letters outside links in a menu. More letters mean that an element with such a class wraps the page."""
MAX_CELL_SHARE, LONG_CELL = 0.7, 400
"""A table without a header is a layout if one cell has more than this share of its letters, and more than this many."""
LONGEST_LABEL = 60
"""Maximum characters of a header cell that labels the next cell of a layout, such as "Note"."""
HEADINGS = {f"h{level}": level for level in range(1, 7)}
QUESTION = re.compile(r".{5,250}\?[\"”’)]*", re.DOTALL)
ASKED = re.compile(r"Q(uestion)?[\s\d]{0,4}[.:)]\s*\S.{5,250}\?", re.DOTALL)
PERMALINK = re.compile(r"\s*[¶#§🔗]\s*$")


def read_html(file: Path) -> Extracted:
    """Read the visible text of an HTML file. Spans count its characters without markup."""
    return read_page(read_text(file))


def read_page(text: str) -> Extracted:
    """Read the text of an HTML page."""
    root = parsed(text)
    builder = TextBuilder()
    HtmlWalk(builder).add(root)
    if not builder.blocks:  # an unclosed menu element hides everything after it
        HtmlWalk(builder, SKIPPED - {"nav", "head", "object"}).add(root)
    return builder.extracted(title_of(root), builder.first_heading())


def read_epub(file: Path) -> Extracted:
    """Read the chapters of a book in spine order. Raise SourceError if it is damaged or encrypted."""
    builder = TextBuilder()
    with unpacked(file, "EPUB") as package:
        root = package.xml("META-INF/container.xml").find(".//rootfile")
        if root is None:
            raise SourceError("the EPUB lists no content: export or download it again", file=file)
        opf = root.get("full-path", "")
        book = package.xml(opf)
        chapters = _chapters(book, opf, package)
        locked = package.content("META-INF/encryption.xml") if "META-INF/encryption.xml" in package.names else b""
        if any(f'"{name}"'.encode() in locked for name in chapters):
            raise SourceError("the EPUB has copy protection: use a copy without it", file=file)
        for name in chapters:
            HtmlWalk(builder).add(parsed(decoded(package.content(name))))
        title = text_of(book.find("metadata/title"))
    return builder.extracted(title, builder.first_heading())


def _chapters(book: Element, opf: str, package: Package) -> list[str]:
    """Return the parts to read in order, without the table of contents."""
    items = {item.get("id"): item for item in book.iter("item") if "nav" not in item.get("properties", "").split()}
    contents = {
        resolve(opf, one.get("href", "")) for one in book.iter("reference") if one.get("type") in {"toc", "cover"}
    }
    found = [items[one.get("idref")] for one in book.iter("itemref") if one.get("idref") in items]
    names = [resolve(opf, item.get("href", "")) for item in found]
    return [name for name in dict.fromkeys(names) if name in package.names and name not in contents]


def _is_link(node: HtmlNode) -> bool:
    """Return whether all words of an element are links to anchors, as in a table of contents."""

    def words(node: HtmlNode, inside: bool) -> Iterator[tuple[bool, str]]:
        for child in node.children:
            if isinstance(child, str):
                yield inside, child
            else:
                yield from words(child, inside or "#" in child.attributes.get("href", ""))

    pieces = [(inside, text) for inside, text in words(node, False) if any(map(str.isalpha, text))]
    return bool(pieces) and all(inside for inside, _ in pieces)


def title_of(root: HtmlNode) -> str:
    """Return the text of the page's title element."""
    for node in _walk(root):
        if node.tag == "title":
            return "".join(child for child in node.children if isinstance(child, str))
    return ""


@dataclass
class _InlineText:
    """Inline text up to the next block boundary."""

    pieces: list[str] = field(default_factory=list)
    bold: int = 0
    local: int = 0
    linked: int = 0
    letters: int = 0
    """Letters in bold, in links to the same page, in links, and in all."""


class HtmlWalk:
    """Adds the blocks of one page to a builder."""

    def __init__(self, builder: TextBuilder, skipped: frozenset[str] = SKIPPED) -> None:
        self.builder = builder
        self._skipped = skipped
        self._line = _InlineText()
        self._level = 0
        self._term = ""
        self._number = ""  # number of the current list item
        self._contents = False  # table of contents lines were skipped since the last heading

    def add(self, node: HtmlNode) -> None:
        """Add the content of an element."""
        self._block(node)
        self._flush()
        self._end_term()

    def _block(self, node: HtmlNode) -> None:
        for child in node.children:
            if isinstance(child, str):
                self._text(child)
            elif self._is_skipped(child):
                continue
            elif child.tag in BLOCKS:
                self._flush()
                self._add_block(child)
                self._flush()
            else:
                self._inline(child)

    def _add_block(self, node: HtmlNode) -> None:
        if node.tag in HEADINGS:
            self._end_term()
            self._level = HEADINGS[node.tag]
            self._heading(self._plain(node), self._level)
        elif node.tag == "pre":
            self._end_term()
            self.builder.preformatted(self._plain(node))
        elif node.tag == "table":
            self._table(node)
        elif node.tag == "dt" and _is_link(node):
            self._contents = True
        elif node.tag == "dt":
            self._end_term()
            term = " ".join(self._plain(node).split())
            if QUESTION.fullmatch(term):
                self._heading(term, self._level + 1)
            else:
                self._term = PERMALINK.sub("", term)
        elif node.tag == "ol":
            self._numbered(node)
        else:
            self._block(node)
            if node.tag == "dl":
                self._flush()
                self._end_term()

    def _numbered(self, node: HtmlNode) -> None:
        """Add list items with the numbers that a browser shows."""
        number = whole_number(node.attributes.get("start", "").strip(), 1)
        for child in node.children:
            item = HtmlNode("ol", {}, [child])
            if isinstance(child, HtmlNode) and child.tag == "li":
                self._number, number = f"{number}. ", number + 1
            self._block(item)
            self._flush()
            self._number = ""

    def _inline(self, node: HtmlNode, *, bold: bool = False, link: str = "") -> None:
        if self._is_skipped(node):
            return
        if node.tag in BLOCKS:  # a block inside <a> or <b>
            self._flush()
            self._add_block(node)
            self._flush()
            return
        if node.tag == "br":
            self._line.pieces.append(" ")
        bold = bold or node.tag in BOLD
        link = link or (node.attributes.get("href", "") if node.tag == "a" else "")
        for child in node.children:
            if isinstance(child, str):
                self._text(child, bold=bold, link=link)
            else:
                self._inline(child, bold=bold, link=link)

    def _is_skipped(self, node: HtmlNode) -> bool:
        return node.tag in self._skipped or (
            "nav" in self._skipped and (node.attributes.get("role") in MENUS or _is_menu(node))
        )

    def _text(self, text: str, *, bold: bool = False, link: str = "") -> None:
        self._line.pieces.append(text)
        letters = sum(map(str.isalpha, text))  # "9.11" next to a link has no letters
        letters = letters or len("".join(text.split())) * bool(link)
        self._line.letters += letters
        self._line.bold += letters * bold
        self._line.linked += letters * bool(link)
        self._line.local += letters * ("#" in link)

    def _flush(self) -> None:
        line, self._line = self._line, _InlineText()
        text = " ".join("".join(line.pieces).split())
        if not text:
            return
        in_menu = 0 < line.linked == line.letters and not self._level and "nav" in self._skipped
        if 0 < line.local == line.letters or in_menu:
            self._contents = True  # a line of a table of contents, or of a menu above the first heading
            return
        if (line.bold == line.letters and QUESTION.fullmatch(text)) or ASKED.fullmatch(text):
            self._end_term()
            self._heading(text, self._level + 1)
            return
        term, self._term = self._term, ""
        number, self._number = self._number, ""
        self.builder.paragraph(number + (f"{term}: {text}" if term else text))

    def _end_term(self) -> None:
        """Add a pending term without a definition as a paragraph."""
        term, self._term = self._term, ""
        self.builder.paragraph(term)

    def _heading(self, text: str, level: int) -> None:
        blocks = self.builder.blocks
        while self._contents and blocks and blocks[-1].kind == "heading" and blocks[-1].level >= level:
            blocks.pop()  # a heading followed only by links
        self._contents = False
        self.builder.heading(PERMALINK.sub("", text), level)

    def _plain(self, node: HtmlNode) -> str:
        return "".join(_texts(node, self._skipped))

    def _table(self, table: HtmlNode) -> None:
        rows = list(_rows(table))
        if _is_layout(table, rows):
            for cells, _ in rows:
                for cell in cells:
                    label = " ".join(self._plain(cell).split()) if cell.tag == "th" else ""
                    if 0 < len(label) <= LONGEST_LABEL:
                        self._end_term()
                        self._term = label  # the heading of a note
                        continue
                    self._block(cell)
                    self._flush()
            self._end_term()
            return
        self._end_term()
        caption = next((self._plain(part) for part in _walk(table) if part.tag == "caption"), "")
        grid = spread([self._cell(cell) for cell in cells] for cells, _ in rows)
        self.builder.table(grid, caption, [is_header for _, is_header in rows])

    def _cell(self, cell: HtmlNode) -> Cell:
        spans = (whole_number(cell.attributes.get(name, "").strip(), 1) for name in ("colspan", "rowspan"))
        return Cell(self._plain(cell), *spans)


def _is_layout(table: HtmlNode, rows: list[tuple[list[HtmlNode], bool]]) -> bool:
    """Return whether a table only arranges text.

    That is: no row has two texts, it contains headings or tables, or one cell has most of the text.
    """
    letters = [[_letters(cell) for cell in cells] for cells, _ in rows]
    inside = {inner.tag for cells, _ in rows for cell in cells for inner in _walk(cell)}
    if len(rows) < 2 or inside & {"table", *HEADINGS, "pre"} - {"h5", "h6"}:
        return True
    if table.attributes.get("role") in {"presentation", "none"} or all(sum(map(bool, row)) < 2 for row in letters):
        return True
    longest, whole = max(map(max, letters)), sum(map(sum, letters))
    headed = any(cell.tag == "th" for cells, _ in rows for cell in cells)
    return not headed and longest > max(MAX_CELL_SHARE * whole, LONG_CELL)


def _is_menu(node: HtmlNode) -> bool:
    """Return whether an element is a menu: a class of menus and little text outside links, or a row of links."""
    if node.tag not in BLOCKS:
        return False
    if MENU_CLASS.search(f"{node.attributes.get('class', '')} {node.attributes.get('summary', '')}"):
        return _letters(node, linked=False) <= MAX_MENU_LETTERS
    rows = list(_rows(node)) if node.tag == "table" else []
    cells = [cell for cell in rows[0][0] if _letters(cell)] if len(rows) == 1 else []
    return len(cells) > 1 and not any(_letters(cell, linked=False) for cell in cells)


def _letters(node: HtmlNode, *, linked: bool = True) -> int:
    """Count the visible letters and digits, optionally without links."""
    count = 0
    for child in node.children:
        if isinstance(child, str):
            spend(1 + len(child))
            count += sum(map(str.isalnum, child))
        elif child.tag not in SKIPPED and (linked or not (child.tag == "a" and child.attributes.get("href"))):
            count += _letters(child, linked=linked)
    return count


def _rows(table: HtmlNode) -> Iterator[tuple[list[HtmlNode], bool]]:
    """Yield the rows of a table without nested tables, and whether each row has only header cells."""
    for child in table.children:
        if isinstance(child, str):
            continue
        if child.tag == "tr":
            cells = [cell for cell in child.children if isinstance(cell, HtmlNode) and cell.tag in {"td", "th"}]
            if cells:
                yield cells, table.tag == "thead" or all(cell.tag == "th" for cell in cells)
        elif child.tag in {"td", "th"}:
            yield [child], False
        elif child.tag not in {"table", "caption"}:
            yield from _rows(child)


def _walk(node: HtmlNode) -> Iterator[HtmlNode]:
    """Yield all descendant elements in order."""
    for child in node.children:
        if isinstance(child, HtmlNode):
            spend(1)
            yield child
            yield from _walk(child)


def _texts(node: HtmlNode, skipped: frozenset[str]) -> Iterator[str]:
    for child in node.children:
        if isinstance(child, str):
            spend(1 + len(child))
            yield child
        elif child.tag == "br":
            yield "\n"
        elif child.tag not in skipped:
            separate = child.tag in BLOCKS
            yield "\n" if separate else ""
            yield from _texts(child, skipped)
            yield "\n" if separate else ""


# Lenient HTML parser: end tags may be missing or crossed, and the nesting depth is limited.

VOID_TAGS = "area base br col embed hr img input link meta param source track wbr"
VOID = frozenset(VOID_TAGS.split())
BLOCK_TAGS = """
address article aside blockquote body caption center dd details div dl dt fieldset figure figcaption footer form header
hr html li main menu ol p pre section summary table tbody td tfoot th thead tr ul h1 h2 h3 h4 h5 h6
"""
BLOCKS = frozenset(BLOCK_TAGS.split())
ENDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu"})),
    "dt": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "dd": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "td": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "th": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "tr": (frozenset({"tr"}), frozenset({"table"})),
    **dict.fromkeys(("thead", "tbody", "tfoot"), (frozenset({"thead", "tbody", "tfoot"}), frozenset({"table"}))),
}
"""Tag → open tags that it closes, and tags that limit the search for them."""
DEEPEST = 150
"""Maximum depth of the tree. The content of deeper elements goes to their parent, so that recursion is safe."""
CHARS_PER_STEP = 1000
"""Characters per step of work when searching for the end of a comment."""


@dataclass(slots=True)
class HtmlNode:
    """An element and its children, which are elements or texts."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[HtmlNode | str] = field(default_factory=list)


class _Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = HtmlNode("root")
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element, and close the elements that cannot contain it."""
        if tag in ENDS:
            self._end(*ENDS[tag])
        elif tag in BLOCKS:
            self._end(frozenset({"p"}), BLOCKS - {"p"})
        node = HtmlNode(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in VOID and len(self._open) < DEEPEST:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add an empty element such as `<a id="x"/>`."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID and self._open[-1].tag == tag:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Close an element and all open elements inside it. Ignore an end tag without a start tag."""
        self._end(frozenset({tag}), frozenset({"table"}) if tag != "table" else frozenset())

    def handle_data(self, data: str) -> None:
        """Add text to the innermost element."""
        self._open[-1].children.append(data)

    def _end(self, ended: frozenset[str], beyond: frozenset[str]) -> None:
        for index in range(len(self._open) - 1, 0, -1):
            tag = self._open[index].tag
            if tag in ended:
                del self._open[index:]
                return
            if tag in beyond:
                return


def parsed(text: str) -> HtmlNode:
    """Parse a page or a fragment."""
    end = text.rfind(">") + 1
    for opening, closing in (("<!--", "-->"), ("<![", "]>")):  # without an end, the parser searches to the end
        last = text.rfind(closing, 0, end) + 1
        spend(text.count(opening, last, end) * (end - last) // CHARS_PER_STEP)
    tree = _Tree()
    tree.feed(text[:end])
    tree.close()
    tree.handle_data(unescape(text[end:]))  # no tag ends here, and the parser would search for one repeatedly
    return tree.root
