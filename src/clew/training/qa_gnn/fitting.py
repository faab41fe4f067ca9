"""Trains the graph network over many bases, and measures it on questions and bases that were left out.

1  lessons: bases as graphs in words, questions with the nodes they start from and ask for (`clew.evaluation` has them)
2  descent: a step takes questions of one base; the nodes that are asked for are to score above all others in reach
3  files: exported as Clew opens them, with a card that says what they were trained on and not
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from clew.core.errors import InputError
from clew.models.embedding.words import open_tokenizer
from clew.reading.graph_network import ENCODER, LONGEST
from clew.training.exporting import export_network
from clew.training.folds import names_of_fold, parse_fold
from clew.training.qa_gnn.network import GraphBase, GraphQuestion, graph_network
from clew.training.reader.network import EncoderSize, open_torch, start_encoder

Say = Callable[[str], None]
SAID_EVERY = 200
"""Steps between two lines about the loss."""
WARM = 0.06
"""The share of the steps in which the rate rises."""


@dataclass(frozen=True)
class GraphSettings:
    """How the network is trained; `size` is that of an encoder that starts from chance, for a quick trial."""

    layers: int = 3
    width: int = 64
    steps: int = 6000
    questions: int = 16
    rate: float = 1e-3
    encoder_rate: float = 5e-5
    evenness: float = 0.5
    """With 1, a base is drawn as often as it has questions; with 0, all are drawn equally often."""
    most_edges: int = 4_000_000
    """Edges times questions of a step; a large base has fewer questions in a step."""
    seconds: float = float("inf")
    seed: int = 0
    size: EncoderSize | None = None


@dataclass(frozen=True, eq=False)
class Lessons:
    """A base with its questions, those that are learned from and those that are kept back."""

    base: GraphBase
    taught: Sequence[GraphQuestion]
    kept: Sequence[GraphQuestion] = ()


@dataclass(eq=False)
class GraphFitting:
    """The network, the device it is on, and the bases that were sent there."""

    settings: GraphSettings
    torch: Any
    network: Any
    device: str
    say: Say
    _sent: dict[str, Any] = field(default_factory=dict)
    _ids: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def open(cls, settings: GraphSettings, say: Say) -> GraphFitting:
        """With the encoder as published, or one that starts from chance."""
        torch = open_torch()
        torch.manual_seed(settings.seed)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        network = graph_network(torch, start_encoder(torch, settings.size), settings.layers, settings.width)
        return cls(settings, torch, network.to(device), device, say)

    # 2

    def fit(self, lessons: Sequence[Lessons]) -> dict[str, float]:
        """The losses of the first and the last steps."""
        torch, settings, rng = self.torch, self.settings, random.Random(self.settings.seed)
        lessons = [one for one in lessons if one.taught]
        if not lessons:
            raise InputError("no question has both a topic and an answer that the base knows: nothing to learn from")
        own = [part for name, part in self.network.named_parameters() if not name.startswith("encoder.")]
        encoder = [part for part in self.network.encoder.parameters() if part.requires_grad]
        groups = [{"params": own, "lr": settings.rate}, {"params": encoder, "lr": settings.encoder_rate}]
        optimiser = torch.optim.AdamW(groups, weight_decay=0.01)
        done, begun = 0.0, time.monotonic()
        pace = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda _: _pace(done))
        weights = [len(one.taught) ** settings.evenness for one in lessons]
        losses: list[float] = []
        self.network.train()
        for step in range(1, settings.steps + 1):
            one = rng.choices(lessons, weights)[0]
            few = rng.sample(list(one.taught), min(self._at_once(one.base), len(one.taught)))
            loss = self.loss(one.base, few)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            optimiser.step()
            done = max(step / settings.steps, (time.monotonic() - begun) / settings.seconds)
            pace.step()
            losses.append(float(loss.detach()) if step % SAID_EVERY in (0, 1) or self.device == "cpu" else losses[-1])
            if step % SAID_EVERY == 0:
                self.say(f"step {step} of {settings.steps}: loss {np.mean(losses[-SAID_EVERY:]):.3f}")
            if done >= 1:
                break
        self.say(f"{len(losses)} steps")
        return {"first_loss": losses[0], "loss": float(np.mean(losses[-SAID_EVERY:]))}

    def _at_once(self, base: GraphBase) -> int:
        return max(1, min(self.settings.questions, self.settings.most_edges // max(1, len(base.sources))))

    def loss(self, base: GraphBase, questions: Sequence[GraphQuestion]) -> Any:
        """How far the chances of the nodes are from those that are asked for, each as likely as the others."""
        torch = self.torch
        scores = self.scores(base, questions)
        gold = torch.zeros_like(scores)
        for row, one in enumerate(questions):
            gold[row, list(one.answers)] = 1.0
        gold = gold * (scores > -1e4)
        told = gold.sum(1, keepdim=True)
        chances = scores.log_softmax(1)
        each = -(gold / told.clamp(min=1) * chances).sum(1)
        return each.sum() / (told > 0).sum().clamp(min=1)

    def scores(self, base: GraphBase, questions: Sequence[GraphQuestion]) -> Any:
        """Of every node for each question."""
        torch, graph = self.torch, self._graph(base)
        topics = torch.zeros((len(questions), len(base.types)), dtype=torch.bool, device=self.device)
        for row, one in enumerate(questions):
            topics[row, list(one.topics)] = True
        used, places = self._near(graph, topics)
        texts = [one.text for one in questions] + [base.hop_texts[one] for one in used] + list(base.type_texts)
        states, mask = self.network.read(list(map(self._tokens, texts)), self.device)
        means = self.network.mean(states, mask)[len(questions) :]
        read = states[: len(questions)], mask[: len(questions)]
        hops, types = means[: len(used)], means[len(used) :]
        near = SimpleNamespace(**vars(graph) | {"hops": places[graph.hops]})
        return self.network(near, read, topics, hops, types)

    def _near(self, graph: Any, topics: Any) -> tuple[list[int], Any]:
        """The hops that stand around the topics, and where each of all hops stands among them."""
        torch, reached = self.torch, topics.any(0)
        for _ in range(self.settings.layers - 1):
            reached = reached.index_fill(0, graph.targets[reached[graph.sources]], True)
        used = torch.unique(graph.hops[reached[graph.sources]])
        places = torch.zeros(graph.hop_count, dtype=torch.int64, device=self.device)
        places[used] = torch.arange(len(used), device=self.device)
        return used.tolist() or [0], places

    def _graph(self, base: GraphBase) -> Any:
        if base.name not in self._sent:
            sent = {
                name: self.torch.as_tensor(getattr(base, name), device=self.device)
                for name in ("types", "sources", "targets", "hops")
            }
            nameless = self.torch.zeros(len(base.types), dtype=self.torch.bool, device=self.device)
            nameless[base.nameless] = True
            self._sent[base.name] = SimpleNamespace(**sent, nameless=nameless, hop_count=len(base.hop_texts))
        return self._sent[base.name]

    def _tokens(self, text: str) -> list[int]:
        if text not in self._ids:
            self._ids[text] = tokenizer().encode(text).ids
        return self._ids[text]

    # Measuring

    def measure(self, base: GraphBase, questions: Sequence[GraphQuestion]) -> list[bool]:
        """Whether the best node of each question is asked for."""
        self.network.eval()
        found: list[bool] = []
        size = self._at_once(base)
        with self.torch.no_grad():
            for begin in range(0, len(questions), size):
                few = questions[begin : begin + size]
                best = self.scores(base, few).argmax(1).tolist()
                found += [node in one.answers for node, one in zip(best, few, strict=True)]
        return found

    # 3

    def export(self, out: Path, card: Mapping[str, Any]) -> None:
        """Write the encoder, the heads and the card."""
        told = {"layers": self.settings.layers, "settings": asdict(self.settings) | {"seconds": None}, **card}
        export_network(self.torch, out, told, states={ENCODER: self.network.encoder}, heads=self.network.heads())


def _pace(done: float) -> float:
    """What the rates are multiplied with: it rises at first, then falls to the end."""
    return min(1.0, (done + 1e-3) / WARM) * max(0.02, 1 - done)


@cache
def tokenizer() -> Any:
    """The tokenizer of the encoder, opened once."""
    return open_tokenizer(LONGEST)


def train_graph_network(
    lessons: Sequence[Lessons], out: Path, settings: GraphSettings, *, left_out: str | None = None, say: Say = print
) -> dict[str, float]:
    """Train on every base or, with "0/5" left out, on all but a fifth; measured on what was not learned from."""
    fold = parse_fold(left_out) if left_out else None
    left = names_of_fold([one.base.name for one in lessons], *fold, settings.seed) if fold else set()
    own = [one for one in lessons if one.base.name not in left]
    fitting = GraphFitting.open(settings, say)
    figures = fitting.fit(own)
    kept = [hit for one in own if one.kept for hit in fitting.measure(one.base, one.kept)]
    strange = [
        hit for one in lessons if one.base.name in left for hit in fitting.measure(one.base, [*one.taught, *one.kept])
    ]
    for name, hits in (("same schema", kept), ("left-out schema", strange)):
        if hits:
            figures |= {f"Hit@1, {name}": float(np.mean(hits)), f"questions, {name}": len(hits)}
    trained = {one.base.name: len(one.taught) for one in own}
    fitting.export(out, {"trained_on": trained, "left_out": sorted(left), "figures": figures})
    return figures
