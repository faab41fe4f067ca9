"""Kills, full disks and sequences of changes: the base is the old one or the new one, and nothing is left behind."""

import errno
import random
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from bases import content, copied, leftovers, recorded
from commands import Command, Writers
from syscalls import Ended, kill_before
from trials import Writes, apart, judged, kill_after, kill_here

from clew.store.building import build, check, update
from clew.store.confirmed import Confirmed, keep_confirmed
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.manifest import BESIDE, read_manifest
from clew.store.graph.tables import Piece, Tables
from clew.store.index.build import have_all_vectors
from clew.store.open_base import OpenBase
from clew.store.sources.delta import Delta
from conftest import tables

HISTORY = 10
"""Changes of one base; after each it is compared with one built at once."""


def killed(writers: Writers, seed: int, place: Path) -> list[str]:
    """A command is killed as it is about to write, or anywhere in between, then run again."""
    pick = random.Random(seed)
    name = pick.choice(list(writers.commands()))
    command, (_, _, cost) = writers.commands()[name], writers.after(name)
    folder = writers.begin(command, place / "killed")
    at, after = pick.randrange(max(1, cost.moments)), pick.uniform(0, cost.seconds)

    def work_until_then() -> None:
        if pick.random() < 0.5:
            Writes(folder, at, kill_here)
        else:
            kill_after(after)
        command.work(folder)

    return _disturbed(writers, name, folder, lambda: apart(work_until_then), f"{name} at {at} or {after:.3f} s")


def killed_at(writers: Writers, name: str, at: int, place: Path) -> tuple[bool, list[str]]:
    """A command is killed right before its `at`th call that writes, then run again, or another one is.

    Return whether it wrote so often, and what went wrong.
    """
    command = writers.commands()[name]
    folder, other = writers.begin(command, place / "killed"), place / "changed otherwise"
    ended: list[Ended] = []

    def kill() -> str:
        ended.append(kill_before(lambda: command.work(folder), folder, at))
        copied(folder, other)
        return ended[0].fault

    wrong = _disturbed(writers, name, folder, kill, f"{name} at {at}")
    keep_confirmed(other, Confirmed(question="another question", answers=["BBS2"]))
    wrong += [f"{name} at {at}, then feedback: {one}" for one in command.faults(other, frozenset(BESIDE))]
    return ended[0].is_killed, [f"{one} ({ended[0].call})" for one in wrong]


def disk_full(writers: Writers, seed: int, place: Path) -> list[str]:
    """From one moment on nothing can be written, or no file may grow beyond some bytes."""
    pick = random.Random(seed)
    name = pick.choice(list(writers.commands()))
    command, (_, _, cost) = writers.commands()[name], writers.after(name)
    folder = writers.begin(command, place / "full")
    at, number = pick.randrange(max(1, cost.moments)), pick.choice([errno.ENOSPC, errno.EROFS, errno.EACCES])
    most = pick.choice([0, 100, 1_000, 4_000, 20_000])
    grows = pick.random() < 0.5

    def refuse() -> None:
        raise OSError(number, "refused on purpose")

    def work_until_then() -> str | None:
        if grows:
            Writes(folder, at, refuse)
        else:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        try:
            command.work(folder)
        except OSError as error:
            return None if error.errno in (number, errno.EFBIG) else f"internal: {error}"
        return None

    how = f"{errno.errorcode[number]} at {at}" if grows else f"{most} bytes"
    return _disturbed(writers, name, folder, lambda: apart(work_until_then), f"{name}, {how}")


def _disturbed(writers: Writers, name: str, folder: Path, disturb: Callable[[], str | None], told: str) -> list[str]:
    """What is wrong after a command was disturbed, and after it was run again."""
    command, (made, ended, _) = writers.commands()[name], writers.after(name)
    before = command.state(folder) if folder.exists() else {}
    wrong = [disturb()]
    found = command.state(folder) if folder.exists() else {}
    if command.is_whole and found not in (before, made):
        wrong.append("lost: neither the old state nor the new one")
    if command.is_sound and command.is_whole and found:
        wrong += [one for one in command.faults(folder, frozenset(map(str, _names(folder)))) if one]
    wrong.append(apart(lambda: command.work(folder) and None))
    wrong += _finished(command, folder, ended)
    return [f"{told}: {one}" for one in wrong if one]


