"""What reranking by subgraphs gains on MetaQA and WebQSP: Hit@1 … Hit@N per ranker and feature set.

    python benchmarks/reranking.py pools  --data DATA --set metaqa --work DIR [--source nearby] [--per-hop 300]
    python benchmarks/reranking.py train  --work DIR
    python benchmarks/reranking.py neural --work DIR --encoder FOLDER [--limit N]
    python benchmarks/reranking.py report --work DIR

`pools` writes candidates, labels, texts and features, `train` trains every tabular ranker, `neural` the encoders (it
needs torch and transformers), `report` prints tables and draws curves.

Questions are split by topic entity, so that no topic is in two splits. A fifth of the question types is kept out of
training altogether: the test questions of these types are reported apart. Where questions are few, `--cross topics` and
`--cross types` of the last three steps test each question once, in five folds.
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
    "graph+match+source": ("graph", "match", "source"),
    "all": ("text", "graph", "g2t", "match", "source"),
}
NEURAL = {"text": (False, False), "text+g2t": (True, False), "text+g2t+highlight": (True, True)}
UNSEEN_SHARE = 0.2
FOLDS = 5
EXPLAINED = ("text+graph+g2t", "graph+match+source", "all")
"""Feature sets whose importance is measured."""


def is_unseen(kind):
    """A fifth of the types, chosen by their names alone."""
    return kind is not None and hashlib.sha256(kind.encode()).digest()[0] < 256 * UNSEEN_SHARE


def make_pools(given):
    from clew.answering.methods.subgraph_reranking.features import FeaturePipeline
    from clew.lab.datasets.load import load_dataset
    from clew.lab.evaluation.benchmark import Benchmark
    from clew.lab.evaluation.rankers import PoolMaker
    from clew.lab.training.labelled import split_of
    from clew.models.opening import open_model

    if given.set == "metaqa":
        names = [f"metaqa:{given.data}/metaqa:{hops}-hop-dev" for hops in (1, 2, 3)]
        sets = [load_dataset(name).sample(given.per_hop, 0) for name in names]
    else:
        sets = [load_dataset(f"webqsp:{given.data}/webqsp:questions_dev").with_topics().sample(given.per_hop * 3, 0)]
    found, hops = [], []
    for number, dataset in enumerate(sets, start=1):
        benchmark = Benchmark(dataset, model=open_model(given.model))
        tools = benchmark.tools
        maker = PoolMaker.of(benchmark, given.source, given.candidates)
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
                "id": pool.id, "split": split, "hop": hop, "type": pool.type, "topics": pool.groups,
                "question": pool.pool.question,
                "names": pool.pool.names, "graph_texts": pool.pool.graph_texts, "right": pool.right.tolist(),
            }  # fmt: skip
            lines.write(json.dumps(shown, ensure_ascii=False) + "\n")
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
    from clew.answering.methods.subgraph_reranking.features import CandidatePool
    from clew.lab.training.labelled import LabelledPool

    pool = CandidatePool(line["question"], tuple(line["names"]), (), tuple(line["graph_texts"]), ())
    return LabelledPool(line["id"], pool, np.array(line["right"], dtype=bool), line["type"])


def splits_of(lines, cross):
    """Numbers of questions to learn from, to choose settings on and to test on; with `cross`, each is tested once.

    Five folds, such that no topic, or no type of question, is in two of them.
    """
    if not cross:
        names = {"train": ("train",), "validation": ("validation",), "test": ("test", "unseen")}
        return [{key: [n for n, line in enumerate(lines) if line["split"] in own] for key, own in names.items()}]
    keys = [str(line["topics"]) if cross == "topics" else f"{line['hop']}: {line['type']}" for line in lines]
    fold = [hashlib.sha256(key.encode()).digest()[0] % FOLDS for key in keys]
    chosen = []
    for tested in range(FOLDS):
        watched = (tested + 1) % FOLDS
        part = {"test": {tested}, "validation": {watched}, "train": set(range(FOLDS)) - {tested, watched}}
        chosen.append({key: [n for n, own in enumerate(fold) if own in folds] for key, folds in part.items()})
    return chosen


def train(given):
    from clew.answering.methods.subgraph_reranking.features import GROUPS, FeaturePipeline
    from clew.answering.methods.subgraph_reranking.rankers import RandomOrder, SemanticRanker, SourceOrder
    from clew.lab.training.labelled import FeatureTable, permutation_importance
    from clew.lab.training.ranker import RankerSettings, TreeSettings, fit_table
    from clew.models.embedding.onnx import OnnxEmbedder, bundled_card

    lines = read_pools(given.work)
    pools = [labelled(line) for line in lines]
    splits = splits_of(lines, given.cross)
    starts = np.append(0, np.cumsum([len(pool.right) for pool in pools]))
    known = [group for group in GROUPS if (given.work / f"{group}.npy").exists()]
    features = {group: np.load(given.work / f"{group}.npy").astype(np.float64) for group in known}
    embedder = OnnxEmbedder(bundled_card(), threads=1)
    judged = sorted(n for split in splits for n in split["test"])
    scores = {}
    for ranker in (SourceOrder(), RandomOrder(), SemanticRanker(embedder)):
        scores[f"{ranker.name}|"] = [ranker.scores(pools[n].pool).tolist() for n in judged]
    importance = {}
    for name, groups in SETS.items():
        if not set(groups) <= set(known):
            continue
        rows = np.concatenate([features[group] for group in GROUPS if group in groups], axis=1)

        def part(numbers, rows=rows):
            return FeatureTable.of([rows[starts[n] : starts[n + 1]] for n in numbers], [pools[n] for n in numbers])

        columns = FeaturePipeline(groups, embedder).columns
        for kind in ("linear", "logistic", "catboost"):
            if kind == "catboost" and name not in given.catboost.split(","):
                continue
            settings = RankerSettings(kind, groups, trees=TreeSettings((0.1,), (6,), 1500))
            key = f"{kind}|{name}"
            own, found = {}, []
            for split in splits:
                fitted = fit_table(settings, columns, part(split["train"]), part(split["validation"]))
                own |= {n: fitted.model.predict(rows[starts[n] : starts[n + 1]]).tolist() for n in split["test"]}
                if name in EXPLAINED:
                    found.append(permutation_importance(part(split["test"]), columns, fitted.model.predict, repeats=10))
                    if "importance" in fitted.told:
                        importance[f"{key}|own"] = fitted.told["importance"]
            scores[key] = [own[n] for n in judged]
            print(key, fitted.told, flush=True)
            told = [one for fold in found for one in fold]
            importance[key] = {
                name: np.mean([[one.loss, one.deviation] for one in told if one.feature == name], axis=0).tolist()
                for name in dict.fromkeys(one.feature for one in told)
            }
    (given.work / f"scores{given.cross}.json").write_text(json.dumps(scores))
    (given.work / f"importance{given.cross}.json").write_text(json.dumps(importance))


def neural(given):
    from clew.answering.methods.subgraph_reranking.rankers import neural_texts
    from clew.lab.training.labelled import FeatureTable
    from clew.lab.training.neural_ranker import NeuralSettings, fit_encoder

    lines = read_pools(given.work)
    pools = [labelled(line) for line in lines]
    splits = splits_of(lines, given.cross)
    judged = sorted(n for split in splits for n in split["test"])
    settings = NeuralSettings(given.encoder, marks=("[unused1]", "[unused2]"), tokens=given.tokens, epochs=given.epochs)
    scores = {}
    for name in given.texts.split(",") if given.texts else NEURAL:

        def part(numbers, name=name):
            graph, marked = NEURAL[name]
            chosen = [pools[n] for n in numbers]
            texts = [pair for pool in chosen for pair in neural_texts(pool.pool, graph=graph, marked=marked)]
            return texts, FeatureTable.of([np.empty((len(pool.right), 0)) for pool in chosen], chosen)

        own = {}
        for split in splits:
            fit = fit_encoder(*part(split["train"][: given.limit]), *part(split["validation"]), settings, say_epochs)
            texts, table = part(split["test"])
            own |= zip(split["test"], map(np.ndarray.tolist, table.questions(fit.predict(texts))), strict=True)
            scores[f"neural|{name}"] = [own[n] for n in judged if n in own]
            (given.work / f"neural_scores{given.cross}.json").write_text(json.dumps(scores))


def say_epochs(told):
    if "validation" in told:
        print(told, flush=True)


def report(given):
    from clew.core.plots import Axis, Series, line_plot
    from clew.lab.evaluation.comparison import bootstrap, randomisation_test
    from clew.lab.evaluation.rankers import hit_curve

    lines = read_pools(given.work)
    lines = [line | {"split": "test"} for line in lines] if given.cross else lines
    lines = [line for line in lines if line["split"] in ("test", "unseen")]
    pools = [labelled(line) for line in lines]
    scores = json.loads((given.work / f"scores{given.cross}.json").read_text())
    extra = given.work / f"neural_scores{given.cross}.json"
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
    options.add_argument("--catboost", default=",".join(SETS), help="feature sets of CatBoost, by comma")
    options.add_argument("--cross", choices=("", "topics", "types"), default="", help="five folds by topic or by type")
    options.add_argument("--texts", help="which of the neural ranker's texts, by comma")
    given = options.parse_args()
    {"pools": make_pools, "train": train, "neural": neural, "report": report}[given.step](given)


if __name__ == "__main__":
    main()
