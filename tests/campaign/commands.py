"""Every command that writes: what it finds, what it does, and what must be in its folder in the end."""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from bases import circle_base, content, copied, document_base, document_files, graph_base, leftovers, vectors
from syscalls import kill_before
from trials import Cost, cost

import clew
from clew.answering.methods.catalog import method_names
from clew.answering.methods.subgraph_reranking.ranker_file import read_card
from clew.answering.methods.tuned import Tuned, keep_tuned
from clew.answering.queries.relation_paths import Move
from clew.answering.reading.encoders import Encoders
from clew.answering.reading.fitted import Fitted
from clew.answering.reading.path_ranker import Taught, keep_taught, read_taught
from clew.cli.inspect import dedup
from clew.cli.subgraph import subgraphs
from clew.cli.synth import synth
from clew.cli.train import ranker
from clew.core.errors import ClewError, InputError
from clew.documents.building import build_documents
from clew.documents.repairing import repair
from clew.lab.training.feedback import learn
from clew.lab.training.own_base import AskedFor, keep_asked
from clew.models.embedding.onnx import DIMENSION
from clew.server.store import Actor
from clew.server.team.team import Team
from clew.server.wire_team import UserChange
from clew.store.building import build, check, update
from clew.store.confirmed import Confirmed, keep_confirmed, read_confirmed
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.manifest import BESIDE, read_manifest
from clew.store.index.build import vectors_are_behind
from clew.store.open_base import OpenBase
from clew.store.sources.delta import Delta
from conftest import EDGES, NODES, tables

NEW = Delta(tables([("N1", "gene", "NEW1", [], "A new gene.")], [("N1", "associated_with", "MFS", None)]))
TWICE = [*NODES, ("MFS2", "disease", "Marfan syndrome", ["MFS"], "A disorder of connective tissue.")]
ASKED = [
    {"question": f"What is {name} joined to?", "answers": [tail], "topics": [key]}
    for key, _, name, _, _ in NODES
    for tail in ("P4", "BBS")
]
"""Two questions over each node."""
CHOSEN = Tuned(method="bm25", options={"k": 5}, before=0.1, after=0.2, questions=9)
MOVE = np.ones(DIMENSION, dtype=np.float32)
WORDED = [AskedFor(about="gene → associated_with → disease", way="reached", questions=["what causes []"])]
MISREAD = [
    AskedFor(
        about=about,
        way="reached",
        questions=[
            way.format(word) for way in ("who {} []", "the {} of []", "[] {} whom", "tell me the {} of []", "{} []")
        ],
    )
    for about, word in (
        ("disease → has phenotype → phenotype", "gene"),
        ("disease ← associated with ← gene", "symptom"),
    )
]
"""Questions that the reader as shipped reads otherwise, so that a fit is taken into use."""
TIMES = re.compile(rb'"(seconds|started|at|created|made)": ?[^,}]+')

State = dict[str, str]


def base_state(folder: Path) -> State:
    """What a base is; where there is none yet, nothing."""
    return content(folder)


