"""Source files: their formats, how to read them, and the user's options."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from clew.core.errors import InputError, NotFoundError, SourceError
from clew.core.texts import whole_text

RDF_FORMATS = {
    ".nt": "N_TRIPLES",
    ".ntriples": "N_TRIPLES",
    ".ttl": "TURTLE",
    ".turtle": "TURTLE",
    ".nq": "N_QUADS",
    ".nquads": "N_QUADS",
    ".trig": "TRIG",
    ".n3": "N3",
    ".rdf": "RDF_XML",
    ".owl": "RDF_XML",
    ".jsonld": "JSON_LD",
}
"""Format name in pyoxigraph, by suffix."""
GRAPHS = frozenset(RDF_FORMATS) | {".obo"}
"""Suffixes of graph files, which are never read as documents."""
_HEAD = 4096
"""Number of bytes of an XML file in which its first element is expected."""
JSON_LINES = frozenset({".jsonl", ".ndjson", ".jsonlines"})
RECORDS = JSON_LINES | {".json"}
"""Suffixes of files that are read as a graph, or as documents if they are beside documents."""


@dataclass(frozen=True)
class SourceOptions:
    """Options for reading sources. The defaults suit files with well-named columns."""

    nodes: tuple[Path, ...] = ()
    """Files to read as node tables, independent of their columns."""
    edges: tuple[Path, ...] = ()
    """Files to read as edge tables."""
    triples: tuple[Path, ...] = ()
    """Files to read as triples without a header."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Column name by role, such as name=title. Overrides recognition by name."""
    encoding: str | None = None
    """Encoding of text files. None means UTF-8, or the encoding of a byte-order mark."""
    node_type: str | None = None
    """Type of nodes without a type, and of the subjects of triples."""
    language: str = "en"
    """Language of RDF labels and texts, if there are several."""
    trust: bool = False
    """Allow the STaRK pickles, with a restricted reader."""
    skip_bad: bool = False
    """Skip and list unreadable rows instead of stopping at the first."""
    groups_optional: bool = False
    """Accept sources without the column of groups, if that column comes from the base and not from the user."""
    include: tuple[str, ...] = ()
    """Types to read, by name or pattern, or patterns of keys with `://`. Empty means all."""
    exclude: tuple[str, ...] = ()
    """Types to skip, in the same form as `include`."""
    attributes: frozenset[str] = frozenset()
    """Attributes of the changed base. Columns with these names are attributes, even if named like a type."""
    follow_links: bool = False
    """Follow links out of a given folder. Without it they are skipped and listed."""
    visible: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Patterns of keys, with the groups that may see matching rows. Other rows are not named after these."""


def parse_columns(assignments: list[str] | tuple[str, ...]) -> dict[str, str]:
    """Parse `["name=title"]` to `{"name": "title"}`. Raise InputError for unknown roles."""
    from clew.store.graph.tables import EDGE_COLUMNS, NODE_COLUMNS  # imports pyarrow, which document readers do without

    columns = {}
    for assignment in assignments:
        role, _, column = assignment.partition("=")
        known = (*NODE_COLUMNS, *EDGE_COLUMNS, "groups")
        if not column or role not in known:
            roles = ", ".join(known)
            raise InputError(f"--map {assignment}: expected ROLE=COLUMN with a role among {roles}")
        columns[role] = column
    return columns


_DATA = (zipfile.BadZipFile, zlib.error, struct.error, LookupError, ArithmeticError, ValueError)
DAMAGED = (*_DATA, EOFError, OSError, RuntimeError)
"""Exceptions of Python's readers for damaged or malicious files. Deep nesting raises RuntimeError."""
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BROKEN_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\x01-\x08\x0e-\x1a\x7f]")
"""Bytes that show damaged UTF-8 text, or data that is no text, rather than another encoding."""
_FEW_NULS = 1000
"""Minimum bytes of a text for each of its NUL bytes, if these are single mistakes."""
_CHUNK = 1 << 24
"""Number of bytes decoded at once, since the text of a whole file takes up to four times its size."""
MOST_RATIO = 200
"""Maximum expansion of packed data. Text compresses about tenfold."""
SMALL = 50_000_000
"""Bytes that any gzip file or archive may unpack to, since small files can have a high ratio."""
MOST_MEMBERS = 1_000
"""Maximum number of files in an archive, which is opened again for each of them."""


