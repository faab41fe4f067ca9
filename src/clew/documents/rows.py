"""Node and edge rows of split files, or of a corpus of titled texts. Keys sort in reading order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from clew.core.proper_names import title_forms
from clew.documents.passage_graph import EdgeOptions, known_entities, passage_graph, subjects
from clew.documents.passages import PASSAGE_LENGTH, Outline, PrintedLine, TextPart
from clew.models.protocol import Embedder
from clew.store.graph.schema_file import SchemaEdits, TypeEdit
from clew.store.graph.tables import STRING, Piece, Tables


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """Passage length, kinds of edges, limits, and the cache folder for extracted texts."""

    passage_length: int = PASSAGE_LENGTH
    edges: EdgeOptions = field(default_factory=EdgeOptions)
    most_megabytes: int = 200
    """Maximum file size. Larger files are reported and skipped."""
    cache: Path | None = None
    """Folder for texts of files read earlier. None reads every file again."""
    entities: Path | None = None
    """Knowledge base whose nodes the passages may mention."""
    visible: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Groups that may see the files of a pattern. All other files are public."""
    follow_links: bool = False
    """Follow links out of the given folders. Without it they are skipped and listed."""


NODES = pa.schema(
    [
        ("key", STRING),
        ("type", STRING),
        ("name", STRING),
        ("aliases", pa.large_list(STRING)),
        ("text", STRING),
        ("file", STRING),
        ("page", pa.int64()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("number", STRING),
        ("section", STRING),
        ("label", STRING),
        ("lines", STRING),
        ("digest", STRING),
    ]
)
"""`section` has the headings above, `label` the printed page number, `lines` the positions of the text (see `placed`),
and `digest` identifies the content of a document (see `originals`).
"""
HEADINGS = " › "
"""Separator between a heading and its subheading."""
TABLE_NUMBER = re.compile(r"\s*\w+\.?\s+([A-Z]?\d+|[IVXLC]+)\b")


@dataclass(frozen=True, slots=True)
class OutlinedFile:
    """A file with its name, title, number of pages and parts."""

    name: str
    title: str
    pages: int
    outline: Outline
    labels: tuple[str, ...] = ()
    """Page labels, if they are not 1, 2, 3."""
    digest: str | None = None
    """Digest of the file's bytes."""


@dataclass
class _Rows:
    """Collects nodes and edges, and the passages that edges may connect."""

    nodes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[tuple[str, str, str]] = field(default_factory=list)
    passages: list[int] = field(default_factory=list)
    """Indexes of the nodes that are cited: passages and tables."""
    documents: list[int] = field(default_factory=list)
    """Document number of each cited node."""

    def add(self, key: str, kind: str, name: str, file: str, **values: Any) -> str:
        self.nodes.append({"key": key, "type": kind, "name": name, "file": file, "text": "", **values})
        return key

    def add_cited(self, document: int, key: str, kind: str, name: str, file: str, part: TextPart, **values: Any) -> str:
        """Add a passage or a table, and connect it with its document, its page and its section."""
        self.passages.append(len(self.nodes))
        self.documents.append(document)
        values |= {"text": part.text, "page": part.page, "start": part.start, "end": part.end}
        self.join(file, f"has_{kind}", key)
        if part.page is not None:
            self.join(page_key(file, part.page), f"has_{kind}", key)
        if part.section is not None:
            self.join(_section_key(file, part.section), f"has_{kind}", key)
        return self.add(key, kind, name, file, lines=placed(part.lines), **values)

    def join(self, head: str, relation: str, tail: str) -> None:
        self.edges.append((head, relation, tail))


def document_tables(
    files: Sequence[OutlinedFile], options: DocumentOptions, say: Callable[[str], None], embedder: Embedder | None
) -> tuple[Tables, SchemaEdits]:
    """Build the tables of all files, with the edges between passages."""
    rows = _Rows()
    for number, file in enumerate(files):
        _add_file(rows, file, number)
    nodes = pa.Table.from_pylist(rows.nodes, schema=NODES)
    cited = pa.array(rows.passages, pa.int64())
    keys, texts = nodes["key"].combine_chunks().take(cited), nodes["text"].take(cited).to_pylist()
    titles = [files[document].title for document in rows.documents]
    first_document = len(texts)
    targets = pa.concat_arrays([keys, pa.array([file.name for file in files], STRING)])
    graph = passage_graph(
        nodes["name"].take(cited).to_pylist(),
        texts,
        np.array(rows.documents, dtype=np.int32),
        titles=[
            *((file.title, first_document + number) for number, file in enumerate(files)),
            *subjects(titles, texts),
        ],
        owners=[(index, first_document + document) for index, document in enumerate(rows.documents)],
        options=options.edges,
        embedder=embedder,
        say=say,
    )
    structure = [pa.array(column, STRING) for column in zip(*rows.edges, strict=True)]
    pieces = [Piece(pa.table(structure, names=["head", "relation", "tail"]), "structure")]
    pieces += [Piece(edges.table(keys, targets), edges.relation) for edges in graph if len(edges)]
    linked = Tables((), ()) if options.entities is None else known_entities(options.entities, texts, keys)
    edits = SchemaEdits(types={name: TYPES[name] for name in sorted(set(nodes["type"].to_pylist()))})
    return Tables((Piece(nodes, "documents"), *linked.nodes), (*pieces, *linked.edges)), edits


TYPES = {
    "document": TypeEdit(answer=False, show=[], description="a file"),
    "page": TypeEdit(answer=False, show=[], description="a page of a file"),
    "section": TypeEdit(answer=False, show=[], description="a heading and what stands under it"),
    "passage": TypeEdit(show=[], description="some sentences of a file"),
    "table": TypeEdit(show=[], description="a table of a file, in Markdown"),
}
"""Positions are stored but not indexed: page numbers must not match numbers in questions."""


def _add_file(rows: _Rows, file: OutlinedFile, number: int) -> None:
    name, cut = file.name, file.outline
    rows.add(name, "document", file.title, name, aliases=[*title_forms(file.title)[1:], name], digest=file.digest)
    for page in range(1, file.pages + 1):
        label = file.labels[page - 1] if page <= len(file.labels) else ""
        rows.add(page_key(name, page), "page", f"page {page} of {name}", name, page=page, number=str(page), label=label)
        rows.join(name, "has_page", page_key(name, page))
    for place, section in enumerate(cut.sections):
        values = {"page": section.page, "start": section.start, "number": str(place + 1)}
        values["section"] = HEADINGS.join(cut.headings(section.parent))
        key = rows.add(_section_key(name, place), "section", section.heading, name, **values)
        rows.join(name if section.parent is None else _section_key(name, section.parent), "has_section", key)
    for place, table in enumerate(cut.tables):
        found = TABLE_NUMBER.match(table.caption)
        shown = found.group(1) if found else str(place + 1)
        caption, above = table.caption or f"{file.title}, table {shown}", HEADINGS.join(cut.headings(table.section))
        rows.add_cited(number, _table_key(name, place), "table", caption, name, table, number=shown, section=above)
    before: str | None = None
    for place, passage in enumerate(cut.passages):
        headings = [heading for heading in cut.headings(passage.section) if heading != file.title]
        key, title = f"{name}#passage={place + 1:06d}", HEADINGS.join((file.title, *headings))
        values = {"number": str(place + 1), "section": HEADINGS.join(headings)}
        rows.add_cited(number, key, "passage", title, name, passage, **values)
        if passage.table is not None:
            rows.join(_table_key(name, passage.table), "has_rows", key)
        elif before is not None:
            rows.join(before, "next", key)
        before = key if passage.table is None else before


def placed(lines: Sequence[PrintedLine]) -> str | None:
    """Serialize lines for a node attribute: `start,end,left,top,right,bottom` each, separated by semicolons."""
    return ";".join(",".join(f"{value:g}" for value in (*span, *box)) for span, box in lines) or None


def page_key(file: str, page: int) -> str:
    """Return the key of a page."""
    return f"{file}#page={page:05d}"


def _section_key(file: str, place: int) -> str:
    return f"{file}#section={place + 1:05d}"


def _table_key(file: str, place: int) -> str:
    return f"{file}#table={place + 1:05d}"


class TitledText(NamedTuple):
    """A text of a corpus with its unique key and its subject, which may be empty or unusable."""

    key: str
    title: str
    text: str


def corpus_tables(
    texts: Sequence[TitledText], edges: EdgeOptions | None = None, embedder: Embedder | None = None
) -> Tables:
    """Build tables with one passage per text, named by its title. Only knn edges need an `embedder`."""
    keys = pa.array([text.key for text in texts], STRING)
    names = [text.title or text.key for text in texts]
    titles = [(text.title, place) for place, text in enumerate(texts)]
    called = subjects([text.title for text in texts], [text.text for text in texts])
    aliases: list[list[str]] = [[] for _ in texts]
    for name, place in called:  # subjects of texts whose title does not contain them
        aliases[place].append(name)
    nodes = pa.table(
        {
            "key": keys,
            "type": pa.repeat(pa.scalar("passage", STRING), len(texts)),
            "name": pa.array(names, STRING),
            "aliases": pa.array(aliases, pa.large_list(STRING)),
            "text": pa.array([text.text for text in texts], STRING),
        }
    )
    graph = passage_graph(
        names,
        [text.text for text in texts],
        np.arange(len(texts), dtype=np.int32),
        titles=[*titles, *called],
        owners=[(place,) for place in range(len(texts))],
        options=edges or EdgeOptions(),
        embedder=embedder,
    )
    return Tables((Piece(nodes, "corpus"),), tuple(Piece(kind.table(keys), "corpus") for kind in graph))