def file_state(folder: Path) -> State:
    """What lies in a folder, hidden or not; the times of what was done are left out."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(TIMES.sub(b"", file.read_bytes())).hexdigest()
        for file in files
    }


def base_faults(folder: Path, allowed: frozenset[str]) -> list[str]:
    """What is wrong with a base, or lies about in it."""
    if not (folder / "manifest.json").exists():
        return ["lost: no base"]
    left = leftovers(folder) - allowed
    return [*(f"unsound: {problem}" for problem in check(folder)), *([f"left behind: {sorted(left)}"] if left else [])]


def changed_faults(folder: Path, allowed: frozenset[str]) -> list[str]:
    """The same of a change that keeps the vectors: those of the new state are there as soon as it is in use."""
    behind = ["unfinished: the vectors are behind"] if vectors_are_behind(folder) else []
    return [*base_faults(folder, allowed), *behind]


def taught_state(folder: Path) -> State:
    """What a base is, with what it was taught."""
    taught = {name: str((folder / name).read_bytes()) for name in BESIDE if (folder / name).exists()}
    return content(folder) | taught


def learned_state(folder: Path) -> State:
    """What a base is, and what was learned for it: both parts of it change at once."""
    kb = ArrayKnowledgeBase.open(folder)
    fitted = Fitted.beside(kb, Encoders().version)
    kb.release()
    moves = {} if fitted is None else {text: move.tolist() for text, move in fitted.moves.items()}
    return content(folder) | {"paths": str(read_taught(folder)), "moves": str(moves)}


def no_faults(_folder: Path, _allowed: frozenset[str]) -> list[str]:
    """For folders that are compared file by file."""
    return []


@dataclass(frozen=True)
class Command:
    """What is killed."""

    work: Callable[[Path], object]
    begun: Path | None = None
    """What it begins with."""
    state: Callable[[Path], State] = base_state
    ended: Callable[[Path], State] = lambda folder: content(folder) | vectors(folder)
    """What must be the same at the end, killed or not."""
    faults: Callable[[Path, frozenset[str]], list[str]] = base_faults
    beside: frozenset[str] = frozenset()
    """What may lie in the base and is no part of it."""
    is_whole: bool = True
    """Whether the old state or the new one is there at every moment."""
    is_sound: bool = True
    """Whether what it begins with is."""


class Writers:
    """The bases that commands begin with, and the commands."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.files = document_files(place / "files")
        self.graph = graph_base(place / "graph.kb")
        self.bare = place / "bare.kb"
        build(tables(), self.bare)
        self.documents = document_base(place / "documents.kb", self.files)
        self.damaged = copied(self.graph, place / "damaged.kb")
        (self.damaged / read_manifest(self.damaged).generation / "by_type.npy").write_bytes(b"damaged")
        self.twice = place / "twice.kb"
        build(tables(TWICE), self.twice)
        OpenBase.switch_embedder(self.twice, "hash")
        self.merged = copied(self.twice, place / "merged.kb")
        _merge(self.merged)
        self.confirmed = copied(self.graph, place / "confirmed.kb")
        keep_confirmed(self.confirmed, Confirmed(question="Which gene is associated with [MFS]?", answers=["FBN1"]))
        self.learned = copied(self.confirmed, place / "learned.kb")
        keep_asked(self.learned, MISREAD)
        keep_taught(self.learned, [Taught("an older question", (Move("has_phenotype", "out"),))])
        Fitted(Encoders().version, {"gene": MOVE}).keep(self.learned)
        self.team = place / "team"
        self.team.mkdir()
        team = Team.open(self.team / "users.db")
        team.users.make(Actor("campaign"), "ada", UserChange(roles={"*": "admin"}))
        team.store.close()
        self.questions = place / "questions.jsonl"
        self.questions.write_text("".join(json.dumps(one) + "\n" for one in ASKED), "utf-8")
        pages = document_base(place / "pages.kb", self.files / "harbour.md")  # short: what is read costs time
        self.asked = {"graph": copied(self.graph, place / "asked" / "graph.kb"), "documents": pages}  # may keep vectors
        self.opened = {kind: clew.open(base) for kind, base in self.asked.items()}
        for base in self.opened.values():  # what is loaded now need not be loaded by each process
            for method in method_names():
                with suppress(ClewError):
                    base.ask("Which disease has long fingers?", method)
        self.circle = clew.open(circle_base(place / "circle.kb"), embedder="hash")

    def commands(self) -> Mapping[str, Command]:
        """By name."""
        question = Confirmed(question="q", answers=["BBS2"])
        beside = frozenset(BESIDE)
        files = {"state": file_state, "ended": file_state, "faults": no_faults, "is_whole": False}
        return {
            "build": Command(lambda folder: build(tables(), folder)),
            "build anew": Command(lambda folder: build(tables(NODES[:4], EDGES[:2]), folder), self.graph),
            "update": Command(lambda folder: update(folder, NEW), self.graph, faults=changed_faults),
            "embed": Command(lambda folder: OpenBase.switch_embedder(folder, "hash"), self.bare),
            "embed otherwise": Command(lambda folder: OpenBase.switch_embedder(folder, "minilm"), self.graph),
            "documents": Command(lambda folder: build_documents([self.files / "harbour.md"], folder, jobs=1)),
            "documents anew": Command(lambda folder: build_documents([self.files], folder, jobs=1), self.documents),
            "repair": Command(repair, self.damaged, is_sound=False),
            "feedback": Command(
                lambda folder: _confirm(folder, question), self.confirmed, taught_state, taught_state, beside=beside
            ),
            "feedback --learn": Command(
                lambda folder: learn(OpenBase.open(folder)), self.learned, learned_state, taught_state, beside=beside
            ),
            "tune": Command(
                lambda folder: keep_tuned(folder, CHOSEN), self.confirmed, taught_state, taught_state, beside=beside
            ),
            "train reader": Command(
                lambda folder: Fitted("1", {"gene": MOVE}).keep(folder),
                self.confirmed,
                taught_state,
                taught_state,
                beside=beside,
            ),
            "train reader, questions": Command(
                lambda folder: keep_asked(folder, WORDED), self.confirmed, taught_state, taught_state, beside=beside
            ),
            "dedup --merge": Command(_merge, self.twice, faults=changed_faults),
            "dedup --undo": Command(_undo, self.merged, faults=changed_faults),
            "synth": Command(lambda folder: synth(self.graph, folder, count=6), **files),
            "train ranker": Command(self._train, **(files | {"ended": _ranker_state})),
            "subgraphs": Command(self._subgraphs, **files),
            "eval": Command(self._evaluate, **(files | {"ended": _answered})),
            "users": Command(_add_user, self.team, **(files | {"state": _users, "ended": _users, "is_whole": True})),
        }

    def _train(self, folder: Path) -> None:
        ranker(str(self.questions), folder, kb=self.graph, kind="logistic", features="graph", candidates=4, seed=5)

    def _subgraphs(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        subgraphs(str(self.questions), folder / "subgraphs.jsonl", kb=self.graph, candidates=4, force=True)

    def _evaluate(self, folder: Path) -> None:
        clew.evaluate(self.graph, self.questions, ["bm25"], out=folder)

    @cache  # noqa: B019 - as long as the campaign
    def after(self, name: str) -> tuple[State, State, Cost]:
        """What a command makes where nobody disturbs it: its state, all that must be the same again, what it takes."""
        command = self.commands()[name]
        folder = self.begin(command, self.place / "undisturbed")
        taken = cost(lambda: command.work(folder), folder)
        return command.state(folder), command.ended(folder), taken

    def calls(self, name: str) -> int:
        """Return the number of system calls by which a command writes."""
        command = self.commands()[name]
        folder = self.begin(command, self.place / "undisturbed")
        return kill_before(lambda: command.work(folder), folder).moments

    def begin(self, command: Command, folder: Path) -> Path:
        """A folder in the state in which a command finds it."""
        shutil.rmtree(folder, ignore_errors=True)
        return copied(command.begun, folder) if command.begun is not None else folder


def _confirm(folder: Path, confirmed: Confirmed) -> None:
    if confirmed not in read_confirmed(folder):  # it was kept already
        keep_confirmed(folder, confirmed)


def _merge(folder: Path) -> None:
    dedup(folder, merge=True, embedder="hash", as_json=True)


def _undo(folder: Path) -> None:
    with suppress(InputError):  # it was undone already
        dedup(folder, undo=True, as_json=True)


def _ranker_state(folder: Path) -> State:
    return {"files": str(sorted(read_card(folder).files.items())), "all": str(sorted(file_state(folder)))}


def _answered(folder: Path) -> State:
    rows = [json.loads(line) for file in folder.rglob("answers.jsonl") for line in file.read_text().splitlines()]
    return {"questions": str(sorted(row["id"] for row in rows))}


def _add_user(folder: Path) -> None:
    team = Team.open(folder / "users.db")
    with suppress(InputError):  # there already
        team.users.make(Actor("campaign"), "bob", UserChange(roles={"graph": "reader"}))
    team.store.close()


def _users(folder: Path) -> State:
    """Who may do what, and what the audit says of it: both, or neither."""
    team = Team.open(folder / "users.db")
    try:
        roles = {user.name: str(user.roles) for user in team.users.all()}
        sound = str([tuple(row) for row in team.store.rows("PRAGMA integrity_check")])
        return roles | {"audit": str([line.about for line in team.audit_log()]), "sound": sound}
    finally:
        team.store.close()
