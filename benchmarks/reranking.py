"""What reranking by subgraphs gains on MetaQA and WebQSP: Hit@1 … Hit@N per ranker and feature set.

    python benchmarks/reranking.py pools  --data DATA --set metaqa --work DIR [--source nearby] [--per-hop 300]
    python benchmarks/reranking.py train  --work DIR
    python benchmarks/reranking.py neural --work DIR --encoder FOLDER [--limit N]
    python benchmarks/reranking.py report --work DIR

`pools` writes candidates, labels, texts and features, `train` trains every tabular ranker, `neural` the encoders (it
needs torch, transformers and a GPU to be quick, and nothing else of Clew's), `report` prints tables and draws curves.

Questions are split by topic entity, so that no topic is in two splits. A fifth of the question types is kept out of
training altogether: the test questions of these types are reported apart.
"""

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np

SETS = {
    "text": ("text",),
    "graph": ("graph",),
    "g2t": ("g2t",),
    "text+graph": ("text", "graph"),
    "text+g2t": ("text", "g2t"),
    "text+graph+g2t": ("text", "graph", "g2t"),
    "all": ("text", "graph", "g2t", "match", "source"),
}
NEURAL = {"text": (False, False), "text+g2t": (True, False), "text+g2t+highlight": (True, True)}
NEURAL_SPLITS = {"train": ("train",), "validation": ("validation",), "test": ("test", "unseen")}
UNSEEN_SHARE = 0.2


def is_unseen(kind):
    """A fifth of the types, chosen by their names alone."""
    return kind is not None and hashlib.sha256(kind.encode()).digest()[0] < 256 * UNSEEN_SHARE


def make_pools(given):
    from clew.datasets.load import load_dataset
    from clew.evaluation.benchmark import Benchmark, aliases_in
    from clew.evaluation.rankers import PoolMaker
    from clew.methods.subgraph_reranking.features import FeaturePipeline
    from clew.methods.subgraph_reranking.method import open_source
    from clew.methods.subgraph_reranking.rankers import neural_texts
    from clew.methods.subgraph_reranking.subgraph import SubgraphExtractor
    from clew.models.opening import open_model
    from clew.training.labelled import split_of

    if given.set == "metaqa":
        names = [f"metaqa:{given.data}/metaqa:{hops}-hop-dev" for hops in (1, 2, 3)]
        sets = [load_dataset(name).sample(given.per_hop, 0) for name in names]
    else:
        sets = [load_dataset(f"webqsp:{given.data}/webqsp:questions_dev").with_topics().sample(given.per_hop * 3, 0)]
    found, hops = [], []
    for number, dataset in enumerate(sets, start=1):
        benchmark = Benchmark(dataset, model=open_model(given.model))
        tools = benchmark.tools
        source = open_source(tools, given.source, given.candidates)
        maker = PoolMaker(
            tools.kb, source, SubgraphExtractor(tools.kb), benchmark.rule, aliases_in(tools.kb), given.candidates
        )
        for pool in maker.pools(dataset.questions, lambda done, of: done % 50 or print(f"{done} of {of}", flush=True)):
            found.append(pool)
            hops.append(str(number) if given.set == "metaqa" else pool.type)
    kinds = [f"{hop}: {pool.type}" for pool, hop in zip(found, hops, strict=True)]
    splits = split_of([pool.groups for pool in found], (0.6, 0.15, 0.25))
    if given.set == "metaqa":
        splits = [move(split, is_unseen(kind)) for split, kind in zip(splits, kinds, strict=True)]
    given.work.mkdir(parents=True, exist_ok=True)
    with (given.work / "pools.jsonl").open("w") as lines:
        for pool, split, hop in zip(found, splits, hops, strict=True):
            shown = {
                "id": pool.id, "split": split, "hop": hop, "type": pool.type, "question": pool.pool.question,
                "names": pool.pool.names, "graph_texts": pool.pool.graph_texts, "right": pool.right.tolist(),
            }  # fmt: skip
            lines.write(json.dumps(shown, ensure_ascii=False) + "\n")
    neural_lines = [
        {
            "id": pool.id, "split": split, "right": pool.right.tolist(),
            **{name: neural_texts(pool.pool, graph=graph, marked=marked) for name, (graph, marked) in NEURAL.items()},
        }
        for pool, split in zip(found, splits, strict=True) if split != "unused"
    ]  # fmt: skip
    (given.work / "neural_texts.json").write_text(json.dumps(neural_lines, ensure_ascii=False))
    groups = tuple(given.groups.split(","))
    pipeline = FeaturePipeline(groups, tools.embedder)
    owners = np.array([column.split(":")[0] for column in pipeline.columns])
    rows = []
    for done, pool in enumerate(found, start=1):
        rows.append(pipeline.matrix(pool.pool).astype(np.float32))
        if done % 50 == 0:
            print(f"features of {done} of {len(found)}", flush=True)
    for group in groups:
        np.save(given.work / f"{group}.npy", np.concatenate(rows)[:, owners == group])
    about = {"set": given.set, "source": given.source, "candidates": given.candidates, "questions": len(found)}
    (given.work / "about.json").write_text(json.dumps(about))


