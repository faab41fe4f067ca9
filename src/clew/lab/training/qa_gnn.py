"""Train the graph network on many bases, and measure it on held-out questions and bases.

1  examples: bases as graphs with texts, questions with start and answer nodes (see `clew.lab.evaluation`)
2  training: a step uses questions of one base; answer nodes should score higher than all other reachable nodes
3  files: exported for Clew, with a card about training and holdout data
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from clew.answering.reading.encoders import Floats
from clew.answering.reading.graph_network import ENCODER, LONGEST, Places
from clew.core.errors import InputError
from clew.lab.training.exporting import export_network
from clew.lab.training.gradient import Descent
from clew.lab.training.labelled import names_of_fold, parse_fold
from clew.lab.training.networks import EncoderSize, open_torch, start_encoder
from clew.models.embedding.onnx import DIMENSION, open_tokenizer

Say = Callable[[str], None]
SAID_EVERY = 200
"""Number of steps between log lines."""
WARM = 0.06
"""Share of warm-up steps."""
INNER = 256
"""Width of the layer that combines a question with a relation."""


@dataclass(frozen=True)
class GraphSettings:
    """Training settings. `size` is for a randomly initialised encoder, for quick trials."""

    layers: int = 3
    width: int = 64
    steps: int = 6000
    questions: int = 16
    rate: float = 1e-3
    encoder_rate: float = 5e-5
    evenness: float = 0.5
    """Exponent of a base's question count for sampling. 1 is proportional, 0 is uniform."""
    most_edges: int = 4_000_000
    """Maximum number of edges times questions per step. Large bases get fewer questions."""
    seconds: float = float("inf")
    seed: int = 0
    size: EncoderSize | None = None


# 1


@dataclass(frozen=True, eq=False)
class GraphBase:
    """A base as network input. Each edge is stored in both directions."""

    name: str
    types: Places
    sources: Places
    targets: Places
    hops: Places
    hop_texts: tuple[str, ...]
    type_texts: tuple[str, ...]
    nameless: Places
    """Nodes that cannot be answers: facts without a name."""


@dataclass(frozen=True, slots=True)
class GraphQuestion:
    """A question with masked topics, its start nodes and its answer nodes."""

    text: str
    topics: tuple[int, ...]
    answers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class GraphLessons:
    """A base with its training and held-out questions."""

    base: GraphBase
    taught: Sequence[GraphQuestion]
    kept: Sequence[GraphQuestion] = ()


def graph_network(torch: Any, encoder: Any, layers: int, width: int) -> Any:
    """Build a network over an encoder's states. `clew.answering.reading.graph_network` describes its four steps."""
    nn = torch.nn

    class Network(nn.Module):  # type: ignore[misc,name-defined]  # torch has no stubs here
        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder
            self.start = nn.Parameter(torch.ones(width))
            self.look = nn.Parameter(torch.randn(layers, DIMENSION, DIMENSION) * 0.02)
            self.look_bias = nn.Parameter(torch.randn(layers, DIMENSION) * 0.5)
            self.end_look = nn.Parameter(torch.randn(DIMENSION, DIMENSION) * 0.02)
            self.question, self.label = nn.Parameter(torch.eye(DIMENSION)), nn.Parameter(torch.eye(DIMENSION))
            self.own = nn.Parameter(torch.eye(width).repeat(layers, 1, 1) * 0.5)
            self.other = nn.Parameter(torch.randn(layers, width, width) / width**0.5)
            self.join = nn.Parameter(torch.randn(width, width * (layers + 1)) / (width * (layers + 1)) ** 0.5)
            for name in ("gate", "end"):
                setattr(self, f"{name}_in", nn.Linear(3 * DIMENSION, INNER))
                setattr(self, f"{name}_out", nn.Linear(INNER, width))

        def read(self, ids: Any) -> tuple[Any, Any]:
            """Return the states of texts, and the mask of their tokens."""
            mask = ids != 0
            return self.encoder(input_ids=ids, attention_mask=mask.long()).last_hidden_state.float(), mask

        def mean(self, states: Any, mask: Any) -> Any:
            return (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)

        def attended(self, states: Any, mask: Any, looked: Any) -> Any:
            weights = torch.einsum("btd,bd->bt", states, looked) / DIMENSION**0.5
            return torch.einsum("bt,btd->bd", weights.masked_fill(~mask, -1e4).softmax(1), states)

        def beside(self, asked: Any, others: Any, name: str) -> Any:
            """Combine each question with each text."""
            unit = nn.functional.normalize
            left, right = unit(asked @ self.question.T, dim=-1), unit(others @ self.label.T, dim=-1)
            shape = (len(left), len(right), DIMENSION)
            spread = left[:, None].expand(shape), right[None].expand(shape)
            both = torch.cat((left[:, None] * right[None], *spread), -1)
            return getattr(self, f"{name}_out")(torch.relu(getattr(self, f"{name}_in")(both)))

        def forward(self, graph: Any, questions: Any, topics: Any, hops: Any, types: Any) -> Any:
            """Score every node for every question. `topics` marks the topic nodes. Unreached nodes get -1e4."""
            states, mask = questions
            mean, count = self.mean(states, mask), topics.shape[1]
            reached = topics
            here = topics.reshape(-1, 1) * self.start
            kept = [here]
            for layer in range(layers):
                asked = self.attended(states, mask, mean @ self.look[layer].T + self.look_bias[layer])
                gates = torch.relu(self.beside(asked, hops, "gate"))
                row, edge = reached[:, graph.sources].nonzero(as_tuple=True)
                passed = here[row * count + graph.sources[edge]] * gates[row, graph.hops[edge]]
                targets = row * count + graph.targets[edge]
                sums = torch.log1p(torch.zeros_like(here).index_add(0, targets, passed))
                here = torch.relu(here @ self.own[layer].T + sums @ self.other[layer].T)
                here = here / (here.square().mean(1, keepdim=True) + 1e-6).sqrt()
                kept.append(here)
                reached = reached.reshape(-1).index_fill(0, targets, True).reshape(reached.shape)
            wanted = self.beside(self.attended(states, mask, mean @ self.end_look.T), types, "end")
            last = torch.relu(torch.cat(kept, 1) @ self.join.T).reshape(len(topics), count, -1)
            scores = torch.einsum("bnw,bnw->bn", last, wanted[:, graph.types])
            return scores.masked_fill(~reached | topics | graph.nameless, -1e4)

        def heads(self) -> dict[str, Floats]:
            """Return the encoder's heads under the names of `GraphNetwork`."""
            named = ("start", "look", "look_bias", "end_look", "question", "label", "own", "other", "join")
            found = {name: getattr(self, name) for name in named}
            for name in ("gate_in", "gate_out", "end_in", "end_out"):
                layer = getattr(self, name)
                found |= {name: layer.weight, f"{name}_bias": layer.bias}
            return {name: part.detach().float().cpu().numpy().astype(np.float16) for name, part in found.items()}

    return Network()


