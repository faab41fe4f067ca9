"""Rankers learn, are kept in files that can be trusted, and refuse bases and files they were not made for."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.answering.methods.subgraph_reranking.features import FeaturePipeline, make_pool
from clew.answering.methods.subgraph_reranking.ranker_file import load_ranker, save_ranker
from clew.answering.methods.subgraph_reranking.rankers import (
    ObliviousTrees,
    RandomOrder,
    SemanticRanker,
    SourceOrder,
    neural_texts,
    ranked,
)
from clew.answering.methods.subgraph_reranking.subgraph import SubgraphExtractor
from clew.core.disk import file_sha256
from clew.core.errors import CorruptError, EmbedderMismatch, FormatError, InputError, NotFoundError, SchemaError
from clew.lab.training.labelled import FeatureTable, LabelledPool, hit_at_1, permutation_importance, split_of
from clew.lab.training.ranker import RankerSettings, TreeSettings, fit_linear, fit_logistic, fit_trees, train_ranker
from clew.models.embedding.opening import HashEmbedder
from conftest import build_graph, tables

EMBEDDER = HashEmbedder(16)


def pools_of(kb):
    """Every phenotype and gene is asked about; the nodes one edge away are right."""
    extractor = SubgraphExtractor(kb)
    found = []
    for entity in range(kb.count):
        candidates = [node for node in range(kb.count) if node != entity]
        subgraphs = extractor.extract([entity], candidates)
        right = np.array([subgraph.paths[0].distance == 1 for subgraph in subgraphs])
        pool = make_pool(kb, f"what is next to {kb.node(entity).name}", subgraphs)
        found.append(LabelledPool(str(entity), pool, right, groups=(str(entity),)))
    return found


@pytest.fixture
def trained(kb, tmp_path):
    def train(kind="linear", features=("graph",)):
        settings = RankerSettings(kind, features, trees=TreeSettings((0.3,), (3,), 60, 60))
        pools = pools_of(kb)
        parts = train_ranker(settings, pools, pools, kb.schema, EMBEDDER, {"questions": "tiny"})
        save_ranker(tmp_path / kind, parts.parts)
        return tmp_path / kind, parts

    return train


@pytest.mark.parametrize("kind", ["linear", "logistic", "catboost"])
def test_a_saved_ranker_ranks_as_the_trained_one_and_finds_what_is_near(kb, trained, kind):
    if kind == "catboost":
        pytest.importorskip("catboost")
    folder, result = trained(kind, ("graph", "text"))
    ranker = load_ranker(folder, kb.schema, EMBEDDER)
    pools = pools_of(kb)
    hits = [bool(pool.right[ranked(ranker.scores(pool.pool))[0]]) for pool in pools]
    assert sum(hits) == len(hits)
    card = json.loads((folder / "ranker.json").read_text())
    assert card["data"]["questions"] == "tiny"
    assert card["data"]["validation_hit@1"] == 1
    assert result.importance[0].loss > 0


def test_catboost_and_our_reading_of_its_trees_agree():
    pytest.importorskip("catboost")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4)).astype(np.float32).astype(np.float64)
    right = rows[:, 0] * rows[:, 1] > 0
    table = FeatureTable(rows, right, np.arange(0, 301, 10))
    fit = fit_trees(table, table, "abcd", TreeSettings((0.1,), (3, 5), 80, 80, seed=1))
    import catboost

    model = catboost.CatBoostRegressor(
        learning_rate=fit.told["learning_rate"], depth=int(fit.told["depth"]), iterations=80, border_count=64,
        random_seed=1, verbose=False, allow_writing_files=False, thread_count=2,
    ).fit(rows, right.astype(float), eval_set=(rows, right.astype(float)))  # fmt: skip
    assert fit.model.predict(rows) == pytest.approx(model.predict(rows), abs=1e-9)
    importance = fit.told["importance"]
    assert set(sorted(importance, key=importance.__getitem__)[2:]) == {"a", "b"}


def test_trees_without_levels_predict_their_bias():
    nothing = np.empty((0, 0))
    assert (
        ObliviousTrees(nothing.astype(np.int32), nothing, nothing, bias=0.5).predict(np.ones((2, 3))).tolist()
        == [0.5] * 2
    )


def test_linear_rankers_equal_those_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 5)) * [1, 10, 0.1, 3, 1] + 2
    right = rows @ [1, 0.1, -3, 0, 0] + rng.normal(size=200) > -3
    scaled = (rows - rows.mean(0)) / rows.std(0)
    theirs = linear_model.Ridge(alpha=3.0).fit(scaled, right.astype(float))
    assert fit_linear(rows, right, 3.0).predict(rows) == pytest.approx(theirs.predict(scaled))
    logistic = linear_model.LogisticRegression(C=1 / 3, class_weight="balanced", tol=1e-8, max_iter=1000)
    wanted = logistic.fit(scaled, right).predict_proba(scaled)[:, 1]
    assert fit_logistic(rows, right, 3.0).predict(rows) == pytest.approx(wanted, abs=1e-4)


def test_a_base_with_another_schema_is_refused_with_the_difference(kb, trained, tmp_path):
    folder, _ = trained()
    edges = [("BBS2", "causes", "BBS", None), ("BBS", "has_phenotype", "P1", None)]
    other = build_graph(tables(edges=edges), tmp_path / "other")
    with pytest.raises(SchemaError, match=r"another schema.*relation gene —associated_with→ disease is missing"):
        load_ranker(folder, other.schema, EMBEDDER)
    fewer = build_graph(tables(edges=tables_edges_twice()), tmp_path / "again")
    load_ranker(folder, fewer.schema, EMBEDDER)  # other counts are no other schema


def tables_edges_twice():
    from conftest import EDGES

    return [*EDGES, ("BBS2", "associated_with", "MFS", None)]


def test_another_embedder_is_refused_where_vectors_are_read(kb, trained):
    folder, _ = trained("linear", ("text",))
    with pytest.raises(EmbedderMismatch, match="hash-16"):
        load_ranker(folder, kb.schema, HashEmbedder(16, "another"))
    numbers_only, _ = trained("logistic", ("graph",))
    load_ranker(numbers_only, kb.schema, HashEmbedder(16, "another"))


def test_a_tampered_file_is_refused(kb, trained):
    folder, _ = trained()
    weights = np.load(folder / "weights.npy")
    np.save(folder / "weights.npy", -weights)
    with pytest.raises(CorruptError, match=r"weights\.npy was cut or altered"):
        load_ranker(folder, kb.schema, EMBEDDER)


def test_a_tampered_card_is_refused(kb, trained):
    folder, _ = trained()
    file = folder / "ranker.json"
    file.write_text(file.read_text().replace('"intercept": ', '"intercept": 1'))
    with pytest.raises(CorruptError, match="was altered"):
        load_ranker(folder, kb.schema, EMBEDDER)


def test_a_file_that_would_run_code_or_lies_elsewhere_is_refused_even_with_right_digests(kb, trained):
    folder, _ = trained()
    np.save(folder / "mean.npy", np.array([SimpleNamespace()], dtype=object), allow_pickle=True)
    reseal(folder)
    with pytest.raises(CorruptError, match="not a plain array"):
        load_ranker(folder, kb.schema, EMBEDDER)
    reseal(folder, "../outside.npy")
    with pytest.raises(CorruptError, match="outside"):
        load_ranker(folder, kb.schema, EMBEDDER)


def reseal(folder, extra=None):
    """What an attacker does: alter files and put matching digests into the card."""
    from clew.answering.methods.subgraph_reranking import ranker_file

    card = json.loads((folder / "ranker.json").read_text())
    card.pop("digest")
    for name in card["files"]:
        file = folder / name
        card["files"][name] = {"size": file.stat().st_size, "sha256": file_sha256(file)}
    if extra:
        card["files"][extra] = {"size": 1, "sha256": ""}
    (folder / "ranker.json").write_text(json.dumps({**card, "digest": ranker_file.seal(card)}))


def test_what_is_no_ranker_or_too_new_is_told(kb, trained, tmp_path):
    with pytest.raises(NotFoundError, match="clew train ranker"):
        load_ranker(tmp_path / "nothing", kb.schema, EMBEDDER)
    folder, _ = trained()
    file = folder / "ranker.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 99}))
    with pytest.raises(FormatError, match="upgrade"):
        load_ranker(folder, kb.schema, EMBEDDER)


def test_simple_rankers_keep_shuffle_and_compare(kb):
    pool = pools_of(kb)[0].pool
    assert ranked(SourceOrder().scores(pool)) == list(range(len(pool)))
    assert RandomOrder(1).scores(pool).tolist() == RandomOrder(1).scores(pool).tolist()
    assert RandomOrder(1).scores(pool).tolist() != RandomOrder(2).scores(pool).tolist()
    scores = SemanticRanker(EMBEDDER).scores(pool)
    question, names = EMBEDDER.embed([pool.question], role="query"), EMBEDDER.embed(pool.names, role="document")
    assert scores == pytest.approx(names @ question[0])


def test_features_come_in_a_fixed_order_whatever_order_they_are_asked_in(kb):
    pool = pools_of(kb)[0].pool
    one = FeaturePipeline(("source", "graph", "text", "match", "g2t"), EMBEDDER)
    assert one.groups == ("text", "graph", "g2t", "match", "source")
    assert one.matrix(pool).shape == (len(pool), len(one.columns)) == (7, 16 + 9 + 16 + 3 + 2)
    parts = [FeaturePipeline((group,), EMBEDDER).matrix(pool) for group in one.groups]
    assert np.array_equal(one.matrix(pool), np.concatenate(parts, axis=1))
    with pytest.raises(InputError, match="no feature group gut"):
        FeaturePipeline(("gut",), EMBEDDER)


def test_the_neural_ranker_reads_question_and_marked_subgraph(kb):
    [subgraph] = SubgraphExtractor(kb).extract([kb.find("BBS2")], [kb.find("BBS")])
    pool = make_pool(kb, "Which disease?", [subgraph])
    marked = "BBS2, associated with, [unused1]Bardet-Biedl syndrome[unused2]"
    assert neural_texts(pool, graph=True, marked=True) == [("Which disease?", marked)]
    assert neural_texts(pool, graph=False, marked=True) == [("Which disease? ; Bardet-Biedl syndrome", "")]


def test_importance_is_the_loss_of_hits_when_a_column_is_shuffled():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 3))
    right = np.concatenate([np.arange(4) == np.argmax(part[:, 0]) for part in np.split(rows, 100)])
    table = FeatureTable(rows, right, np.arange(0, 401, 4))
    assert hit_at_1(table, rows[:, 0]) == 1
    found = permutation_importance(table, ("used", "unused", "unused"), lambda rows: rows[:, 0])
    assert [one.feature for one in found] == ["used", "unused"]
    assert found[0].loss == pytest.approx(0.75, abs=0.1)
    assert found[1].loss == 0


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=3), max_size=30), st.integers(0, 5))
def test_no_group_is_in_two_splits(groups, seed):
    splits = split_of(groups, (0.6, 0.2, 0.2), seed)
    for one, left in enumerate(groups):
        for other, right in enumerate(groups):
            if set(left) & set(right):
                assert splits[one] == splits[other]


def test_splits_have_about_the_shares_asked_for():
    splits = split_of([(number,) for number in range(3000)], (0.6, 0.15, 0.25))
    assert splits.count("train") / 3000 == pytest.approx(0.6, abs=0.03)
    assert splits.count("validation") / 3000 == pytest.approx(0.15, abs=0.03)
    with pytest.raises(InputError, match="add up to 1"):
        split_of([], (0.5, 0.1, 0.1))