def kind_of(path: Path) -> str:
    """Return the suffix of the format in lower case, without `.gz`: `nodes.jsonl.gz` → `.jsonl`.

    XML that is RDF has the suffix `.rdf`.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    kind = suffixes[-1] if suffixes else ""
    return ".rdf" if kind == ".xml" and _is_rdf(path) else kind


def _is_rdf(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return b"<rdf:RDF" in file.read(_HEAD)


def stem_of(path: Path) -> str:
    """Return the file name without `.gz` and the format's suffix."""
    name = path.name.removesuffix(".gz")
    return name[: len(name) - len(Path(name).suffix)] or name


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    """Open a file for reading. Unpack gzip data independent of its name."""
    with path.open("rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        yield gzip.GzipFile(fileobj=file) if is_packed else file


def read_bytes(path: Path, small: int = SMALL) -> bytes:
    """Read a file, and unpack gzip data independent of its name. Any file may unpack to `small` bytes.

    The path of a file in a ZIP archive begins with the path of the archive: `feed.zip/stops.txt`.
    """
    try:
        if archive := next((parent for parent in path.parents if is_archive(parent)), None):
            name = path.relative_to(archive).as_posix()
            with _unzipping(archive) as zipped, zipped.open(name) as member:
                data = member.read(zipped.getinfo(name).file_size + 1)
        else:
            data = path.read_bytes()
    except FileNotFoundError as missing:
        raise NotFoundError(f"{path}: no such file") from missing
    except OSError as failure:
        raise SourceError(f"cannot be read: {failure.strerror or failure}", file=path) from failure
    if data[:2] == b"\x1f\x8b":
        try:
            most = small + MOST_RATIO * len(data)
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = packed.read(most + 1)
            if len(data) > most:
                raise SourceError(f"unpacks to over {MOST_RATIO} times its size: unpack it first", file=path)
        except (EOFError, gzip.BadGzipFile, zlib.error) as broken:
            raise SourceError(
                f"the gzip data is cut or damaged ({broken}): download or compress it again", file=path
            ) from broken
    if not data or data.isspace():
        raise SourceError("the file is empty", file=path)
    return data


def is_archive(path: Path) -> bool:
    """Return whether a path is a ZIP archive, by its name."""
    return path.suffix.lower() == ".zip" and not path.is_dir()


def members_of(archive: Path) -> list[Path]:
    """Return the paths of the files in a ZIP archive, without hidden ones and names that lead out of it."""
    with _unzipping(archive) as zipped:
        names = sorted(PurePosixPath(entry.filename) for entry in zipped.infolist() if not entry.is_dir())
    shown = [name for name in names if not any(part.startswith((".", "__MACOSX")) for part in name.parts)]
    return [path for name in shown if archive in (path := archive / name).parents]  # a name may be absolute


@contextmanager
def _unzipping(archive: Path) -> Iterator[zipfile.ZipFile]:
    """Open a ZIP archive, unless its files declare too large a size or are packed so that it cannot be bounded."""
    try:
        with zipfile.ZipFile(archive) as zipped:
            entries = zipped.infolist()
            most = SMALL + MOST_RATIO * archive.stat().st_size
            if strange := [
                one for one in entries if one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            ]:
                raise SourceError(f"{strange[0].filename} is not packed by deflate: unpack it first", file=archive)
            if len(entries) > MOST_MEMBERS or sum(entry.file_size for entry in entries) > most:
                why = f"has over {MOST_MEMBERS:,} files, or unpacks to over {MOST_RATIO} times its size"
                raise SourceError(f"the archive {why}: unpack it first", file=archive)
            yield zipped
    except FileNotFoundError as missing:
        raise NotFoundError(f"{archive}: no such file") from missing
    except (*_DATA, EOFError, RuntimeError) as broken:
        raise SourceError(f"the archive is damaged or encrypted ({broken})", file=archive) from broken


def read_utf8(path: Path, encoding: str | None = None, notes: list[str] | None = None) -> bytes:
    """Read a text file as valid UTF-8 without byte-order mark.

    With `notes`, text in Western European encoding is read too, single NUL bytes are replaced, and a note says so.
    """
    data = read_bytes(path)
    guess = encoding is None and notes is not None
    if encoding is None:
        encoding = next((marked for mark, marked in _BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8")
    try:
        codec = codecs.lookup(encoding)
        "".encode(encoding)  # some codecs are not text encodings
    except (LookupError, ValueError) as unknown:
        raise SourceError(
            f"unknown encoding {encoding!r}: try utf-8, latin-1, cp1252 or utf-16", file=path
        ) from unknown
    try:
        if codec.name == "utf-8":
            data = data.removeprefix(codecs.BOM_UTF8)
            _check_utf8(data, path)
        else:
            data = _recoded(data, encoding, path)
    except SourceError:
        if not guess or _BROKEN_UTF8.search(data):
            raise
        data = _recoded(data, "cp1252", path)
        assert notes is not None
        notes.append(f"{path} is not UTF-8: read as cp1252. If names look wrong, give --encoding.")
    nul = data.find(b"\0")
    if nul < 0:
        return data
    count = data.count(b"\0")
    if notes is not None and count * _FEW_NULS <= len(data):
        notes.append(f"{path}, line {line_at(data, nul)}: {count} NUL bytes were replaced by the character U+FFFD.")
        return data.replace(b"\0", "\ufffd".encode())
    raise SourceError(
        "contains NUL bytes, so it is not text in this encoding: try --encoding utf-16, or clean the file",
        file=path,
        line=line_at(data, nul),
    )


def _recoded(data: bytes, encoding: str, path: Path) -> bytes:
    try:
        return whole_text(data.decode(encoding)).removeprefix("\ufeff").encode("utf-8")
    except UnicodeDecodeError as wrong:
        raise _wrong_byte(data, wrong.start, encoding, path) from wrong
    except UnicodeError as wrong:
        raise SourceError(f"is not {encoding}: {wrong}", file=path) from wrong


def line_at(data: bytes, position: int) -> int:
    """Return the line of a byte, counted from 1."""
    return data.count(b"\n", 0, position) + 1


def _check_utf8(data: bytes, path: Path) -> None:
    if data.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(data)
    for start in range(0, len(data), _CHUNK):
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(view[start : start + _CHUNK], final=start + _CHUNK >= len(data))
        except UnicodeDecodeError as wrong:
            raise _wrong_byte(data, start - pending + wrong.start, "utf-8", path) from wrong


def _wrong_byte(data: bytes, position: int, encoding: str, path: Path) -> SourceError:
    return SourceError(
        f"byte 0x{data[position]:02x} (at {position}) is not {encoding}: give the encoding, such as --encoding cp1252",
        file=path,
        line=line_at(data, position),
    )
