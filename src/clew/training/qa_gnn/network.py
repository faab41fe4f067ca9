"""The graph network in torch, as `clew.reading.graph_network` runs it in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clew.models.embedding.words import DIMENSION
from clew.reading.encoders import Floats
from clew.reading.graph_network import Places

INNER = 256
"""The width of the layer that reads a question beside a relation."""


@dataclass(frozen=True, eq=False)
class GraphBase:
    """A whole base as the network sees it; each edge stands there twice, walked from either side."""

    name: str
    types: Places
    sources: Places
    targets: Places
    hops: Places
    hop_texts: tuple[str, ...]
    type_texts: tuple[str, ...]
    nameless: Places
    """Nodes that are no answer: facts without a name of their own."""


@dataclass(frozen=True, slots=True)
class GraphQuestion:
    """A question with its topics masked, and the nodes that it starts from and asks for."""

    text: str
    topics: tuple[int, ...]
    answers: tuple[int, ...]
    kind: str = ""


def graph_network(torch: Any, encoder: Any, layers: int, width: int) -> Any:
    """A network over the states of an encoder; see the four steps in `clew.reading.graph_network`."""
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

        def read(self, texts: Sequence[Sequence[int]], device: str) -> tuple[Any, Any]:
            """The states of some texts, and which of them are there."""
            ids = torch.zeros((len(texts), max(map(len, texts))), dtype=torch.int64)
            for row, text in enumerate(texts):
                ids[row, : len(text)] = torch.tensor(text)
            ids = ids.to(device)
            mask = ids != 0
            with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
                states = self.encoder(input_ids=ids, attention_mask=mask.long()).last_hidden_state
            return states.float(), mask

        def mean(self, states: Any, mask: Any) -> Any:
            return (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)

        def attended(self, states: Any, mask: Any, looked: Any) -> Any:
            weights = torch.einsum("btd,bd->bt", states, looked) / DIMENSION**0.5
            return torch.einsum("bt,btd->bd", weights.masked_fill(~mask, -1e4).softmax(1), states)

        def beside(self, asked: Any, others: Any, name: str) -> Any:
            """Rows of questions × columns of texts."""
            unit = nn.functional.normalize
            left, right = unit(asked @ self.question.T, dim=-1), unit(others @ self.label.T, dim=-1)
            shape = (len(left), len(right), DIMENSION)
            spread = left[:, None].expand(shape), right[None].expand(shape)
            both = torch.cat((left[:, None] * right[None], *spread), -1)
            return getattr(self, f"{name}_out")(torch.relu(getattr(self, f"{name}_in")(both)))

        def forward(self, graph: Any, questions: Any, topics: Any, hops: Any, types: Any) -> Any:
            """Scores of every node for every question; `topics` is true at the topics, unreached nodes have -1e4."""
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
            """What lies on top of the encoder, under the names that `GraphNetwork` knows."""
            named = ("start", "look", "look_bias", "end_look", "question", "label", "own", "other", "join")
            found = {name: getattr(self, name) for name in named}
            for name in ("gate_in", "gate_out", "end_in", "end_out"):
                layer = getattr(self, name)
                found |= {name: layer.weight, f"{name}_bias": layer.bias}
            return {name: part.detach().float().cpu().numpy().astype(np.float16) for name, part in found.items()}

    return Network()
