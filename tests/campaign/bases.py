"""The bases that are tried: a small graph with vectors and a small folder of documents, and what is in them."""

import hashlib
import json
import shutil
from datetime import date
from pathlib import Path

import pyarrow as pa

import documents_made
import formats_made
from clew.documents.building import build_documents
from clew.store.building import build
from clew.store.graph.manifest import LOCK, read_manifest
from clew.store.graph.tables import Piece, Tables
from clew.store.open_base import OpenBase
from conftest import tables

OWN = {LOCK, "manifest.json", "vectors", "extracted"}


def graph_base(folder: Path) -> Path:
    """The tiny graph, every node with its vector."""
    build(tables(), folder)
    OpenBase.switch_embedder(folder, "hash")
    return folder


CIRCLE = 400
"""Nodes of the circle of `circle_base`."""


def circle_base(folder: Path) -> Path:
    """The tiny graph, and places in a circle with numbers and days."""
    small = tables()
    keys = [f"place{number}" for number in range(CIRCLE)]
    days = [date(1990 + number % 30, 1 + number % 12, 1) if number % 5 else None for number in range(CIRCLE)]
    columns = {"key": keys, "type": ["place"] * CIRCLE, "name": [f"Place {key}" for key in keys], "day": days}
    columns |= {"n": [number % 7 if number % 3 else None for number in range(CIRCLE)], "text": ["a" * 60] * CIRCLE}
    edges = {"head": keys, "relation": ["next"] * CIRCLE, "tail": [*keys[1:], keys[0]]}
    build(Tables((*small.nodes, Piece(pa.table(columns), "p")), (*small.edges, Piece(pa.table(edges), "c"))), folder)
    return folder


def document_files(folder: Path) -> Path:
    """One small file of every format."""
    folder.mkdir(parents=True, exist_ok=True)
    formats_made.make_all(folder)
    documents_made.ruled_pdf(folder / "ruled.pdf")
    return folder


def document_base(folder: Path, files: Path) -> Path:
    """The base of these files, every passage with its vector."""
    build_documents([files], folder, jobs=1)
    OpenBase.switch_embedder(folder, "hash")
    return folder


def content(folder: Path) -> dict[str, str]:
    """What is in the current generation, by file; nothing where there is no base."""
    if not (folder / "manifest.json").exists():
        return {}
    manifest = read_manifest(folder)
    place = folder / manifest.generation
    found = {
        file.relative_to(place).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in place.rglob("*")
        if file.is_file()
    }
    return found | {"facts": json.dumps(manifest.facts, sort_keys=True)}


def recorded(folder: Path) -> dict[str, str]:
    """The same as the manifest has it."""
    manifest = read_manifest(folder)
    found = {name: str(told["sha256"]) for name, told in manifest.files.items()}
    return found | {"facts": json.dumps(manifest.facts, sort_keys=True)}


def vectors(folder: Path) -> dict[str, str]:
    """The files of the vectors; a generation may have another name where a damaged one stood in its place."""
    files = sorted(file for file in (folder / "vectors").rglob("*") if file.is_file())
    current = read_manifest(folder).generation if (folder / "manifest.json").exists() else "none"
    names = [file.relative_to(folder).as_posix().replace(current, "current") for file in files]
    return {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in zip(names, files, strict=True)}


def leftovers(folder: Path) -> set[str]:
    """What lies in the folder of a base and is no part of it."""
    manifest = read_manifest(folder)
    states = {state.generation for state in (manifest, manifest.previous) if state is not None}
    return {path.name for path in folder.iterdir()} - OWN - states


def copied(base: Path, place: Path) -> Path:
    """A base to be damaged."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(base, place)
    return place
