"""Vectors kept by content, exact search, and fusion."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.core.errors import CorruptError, EmbedderMismatch, StorageError
from clew.core.trace import recording
from clew.core.types import EMPTY, NodeSet, Ranking
from clew.models.embedding.opening import HashEmbedder
from clew.store.building import build
from clew.store.index.fusion import min_max_sum, reciprocal_rank_fusion
from clew.store.index.lexical import LexicalIndex
from clew.store.index.vector_store import VectorStore, hashes_of, remembered_embedder
from clew.store.index.vectors import DiskVectors, MultiVectorIndex, VectorIndex, aggregate, chunks
from clew.store.open_base import OpenBase
from conftest import tables

TEXTS = [f"{word} {'eye' if number % 3 else 'lens'} {number}" for number, word in enumerate(["long", "short"] * 200)]


def opened(folder: Path, texts=TEXTS, embedder: HashEmbedder | None = None, **options) -> VectorIndex:
    LexicalIndex.write(folder / "lexical", pa.array(texts, pa.large_string()))
    embedder = embedder or HashEmbedder()
    store = VectorStore.open(folder / "vectors", embedder)
    lexical = LexicalIndex.open(folder / "lexical")
    generation = f"clew-data-{len(texts):016x}"
    return DiskVectors(len(texts), texts.__getitem__, embedder, store, lexical, generation=generation, **options)


def cosines_of(texts, query: str):
    embedder = HashEmbedder()
    return embedder.embed(texts, role="document") @ embedder.embed([query], role="query")[0]


COSINES = cosines_of(TEXTS, "long lens")


def naive(texts, query: str, k: int, among=None) -> list[int]:
    cosines = COSINES if (texts, query) == (TEXTS, "long lens") else cosines_of(texts, query)
    allowed = range(len(texts)) if among is None else among
    return sorted(allowed, key=lambda node: (-cosines[node], node))[:k]


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> tuple[VectorIndex, VectorIndex]:
    """One index that is complete, and one that computes vectors when they are needed."""
    complete = opened(tmp_path_factory.mktemp("complete"))
    complete.embed_all()
    return complete, opened(tmp_path_factory.mktemp("lazy"), most=len(TEXTS))


@settings(deadline=None)
@given(among=st.none() | st.sets(st.integers(0, len(TEXTS) - 1)), k=st.integers(0, 30))
def test_search_is_exact_over_what_it_considers(both, among, k):
    expected = naive(TEXTS, "long lens", k, among)
    for index in both:
        ranking = index.search("long lens", k, among=None if among is None else NodeSet.of(among))
        assert ranking.scores.tolist() == pytest.approx([COSINES[node] for node in expected], abs=1e-5)
        assert [COSINES[node] for node in ranking.nodes.tolist()] == pytest.approx(ranking.scores.tolist(), abs=1e-5)
        assert among is None or set(ranking.nodes.tolist()) <= among


def test_a_new_base_embeds_only_the_candidates_that_matter_and_says_so(tmp_path: Path):
    embedder = HashEmbedder()
    index = opened(tmp_path, embedder=embedder, pool=10, most=20)
    with recording() as recorder:
        first = index.search("short lens", 3)
    assert embedder.embedded == 11
    assert recorder.spans[0].details == {
        "candidates": 400, "considered": 10, "had_vectors": 0, "complete": False,
    }  # fmt: skip
    with recording() as recorder:
        again = index.search("short lens", 3)
    assert recorder.spans[0].details["had_vectors"] == 10
    assert list(first) == list(again)
    assert embedder.embedded == 12
    index.search("short lens", 3, among=NodeSet.range(20))
    assert embedder.embedded <= 12 + 21
    assert not len(index.search("short lens", 3, among=EMPTY))


def test_too_many_candidates_are_narrowed_by_their_words_and_the_fallback_is_stated(tmp_path: Path):
    index = opened(tmp_path, pool=10, most=20)
    with recording() as recorder:
        index.search("short lens", 3, among=NodeSet.range(50))
    assert [fallback.step for fallback in recorder.fallbacks] == ["vector search"]


def test_answers_do_not_depend_on_what_was_asked_before(tmp_path: Path):
    fresh = opened(tmp_path / "a", pool=10, most=20)
    used = opened(tmp_path / "b", pool=10, most=20)
    used.search("eye 17", 5)
    assert list(fresh.search("short lens", 5)) == list(used.search("short lens", 5))


def test_a_text_is_embedded_once_for_all_processes_and_generations(tmp_path: Path):
    first = opened(tmp_path)
    assert first.embed_all() == len(TEXTS)
    embedder = HashEmbedder()
    changed = [*TEXTS[5:], "new one", TEXTS[7]]
    second = opened(tmp_path, changed, embedder)
    assert second.embed_all() == 1
    assert embedder.embedded == 1
    assert second.search("new one", 1).nodes.tolist() == [changed.index("new one")]


def test_a_finished_base_opens_without_reading_texts(tmp_path: Path):
    opened(tmp_path).embed_all()

    def unread(node: int) -> str:
        raise AssertionError(node)

    index = opened(tmp_path)
    index.text = unread
    assert index.is_complete
    assert index.search("long lens", 5).nodes.tolist()[:1] == naive(TEXTS, "long lens", 1)


def test_embedding_all_goes_on_where_it_was_killed(tmp_path: Path):
    class Failing(HashEmbedder):
        def embed(self, texts, *, role):
            if self.embedded >= 256:
                raise KeyboardInterrupt
            return super().embed(texts, role=role)

    with pytest.raises(KeyboardInterrupt):
        opened(tmp_path, embedder=Failing()).embed_all()
    embedder = HashEmbedder()
    seen: list[tuple[int, int]] = []
    assert opened(tmp_path, embedder=embedder).embed_all(lambda *done: seen.append(done)) == len(TEXTS) - 256
    assert embedder.embedded == len(TEXTS) - 256
    assert seen[0] == (0, 400)
    assert seen[-1] == (400, 400)


def test_a_torn_tail_is_dropped_and_written_over(tmp_path: Path):
    embedder = HashEmbedder()
    store = VectorStore.open(tmp_path, embedder)
    store.add(hashes_of(["a", "b"]), embedder.embed(["a", "b"], role="document"))
    for file in ("vectors.bin", "keys.bin"):
        with (store.place / file).open("ab") as opened_file:
            opened_file.write(b"torn")
    again = VectorStore.open(tmp_path, embedder)
    assert len(again) == 2
    rows = again.add(hashes_of(["b", "c", "c"]), embedder.embed(["b", "c", "c"], role="document"))
    assert rows.tolist() == [1, 2, 2]
    reopened = VectorStore.open(tmp_path, embedder)
    assert np.array_equal(reopened.gather(reopened.rows(hashes_of(["c"]))), embedder.embed(["c"], role="document"))
    assert reopened.problems() == []


def test_an_altered_or_cut_vector_is_found(tmp_path: Path):
    embedder = HashEmbedder()
    store = VectorStore.open(tmp_path, embedder)
    store.add(hashes_of(["a", "b"]), embedder.embed(["a", "b"], role="document"))
    file = store.place / "vectors.bin"
    content = bytearray(file.read_bytes())
    content[300] ^= 1
    file.write_bytes(content)
    assert "rows 1" in VectorStore.open(tmp_path, embedder).problems()[0]
    file.write_bytes(content[:-1])
    with pytest.raises(CorruptError, match="was cut"):
        VectorStore.open(tmp_path, embedder)


def test_keys_that_were_cut_within_one_are_fewer_keys_and_cut_later_are_said(tmp_path: Path):
    embedder = HashEmbedder()
    store = VectorStore.open(tmp_path, embedder)
    store.add(hashes_of(["a", "b"]), embedder.embed(["a", "b"], role="document"))
    file = store.place / "keys.bin"
    file.write_bytes(file.read_bytes()[:-3])
    cut = VectorStore.open(tmp_path, embedder)
    assert (len(cut), cut.problems()) == (1, [])
    file.write_bytes(b"")
    with pytest.raises(CorruptError, match=r"keys\.bin was cut"):
        cut.problems()


def test_several_processes_append_without_loss(tmp_path: Path):
    program = (
        "import sys; from pathlib import Path\n"
        "from clew.store.index.vector_store import VectorStore, hashes_of\n"
        "from clew.models.embedding.opening import HashEmbedder\n"
        "embedder = HashEmbedder(); store = VectorStore.open(Path(sys.argv[1]), embedder)\n"
        "for n in range(60):\n"
        "    texts = [f'common {n}', f'{sys.argv[2]} {n}']\n"
        "    store.add(hashes_of(texts), embedder.embed(texts, role='document'))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), name]) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    embedder = HashEmbedder()
    store = VectorStore.open(tmp_path, embedder)
    assert len(store) == 180
    texts = [f"{name} {n}" for name in ("common", "a", "b") for n in range(60)]
    rows = store.rows(hashes_of(texts))
    assert np.array_equal(store.gather(rows), embedder.embed(texts, role="document"))


def test_where_the_folder_cannot_be_written_vectors_stay_in_memory(tmp_path: Path, monkeypatch):
    embedder = HashEmbedder()
    store = VectorStore.open(tmp_path, embedder)
    store.add(hashes_of(["a"]), embedder.embed(["a"], role="document"))
    index = opened(tmp_path / "base", most=500)

    def refuse(*_args, **_options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", refuse)
    with recording() as recorder:
        assert index.search("long lens", 1).nodes.tolist() == naive(TEXTS, "long lens", 1)
    assert recorder.fallbacks[0].instead == "new vectors stay in memory"
    assert index.search("long lens", 5, among=NodeSet.range(9)).nodes.tolist()[:1] == naive(
        TEXTS, "long lens", 1, range(9)
    )
    with pytest.raises(StorageError, match="Read-only"):
        index.embed_all()


def test_another_embedder_is_refused_until_the_base_is_switched(tmp_path: Path):
    opened(tmp_path).embed_all()
    other = HashEmbedder(32)
    with pytest.raises(EmbedderMismatch, match="clew embed KB --embedder other"):
        VectorStore.open(tmp_path / "vectors", other, spec="other")
    store = VectorStore.open(tmp_path / "vectors", other, spec="other", in_use=False)
    store.add(hashes_of(["new"]), other.embed(["new"], role="document"))
    assert remembered_embedder(tmp_path / "vectors") != "other"
    store.adopt()
    assert remembered_embedder(tmp_path / "vectors") == "other"
    assert [place.name for place in (tmp_path / "vectors").iterdir() if place.is_dir()] == [store.place.name]
    assert remembered_embedder(tmp_path / "nothing") is None


SWITCH = """
import os, signal, sys
from clew.store.open_base import OpenBase

