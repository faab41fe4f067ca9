"""Kills, full disks and sequences of changes: the base is the old one or the new one, and nothing is left behind."""

import errno
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import pyarrow as pa
from bases import content, copied, document_base, document_files, graph_base, leftovers
from trials import Writes, apart, counted, kill_here

import clew
from clew.building import build, check, update
from clew.core.errors import ClewError
from clew.documents import build_documents
from clew.kb.manifest import read_manifest
from clew.kb.sources.delta import Delta
from clew.kb.tables import Piece
from clew.methods.catalog import method_names
from clew.methods.paths.feedback import Confirmed, keep_confirmed
from clew.repairing import repair
from clew.toolbox import Toolbox
from conftest import EDGES, NODES, tables

NEW = Delta(tables([("N1", "gene", "NEW1", [], "A new gene.")], [("N1", "associated_with", "MFS", None)]))


class Writers:
    """Commands that write a base: how each begins and what it does."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.files = document_files(place / "files")
        self.graph = graph_base(place / "graph.kb")
        self.documents = document_base(place / "documents.kb", self.files)
        self.damaged = copied(self.graph, place / "damaged.kb")
        (self.damaged / read_manifest(self.damaged).generation / "by_type.npy").write_bytes(b"damaged")

        for base in (self.graph, self.documents):  # what is loaded now need not be loaded by each process
            for method in method_names():
                with suppress(ClewError):
                    clew.open(base).ask("Which disease has long fingers?", method)

    def commands(self) -> dict[str, tuple[Path | None, Callable[[Path], object]]]:
        """Name → the base it begins with, if any, and the work."""
        return {
            "build": (None, lambda folder: build(tables(), folder)),
            "rebuild": (self.graph, lambda folder: build(tables(NODES[:4], EDGES[:2]), folder)),
            "update": (self.graph, lambda folder: update(folder, NEW)),
            "embed": (self.graph, lambda folder: Toolbox.switch_embedder(folder, "hash")),
            "documents": (None, lambda folder: build_documents([self.files / "harbour.md"], folder, jobs=1)),
            "documents again": (self.documents, lambda folder: build_documents([self.files], folder, jobs=1)),
            "repair": (self.damaged, repair),
            "feedback": (self.graph, lambda folder: keep_confirmed(folder, Confirmed(question="q", answers=["BBS2"]))),
        }

    @cache  # noqa: B019 - as long as the campaign
    def after(self, name: str) -> tuple[dict[str, str], int]:
        """What a command makes where nobody disturbs it, and how many moments it has."""
        begun, work = self.commands()[name]
        folder = self.begin(begun, self.place / "undisturbed.kb")
        moments = counted(lambda: work(folder), folder)
        return content(folder), moments

    def begin(self, base: Path | None, folder: Path) -> Path:
        """A folder in the state in which a command finds it."""
        shutil.rmtree(folder, ignore_errors=True)
        return copied(base, folder) if base is not None else folder


def killed(writers: Writers, seed: int, place: Path) -> list[str]:
    """A command is killed at one moment of its writing, then run again."""
    pick = random.Random(seed)
    name = pick.choice(list(writers.commands()))
    begun, work = writers.commands()[name]
    made, moments = writers.after(name)
    folder = writers.begin(begun, place / "killed.kb")
    before, at = content(folder), pick.randrange(max(1, moments))

    def work_until_then() -> None:
        Writes(folder, at, kill_here)
        work(folder)

    wrong = [apart(work_until_then)]
    found = content(folder) if folder.exists() else {}
    if found not in (before, made):
        wrong.append("lost: neither the old base nor the new one")
    if found and name != "repair":
        wrong += [f"unsound after the kill: {problem}" for problem in check(folder)]
    wrong.append(apart(lambda: work(folder) and None))
    return [f"{name} at {at}: {one}" for one in [*wrong, *_finished(folder, made)] if one]


def _finished(folder: Path, made: dict[str, str]) -> list[str]:
    if not (folder / "manifest.json").exists():
        return ["lost: no base after the second run"]
    wrong = [f"unsound: {problem}" for problem in check(folder)]
    wrong += [] if content(folder) == made else ["changed: the second run made another base"]
    left = leftovers(folder) - {"feedback.jsonl"}
    return wrong + ([f"left behind: {sorted(left)}"] if left else [])


def disk_full(writers: Writers, seed: int, place: Path) -> list[str]:
    """From one moment on nothing can be written: the disk is full, or was mounted to be read."""
    pick = random.Random(seed)
    name = pick.choice(list(writers.commands()))
    begun, work = writers.commands()[name]
    made, moments = writers.after(name)
    folder = writers.begin(begun, place / "full.kb")
    before, at = content(folder), pick.randrange(max(1, moments))
    number = pick.choice([errno.ENOSPC, errno.EROFS, errno.EACCES])

    def refuse() -> None:
        raise OSError(number, "refused on purpose")

    def work_until_then() -> str | None:
        Writes(folder, at, refuse)
        try:
            work(folder)
        except OSError as error:
            return None if error.errno == number else f"internal: {error}"
        return None

    wrong = [apart(work_until_then)]
    found = content(folder) if folder.exists() else {}
    if found not in (before, made):
        wrong.append("lost: neither the old base nor the new one")
    wrong.append(apart(lambda: work(folder) and None))
    return [f"{name} at {at}: {one}" for one in [*wrong, *_finished(folder, made)] if one]


def sequence(seed: int, place: Path) -> list[str]:
    """Random changes, some of them killed and run again, end as a base that was built at once."""
    pick = random.Random(seed)
    nodes, edges = _some_nodes(pick), set()
    folder = place / "changed.kb"
    shutil.rmtree(folder, ignore_errors=True)
    build(_tables(nodes, edges), folder)
    wrong: list[str | None] = []
    for _ in range(pick.randrange(1, 5)):
        gone = {key for key in nodes if pick.random() < 0.15}
        kept = {key: row for key, row in nodes.items() if key not in gone}
        added = _some_nodes(pick) if pick.random() < 0.8 or not kept else {}
        nodes = kept | added
        edges = {edge for edge in edges if edge[0] in kept and edge[2] in kept}
        joined = {(pick.choice(list(nodes)), pick.choice("rs"), pick.choice(list(nodes))) for _ in range(3)}
        edges |= joined
        removed = (Piece(pa.table({"key": sorted(gone)}), "gone"),) if gone else ()
        change, before = Delta(_tables(added, joined), removed), read_manifest(folder).generation
        if pick.random() < 0.3:
            at = pick.randrange(25)
            wrong.append(apart(lambda at=at, change=change: _update_until(folder, at, change)))
        if read_manifest(folder).generation == before:
            wrong.append(apart(lambda change=change: update(folder, change) and None))
    shutil.rmtree(place / "fresh.kb", ignore_errors=True)
    build(_tables(nodes, edges), place / "fresh.kb")
    return [one for one in [*wrong, *_finished(folder, content(place / "fresh.kb"))] if one]


def _update_until(folder: Path, at: int, change: Delta) -> None:
    Writes(folder, at, kill_here)
    update(folder, change)


def _some_nodes(pick: random.Random) -> dict[str, tuple[str, str]]:
    return {f"k{pick.randrange(8)}": (pick.choice("ab"), pick.choice(["x", "yy", "z z"])) for _ in range(4)}


def _tables(nodes: dict[str, tuple[str, str]], edges: set[tuple[str, str, str]]):
    listed = [(key, kind, f"name of {key}", [], text) for key, (kind, text) in sorted(nodes.items())]
    return tables(listed, [(*edge, "w") for edge in sorted(edges)])


def evaluation_killed(writers: Writers, seed: int, place: Path) -> list[str]:
    """A run that is killed goes on where it was and judges every question once."""
    pick = random.Random(seed)
    asked, out = place / "asked.jsonl", place / "runs"
    asked.write_text("".join(f'{{"question": "Which gene {n}?", "answers": ["BBS2"]}}\n' for n in range(6)))
    shutil.rmtree(out, ignore_errors=True)

    def run() -> None:
        clew.evaluate(writers.graph, asked, ["bm25"], out=out)

    def run_until_then() -> None:
        Writes(out, pick.randrange(12), kill_here)
        run()

    wrong = [apart(run_until_then), apart(run)]
    rows = [line for file in out.rglob("answers.jsonl") for line in file.read_text().splitlines()]
    if len(rows) != 6:
        wrong.append(f"changed: {len(rows)} answers to 6 questions")
    return [one for one in wrong if one]