def move(split, unseen):
    """Unseen types leave training and validation; only their test questions are used."""
    if not unseen:
        return split
    return "unseen" if split == "test" else "unused"


def read_pools(work):
    return [json.loads(line) for line in (work / "pools.jsonl").read_text().splitlines()]


def labelled(line):
    """A pool without subgraphs: its features are read from files."""
    from clew.methods.subgraph_reranking.features import Pool
    from clew.training.labelled import LabelledPool

    pool = Pool(line["question"], tuple(line["names"]), (), tuple(line["graph_texts"]), ())
    return LabelledPool(line["id"], pool, np.array(line["right"], dtype=bool), line["type"])


def train(given):
    from clew.methods.subgraph_reranking.features import GROUPS, FeaturePipeline
    from clew.methods.subgraph_reranking.rankers import RandomOrder, SemanticRanker, SourceOrder
    from clew.models.embedding.onnx import OnnxEmbedder
    from clew.training.labelled import Table, permutation_importance
    from clew.training.ranker import RankerSettings, fit_table
    from clew.training.table_rankers import TreeSettings

    lines = read_pools(given.work)
    pools = [labelled(line) for line in lines]
    starts = np.append(0, np.cumsum([len(pool.right) for pool in pools]))
    known = [group for group in GROUPS if (given.work / f"{group}.npy").exists()]
    features = {group: np.load(given.work / f"{group}.npy").astype(np.float64) for group in known}
    embedder = OnnxEmbedder.bundled(threads=1)
    where = {name: [n for n, line in enumerate(lines) if line["split"] == name] for name in ("train", "validation")}
    judged = [n for n, line in enumerate(lines) if line["split"] in ("test", "unseen")]
    scores = {}
    for ranker in (SourceOrder(), RandomOrder(), SemanticRanker(embedder)):
        scores[f"{ranker.name}|"] = [ranker.scores(pools[n].pool).tolist() for n in judged]
    importance = {}
    for name, groups in SETS.items():
        if not set(groups) <= set(known):
            continue
        rows = np.concatenate([features[group] for group in GROUPS if group in groups], axis=1)

        def part(numbers, rows=rows):
            return Table.of([rows[starts[n] : starts[n + 1]] for n in numbers], [pools[n] for n in numbers])

        learning, watching = part(where["train"]), part(where["validation"])
        columns = FeaturePipeline(groups, embedder).columns
        for kind in ("linear", "logistic", "catboost"):
            if kind == "catboost" and given.without_catboost:
                continue
            settings = RankerSettings(kind, groups, trees=TreeSettings((0.1,), (6,), 1500))
            fitted = fit_table(settings, columns, learning, watching)
            key = f"{kind}|{name}"
            scores[key] = [fitted.model.predict(rows[starts[n] : starts[n + 1]]).tolist() for n in judged]
            print(key, fitted.told, flush=True)
            if name in ("text+graph+g2t", "all"):
                found = permutation_importance(part(judged), columns, fitted.model.predict, repeats=10)
                importance[key] = {one.feature: [one.loss, one.deviation] for one in found}
                if fitted.own_importance:
                    importance[f"{key}|own"] = fitted.own_importance
    (given.work / "scores.json").write_text(json.dumps(scores))
    (given.work / "importance.json").write_text(json.dumps(importance))


def neural(given):
    from clew.training.labelled import LabelledPool, Table
    from clew.training.neural_ranker import NeuralSettings, fit_encoder

    lines = json.loads((given.work / "neural_texts.json").read_text())
    splits = {name: [line for line in lines if line["split"] in names] for name, names in NEURAL_SPLITS.items()}
    if given.limit:
        splits |= {name: splits[name][: given.limit] for name in ("train", "validation")}
    settings = NeuralSettings(given.encoder, marks=("[unused1]", "[unused2]"), tokens=given.tokens, epochs=given.epochs)
    scores = {}
    for name in NEURAL:

        def texts(split, name=name):
            return [tuple(pair) for line in splits[split] for pair in line[name]]

        def labels(split):
            right = [np.array(line["right"], dtype=bool) for line in splits[split]]
            pools = [LabelledPool(line["id"], None, own) for line, own in zip(splits[split], right, strict=True)]
            return Table.of([np.empty((len(own), 0)) for own in right], pools)

        fit = fit_encoder(
            texts("train"), labels("train"), texts("validation"), labels("validation"), settings, say_epochs
        )
        values = fit.predict(texts("test"))
        cuts = np.cumsum([len(line["right"]) for line in splits["test"]])[:-1]
        scores[f"neural|{name}"] = [part.tolist() for part in np.split(values, cuts)]
        (given.work / "neural_scores.json").write_text(json.dumps(scores))


