"""How well each role is played on real data, by a model and without one: validity, accuracy against gold, latency.

    python benchmarks/roles.py --model none
    python benchmarks/roles.py --model batch:DIR#NAME      # run, answer DIR, run again, until nothing waits
    python benchmarks/roles.py --model http://127.0.0.1:8080/v1#qwen -n 20

Data: the folder CLEW_DATA (MetaQA, HotpotQA, 2Wiki, STaRK-PRIME reduced, Mintaka). Prints a Markdown table, or JSON.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from role_cases import (
    answer_cases,
    choose_cases,
    metaqa_base,
    parse_cases,
    query_path,
    read_cases,
    score_cases,
    write_cases,
)

from clew.answering.methods.role_choice import reader_parser
from clew.answering.roles.choose import ModelChooser, ScoredChooser
from clew.answering.roles.parse import ModelParser
from clew.answering.roles.read import BestSpan, ModelReader
from clew.answering.roles.score import FusedScorer, ModelScorer
from clew.answering.roles.write import ModelWriter, UncoveredPart
from clew.core import trace
from clew.core.errors import PendingError
from clew.core.roles import Chooser, Reader, Scorer, Writer
from clew.lab.evaluation.comparison import bootstrap
from clew.lab.evaluation.metrics import normalise_text, text_exact, text_f1
from clew.models.embedding.onnx import OnnxEmbedder, bundled_card
from clew.models.opening import open_model
from clew.models.protocol import Embedder, LanguageModel
from clew.store.open_base import OpenBase


@dataclass
class Measured:
    """One role played by one player: metrics with their per-case values, and what the model calls came to."""

    role: str
    player: str
    n: int
    values: dict[str, list[float]]
    valid: float | None = None
    """Share of cases whose reply could be used, after one re-ask."""
    valid_at_once: float | None = None
    seconds: float = 0.0
    """Per case; of the model's own time where it says so."""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    intervals: dict[str, tuple[float, float, float]] = field(default_factory=dict)

    def summarise(self) -> "Measured":
        for name, values in self.values.items():
            spread = bootstrap(values)
            self.intervals[name] = (float(np.mean(values)), spread.low, spread.high)
        return self


def measure(role: str, player: str, n: int, play: Callable[[], dict[str, list[float]]]) -> Measured:
    begun = time.perf_counter()
    with trace.recording() as recorder:
        values = play()
    elapsed = time.perf_counter() - begun
    calls = [call for span in recorder.spans for call in span.calls]
    own = sum(call.seconds for call in calls)
    again = sum(span.details.get("asked_again", 0) for span in recorder.spans)
    failed = sum(span.details.get("failed", 0) for span in recorder.spans)
    asked = sum(span.details.get("asked", 0) for span in recorder.spans if "asked" in span.details)
    return Measured(
        role,
        player,
        n,
        values,
        valid=1 - failed / asked if asked else None,
        valid_at_once=1 - again / asked if asked else None,
        seconds=(own if calls else elapsed) / n,
        calls=len(calls),
        prompt_tokens=sum(call.prompt_tokens for call in calls),
        completion_tokens=sum(call.completion_tokens for call in calls),
    ).summarise()


def parsing(n: int, model: LanguageModel | None, base: Path):
    cases = parse_cases(n)
    metaqa_base(base)
    tools = OpenBase.open(base)

    def judge(parses) -> dict[str, list[float]]:
        exact, relations = [], []
        for case, parse in zip(cases, parses, strict=True):
            found = query_path(parse.query)
            same = found is not None and normalise_text(found[0]) == normalise_text(case.topic)
            exact.append(float(same and found is not None and found[1] == case.path))
            named = sorted(triplet.relation or "" for triplet in parse.query.triplets)
            relations.append(float(named == sorted(name for name, _ in case.path)))
        return {"query exactly right": exact, "relations right": relations}

    if model is None:
        reader = reader_parser(tools)
        yield "learned reader", lambda: judge([reader.parse(case.question, tools.kb.schema) for case in cases])
    else:
        parser = ModelParser(model)
        yield "model", lambda: judge(parser.parse_all([case.question for case in cases], tools.kb.schema))


def choosing(n: int, model: LanguageModel | None, embedder: Embedder, options: int):
    cases = choose_cases(n, options)

    def play(chooser: Chooser) -> dict[str, list[float]]:
        chosen = chooser.choose([choice for choice, _ in cases])
        right = [float(one.kept[:1] == (gold,)) for one, (_, gold) in zip(chosen, cases, strict=True)]
        return {"right": right}

    if model is None:
        yield "embedding and words", lambda: play(ScoredChooser(FusedScorer(embedder)))
        return
    if options == 2:
        yield "model, one order", lambda: play(ModelChooser(model, both_orders=False))
        yield "model, both orders", lambda: play(ModelChooser(model))
    else:
        yield "model", lambda: play(ModelChooser(model))


def scoring(n: int, model: LanguageModel | None, embedder: Embedder):
    cases = score_cases(n)

    def play(scorer: Scorer) -> dict[str, list[float]]:
        values = scorer.score([claim for claim, _ in cases])
        known = np.array([value or 0.0 for value in values])
        gold = np.array([right for _, right in cases], dtype=float)
        first = []
        for start in range(0, len(cases), 5):  # groups of one right and four wrong; ties count by chance
            group, right = known[start : start + 5], gold[start : start + 5] > 0
            best = group == group.max()
            first.append(float((best & right).sum() / best.sum()))
        return {
            "best of five": first,
            "above the others (AUC)": wins(known, gold),
            "Brier score": ((known - gold) ** 2).tolist(),
        }

    if model is None:
        yield "embedding and words", lambda: play(FusedScorer(embedder))
        return
    yield "model, stated", lambda: play(ModelScorer(model))
    yield "model, likelihood", lambda: play(ModelScorer(model, how="likelihood"))


