"""Lenient HTML as a tree: end tags may be missing, tags may cross, nothing nests deeper than a bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

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
"""Tag → the open tags it ends, and those beyond which it does not look for them."""
DEEPEST = 150


@dataclass(slots=True)
class Node:
    """An element with its children in order, texts among them."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)


class _Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("root")
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A new element ends those that cannot hold it."""
        if tag in ENDS:
            self._end(*ENDS[tag])
        elif tag in BLOCKS:
            self._end(frozenset({"p"}), BLOCKS - {"p"})
        node = Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in VOID and len(self._open) < DEEPEST:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """`<a id="x"/>` holds nothing."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID and self._open[-1].tag == tag:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        """End the element, and what was left open inside; an end tag without a start is passed over."""
        self._end(frozenset({tag}), frozenset({"table"}) if tag != "table" else frozenset())

    def handle_data(self, data: str) -> None:
        """Text of the innermost element."""
        self._open[-1].children.append(data)

    def _end(self, ended: frozenset[str], beyond: frozenset[str]) -> None:
        for place in range(len(self._open) - 1, 0, -1):
            tag = self._open[place].tag
            if tag in ended:
                del self._open[place:]
                return
            if tag in beyond:
                return


def parsed(text: str) -> Node:
    """The tree of a page or a part of one."""
    tree = _Tree()
    tree.feed(text)
    tree.close()
    return tree.root