def _names(folder: Path) -> set[str]:
    """Until the next command something may lie about."""
    return {path.name for path in folder.iterdir()}


def _finished(command: Command, folder: Path, ended: dict[str, str]) -> list[str]:
    if not folder.exists():
        return ["lost: nothing after the second run"]
    found = command.ended(folder)
    differ = sorted(name for name in {*found, *ended} if found.get(name) != ended.get(name))
    wrong = [f"changed by the second run: {', '.join(differ[:5])}"] if differ else []
    return [*command.faults(folder, command.beside), *wrong]


def sequence(seed: int, place: Path) -> list[str]:
    """A base that is changed again and again, killed in between or not, is always like one that was built at once."""
    wrong = apart(lambda: "; ".join(_history(random.Random(seed), place)) or None, seconds=60)
    return [wrong] if wrong else []


def _history(pick: random.Random, place: Path) -> list[str]:
    nodes, edges = _some_nodes(pick), set()
    folder, fresh = place / "changed.kb", place / "fresh.kb"
    for base in (folder, fresh):
        shutil.rmtree(base, ignore_errors=True)
    build(_tables(nodes, edges), folder)
    has_vectors = pick.random() < 0.2
    if has_vectors:
        OpenBase.switch_embedder(folder, "hash")
    for number in range(HISTORY):
        gone = {key for key in nodes if pick.random() < 0.15}
        kept = {key: row for key, row in nodes.items() if key not in gone}
        added = _some_nodes(pick) if pick.random() < 0.8 or not kept else {}
        nodes = kept | added
        edges = {edge for edge in edges if edge[0] in kept and edge[2] in kept}
        joined = {(pick.choice(list(nodes)), pick.choice("rs"), pick.choice(list(nodes))) for _ in range(3)}
        edges |= joined
        removed = (Piece(pa.table({"key": sorted(gone)}), "gone"),) if gone else ()
        change, before = Delta(_tables(added, joined), removed), read_manifest(folder).generation
        wrong = [apart(lambda change=change: _update_until(pick, folder, change))] if pick.random() < 0.3 else []
        was_run = read_manifest(folder).generation == before or has_vectors
        if was_run:
            wrong.append(judged(lambda change=change: update(folder, change) and None))
        build(_tables(nodes, edges), fresh)
        if content(folder) != recorded(fresh):
            wrong.append("changed: not what a build at once gives")
        left = leftovers(folder) if was_run else set()  # what was killed at its very end is cleared by the next change
        wrong += [f"left behind: {sorted(left)}"] if left else []
        if has_vectors and not _has_vectors(folder):
            wrong.append("lost: vectors")
        if any(wrong):
            return [f"change {number}: {one}" for one in wrong if one]
    return [f"unsound: {problem}" for problem in check(folder)]


def _has_vectors(folder: Path) -> bool:
    base = ArrayKnowledgeBase.open(folder)
    try:
        return have_all_vectors(base)
    finally:
        base.release()


def _update_until(pick: random.Random, folder: Path, change: Delta) -> None:
    if pick.random() < 0.7:
        Writes(folder, pick.randrange(60), kill_here)
    else:
        kill_after(pick.uniform(0, 0.1))
    update(folder, change)


def _some_nodes(pick: random.Random) -> dict[str, tuple[str, str]]:
    return {f"k{pick.randrange(8)}": (pick.choice("ab"), pick.choice(["x", "yy", "z z"])) for _ in range(4)}


def _tables(nodes: dict[str, tuple[str, str]], edges: set[tuple[str, str, str]]) -> Tables:
    listed = [(key, kind, f"name of {key}", [], text) for key, (kind, text) in sorted(nodes.items())]
    return tables(listed, [(*edge, "w") for edge in sorted(edges)])
