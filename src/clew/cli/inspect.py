"""`clew info`, `schema`, `export`, `show`, `find`, `verify`, `repair`, `check` and `dedup`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from clew.cli.options import AnyBase, AsJson, Base, EmbedderOption, Force, Groups, group_names
from clew.cli.output import out, print_json, print_plain, print_table, stages, tell
from clew.core.errors import CorruptError, InputError

if TYPE_CHECKING:
    from clew.api import Base as PublicBase

KINDS = {
    "folder": "a base in a folder",
    "postgresql": "a base in PostgreSQL",
    "sparql": "the graph of a SPARQL endpoint",
    "bolt": "the graph of a database that speaks Bolt",
}


def opened_base(base: str | Path, groups: str | None, embedder: str | None = None) -> PublicBase:
    """Open a base as visible to some groups."""
    from clew.api import open as open_kb

    return open_kb(base, embedder=embedder, groups=group_names(groups))


def info(base: AnyBase, groups: Groups = None, as_json: AsJson = False) -> None:
    """Show the types, relations and sizes of a knowledge base, and the origin of its texts and vectors."""
    from clew.store.remote_bases import shown_place

    tools = opened_base(base, groups).tools
    facts = tools.describe() | {"embedder": tools.remembered_embedder}
    if as_json:
        print_json(facts)
        return
    counts = {what: facts[what] for what in ("nodes", "edges")}
    sizes = [f"{'uncounted' if count is None else f'{count:,}'} {what}" for what, count in counts.items()]
    sizes += [f"{facts['bytes'] / 1e6:,.1f} MB"] if "bytes" in facts else []
    out.line((shown_place(base), "bold"), f"  {', '.join(sizes)}")
    out.line(f"{KINDS[facts['kind']]}; {_where_searched(facts)}")
    print_table(
        "Node types",
        ("type", "nodes", "answers", "attributes", "description"),
        [
            (t["name"], t["count"], "yes" if t["answer"] else "no", ", ".join(t["attributes"]), t["description"])
            for t in facts["node_types"]
        ],
    )
    print_table(
        "Relations",
        ("head", "relation", "tail", "edges", "description"),
        [(r["head"], r["name"], r["tail"], r["count"], r["description"]) for r in facts["relations"]],
    )
    if "degrees" in facts:  # not counted for remote graphs
        print_table(
            "Degrees",
            ("", "mean", "median", "90 %", "largest", "node with most edges"),
            [(side, d["mean"], d["median"], d["p90"], d["max"], d["most"]) for side, d in facts["degrees"].items()],
        )
    for note in facts.get("notes", ()):
        out.line(note)
    show_wish(facts["embedder"])


def _where_searched(facts: dict[str, Any]) -> str:
    """Describe the origin of texts and vectors."""
    if facts["texts"] is None:
        return "too large to read its texts: names are looked up there, one by one"
    vectors = facts["vectors"]
    state = "for all nodes" if vectors["complete"] else "computed as they are needed"
    return f"names and texts from {facts['texts']}, vectors from {vectors['place']}, {state}"


def schema(base: AnyBase, groups: Groups = None, as_json: AsJson = False) -> None:
    """Print the schema as TOML, to be edited and passed to `clew build --schema FILE`."""
    from clew.store.graph.schema_file import write_schema

    tools = opened_base(base, groups).tools
    if as_json:
        print_json(asdict(tools.stored.schema))
        return
    print_plain(write_schema(tools.kb.schema))


def export(
    base: AnyBase,
    file: Annotated[Path, Argument(metavar="OUT.duckdb", help="The file to write.")],
    groups: Groups = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a base as a DuckDB file. `clew ask --json` gives the SQL of an answer as `query.sql`."""
    opened_base(base, groups).export(file, force=force)
    tell(as_json, {"file": str(file)}, f"written: {file}")


