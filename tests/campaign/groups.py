"""What groups hide stays hidden: random bases through random builds, updates, merges, undos, deletions and lessons.

A model in plain Python says what each step makes of the base, or that it is refused. After each step

- what a caller sees equals the model without all that is hidden from the caller;
- no marker that was there before is seen by a group that did not see it, unless the step was told to widen.

Every name, text, value and edge of a case is a marker of its own.
"""

import csv
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import clew
from clew.answering.methods.role_choice import reader_of
from clew.answering.methods.tuned import Tuned, keep_tuned
from clew.answering.reading.fitted import Fitted
from clew.core.errors import ClewError, InputError, NotFoundError
from clew.documents.building import build_documents
from clew.documents.passage_graph import EdgeOptions
from clew.documents.rows import DocumentOptions
from clew.lab.training.feedback import learn
from clew.lab.training.own_base import AskedFor, keep_asked
from clew.models.embedding.onnx import DIMENSION
from clew.store.building import build, read_changes, update
from clew.store.confirmed import Confirmed, keep_confirmed
from clew.store.curation.merging import merge, undo
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.tables import GROUPS, Piece, Tables, Visibility
from clew.store.graph.visibility import restricted, visible
from clew.store.open_base import OpenBase

STEPS = 6
"""Steps of one seed: each makes another state of the base."""
NAMES = ("hr", "board", "lab")
CALLERS = ((), ("hr",), ("board",), ("lab",), ("hr", "lab"), NAMES)
EVERYBODY = frozenset({*NAMES, "nobody"})
RULES = {"R*": ["hr"], "R1*": ["board", "lab"]}
DOCUMENT_COLUMNS = {"label": "text", "lines": "text", "page": "integer", "section": "text"}
KEYS = [f"{kind}{number}" for kind in "PR" for number in range(1, 12)]
Groups = frozenset[str]
Edge = tuple[str, str, str, int, Groups]
Node = dict[str, Any]
Act = Callable[[], object]


