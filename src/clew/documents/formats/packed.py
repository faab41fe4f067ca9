"""Files that are ZIP archives of XML parts, unpacked within bounds: no zip bombs, no entities, no links outside."""

from __future__ import annotations

import posixpath
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from clew.core.errors import SourceError
from clew.core.limits import allow

MOST_UNPACKED = 400_000_000
MOST_RATIO = 200
"""How many bytes the parts of one file may unpack to, in all and for each of its own; text packs about tenfold."""
SMALL = 5_000_000
MOST_PARTS = 20_000
OLD_CONTAINER = b"\xd0\xcf\x11\xe0"
"""How old Office files begin, and new ones that are encrypted."""
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    ElementTree.ParseError,
    struct.error,
    KeyError,
    ValueError,
    IndexError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OSError,
)
"""What unpacking and parsing raise on damaged files; deep nesting is a RuntimeError."""


class Package:
    """The parts of an open archive, by name; what is unpacked is counted."""

    def __init__(self, archive: zipfile.ZipFile, file: Path) -> None:
        self.file = file
        self.names = frozenset(archive.namelist())
        self._archive = archive
        self._left = self._most = min(MOST_UNPACKED, SMALL + MOST_RATIO * file.stat().st_size)

    def content(self, name: str) -> bytes:
        """The content of a part; a missing part is a KeyError."""
        with self._archive.open(name) as part:
            content = part.read(self._left + 1)
        self._left -= len(content)
        if self._left < 0:
            raise SourceError(f"the file unpacks to more than {self._most // 1_000_000} MB: a zip bomb", file=self.file)
        allow(len(content))
        return content

    def xml(self, name: str) -> Element:
        """The root of a part, tags and attributes without their namespaces."""
        root = ElementTree.fromstring(self.xml_bytes(name))  # noqa: S314 - entities are refused
        for element in root.iter():
            strip_namespaces(element)
        return root

    def xml_bytes(self, name: str) -> bytes:
        """A part that declares no entities: they are how a small XML file grows without bound or reads others."""
        content = self.content(name)
        if any("<!ENTITY".encode(encoding) in content for encoding in ("ascii", "utf-16-le", "utf-16-be")):
            raise SourceError("the file declares XML entities, which no office program writes", file=self.file)
        return content

    def optional(self, name: str) -> Element:
        """A part as XML, or an empty element where there is none."""
        return self.xml(name) if name in self.names else Element("none")

    def related(self, part: str) -> dict[str, tuple[str, str]]:
        """What an Office part refers to: id → (kind, name of the part)."""
        folder, name = posixpath.split(part)
        found = {}
        for relation in self.optional(posixpath.join(folder, "_rels", f"{name}.rels")).iter("Relationship"):
            if relation.get("TargetMode") != "External":
                target = resolve(part, relation.get("Target", ""))
                found[relation.get("Id", "")] = (relation.get("Type", "").rpartition("/")[2], target)
        return found

    def main_part(self, default: str) -> str:
        """Where an Office file keeps its content."""
        return next((name for kind, name in self.related("").values() if kind == "officeDocument"), default)

    def core_title(self) -> str:
        """The title among the properties of an Office file."""
        return text_of(self.optional("docProps/core.xml").find("title"))


@contextmanager
def unpacked(file: Path, what: str) -> Iterator[Package]:
    """The parts of a file; whatever is wrong with it inside the block is a SourceError."""
    try:
        with zipfile.ZipFile(file) as archive:
            if len(archive.infolist()) > MOST_PARTS:
                raise SourceError(f"the file has more than {MOST_PARTS:,} parts", file=file)
            yield Package(archive, file)
    except BROKEN as error:
        with file.open("rb") as opened:
            old = opened.read(4) == OLD_CONTAINER
        if old:
            why = "is encrypted, or is of the old kind: save it in the new format without a password"
        elif "encrypted" in str(error) or "password" in str(error):
            why = "is encrypted: save it without a password"
        elif isinstance(error, KeyError):
            why = f"lacks a part that every one has ({error.args[0]}): export or download it again"
        else:
            why = f"is damaged ({type(error).__name__}): export or download it again"
        raise SourceError(f"the {what} {why}", file=file) from error


def resolve(part: str, target: str) -> str:
    """The name of a part that another one refers to."""
    target = unquote(target.partition("#")[0])
    if target.startswith("/"):
        return target[1:]
    return posixpath.normpath(posixpath.join(posixpath.dirname(part), target))


def strip_namespaces(element: Element) -> None:
    """Plain names; ids of relations keep a prefix, since elements have ids of their own beside them."""
    if isinstance(element.tag, str):
        element.tag = element.tag.rpartition("}")[2]
    if any("}" in name for name in element.attrib):
        for name in [name for name in element.attrib if "}" in name]:
            space, _, local = name[1:].partition("}")
            element.attrib[f"r:{local}" if space.endswith("/relationships") else local] = element.attrib.pop(name)


def whole_number(text: str, otherwise: int = 0) -> int:
    """A number as attributes write it; anything else is taken for `otherwise`."""
    return int(text) if text.isascii() and text.isdigit() else otherwise


def text_of(element: Element | None) -> str:
    """All text inside an element."""
    return "" if element is None else "".join(element.itertext())
