"""ZIP archives of XML parts, with limits against zip bombs, entities and external links."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from clew.core.errors import SourceError
from clew.core.limits import allow
from clew.store.sources.files import DAMAGED

MAX_UNPACKED, MAX_RATIO = 400_000_000, 200
"""Maximum unpacked bytes of a file, in all and per byte of the file. Text compresses about tenfold."""
SMALL = 5_000_000
"""Bytes that any file may unpack to, since small files can have a high ratio."""
MAX_PARTS = 20_000
"""Maximum number of parts of a packed file. A file with more is refused before any part is read."""
OLD_CONTAINER = b"\xd0\xcf\x11\xe0"
"""First bytes of old Office files, and of new encrypted Office files."""


class Package:
    """The parts of an open archive by name. Counts unpacked bytes."""

    def __init__(self, archive: zipfile.ZipFile, file: Path) -> None:
        self.file = file
        self.names = frozenset(archive.namelist())
        self._archive = archive
        self._left = self._most = min(MAX_UNPACKED, SMALL + MAX_RATIO * file.stat().st_size)

    def content(self, name: str) -> bytes:
        """Return the content of a part. Raise KeyError if it is missing."""
        with self._archive.open(name) as part:
            content = part.read(self._left + 1)
        self._left -= len(content)
        if self._left < 0:
            raise SourceError(f"the file unpacks to more than {self._most // 1_000_000} MB (zip bomb)", file=self.file)
        allow(len(content))
        return content

    def xml(self, name: str) -> Element:
        """Parse a part. Tags and attributes lose their namespaces."""
        root = ElementTree.fromstring(self.xml_bytes(name))  # noqa: S314 - entities are refused
        for element in root.iter():
            strip_namespaces(element)
        return root

    def xml_bytes(self, name: str) -> bytes:
        """Return a part. Raise SourceError if it declares entities, which can grow without limit or read files."""
        content = self.content(name)
        if any("<!ENTITY".encode(encoding) in content for encoding in ("ascii", "utf-16-le", "utf-16-be")):
            raise SourceError("the file declares XML entities, which no office program writes", file=self.file)
        return content

    def optional(self, name: str) -> Element:
        """Parse a part, or return an empty element if it is missing."""
        return self.xml(name) if name in self.names else Element("none")

    def related(self, part: str) -> dict[str, tuple[str, str]]:
        """Return the references of an Office part: id → (type, part name)."""
        folder, name = posixpath.split(part)
        found = {}
        for relation in self.optional(posixpath.join(folder, "_rels", f"{name}.rels")).iter("Relationship"):
            if relation.get("TargetMode") != "External":
                target = resolve(part, relation.get("Target", ""))
                found[relation.get("Id", "")] = (relation.get("Type", "").rpartition("/")[2], target)
        return found

    def main_part(self, default: str) -> str:
        """Return the name of the main part of an Office file."""
        return next((name for kind, name in self.related("").values() if kind == "officeDocument"), default)

    def core_title(self) -> str:
        """Return the title from the properties of an Office file."""
        return text_of(self.optional("docProps/core.xml").find("title"))


@contextmanager
def unpacked(file: Path, what: str) -> Iterator[Package]:
    """Open the parts of a file. Turn errors inside the block into SourceError."""
    try:
        with zipfile.ZipFile(file) as archive:
            if len(archive.infolist()) > MAX_PARTS:
                raise SourceError(f"the file has more than {MAX_PARTS:,} parts", file=file)
            yield Package(archive, file)
    except (*DAMAGED, ElementTree.ParseError) as error:
        with file.open("rb") as opened:
            old = opened.read(4) == OLD_CONTAINER
        if old:
            why = "is encrypted or in the old Office format: save it in the new format without a password"
        elif "encrypted" in str(error) or "password" in str(error):
            why = "is encrypted: save it without a password"
        elif isinstance(error, KeyError):
            why = f"lacks a required part ({error.args[0]}): export or download it again"
        else:
            why = f"is damaged ({type(error).__name__}): export or download it again"
        raise SourceError(f"the {what} {why}", file=file) from error


def resolve(part: str, target: str) -> str:
    """Return the name of a part that another part refers to."""
    target = unquote(target.partition("#")[0])
    if target.startswith("/"):
        return target[1:]
    return posixpath.normpath(posixpath.join(posixpath.dirname(part), target))


def strip_namespaces(element: Element) -> None:
    """Remove namespaces. Relation ids get the prefix `r:`, since elements also have their own ids."""
    if isinstance(element.tag, str):
        element.tag = element.tag.rpartition("}")[2]
    for name in [name for name in element.attrib if "}" in name]:
        space, _, local = name[1:].partition("}")
        element.attrib[f"r:{local}" if space.endswith("/relationships") else local] = element.attrib.pop(name)


def whole_number(text: str, otherwise: int = 0) -> int:
    """Parse a non-negative number of up to nine digits. Return `otherwise` for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else otherwise


def ancestors(style: str, parents: Mapping[str, str]) -> list[str]:
    """Return a style, and the styles that it is based on in order."""
    found: dict[str, None] = {}
    while style and style not in found:
        found[style] = None
        style = parents.get(style, "")
    return list(found)


def text_of(element: Element | None) -> str:
    """Return all text inside an element."""
    return "" if element is None else "".join(element.itertext())
