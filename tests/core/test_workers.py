"""Work shared out by Ray: the same results as without, also where a worker is killed; refusals that say why."""

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

import clew
from clew.core import workers as shared
from clew.core.errors import InputError, MissingExtraError, NotFoundError, SourceError, WorkerError
from clew.core.workers import Workers, hired
from clew.documents import building as reading
from clew.documents.building import build_documents, read_folder
from clew.documents.passage_graph import EdgeOptions
from clew.documents.rows import DocumentOptions
from clew.models.scripted import ScriptedModel
from clew.store.open_base import OpenBase
from conftest import ROOT, tables

sys.path.append(str(ROOT / "benchmarks"))
from workers import rows, vectors, worker_processes

WORDS = ("river", "stone", "cloud", "iron", "amber", "willow", "harbour")


RAY = """
import sys
from clew.core.workers import hired
with hired("auto"):
    import ray
    print(ray.get_runtime_context().gcs_address, flush=True)
    sys.stdin.read()
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest.fixture(scope="module")
def cluster():
    """The address of a Ray of this machine."""
    if find_spec("ray") is None:
        pytest.skip("needs the extra `ray`")
    pipe, command = subprocess.PIPE, [sys.executable, "-c", RAY]
    with (
        pytest.MonkeyPatch.context() as patch,
        subprocess.Popen(command, env=environment(), stdin=pipe, stdout=pipe, text=True) as started,
    ):
        patch.setenv("RAY_AUTH_MODE", "token")  # read when it is first imported
        yield started.stdout.readline().strip()
        started.stdin.close()


@pytest.fixture(scope="module")
def workers(cluster):
    with hired(cluster) as crew:
        import ray

        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        yield crew


@dataclass(frozen=True)
class Square:
    """Ends its own process at one item, as often as there are files left to remove."""

    deadly: int = -1
    lives: tuple[Path, ...] = ()

    def open(self):
        def work(number):
            if number == self.deadly:
                for life in self.lives:
                    if life.exists():
                        life.unlink()
                        os.kill(os.getpid(), signal.SIGKILL)
            return number * number

        return work


@dataclass(frozen=True)
class Failing:
    error: Exception
    at_once: bool = False

    def open(self):
        if self.at_once:
            raise self.error
        return self.fail

    def fail(self, _):
        raise self.error


def lives(folder: Path, count: int) -> tuple[Path, ...]:
    files = tuple(folder / str(number) for number in range(count))
    for file in files:
        file.touch()
    return files


def test_every_item_is_done_once_and_results_can_be_had_in_order(workers):
    assert dict(workers.each(Square(), range(200))) == {number: number * number for number in range(200)}
    assert list(workers.ordered(Square(), iter(range(30)))) == [number * number for number in range(30)]
    assert list(workers.each(Square(), [])) == []


def test_items_are_drawn_only_as_workers_are_free_and_a_stop_ends_the_workers(workers):
    drawn = []
    results = workers.each(Square(), (drawn.append(number) or number for number in range(1000)))
    next(results)
    assert len(drawn) <= 1 + shared.AHEAD * workers.count
    results.close()
    deadline = time.monotonic() + 30
    while worker_processes() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not worker_processes()


def test_what_a_killed_worker_had_under_way_is_done_again(workers, tmp_path):
    job = Square(17, lives(tmp_path, 2))
    assert list(workers.ordered(job, range(40))) == [number * number for number in range(40)]
    assert not any(life.exists() for life in job.lives), "it was killed twice"


def test_an_item_that_ends_every_worker_is_named(workers, tmp_path):
    with pytest.raises(WorkerError, match=r"3 workers ended .* item 5"):
        list(workers.each(Square(4, lives(tmp_path, 9)), range(40)))


@pytest.mark.parametrize(
    "error", [SourceError("not a number", file="a.csv", line=7), MissingExtraError("pypdfium2", "documents")]
)
def test_errors_come_back_as_what_they_are(workers, error):
    with pytest.raises(type(error)) as raised:
        list(workers.each(Failing(error), range(3)))
    assert str(raised.value) == str(error)
    assert vars(raised.value) == vars(error)


def test_a_worker_that_cannot_begin_says_where_and_why(workers):
    job = Failing(NotFoundError("/data/medicine.kb does not exist"), at_once=True)
    where = f"the worker on {socket.gethostname()} cannot start: /data/medicine.kb does not exist; .* same folders"
    with pytest.raises(WorkerError, match=where):
        list(workers.each(job, range(3)))


def test_a_worker_with_another_version_is_refused(workers, monkeypatch):
    monkeypatch.setattr(shared, "__version__", "9.9")
    with pytest.raises(WorkerError, match=rf"has Clew {clew.__version__}, this is 9\.9: install the same version"):
        list(workers.each(Square(), range(3)))


def test_a_worker_without_clew_says_so_before_anything_of_it_is_needed(cluster, monkeypatch):
    monkeypatch.setitem(sys.modules, "clew", None)
    assert shared._remote_class()("0.2", b"not even a pickle").begin() == (None, socket.gethostname(), None)


def test_without_an_address_there_are_no_workers():
    with hired(None) as nobody:
        assert nobody is None


@pytest.mark.parametrize("address", ["ray", "http://10.0.0.1:6379", "10.0.0.1", "10.0.0.1:many", ""])
def test_an_address_must_be_one(address):
    with pytest.raises(InputError, match="expected auto, or HOST:PORT"), hired(address):
        pass


def test_a_cluster_that_is_not_there_is_said_to_be_missing(cluster):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    began = time.monotonic()
    with pytest.raises(WorkerError, match=f"the Ray cluster at {address} cannot be joined: .*refused"), hired(address):
        pass
    assert time.monotonic() - began < 10


def test_without_the_extra_its_name_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"clew-kb\[ray\]"), hired("auto"):
        pass


def many(count: int):
    texts = [f"{WORDS[n % 7]} {WORDS[n % 5]} {n % 900}" for n in range(count)]  # some texts come twice, far apart
    return tables([(f"N{n}", "thing", f"thing {n % 900}", [], text) for n, text in enumerate(texts)], [])


def test_vectors_are_the_same_byte_for_byte_also_where_a_worker_is_killed(workers, tmp_path):
    for name in ("here", "shared"):
        clew.build(many(2000), tmp_path / name)
    killed = []

    def kill(done, _):
        if done > 600 and not killed:
            killed.append(min(worker_processes()))
            os.kill(killed[0], signal.SIGKILL)

    computed = [
        OpenBase.switch_embedder(tmp_path / "here", "hash"),
        OpenBase.switch_embedder(tmp_path / "shared", "hash", kill, workers=workers),
    ]
    assert killed
    assert computed[0] == computed[1] > 0
    assert vectors(tmp_path / "here" / "vectors") == vectors(tmp_path / "shared" / "vectors") != []
    tools = OpenBase.open(tmp_path / "shared", embedder="hash")
    assert tools.vectors.is_complete
    assert tools.embed_all(workers=workers) == 0


def test_a_server_that_embeds_is_asked_from_here_alone(workers, tmp_path):
    clew.build(many(3), tmp_path / "kb")
    with pytest.raises(InputError, match="omit --ray"):
        OpenBase.open(tmp_path / "kb", embedder="http://127.0.0.1:9/v1#m").embed_all(workers=workers)


def test_documents_are_read_the_same(workers, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "ALL_READ_HERE", 0)
    source = tmp_path / "files"
    source.mkdir()
    for number in range(12):
        (source / f"{number}.md").write_text(f"# Part {number}\n\nThe {WORDS[number % 7]} is number {number}.\n")
    (source / "damaged.docx").write_bytes(b"PK\x03\x04 not really")
    options = DocumentOptions(edges=EdgeOptions(()))
    here, there = read_folder([source], options), read_folder([source], options, workers=workers)
    assert there.skipped == here.skipped != ()
    for mine, theirs in zip(
        there.tables.nodes + there.tables.edges, here.tables.nodes + here.tables.edges, strict=True
    ):
        assert mine.table.equals(theirs.table)
    report = build_documents([source], tmp_path / "kb", options, workers=workers)
    assert report.nodes == sum(len(piece.table) for piece in here.tables.nodes)


@dataclass(frozen=True)
class ElsewhereWorkers(Workers):
    """Hands out other paths than it was given, as a cluster does whose machines have other folders."""

    def each(self, job, items):
        return super().each(job, [Path("/elsewhere") / item.name for item in items])


def test_a_worker_that_does_not_see_the_files_is_an_error_not_a_skipped_file(workers, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "ALL_READ_HERE", 0)
    (tmp_path / "a.md").write_text("A text.")
    with pytest.raises(NotFoundError, match=r"a\.md: workers need the same folders"):
        read_folder([tmp_path], workers=ElsewhereWorkers(workers.count))


def questions(folder: Path) -> Path:
    asked = ["What causes Marfan syndrome?", "Signs of Bardet-Biedl syndrome", "long fingers", "extra fingers"]
    file = folder / "questions.jsonl"
    lines = [f'{{"question": "{text} {n}", "answers": ["FBN1"]}}' for n in range(8) for text in asked]
    file.write_text("\n".join(lines))
    return file


def command(*given: object) -> list[str]:
    return [sys.executable, "-m", "clew", *map(str, given)]


def test_a_run_is_the_same_also_where_a_worker_is_killed(cluster, tmp_path):
    clew.build(tables(), tmp_path / "kb")
    OpenBase.open(tmp_path / "kb").embed_all()  # the trace tells how many vectors there were before
    asked = ["eval", "-q", questions(tmp_path), "--kb", tmp_path / "kb", "-m", "focus_plus", "--out"]
    subprocess.run(command(*asked, tmp_path / "here"), check=True, env=environment(), stdout=subprocess.DEVNULL)
    with subprocess.Popen(
        command(*asked, tmp_path / "there", "--ray", cluster), env=environment(), stdout=subprocess.DEVNULL
    ) as run:
        killed = None
        while run.poll() is None:
            if killed is None and rows(tmp_path / "there") and (begun := worker_processes()):
                killed = min(begun)
                os.kill(killed, signal.SIGKILL)
            time.sleep(0.01)
    assert run.returncode == 0
    assert killed
    assert rows(tmp_path / "there") == rows(tmp_path / "here")
    assert len(rows(tmp_path / "here")) == 32


def test_ctrl_c_keeps_what_is_finished_and_a_second_run_goes_on(cluster, tmp_path):
    clew.build(tables(), tmp_path / "kb")
    asked = command("eval", "-q", questions(tmp_path), "--kb", tmp_path / "kb", "-m", "focus_plus")
    asked += ["--out", str(tmp_path / "run"), "--ray", cluster]
    with subprocess.Popen(asked, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
        while run.poll() is None and not rows(tmp_path / "run"):
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        assert run.stderr is not None
        assert b"finishing the questions under way" in run.stderr.read()
    assert run.returncode == 130
    assert 0 < len(rows(tmp_path / "run")) < 32
    subprocess.run(asked, check=True, env=environment(), stdout=subprocess.DEVNULL)
    assert len(rows(tmp_path / "run")) == 32


def test_a_model_is_asked_from_here_alone(workers, tmp_path):
    from clew.lab.datasets.load import load_dataset
    from clew.lab.evaluation.benchmark import Benchmark

    clew.build(tables(), tmp_path / "kb")
    benchmark = Benchmark(load_dataset(str(questions(tmp_path))), tmp_path / "kb", model=ScriptedModel([]))
    with pytest.raises(InputError, match="workers cannot use a language model"):
        benchmark.run(benchmark.method("bm25"), workers=workers)


def test_building_tables_has_nothing_to_share_out(run, tmp_path):
    (tmp_path / "nodes.csv").write_text("key,type,name\na,thing,A\n")
    code, _, said = run("build", tmp_path / "nodes.csv", "-o", tmp_path / "kb", "--ray", "auto")
    assert code == 2
    assert "--embed all" in said