@dataclass(frozen=True, eq=False)
class GraphFitting(Descent):
    """The network, and the bases sent to its device."""

    settings: GraphSettings
    network: Any
    _sent: dict[str, Any] = field(default_factory=dict)
    _ids: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def open(cls, settings: GraphSettings, say: Say) -> GraphFitting:
        """Create a trainer with the published or a randomly initialised encoder."""
        start = Descent.start(open_torch(), settings.seed, say)
        encoder = start_encoder(start.torch, settings.size)
        network = graph_network(start.torch, encoder, settings.layers, settings.width).to(start.device)
        return cls(start.torch, start.device, start.rng, say, settings, network)

    # 2

    def fit(self, lessons: Sequence[GraphLessons]) -> dict[str, float]:
        """Train the network. Return the losses of the first and last steps."""
        torch, settings, rng = self.torch, self.settings, self.rng
        lessons = [one for one in lessons if one.taught]
        if not lessons:
            raise InputError("no question has a topic and an answer in the base: nothing to train on")
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
        """Compute the cross-entropy with a uniform distribution over the answer nodes."""
        torch = self.torch
        scores = self.scores(base, questions)
        gold = torch.zeros_like(scores)
        for row, one in enumerate(questions):
            gold[row, list(one.answers)] = 1.0
        gold = gold * (scores > -1e4)
        counts = gold.sum(1, keepdim=True)
        chances = scores.log_softmax(1)
        each = -(gold / counts.clamp(min=1) * chances).sum(1)
        return each.sum() / (counts > 0).sum().clamp(min=1)

    def scores(self, base: GraphBase, questions: Sequence[GraphQuestion]) -> Any:
        """Score every node for each question."""
        torch, graph = self.torch, self._graph(base)
        topics = torch.zeros((len(questions), len(base.types)), dtype=torch.bool, device=self.device)
        for row, one in enumerate(questions):
            topics[row, list(one.topics)] = True
        used, places = self._near(graph, topics)
        texts = [one.text for one in questions] + [base.hop_texts[one] for one in used] + list(base.type_texts)
        with self.halved():
            states, mask = self.network.read(self.padded(list(map(self._tokens, texts))))
        means = self.network.mean(states, mask)[len(questions) :]
        read = states[: len(questions)], mask[: len(questions)]
        hops, types = means[: len(used)], means[len(used) :]
        near = SimpleNamespace(**vars(graph) | {"hops": places[graph.hops]})
        return self.network(near, read, topics, hops, types)

    def _near(self, graph: Any, topics: Any) -> tuple[list[int], Any]:
        """Return the hops around the topics, and a map from all hops to their indices among these."""
        torch, reached = self.torch, topics.any(0)
        for _ in range(self.settings.layers - 1):
            reached = reached.index_fill(0, graph.targets[reached[graph.sources]], True)
        used = torch.unique(graph.hops[reached[graph.sources]])
        places = torch.zeros(graph.hop_count, dtype=torch.int64, device=self.device)
        places[used] = torch.arange(len(used), device=self.device)
        return used.tolist() or [0], places

    def _graph(self, base: GraphBase) -> Any:
        if base.name not in self._sent:
            sent = {name: self.tensor(getattr(base, name)) for name in ("types", "sources", "targets", "hops")}
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
        """Return whether the best node of each question is an answer."""
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
        full_card = {"layers": self.settings.layers, "settings": asdict(self.settings) | {"seconds": None}, **card}
        export_network(self.torch, out, full_card, states={ENCODER: self.network.encoder}, heads=self.network.heads())


def _pace(done: float) -> float:
    """Return the rate factor: warm-up, then linear decay."""
    return min(1.0, (done + 1e-3) / WARM) * max(0.02, 1 - done)


@cache
def tokenizer() -> Any:
    """Open the encoder's tokenizer once."""
    return open_tokenizer(LONGEST)


def train_graph_network(
    lessons: Sequence[GraphLessons],
    out: Path,
    settings: GraphSettings,
    *,
    left_out: str | None = None,
    say: Say = print,
) -> dict[str, float]:
    """Train on all bases.

    With `left_out` such as "0/5", hold out that part. Measure on held-out questions and bases.
    """
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