def say_epochs(told):
    if "validation" in told:
        print(told, flush=True)


def report(given):
    from clew.evaluation.comparison import bootstrap, randomisation_test
    from clew.evaluation.plots import Axis, Series, line_plot
    from clew.evaluation.rankers import hit_curve

    lines = [line for line in read_pools(given.work) if line["split"] in ("test", "unseen")]
    pools = [labelled(line) for line in lines]
    scores = json.loads((given.work / "scores.json").read_text())
    extra = given.work / "neural_scores.json"
    if extra.exists():
        scores |= json.loads(extra.read_text())
    parts = {"test": [n for n, line in enumerate(lines) if line["split"] == "test"]}
    parts |= {
        f"hop {hop}": [n for n in parts["test"] if lines[n]["hop"] == hop]
        for hop in sorted({str(line["hop"]) for line in lines})
    }
    parts["unseen types"] = [n for n, line in enumerate(lines) if line["split"] == "unseen"]
    for title, chosen in parts.items():
        if not chosen:
            continue
        own = [pools[n] for n in chosen]
        ceiling = float(np.mean([pool.right.any() for pool in own]))
        print(f"\n### {title}: {len(chosen)} questions, {100 * ceiling:.1f} % have a right candidate\n")
        print("| ranker | features | Hit@1 [95 %] | Hit@2 | Hit@3 | Hit@5 | p against the source |\n|" + " --- |" * 7)
        curves = {}
        for key, values in scores.items():
            curves[key] = hit_curve(own, [np.array(values[n]) for n in chosen])
        base = curves["none|"]
        for key, curve in curves.items():
            ranker, features = key.split("|")
            low, high = curve.interval.low, curve.interval.high
            p = randomisation_test(curve.first, base.first)
            hits = " | ".join(f"{100 * curve.at(n):.1f}" for n in (2, 3, 5))
            first = f"{100 * curve.at(1):.1f} [{100 * low:.1f}, {100 * high:.1f}]"
            print(f"| {ranker} | {features} | {first} | {hits} | {p:.4f} |")
        for one, other in (("text", "text+graph"), ("text+g2t", "text+graph+g2t")):
            for kind in ("linear", "logistic", "catboost"):
                left, right = curves.get(f"{kind}|{one}"), curves.get(f"{kind}|{other}")
                if left and right:
                    gain = bootstrap([b - a for a, b in zip(left.first, right.first, strict=True)])
                    p = randomisation_test(right.first, left.first)
                    mean = 100 * (right.at(1) - left.at(1))
                    between = f"[{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]"
                    print(f"\n{kind}: {one} → {other}: {mean:+.1f} {between}, p = {p:.4f}")
        if title == "test":
            wanted = ["none|", "linear|text", "linear|graph", "catboost|text+graph", "catboost|text+graph+g2t"]
            wanted += ["logistic|all", "catboost|all", "neural|text+g2t+highlight"]
            series = [
                Series(key.rstrip("|"), tuple((n, 100 * curves[key].at(n)) for n in range(1, 21)))
                for key in wanted if key in curves
            ]  # fmt: skip
            plot = line_plot(
                "Hit@N before and after reranking, percent", series, Axis("N", low=1), Axis("Hit@N", low=0, high=100)
            )
            (given.work / "curves.svg").write_text(plot)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("step", choices=("pools", "train", "neural", "report"))
    options.add_argument("--work", type=Path, required=True)
    options.add_argument("--data", type=Path)
    options.add_argument("--set", choices=("metaqa", "webqsp"), default="metaqa")
    options.add_argument("--source", default="nearby")
    options.add_argument("--model", default="none")
    options.add_argument("--candidates", type=int, default=20)
    options.add_argument("--per-hop", type=int, default=300)
    options.add_argument("--groups", default="text,graph,g2t,match,source")
    options.add_argument("--encoder", type=Path)
    options.add_argument("--limit", type=int)
    options.add_argument("--tokens", type=int, default=256)
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--without-catboost", action="store_true")
    given = options.parse_args()
    {"pools": make_pools, "train": train, "neural": neural, "report": report}[given.step](given)


if __name__ == "__main__":
    main()