def kill_halfway(done, total):
    if done:
        os.kill(os.getpid(), signal.SIGKILL)

OpenBase.switch_embedder(sys.argv[1], "hash", kill_halfway if sys.argv[2] == "kill" else lambda *_: None)
"""


def test_a_switch_of_embedders_that_was_killed_leaves_the_old_vectors_in_use(tmp_path: Path):
    base = tmp_path / "tiny.kb"
    build(tables(), base)
    old = OpenBase.open(base)
    before = old.vectors.search("extra fingers", 3)
    for how, embedder in (("kill", "all-MiniLM-L6-v2-int8"), ("finish", "hash-64")):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        done = subprocess.run([sys.executable, "-c", SWITCH, str(base), how], env=environment, check=False)
        assert done.returncode == (-9 if how == "kill" else 0)
        tools = OpenBase.open(base)
        assert tools.embedder.name == embedder
        if how == "kill":
            assert tools.vectors.search("extra fingers", 3).nodes.tolist() == before.nodes.tolist()
    assert tools.vectors.is_complete
    assert [place.name for place in (base / "vectors").iterdir() if place.is_dir()] == [tools.vectors.store.place.name]
    old.vectors.store.add(hashes_of(["late"]), old.embedder.embed(["late"], role="document"))
    assert "switched" in (old.vectors.store.refusal or "")
    assert remembered_embedder(base / "vectors") == "hash"


def test_chunks_overlap_and_cover_the_text():
    text = "".join(chr(97 + n % 26) for n in range(700))
    pieces = chunks(text)
    assert [len(piece) for piece in pieces] == [256, 256, 256, 85]
    assert pieces[0][-51:] == pieces[1][:51]
    assert pieces[0] + "".join(piece[51:] for piece in pieces[1:]) == text
    assert chunks("") == [""]
    assert chunks("x" * 256) == ["x" * 256]


def test_a_chunk_that_answers_lifts_its_document(tmp_path: Path):
    texts = [("filler " * 200)[: 6 * 205] + "ectopia lentis " * 5, "lentis filler", "filler words"]
    index = opened(tmp_path, texts)
    multi = MultiVectorIndex(texts.__getitem__, index.embedder, index.store)
    ranking = multi.rescored("ectopia lentis", index.search("ectopia lentis", 50), 3)
    assert ranking.nodes.tolist()[0] == 0
    assert index.search("ectopia lentis", 3).nodes.tolist()[0] == 1
    shallow = MultiVectorIndex(texts.__getitem__, index.embedder, index.store, pool=1)
    scores = shallow.rescored("ectopia lentis", index.search("ectopia lentis", 50), 3).scores.tolist()
    assert scores == sorted(scores, reverse=True)
    assert aggregate(np.array([1, 2, 3, 6], dtype=np.float32), "top_k_mean", 2) == 4.5
    assert aggregate(np.array([1, 2, 3, 6], dtype=np.float32), "mean") == 3


RANKINGS = st.lists(
    st.lists(st.integers(0, 9), unique=True, max_size=8).map(lambda nodes: Ranking.of(nodes, [-n for n in nodes])),
    max_size=4,
)


@given(RANKINGS)
def test_fusion_sums_reciprocal_ranks(rankings):
    expected: dict[int, float] = {}
    for ranking in rankings:
        for rank, node in enumerate(ranking.nodes.tolist(), start=1):
            expected[node] = expected.get(node, 0) + 1 / (60 + rank)
    fused = reciprocal_rank_fusion(rankings)
    assert {node: pytest.approx(score, rel=1e-4) for node, score in fused} == expected
    assert list(reciprocal_rank_fusion(rankings, k=2)) == list(fused)[:2]


def test_min_max_sum_stretches_each_ranking():
    fused = min_max_sum([Ranking.of([1, 2, 3], [30, 20, 10]), Ranking.of([2], [0.3])], weights=[1, 2])
    assert list(fused) == [(2, 2.5), (1, 1.0), (3, 0.0)]
    assert len(min_max_sum([])) == 0
