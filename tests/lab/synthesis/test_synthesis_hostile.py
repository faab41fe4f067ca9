"""The construction on bases that were not made for it, and killed at any moment."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from test_synthesis import read_all, small  # noqa: F401 - a fixture

from clew.core.errors import InputError
from clew.lab.synthesis.benchmark import BenchmarkOptions, make_benchmark
from clew.lab.synthesis.records import violations
from clew.store.building import build
from clew.store.graph.tables import Piece, Tables
from clew.store.open_base import OpenBase
from conftest import tables
from repeats import repeats

LARGE = int(os.environ.get("CLEW_HOSTILE_EDGES", "40000"))
KILLS = repeats(2, 20)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> OpenBase:
    """Names in any script, names that are no names, types with one node, a relation with very many edges, no texts."""
    rng = random.Random(0)
    people = 4000
    rows = [(f"p{n}", "人物 “quoted” | pipe", f"山田 太郎 {n}", [], "") for n in range(people)]
    rows += [(f"x{n}", "Élément<s>", name, [], text) for n, (name, text) in enumerate(_ODD)]
    rows += [
        ("solo", "singleton", "The Only One", [], "Only one text, 但是 with words in every script."),
        ("e", "", "", [], ""),
    ]
    edges = [(f"x{n}", "$weird relation?", f"p{rng.randrange(people)}") for n in range(len(_ODD)) for _ in range(5)]
    edges += [(f"p{rng.randrange(people)}", "est-un/αβγ", "solo") for _ in range(30)]
    edges += [("solo", "self", "solo"), ("e", "self", "e")]
    heads = [f"p{rng.randrange(people)}" for _ in range(LARGE)]
    tails = [f"p{min(rng.randrange(people), rng.randrange(people))}" for _ in range(LARGE)]
    nodes = tables(rows, []).nodes
    large = pa.table({"head": heads, "relation": ["knows"] * LARGE, "tail": tails})
    names = ("head", "relation", "tail")
    few = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in edges])
    folder = tmp_path_factory.mktemp("hostile") / "hostile.kb"
    build(Tables(nodes, (Piece(few, "few.tsv"), Piece(large, "large.tsv"))), folder)
    return OpenBase.open(folder, embedder="hash")


_ODD = [
    ("???", ""), ("a", ""), ("", ""), ("same", ""), ("same", ""), ("Same", ""), ("x" * 300, ""), ("tab\tin name", ""),
    ("$hole", "A $hole {brace} %s \\n."), ("<angle>", "<b>"), ("ßtraße", "Die große Straße — lang und breit."),
    ("مرحبا بالعالم", "نص قصير هنا للتجربة فقط."), ("🦊🦊", "🦊"), ("नमस्ते दुनिया", ""), ("ordinary thing", "   "),
]  # fmt: skip


def test_a_hostile_base_gives_sound_questions_or_a_clear_message(hostile: OpenBase, tmp_path: Path):
    make_benchmark(hostile, tmp_path / "all", BenchmarkOptions(40))
    rows = [json.loads(line) for line in (tmp_path / "all/questions.jsonl").read_text("utf-8").splitlines()]
    assert rows
    assert all(row["answers"] for row in rows)
    assert not any(violations(hostile.kb, rows).values())
    assert all(len(row["answers"]) <= 20 for row in rows)
    with pytest.raises(InputError, match="no question could be made"):
        make_benchmark(
            hostile, tmp_path / "text", BenchmarkOptions(5, kinds=("textual",), templates=_only_the_one(tmp_path))
        )
    with pytest.raises(InputError, match="no kind of question 'hop'"):
        make_benchmark(hostile, tmp_path / "kind", BenchmarkOptions(5, kinds=("hop",)))


def _only_the_one(folder: Path) -> str:
    """A template whose only answer stands alone: no textual requirement can tell it from others."""
    file = folder / "one.toml"
    row = '[[template]]\nname = "one"\nkind = "textual"\n'
    file.write_text(row + "paths = ['人物 “quoted” | pipe -[est-un/αβγ]-> singleton']\n", "utf-8")
    return str(file)


def test_more_questions_than_a_base_has_gives_those_it_has(tmp_path: Path):
    build(tables(), tmp_path / "tiny.kb")
    report = make_benchmark(
        OpenBase.open(tmp_path / "tiny.kb", embedder="hash"), tmp_path / "out", BenchmarkOptions(1000)
    )
    assert 0 < len(report.rows) < 1000
    assert any("1000 questions were asked for" in remark for remark in report.remarks)


def test_a_base_without_edges_is_refused(tmp_path: Path):
    build(tables(edges=[]), tmp_path / "bare.kb")
    with pytest.raises(InputError, match="no edges"):
        make_benchmark(OpenBase.open(tmp_path / "bare.kb", embedder="hash"), tmp_path / "out", BenchmarkOptions(5))


@pytest.mark.long
def test_killed_at_random_moments_it_ends_with_the_same_files(small: OpenBase, tmp_path: Path):  # noqa: F811
    wanted = BenchmarkOptions(30, kinds=("1-hop", "textual"))
    begun = time.monotonic()
    make_benchmark(small, tmp_path / "whole", wanted)
    script = (
        "import sys; from pathlib import Path; from clew.store.open_base import OpenBase\n"
        "import clew.lab.synthesis.pipeline as p\n"
        "from clew.lab.synthesis.benchmark import *; p.CHUNK = 2; print('ready', flush=True)\n"
        "tools = OpenBase.open(sys.argv[1], embedder='hash')\n"
        f"make_benchmark(tools, Path(sys.argv[2]), BenchmarkOptions({wanted.count}, kinds={wanted.kinds}))"
    )
    longest = max(0.3, time.monotonic() - begun)
    rng = random.Random(1)
    command = [sys.executable, "-c", script, str(small.local.folder), str(tmp_path / "killed")]
    for _ in range(KILLS):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.uniform(0, longest))
            process.send_signal(signal.SIGKILL)
    if (log := tmp_path / "killed" / "progress.jsonl").exists():  # the last line torn, as a kill may leave it
        log.write_bytes(log.read_bytes()[:-7])
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert read_all(tmp_path / "killed") == read_all(tmp_path / "whole")
