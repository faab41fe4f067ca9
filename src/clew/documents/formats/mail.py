"""E-mail reader: subject, sender and date, the text, and attachments of supported formats."""

from __future__ import annotations

import email
import email.policy
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from email.errors import MessageError
from email.message import EmailMessage, MIMEPart
from pathlib import Path, PurePosixPath

from clew.core.errors import ClewError, SourceError
from clew.documents.extracted import Extracted
from clew.documents.formats.builder import TextBuilder
from clew.documents.formats.html import read_page
from clew.documents.formats.text_file import decoded, unix

Readers = Mapping[str, Callable[[Path], Extracted]]
FROM = re.compile(rb"^From \S.*\d\d:\d\d.*\n", re.MULTILINE)
MAX_HEADER_CHARS = 5_000
"""Maximum length of a parsed header, in characters. Parsing takes quadratic time."""
MAX_DESCRIPTIONS = 2_000
"""Maximum number of headers that describe the parts of a message."""
MAX_BOUNDARIES = 10_000
"""Maximum number of boundary lines between the parts of a message."""
DESCRIBED = re.compile(rb"^content-[\w-]+:.*(?:\n[ \t].*)*", re.IGNORECASE | re.MULTILINE)
"""A header that describes a part, with its continuation lines."""
HEADERS = ("From", "To", "Cc", "Date")
BLANK = re.compile(r"\n[ \t>]*\n")
PARSE_ERRORS = (MessageError, LookupError, ValueError, AttributeError, TypeError, RecursionError, OverflowError)
"""Exceptions of the standard parser for invalid headers and encodings."""


def read_mail(file: Path, readers: Readers) -> Extracted:
    """Read one message (.eml) or many (.mbox). Raise SourceError if there is no message."""
    builder = TextBuilder()
    notes: list[str] = []
    first = ""
    for raw in _messages(file.read_bytes()):
        try:
            _check(raw)
            message = email.message_from_bytes(raw, policy=email.policy.default)
            assert isinstance(message, EmailMessage)
            subject = _header(message, "Subject")
            _add(builder, message, subject, notes, readers)
        except PARSE_ERRORS as error:
            reason = str(error) if isinstance(error, MessageError) else type(error).__name__
            notes.append(f"a message cannot be read ({reason})")
            continue
        first = first or subject
    if not any(block.kind != "heading" for block in builder.blocks):
        why = f": {notes[0]}" if notes else ""
        raise SourceError(f"the file contains no message{why}", file=file)
    return builder.extracted(first if file.suffix.lower() == ".eml" else "", notes=notes)


def _check(raw: bytes) -> None:
    """Raise MessageError for a message with too many or too long part headers, which the parser handles slowly."""
    lengths = [len(found.group()) for found in DESCRIBED.finditer(raw)]
    if len(lengths) > MAX_DESCRIPTIONS or (lengths and raw.count(b"\n--") > MAX_BOUNDARIES):
        raise MessageError("too many parts")
    if max(lengths, default=0) > MAX_HEADER_CHARS:
        raise MessageError(f"a part header has more than {MAX_HEADER_CHARS:,} characters")


def _messages(content: bytes) -> Iterator[bytes]:
    starts = [found.start() for found in FROM.finditer(content)]
    if not starts or content[: starts[0]].strip():
        yield content
        return
    for start, stop in zip(starts, [*starts[1:], len(content)], strict=True):
        yield content[content.index(b"\n", start) + 1 : stop]


def _add(builder: TextBuilder, message: EmailMessage, subject: str, notes: list[str], readers: Readers) -> None:
    lines = [f"{name}: {value}" for name in HEADERS if (value := _header(message, name))]
    body = message.get_body(("plain", "html"))
    if not lines and not subject and body is None:
        return
    builder.heading(subject or "(no subject)", 1)
    builder.preformatted("\n".join(lines))
    if body is not None:
        text = _text(body)
        if body.get_content_subtype() == "html":
            builder.append(read_page(text), deeper=1)
        else:
            for paragraph in BLANK.split(text):
                builder.preformatted(paragraph.strip("\n"))
    for part in message.iter_attachments():
        _add_attachment(builder, part, notes, readers)


def _add_attachment(builder: TextBuilder, part: EmailMessage, notes: list[str], readers: Readers) -> None:
    for inner in part.iter_attachments() if part.get_content_maintype() == "multipart" else ():  # signed parts
        _add_attachment(builder, inner, notes, readers)
    if part.get_content_maintype() == "multipart" or part.get_content_type().endswith("-signature"):
        return
    name = part.get_filename() or ""
    ending = PurePosixPath(name).suffix.lower()
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes) or ending not in readers:
        notes.append(f"attachment {name or part.get_content_type()!r} was not read")
        return
    try:
        read = read_content(content, ending, readers)
    except ClewError as error:
        notes.append(f"attachment {name!r}: {error}")
        return
    builder.heading(name, 2)
    builder.append(read, deeper=2)


def read_content(content: bytes, ending: str, readers: Readers) -> Extracted:
    """Read the content of a file. Raise SourceError without a file name if it is unusable or has no text."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"content{ending}"
        file.write_bytes(content)
        try:
            read = readers[ending](file)
        except SourceError as error:
            raise SourceError(str(error).removeprefix(str(file)).removeprefix(": ").removeprefix(", ")) from error
    if not read.blocks:
        raise SourceError("the file contains no text")
    return read


def _header(message: EmailMessage, name: str) -> str:
    """Return the value of a header. Long headers are returned without parsing."""
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
    return " ".join((str(message.get(name, "")) if len(raw) <= MAX_HEADER_CHARS else raw).split())


def _text(part: MIMEPart) -> str:
    """Decode the text of a part. Guess the encoding if the declared encoding is unknown or wrong."""
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes):
        return ""
    with suppress(LookupError, ValueError):
        return unix(content.decode(part.get_content_charset("")))
    return decoded(content)
