"""EPUB: the chapters in the order of the spine, read as HTML."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

from clew.core.errors import SourceError
from clew.documents.extracted import Extracted
from clew.documents.formats.builder import TextBuilder
from clew.documents.formats.html import HtmlWalk, parsed
from clew.documents.formats.packed import Package, resolve, text_of, unpacked
from clew.documents.formats.text_file import decoded


def read_epub(file: Path) -> Extracted:
    """Raises SourceError for a damaged book and for one that is locked."""
    builder = TextBuilder()
    with unpacked(file, "EPUB") as package:
        root = package.xml("META-INF/container.xml").find(".//rootfile")
        if root is None:
            raise SourceError("the EPUB names no content", file=file)
        opf = root.get("full-path", "")
        book = package.xml(opf)
        chapters = _chapters(book, opf, package)
        locked = package.content("META-INF/encryption.xml") if "META-INF/encryption.xml" in package.names else b""
        if any(f'"{name}"'.encode() in locked for name in chapters):
            raise SourceError("the EPUB is encrypted: its shop has locked it", file=file)
        for name in chapters:
            HtmlWalk(builder).add(parsed(decoded(package.content(name))))
        title = text_of(book.find("metadata/title"))
    if not builder.blocks:
        raise SourceError("the EPUB holds no text", file=file)
    return builder.extracted(title, builder.first_heading())


def _chapters(book: Element, opf: str, package: Package) -> list[str]:
    """The parts to read in order, without the table of contents."""
    items = {item.get("id"): item for item in book.iter("item") if "nav" not in item.get("properties", "").split()}
    contents = {
        resolve(opf, one.get("href", "")) for one in book.iter("reference") if one.get("type") in {"toc", "cover"}
    }
    found = [items[one.get("idref")] for one in book.iter("itemref") if one.get("idref") in items]
    names = [resolve(opf, item.get("href", "")) for item in found]
    return [name for name in dict.fromkeys(names) if name in package.names and name not in contents]