def show(
    base: AnyBase,
    node: Annotated[str, Argument(help="The key of a node, or a name.")],
    most: Annotated[int, Option("--most", min=1, help="Maximum number of neighbours per relation.")] = 10,
    page_file: Annotated[
        Path | None,
        Option("--page", metavar="OUT.png", help="Write the node's PDF page as a picture with its lines marked."),
    ] = None,
    files: Annotated[
        Path | None, Option("--files", metavar="FOLDER", help="Folder of the PDF, if it was moved since the build.")
    ] = None,
    groups: Groups = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Show the document, aliases and neighbours of a node, or its page of a PDF."""
    from clew.core.disk import refuse_existing
    from clew.store.graph.description import node_page

    refuse_existing(page_file, force=force)
    if page_file is not None:
        write_page(opened_base(base, groups), node, page_file, files, as_json)
        return
    if files is not None:
        raise InputError("--files requires --page: add --page OUT.png")
    tools = opened_base(base, groups).tools
    page = node_page(tools.kb, tools.find_node(node), most)
    if as_json:
        print_json(page)
        return
    out.line((page["name"], "bold"), f"  {page['type']}  {page['key']}")
    out.line(page["document"])
    for group in page["neighbors"]:
        arrow = "→" if group["direction"] == "out" else "←"
        names = "; ".join(_with_attributes(other) for other in group["nodes"])
        more = group["count"] - len(group["nodes"])
        ending = f" and {more} more" if more else ""
        out.line(f"{arrow} {group['relation']} ({group['count']}): {names}{ending}")


def write_page(base: PublicBase, node: str, target: Path, files: Path | None, as_json: bool) -> None:
    """Write the page of a node as a picture."""
    if target.suffix.lower() != ".png":
        raise InputError(f"{target} is not a PNG file: name a file that ends in .png")
    picture = base.page_image(node, files)
    try:
        target.write_bytes(picture)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}") from error
    tell(as_json, {"node": node, "page": str(target), "bytes": len(picture)}, f"wrote {target}")


def verify(base: AnyBase, as_json: AsJson = False) -> None:
    """Check the checksums and the consistency of all files of a knowledge base."""
    from clew.store.building import check as check_files
    from clew.store.open_base import OpenBase
    from clew.store.remote_bases import shown_place

    problems = check_files(base)
    embedder = None if problems else OpenBase.open(base).remembered_embedder
    if as_json:
        print_json({"base": shown_place(base), "sound": not problems, "problems": problems, "embedder": embedder})
    elif not problems:
        out.line(f"{shown_place(base)} is sound")
        show_wish(embedder)
    if problems:
        raise CorruptError("; ".join(problems))


def repair(base: Base, as_json: AsJson = False) -> None:
    """Restore a damaged knowledge base: indexes and vectors from its data, and its data from the source documents."""
    from clew.documents.repairing import repair as repair_base

    with stages("repairing") as say:
        report = repair_base(Path(base), say)
    told = {"base": str(base), "problems": report.problems, "done": report.done, "notes": report.notes}
    last = f"{base} is sound" if report.problems else f"{base} was sound: nothing was changed"
    tell(as_json, told, *report.done, *report.notes, last)


def show_wish(embedder: str | None) -> None:
    """Print the embedder that a base names, if it does not ship with Clew."""
    from clew.models.embedding.opening import SHIPPED

    if embedder is not None and embedder not in SHIPPED:
        out.line(f"its vectors come from {embedder}, which is used only if you name it (--embedder)")


def _with_attributes(node: dict[str, Any]) -> str:
    attributes = ", ".join(str(value) for value in node.get("attributes", {}).values())
    return f"{node['name']} ({attributes})" if attributes else str(node["name"])


def find(
    base: AnyBase,
    text: Annotated[str, Argument(help="A name, or words to search with --text.")],
    type: Annotated[str | None, Option("--type", help="Only nodes of this type.")] = None,
    in_text: Annotated[bool, Option("--text", help="Search the documents with BM25 instead of the names.")] = False,
    k: Annotated[int, Option("-k", min=1, help="Number of nodes to show.")] = 10,
    embedder: EmbedderOption = None,
    groups: Groups = None,
    as_json: AsJson = False,
) -> None:
    """Find nodes by name (exact, then fuzzy, then by meaning) or by their text."""
    opened = opened_base(base, groups, embedder)
    rows = [asdict(found) for found in opened.find(text, type, k, in_text=in_text)]
    if as_json:
        print_json(rows)
    elif rows:
        print_table("", ("key", "name", "type", "found by", "score", "as"), [tuple(row.values()) for row in rows])
    else:
        out.line(f"nothing found for {text!r}")


PROBLEMS_FOUND = 3
"""Exit status of `clew check` if the data has problems."""


def check(
    base: Base,
    most: Annotated[int, Option("--most", min=1, help="Maximum number of examples per problem.")] = 5,
    groups: Groups = None,
    as_json: AsJson = False,
) -> None:
    """Report doubtful data: dangling, cyclic, unnamed, repeated, isolated, disagreeing.

    The exit status is 0 without problems, 3 with problems, and 1 or 2 if the base cannot be read.
    """
    from clew.store.curation.checks import check_data

    findings = check_data(opened_base(base, groups).tools.local, most)
    if as_json:
        print_json({"base": str(base), "problems": [asdict(finding) for finding in findings]})
    elif not findings:
        out.line(f"{base}: nothing doubtful found")
    else:
        for finding in findings:
            out.line(f"{finding.kind}: {finding.count:,} {finding.what}")
            for example in finding.examples:
                out.line(f"    {example}")
            out.line(f"  → {finding.advice}")
    if findings:
        raise typer.Exit(PROBLEMS_FOUND)


def dedup(
    base: Base,
    type: Annotated[str | None, Option("--type", help="Only nodes of this type.")] = None,
    least: Annotated[float, Option("--least", min=0, max=1, help="Minimum confidence to show or merge a pair.")] = 0.9,
    merge: Annotated[bool, Option("--merge", help="Merge each group into one node.")] = False,
    undo: Annotated[bool, Option("--undo", help="Undo the last --merge.")] = False,
    embedder: EmbedderOption = None,
    seen_by: Groups = None,
    as_json: AsJson = False,
) -> None:
    """List likely duplicates with reasons, and merge them with --merge."""
    from clew.store.curation.duplicates import find_duplicates
    from clew.store.curation.duplicates import groups as clusters
    from clew.store.curation.merging import merge as merge_groups
    from clew.store.curation.merging import undo as undo_change
    from clew.store.graph.storage import sweep

    if merge and undo:
        raise InputError("--merge and --undo exclude each other: give one of them")
    if seen_by is not None and (merge or undo):
        raise InputError("--merge and --undo change the whole base: leave out --groups")
    if undo:
        undone = undo_change(base)
        tell(as_json, {"base": str(base), "undone": undone}, f"undone: {undone}")
        return
    if merge:
        sweep(base)
    tools = opened_base(base, seen_by, embedder).tools
    with stages("comparing") as say:
        say("names, neighbours and documents")
        pairs = find_duplicates(tools, type, least=least)
        found = clusters(tools.local, pairs)
    if as_json:
        shown = {"pairs": [pair.to_dict() for pair in pairs], "groups": [[node.key for node in one] for one in found]}
        print_json({"base": str(base), "merged": merge and bool(found), **shown})
    else:
        for pair in pairs:
            ends = " = ".join(f"{node.name} ({node.type}, {node.key})" for node in (pair.first, pair.second))
            out.line(f"{pair.certainty:.2f}  {ends}")
            out.line(f"      {'; '.join(pair.evidence)}")
            if pair.obstacle:
                out.line(f"      not merged: {pair.obstacle}")
    if merge and found:
        tools.local.release()  # so that the replaced generation can be deleted
        with stages("merging") as say:
            report = merge_groups(base, found, say=say)
        told = f"merged into {len(found):,}: {report.nodes:,} nodes, {report.edges:,} edges; --undo takes it back"
    elif pairs:
        told = f"{len(pairs):,} pairs in {len(found):,} groups; --merge makes each group one node"
    else:
        told = "no duplicates found"
    if not as_json:
        out.line(told)