def wins(scores: np.ndarray, gold: np.ndarray) -> list[float]:
    """For each right candidate the share of all wrong ones below it; the mean is the area under the ROC curve."""
    wrong = scores[gold == 0]
    return [float((wrong < score).mean() + 0.5 * (wrong == score).mean()) for score in scores[gold == 1]]


def writing(n: int, model: LanguageModel | None, embedder: Embedder):
    cases = write_cases(n)
    vectors: list[np.ndarray] = []

    def play(texts: Sequence[str]) -> dict[str, list[float]]:
        if not vectors:  # the same for every player
            vectors.extend(embedder.embed(case.candidates, role="document") for case in cases)
        asked = embedder.embed(list(texts), role="query")
        found: dict[str, list[float]] = {"next passage first": [], "reciprocal rank": []}
        for case, candidates, vector in zip(cases, vectors, asked, strict=True):
            order = (-(candidates @ vector)).argsort(kind="stable")
            rank = int(np.flatnonzero(order == case.gold)[0])
            found["next passage first"].append(float(rank == 0))
            found["reciprocal rank"].append(1 / (1 + rank))
        return found

    def written(writer: Writer, with_question: bool) -> dict[str, list[float]]:
        texts = [one.texts[0] if one.texts else "" for one in writer.next_evidence([case.draft for case in cases])]
        if with_question:
            texts = [f"{case.draft.question} {text}" for case, text in zip(cases, texts, strict=True)]
        return play([text or case.draft.question for case, text in zip(cases, texts, strict=True)])

    if model is None:
        yield "the question itself", lambda: play([case.draft.question for case in cases])
        yield "uncovered words", lambda: written(UncoveredPart(names=0), False)
        yield "uncovered words and new names", lambda: written(UncoveredPart(), False)
        return
    yield "model", lambda: written(ModelWriter(model), False)
    yield "model with the question", lambda: written(ModelWriter(model), True)


def reading(n: int, model: LanguageModel | None):
    cases = read_cases(n)

    def play(reader: Reader) -> dict[str, list[float]]:
        reads = reader.read([case.reading for case in cases])
        pairs = list(zip(reads, cases, strict=True))
        return {
            "exact match": [text_exact(read.text or "", case.answers) for read, case in pairs],
            "F1": [text_f1(read.text or "", case.answers) for read, case in pairs],
            "cites a supporting passage": [float(bool(case.supporting.intersection(r.citations))) for r, case in pairs],
        }

    if model is None:
        yield "best span", lambda: play(BestSpan())
    else:
        yield "model", lambda: play(ModelReader(model, words=6))


def answering(n: int, model: LanguageModel | None):
    cases = answer_cases(n)

    def play(writer: ModelWriter) -> dict[str, list[float]]:
        written = writer.answers([question for question, _ in cases], 10)
        ranks = []
        for one, (_, names) in zip(written, cases, strict=True):
            gold = {normalise_text(name) for name in names}
            ranks.append(next((r for r, text in enumerate(one.texts) if normalise_text(text) in gold), 99))
        hits = {f"hit@{k}": [float(rank < k) for rank in ranks] for k in (1, 10)}
        return {**hits, "answers given": [float(len(one.texts)) for one in written]}

    if model is not None:
        yield "model, closed book", lambda: play(ModelWriter(model))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="none")
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("--roles", default="parse,choose2,choose5,score,write,read,answers")
    parser.add_argument("--base", type=Path, default=Path("/tmp/clew-metaqa.kb"), help="where the MetaQA base is built")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    model = open_model(options.model)
    embedder = OnnxEmbedder(bundled_card())
    n = options.n
    roles = {
        "parse": lambda: parsing(n, model, options.base),
        "choose2": lambda: choosing(n, model, embedder, 2),
        "choose5": lambda: choosing(n, model, embedder, 5),
        "score": lambda: scoring(n, model, embedder),
        "write": lambda: writing(n, model, embedder),
        "read": lambda: reading(n, model),
        "answers": lambda: answering(n, model),
    }
    rows, waiting = [], []
    for role in options.roles.split(","):
        for player, play in roles[role]():
            try:
                rows.append(measure(role, player, n, play))
            except PendingError as pending:
                waiting.append(f"{role}, {player}: {pending}")
    if options.json:
        print(json.dumps([{k: v for k, v in asdict(row).items() if k != "values"} for row in rows], indent=2))
    else:
        print(
            "| role | played by | n | result (95 % interval) | replies valid (at once) | seconds each | tokens each |"
        )
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for row in rows:
            print(line(row))
    for one in waiting:
        print("waits:", one)


def line(row: Measured) -> str:
    found = "; ".join(f"{name} {mean:.3f} ({low:.3f}–{high:.3f})" for name, (mean, low, high) in row.intervals.items())
    valid = "–" if row.valid is None else f"{row.valid:.3f} ({row.valid_at_once:.3f})"
    tokens = f"{row.prompt_tokens / row.n:.0f} + {row.completion_tokens / row.n:.0f}" if row.calls else "–"
    return f"| {row.role} | {row.player} | {row.n} | {found} | {valid} | {row.seconds:.3f} | {tokens} |"


if __name__ == "__main__":
    main()