@dataclass(frozen=True)
class Model:
    """What a base holds, by other code than the code under test."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: tuple[Edge, ...] = ()
    rules: dict[str, list[str]] = field(default_factory=dict)

    def seen(self, caller: Iterable[str]) -> tuple[dict[str, Node], list[Edge]]:
        """Return what is left if all that is hidden from a caller is deleted."""
        names = {*caller}
        nodes = {key: node for key, node in self.nodes.items() if not node[GROUPS] or names & node[GROUPS]}
        edges = [edge for edge in self.edges if (not edge[4] or names & edge[4]) and {edge[0], edge[2]} <= nodes.keys()]
        return nodes, edges

    def readers(self) -> dict[object, Groups]:
        """Return who may read each node, each triple and each edge with its value."""
        found: dict[object, Groups] = {key: node[GROUPS] or EVERYBODY for key, node in self.nodes.items()}
        for edge in self.edges:
            for name in (edge[:3], edge[:4]):
                found[name] = found.get(name, frozenset()) | (edge[4] or EVERYBODY)
        return found

    def widens(self, later: "Model") -> bool:
        """Return whether a node or an edge of both has more readers later."""
        before, after = self.readers(), later.readers()
        return any(not after[name] <= readers for name, readers in before.items() if name in after)


@dataclass
class Case:
    """One base and its model."""

    rng: random.Random
    place: Path
    model: Model = field(default_factory=Model)
    before_merge: Model | None = None
    numbers: Any = field(default_factory=lambda: count(100))

    @property
    def base(self) -> Path:
        """Where the base is."""
        return self.place / "base.kb"

    def groups(self) -> Groups:
        """Return some groups, often none."""
        return frozenset(self.rng.sample(NAMES, self.rng.randint(1, 2)) if self.rng.random() < 0.45 else ())

    def node(self, key: str) -> Node:
        """Return a node whose contents nobody has seen before."""
        number = next(self.numbers)
        told = {"name": f"name{number}", "text": f"text{number}", "colour": f"colour{number}"}
        return {"key": key, "type": key[0], **told, "aliases": [], "merged_keys": [], GROUPS: self.groups()}

    def edge(self, keys: list[str]) -> Edge:
        """Return an edge with a value that nobody has seen before."""
        head, relation, tail = self.rng.choice(keys), self.rng.choice(("knows", "likes")), self.rng.choice(keys)
        return head, relation, tail, next(self.numbers), self.groups()


def history(seed: int, place: Path) -> list[str]:
    """Take some random steps; returns what went wrong."""
    folder = place / f"groups-{seed}"
    folder.mkdir()
    rng = random.Random(seed)
    problems = _documents(rng, folder) if seed % 10 == 0 else _graph(Case(rng, folder))
    shutil.rmtree(folder, ignore_errors=True)
    return problems


def _graph(case: Case) -> list[str]:
    problems: list[str] = []
    for _ in range(STEPS):
        taught = (_confirmed, _learned, _tuned, _trained)
        moves = (_updated, _updated, _updated, _merged, _merged, _undone, _built, *taught)
        move = case.rng.choice(moves) if case.model.nodes else _built
        widen = case.rng.random() < 0.25
        expected, act = move(case, widen)
        old = _whole(case) if case.model.nodes else None
        try:
            act()
            is_done, error = True, ""
        except ClewError as failure:
            is_done, error = False, str(failure)
        if is_done != (expected is not None):
            return [*problems, f"{move.__name__} was {'done' if is_done else 'refused'}, not as in the model: {error}"]
        if expected is not None:
            if expected is not case.model:
                case.before_merge = case.model if move is _merged else None
            case.model = expected
        new = _whole(case)
        problems += _differences(case, new, move.__name__)
        if not widen and old is not None:
            before, after, there = _markers(old), _markers(new), _markers_in(old)
            opened = {who: (after[who] & there) - before[who] for who in before}
            problems += [
                f"{move.__name__} showed {who or 'everybody'} {sorted(new)}" for who, new in opened.items() if new
            ]
        problems += [f"after {move.__name__}: {problem}" for problem in _compared_with_a_rebuild(case)]
        if problems:
            return problems
    return []


def _whole(case: Case) -> Tables:
    kb = ArrayKnowledgeBase.open(case.base)
    tables = kb.to_tables()
    kb.release()
    return tables


def _differences(case: Case, whole: Tables, move: str) -> list[str]:
    found = []
    for caller in CALLERS:
        nodes, edges = case.model.seen(caller)
        tables = visible(whole, caller)
        rows = {row["key"]: row for piece in tables.nodes for row in piece.table.to_pylist()}
        wanted = {key: _told(node) for key, node in nodes.items()}
        if {key: _told(row) for key, row in rows.items()} != wanted:
            found.append(f"after {move}, {caller} see other nodes than {sorted(wanted)}")
        links = [row for piece in tables.edges for row in piece.table.to_pylist()]
        seen = Counter((row["head"], row["relation"], row["tail"], row.get("since")) for row in links)
        if seen != Counter(edge[:4] for edge in edges):
            found.append(f"after {move}, {caller} see other edges: {seen - Counter(edge[:4] for edge in edges)}")
    return found


def _told(row: Node) -> tuple[Any, ...]:
    plain = tuple(row.get(name) for name in ("type", "name", "text", "colour"))
    return (*plain, tuple(row.get("aliases") or ()), tuple(row.get("merged_keys") or ()))


def _markers_in(tables: Tables) -> set[str]:
    """Return every word of names, aliases, texts and values, and every value of an edge."""
    nodes = [row for piece in tables.nodes for row in piece.table.to_pylist()]
    edges = [row for piece in tables.edges for row in piece.table.to_pylist()]
    words = [
        word
        for row in nodes
        for word in (row["name"], *row["text"].split(), row.get("colour"), *(row["aliases"] or ()))
    ]
    return {str(word) for word in (*words, *(row.get("since") for row in edges)) if word is not None}


def _markers(whole: Tables) -> dict[str, set[str]]:
    return {who: _markers_in(visible(whole, [who])) for who in ("", *NAMES)}


def _compared_with_a_rebuild(case: Case) -> list[str]:
    """Compare a real view with a base built of what is left, by all that tells bases apart."""
    caller = case.rng.choice(CALLERS)
    nodes, edges = case.model.seen(caller)
    try:
        view = clew.open(case.base, groups=caller, embedder="hash")
    except NotFoundError:
        return [f"{caller} see nothing"] if nodes else []
    if not view.is_view:  # nothing is hidden: columns that were emptied by an update are still there
        view.tools.local.release()
        return []
    rest = case.place / "rest.kb"
    shutil.rmtree(rest, ignore_errors=True)
    plain = Model(
        {key: {**node, GROUPS: frozenset()} for key, node in nodes.items()},
        tuple((*edge[:4], frozenset()) for edge in edges),
    )
    build(_tables(plain), rest)
    reference = clew.open(rest, embedder="hash")
    questions = case.place / "questions.jsonl"
    questions.write_text(
        "".join(
            json.dumps({"question": question, "answers": [key]}) + "\n"
            for key in [*nodes][:1]
            for question in ("Which name is it?", f"Who knows {nodes[key]['name']}?")
        )
    )
    asks = case.rng.random() < 0.25
    shown, wanted = (_everything(base, questions, asks=asks) for base in (view, reference))
    for base in (view, reference):
        base.tools.local.release()
    return [] if shown == wanted else [f"the view of {caller} differs from a base without what is hidden"]


def _everything(base: clew.Base, questions: Path, *, asks: bool) -> str:
    """Return all that a caller can see of a base, and how it is evaluated and answers a question."""
    kb = base.tools.local
    judged = clew.evaluate(base, questions, ("bm25",)).runs[0].rows if questions.stat().st_size else ()
    outcomes = [(row.metrics, row.ranking) for row in judged]
    nodes = [(kb.node(node), kb.triples(node), kb.text(node, relations=True)) for node in range(len(kb))]
    found = [base.find(text) for text in ("name", "colour")] + [base.find("text", in_text=True)]
    asked = [json.loads(line)["question"] for line in questions.read_text().splitlines()]
    answers = [base.ask(question) for question in asked[-1:] if asks]
    told = [(answer.text, answer.state, answer.candidates, answer.query) for answer in answers]
    return repr((nodes, base.schema, found, kb.notes, outcomes, told))


def _tables(model: Model, visibility: Visibility | None = None) -> Tables:
    texts, name = pa.list_(pa.string()), pa.string()
    lists = {"aliases": texts, "merged_keys": texts, GROUPS: texts}
    nodes = [{**node, GROUPS: sorted(node[GROUPS])} for node in model.nodes.values()]
    kept = [
        column
        for column in nodes[0]
        if column not in (GROUPS, "merged_keys", "colour") or any(node[column] for node in nodes)
    ]
    schema = pa.schema([(column, lists.get(column, name)) for column in kept])
    rows = pa.Table.from_pylist([{column: node[column] for column in kept} for node in nodes], schema)
    columns: dict[str, Any] = {
        end: pa.array([edge[at] for edge in model.edges], name) for at, end in enumerate(("head", "relation", "tail"))
    }
    if model.edges:
        columns["since"] = pa.array([edge[3] for edge in model.edges], pa.int64())
    if any(edge[4] for edge in model.edges):
        columns[GROUPS] = pa.array([sorted(edge[4]) for edge in model.edges], texts)
    return Tables((Piece(rows, "n"),), (Piece(pa.table(columns), "e"),), visibility=visibility or Visibility())


def _guarded(case: Case, expected: Model, widen: bool) -> Model | None:
    return None if not widen and case.model.widens(expected) else expected


# The moves: what the model makes of each, or None if it is refused, and what is done to the base


def _built(case: Case, widen: bool) -> tuple[Model | None, Act]:
    """Build the base anew, from some of the old rows and some new ones."""
    rng, old = case.rng, case.model
    rules = RULES if rng.random() < 0.5 else {}
    nodes = {key: case.node(key) for key in rng.sample(KEYS, rng.randint(2, 7))}
    for key in old.nodes:
        if rng.random() < 0.5:
            nodes[key] = {**old.nodes[key], "merged_keys": []} if rng.random() < 0.7 else case.node(key)
    tables_nodes = {key: dict(node) for key, node in nodes.items()}
    used = {pattern for pattern in rules if any(fnmatchcase(key, pattern) for key in nodes)}
    edges = [case.edge([*nodes]) for _ in range(rng.randint(0, 7))]
    edges += [edge for edge in old.edges if {edge[0], edge[2]} <= nodes.keys() and rng.random() < 0.6]
    for key, node in nodes.items():
        if ruled := _by_rules(key, rules):
            node[GROUPS] = ruled
    expected = Model(nodes, tuple(edges), rules)
    tables = (
        restricted(_tables(Model(tables_nodes, tuple(edges)), Visibility("acl")), rules) if used == set(rules) else None
    )
    if tables is None:
        rules, expected = {}, Model(tables_nodes, tuple(edges))
        tables = _tables(expected, Visibility("acl"))
    return _guarded(case, expected, widen), lambda: build(tables, case.base, widen=widen)


def _by_rules(key: str, rules: dict[str, list[str]]) -> Groups:
    fitting = [groups for pattern, groups in rules.items() if fnmatchcase(key, pattern)]
    return frozenset(fitting[-1]) if fitting else frozenset()


def _updated(case: Case, widen: bool) -> tuple[Model | None, Act]:
    """Delete some nodes and edges, then add and change some, by files with or without the column of groups."""
    rng, old = case.rng, case.model
    deleted = [key for key in old.nodes if rng.random() < 0.12]
    gone = {edge[:3] for edge in old.edges if rng.random() < 0.15}
    nodes = {key: node for key, node in old.nodes.items() if key not in deleted}
    edges = [edge for edge in old.edges if edge[:3] not in gone and not {edge[0], edge[2]} & {*deleted}]
    given = [case.node(key) for key in rng.sample([*KEYS, *old.nodes, *deleted], rng.randint(0, 4))]
    given = list({node["key"]: node for node in given}.values())
    parts = [name for name in ("name", "text", "colour", GROUPS) if rng.random() < 0.6]
    for node in given:
        key, before = node["key"], nodes.get(node["key"])
        if before is None:
            blank = {"name": key, "text": "", "colour": None, GROUPS: frozenset(), "aliases": [], "merged_keys": []}
            before = {**blank, "key": key, "type": key[0], GROUPS: frozenset()}
            if GROUPS not in parts or not node[GROUPS]:
                before[GROUPS] = _by_rules(key, old.rules)
        nodes[key] = {**before, **{name: node[name] for name in parts if node[name]}}
    if not nodes:
        return _updated(case, widen)
    with_groups = rng.random() < 0.5
    links = [case.edge([*nodes]) for _ in range(rng.randint(0, 3))]
    for edge in edges:
        if rng.random() < 0.3:  # an edge that is there, with its own value or another one
            links.append((*edge[:3], edge[3] if rng.random() < 0.6 else next(case.numbers), case.groups()))
    expected: Model | None = None
    if (kept := _with_groups(links, edges, with_groups)) is not None:
        rest = [edge for edge in edges if edge[:3] not in {link[:3] for link in links}]
        expected = _guarded(case, Model(nodes, (*rest, *kept), old.rules), widen)
    columns = ["id", "type", *("acl" if name == GROUPS else name for name in parts)]
    rows = [{"id": node["key"], **node, "acl": _cell(node[GROUPS])} for node in given]
    files = [_written(case.place / "nodes.csv", columns, rows)] if rows else []
    ends = ["head", "relation", "tail"]
    told = [dict(zip((*ends, "since", "acl"), (*link[:4], _cell(link[4])), strict=True)) for link in links]
    if told:
        files.append(_written(case.place / "edges.csv", [*ends, "since", *(["acl"] if with_groups else [])], told))
    removed = [_written(case.place / "gone.csv", ends, [dict(zip(ends, one, strict=True)) for one in sorted(gone)])]
    if not (files or deleted or gone):
        return _updated(case, widen)
    changes = {"delete_nodes": deleted, "delete_edges": removed if gone else []}
    return expected, lambda: update(case.base, read_changes(case.base, files, **changes), widen=widen)


def _with_groups(links: list[Edge], edges: list[Edge], with_groups: bool) -> list[Edge] | None:
    """Return the given edges with their groups or those of the edges that they replace; None if that is unclear."""
    kept = []
    for link in links:
        parallel = [edge for edge in edges if edge[:3] == link[:3]]
        groups = link[4] if with_groups else frozenset()
        if not groups and parallel:
            same = [edge for edge in parallel if edge[3] == link[3]]
            told = {edge[4] for edge in same or parallel}
            if len(told) > 1 and not same:
                return None
            groups = frozenset() if frozenset() in told else frozenset().union(*told)
        kept.append((*link[:4], groups))
    return kept


def _cell(groups: Groups) -> str:
    return ";".join(sorted(groups))


def _written(file: Path, columns: list[str], rows: list[dict[str, Any]]) -> Path:
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return file


def _merged(case: Case, widen: bool) -> tuple[Model | None, Act]:
    """Merge two or three nodes of a type, whatever groups they are for."""
    kind = case.rng.choice([node["type"] for node in case.model.nodes.values()])
    keys = [key for key, node in case.model.nodes.items() if node["type"] == kind]
    leader, *others = case.rng.sample(keys, min(len(keys), case.rng.randint(2, 3)))
    if not others:
        return _confirmed(case, False)
    group = [case.model.nodes[key] for key in (leader, *others)]
    kb = ArrayKnowledgeBase.open(case.base)
    refs = kb.refs([kb.find(key) for key in (leader, *others)])
    kb.release()
    expected = None if len({node[GROUPS] for node in group}) > 1 else _union(case.model, group)
    return expected, lambda: merge(case.base, [refs])


def _union(model: Model, group: list[Node]) -> Model:
    first, *others = group
    names = dict.fromkeys(name for node in group for name in (node["name"], *node["aliases"]))
    united = {
        **first,
        "aliases": [name for name in names if name != first["name"]],
        "text": "\n\n".join(dict.fromkeys(node["text"] for node in group if node["text"])),
        "colour": next((node["colour"] for node in group if node["colour"]), None),
        "merged_keys": [*(key for node in group for key in node["merged_keys"]), *(node["key"] for node in others)],
    }
    keys, leader = {node["key"] for node in group}, first["key"]
    nodes = {key: node for key, node in model.nodes.items() if key not in keys} | {leader: united}
    moved = [edge for edge in model.edges if {edge[0], edge[2]} & keys]
    ends = [
        (leader if edge[0] in keys else edge[0], edge[1], leader if edge[2] in keys else edge[2], *edge[3:])
        for edge in moved
    ]
    left = [edge for edge in model.edges if edge not in moved]
    return replace(model, nodes=nodes, edges=(*left, *dict.fromkeys(edge for edge in ends if edge[0] != edge[2])))


def _undone(case: Case, widen: bool) -> tuple[Model | None, Act]:
    """Undo the last merge, or nothing."""
    return case.before_merge, lambda: undo(case.base)


def _confirmed(case: Case, widen: bool) -> tuple[Model | None, Act]:
    """Confirm an answer, which changes nothing that anybody sees."""
    confirmed = Confirmed(question="Who is it?", answers=[case.rng.choice([*case.model.nodes])])
    return case.model, lambda: keep_confirmed(case.base, confirmed)


def _learned(case: Case, widen: bool) -> tuple[Model | None, Act]:
    """Confirm an answer that an edge leads to and learn from it, which changes nothing that anybody sees."""
    if not case.model.edges:
        return _confirmed(case, widen)
    head, _, tail, *_ = case.rng.choice(case.model.edges)
    question = f"Who does [{case.model.nodes[head]['name']}] know?"

    def act() -> None:
        keep_confirmed(case.base, Confirmed(question=question, answers=[tail]))
        tools = OpenBase.open(case.base, embedder="hash")
        with suppress(InputError):  # no path leads to what was confirmed
            learn(tools)
        tools.local.release()

    return case.model, act


def _tuned(case: Case, widen: bool) -> tuple[Model | None, Act]:
    """Choose a method for the base, which changes nothing that anybody sees."""
    tuned = Tuned(method=case.rng.choice(("bm25", "focus_plus")), before=0.1, after=0.2, questions=10)
    return case.model, lambda: keep_tuned(case.base, tuned)


def _trained(case: Case, widen: bool) -> tuple[Model | None, Act]:
    """Move what the reader knows of each relation, which changes nothing that a reader of a part sees."""

    def act() -> None:
        tools = OpenBase.open(case.base, embedder="hash")
        reader = reader_of(tools)
        texts = reader.vocabulary.hop_texts
        moves = {text: np.full(DIMENSION, case.rng.random(), dtype=np.float32) for text in texts}
        keep_asked(case.base, [AskedFor(about=text, way="reached", questions=["who is it to []"]) for text in texts])
        Fitted(reader.encoders.version, moves).keep(case.base)
        tools.local.release()

    return case.model, act


# Documents: files in folders, and rules that say who may read them


def _documents(rng: random.Random, place: Path) -> list[str]:
    files, base = place / "files", place / "docs.kb"
    rules: dict[str, list[str]] = {}
    markers: dict[str, tuple[str, Groups]] = {}
    problems: list[str] = []
    for number in range(STEPS):
        for name in (f"{folder}/{letter}.md" for folder in ("hr", "lab", "open") for letter in "ab"):
            file = files / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if rng.random() < 0.4 or number == 0:
                file.write_text(f"# Report\n\nThe word is mark{number}{name.replace('/', '')[:-3]}.\n")
            elif rng.random() < 0.15 and name != "open/a.md":
                file.unlink(missing_ok=True)
        there = {
            file.relative_to(files).as_posix(): file.read_text().split()[-1].rstrip(".") for file in files.rglob("*.md")
        }
        chosen = {f"{folder}/*": rng.sample(NAMES, rng.randint(1, 2)) for folder in ("hr", "lab") if rng.random() < 0.6}
        given = {
            pattern: groups for pattern, groups in chosen.items() if any(fnmatchcase(name, pattern) for name in there)
        }
        given = given if rng.random() < 0.5 else {}
        widen = rng.random() < 0.3
        now = given or rules
        later = {name: (marker, _by_rules(name, now)) for name, marker in there.items()}
        refused = not widen and any(
            not (later[name][1] or EVERYBODY) <= (groups or EVERYBODY)
            for name, (_, groups) in markers.items()
            if name in later
        )
        try:
            options = DocumentOptions(edges=EdgeOptions(kinds=()), visible=given)
            build_documents([files], base, options, jobs=1, widen=widen)
            is_done = True
        except ClewError:
            is_done = False
        if is_done == refused:
            return [*problems, f"documents: {'done' if is_done else 'refused'}, {given} after {rules}"]
        if is_done:
            rules, markers = now, later
        for caller in CALLERS:
            kb = ArrayKnowledgeBase.open(base)
            shown = json.dumps(
                [piece.table.to_pylist() for piece in visible(kb.to_tables(), caller).nodes], default=str
            )
            kb.release()
            wrong = [
                name
                for name, (mark, groups) in markers.items()
                if (mark in shown) != (not groups or bool({*caller} & groups))
            ]
            problems += [f"documents: {caller} see {name}, or not, otherwise than {rules}" for name in wrong]
        problems += _documents_compared(rng.choice(CALLERS), markers, place, asks=rng.random() < 0.25)
        if problems:
            return problems
    return []


def _documents_compared(
    caller: tuple[str, ...], markers: dict[str, tuple[str, Groups]], place: Path, *, asks: bool
) -> list[str]:
    """Compare a real view with a base of the files that are left."""
    view = clew.open(place / "docs.kb", groups=caller, embedder="hash")
    if not view.is_view:
        view.tools.local.release()
        return []
    left, rest = place / "left", place / "rest.kb"
    for folder in (left, rest):
        shutil.rmtree(folder, ignore_errors=True)
    for name, (mark, groups) in markers.items():
        if not groups or {*caller} & groups:
            (left / name).parent.mkdir(parents=True, exist_ok=True)
            (left / name).write_text(f"# Report\n\nThe word is {mark}.\n")
    build_documents([left], rest, DocumentOptions(edges=EdgeOptions(kinds=())), jobs=1)
    reference = clew.open(rest, embedder="hash")
    questions = place / "questions.jsonl"
    asked = [{"question": f"What does {mark} say?", "answers": [name]} for name, (mark, _) in [*markers.items()][:2]]
    questions.write_text("".join(json.dumps(one) + "\n" for one in asked))
    shown, wanted = (_everything(base, questions, asks=asks) for base in (view, reference))
    for column, kind in DOCUMENT_COLUMNS.items():  # a view has no columns without values, a base of documents has
        shown, wanted = (text.replace(f"'{column}': '{kind}', ", "") for text in (shown, wanted))
    for base in (view, reference):
        base.tools.local.release()
    return [] if shown == wanted else [f"documents: the view of {caller} differs from a base without what is hidden"]
