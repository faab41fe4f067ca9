"""Train the reader on questions over many schemas.

1  meaning: an encoder learns which hops, attributes, types and forms a question means
2  proposals: for every schema, from an encoder that has not seen it, cross-fitted over folds of schemas
3  choice: another encoder, initialised from the first, learns to select the right proposal
4  files: both are exported for the reader; held-out schemas are measured with these files
"""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from clew.answering.reading import encoders as reading
from clew.answering.reading.encoders import Encoders, Floats
from clew.answering.reading.plan import Wording
from clew.answering.reading.proposals import Proposer
from clew.answering.reading.reader import BUDGET, PLANS
from clew.answering.reading.scoring import HEADS, SKETCHED, Labels, QuestionScorer, masked, shared_words
from clew.core.errors import InputError
from clew.lab.training import networks
from clew.lab.training.exporting import export_network
from clew.lab.training.gradient import Descent, Ids
from clew.lab.training.labelled import names_of_fold, parse_fold
from clew.lab.training.reader.examples import Example, HeadTarget, Hops, SchemaExamples, normal, read_sources
from clew.models.embedding.words import FIRST_TOKEN, LAST_TOKEN, open_tokenizer
from clew.models.model_card import add_figures

Tokens = Callable[[Sequence[str]], list[Ids]]
Schemas = list[SchemaExamples]
WEIGHTS = {"forms": 0.5, "lacking": 0.2, "either": 0.2, "negated": 0.2, "operators": 0.4, "positive": 0.2, "type": 0.3}
WEIGHTS |= {"denied": 0.5, "lacked": 0.5, "counted": 0.5, "value": 0.7, "value of answer": 0.5, "extreme": 0.5}
WEIGHTS |= {"switch": 0.3, "quantity": 0.5, "related": 0.2, "relating": 0.5, "valued": 0.2}
"""Loss weight of each head. Paths have weight 1."""
LABELS = {"type": "types", "denied": "hops", "lacked": "hops", "counted": "hops", "relating": "hops"}
"""Labels that a head is compared with. The default is attributes."""
LONGEST_PATH = 3
"""Maximum hops of a path. The reader proposes no longer ones."""
IMPOSSIBLE = -1e4
"""Score of a masked option. It is finite, since the loss of infinite scores has no gradient."""
UNLIKELY = -8.0
"""Prior of a right plan if nothing was proposed."""


@dataclass(frozen=True)
class ReaderSettings:
    """Training settings of the reader.

    A step reads `together` batches, each over one schema. Hops have their descriptions with probability `described`.
    The number of plans to choose from is drawn from `options`. With probability `hidden` none of them is right.
    A share of `unlinked` questions is also read with one name unrecognised, for which no plan is right.
    `size` is for a randomly initialised encoder. None selects the published encoder.
    """

    epochs: int = 7
    choice_epochs: int = 3
    rate: float = 8e-5
    head_rate: float = 1e-3
    choice_rate: float = 1e-4
    batch: int = 32
    together: int = 4
    choice_batch: int = 48
    described: float = 0.7
    options: tuple[int, ...] = (4, 5, 6, 8)
    hidden: float = 0.06
    unlinked: float = 0.15
    folds: int = 3
    seed: int = 0
    size: networks.EncoderSize | None = None


@dataclass(frozen=True, eq=False)
class Tokenised:
    """A schema with its texts as tokens."""

    schema: SchemaExamples
    labels: dict[str, list[Ids]]
    texts: list[list[Ids]]
    """Token ids of each question's texts."""
    paths: list[dict[Hops, int]]
    """Paths from each type with their indices, shorter paths first."""
    steps: list[list[Any]]
    """For each type, one array of paths per length."""
    lessons: list[list[HeadTarget]]
    """Targets of each question."""

    @classmethod
    def of(cls, schema: SchemaExamples, tokens: Tokens) -> Tokenised:
        """Tokenise all texts of a schema."""
        known = schema.vocabulary
        texts = {"hops": known.hop_texts, "plain hops": schema.plain_hop_texts}
        texts |= {"attributes": known.attribute_texts, "types": known.type_texts}
        labels = {kind: tokens(some) for kind, some in texts.items()}
        paths = [_paths(schema, Proposer(known), kind) for kind in range(len(known.type_texts))]
        lengths = range(1, LONGEST_PATH + 1)
        steps = [
            [np.array([p for p in some if len(p) == n]).reshape(-1, n).astype(int) for n in lengths] for some in paths
        ]
        lessons = [schema.lessons(example) for example in schema.examples]
        return cls(schema, labels, [tokens(example.texts) for example in schema.examples], paths, steps, lessons)


def _paths(schema: SchemaExamples, proposer: Proposer, kind: int) -> dict[Hops, int]:
    """Return all one-hop paths, a sample of longer ones, and all right ones."""
    rng = random.Random(kind)

    def continued(paths: list[Hops], most: int) -> list[Hops]:
        every = [(*path, hop) for path in paths for hop in proposer.leaving.get(int(proposer.ends[path[-1]]), ())]
        return every if len(every) <= most else rng.sample(every, most)

    one: list[Hops] = [(hop,) for hop in proposer.leaving.get(kind, ())]
    two = continued(one, networks.TWO)
    right = [p for e in schema.examples for index, own in enumerate(e.types) if own == kind for p in _right(e, index)]
    every = dict.fromkeys([*one, *two, *continued(two, networks.THREE), *right])
    return {path: index for index, path in enumerate(sorted(every, key=len))}


def _right(example: Example, place: int) -> list[Hops]:
    return [path for path in example.hops(place) if len(path) <= LONGEST_PATH]


def word_tokens() -> Tokens:
    """Return a function that tokenises texts like the reader."""
    tokenizer = open_tokenizer(reading.LONGEST)
    return lambda texts: [found.ids for found in tokenizer.encode_batch(list(texts))]


@dataclass(frozen=True)
class PlanOption:
    """A proposed plan as text, with its prior and two word-overlap scores."""

    text: str
    known: tuple[float, float, float]
    is_right: bool


def propose(schema: SchemaExamples, encoders: Encoders) -> list[list[PlanOption]]:
    """Return the plans for each question that the reader would choose from, given the names."""
    known, found = schema.vocabulary, []
    scorer, proposer, wording = (
        QuestionScorer(known, encoders, Labels(known, encoders)),
        Proposer(known),
        Wording(known),
    )
    for one in schema.examples:
        scores = scorer.score(one.question, one.spans, one.types, one.quantities, one.categories)
        scores = replace(scores, denied=one.denied_categories)
        plans, right = proposer.propose(scores, PLANS), {normal(plan) for plan in one.plans}
        found.append([_option(one, wording.of(p.plan), p.score, normal(p.plan) in right) for p in plans])
    return found


def _option(example: Example, text: str, prior: float, is_right: bool) -> PlanOption:
    shared = shared_words(masked(example.question, example.spans), text)
    return PlanOption(text, (max(prior, reading.LEAST_PRIOR), *shared), is_right)


@dataclass(frozen=True)
class _Computed(Encoders):
    """Encoders with precomputed vectors."""

    vectors: dict[str, Floats] = field(default_factory=dict)
    matrices: dict[str, Floats] = field(default_factory=dict)

    @cached_property
    def heads(self) -> dict[str, Floats]:
        return self.matrices

    def meaning(self, texts: Sequence[str]) -> Floats:
        return np.stack([self.vectors[text] for text in texts]) if texts else super().meaning(texts)


@dataclass(frozen=True, eq=False)
class OptionRow:
    """A question and its options as tokens."""

    question: Ids
    texts: list[Ids]
    options: list[PlanOption]


def choice_rows(schema: SchemaExamples, proposals: Sequence[Sequence[PlanOption]], tokens: Tokens) -> list[OptionRow]:
    """Build the training rows of the choice. Add a missing right plan as the least likely option."""
    rows = []
    for example, proposed in zip(schema.examples, proposals, strict=True):
        options, plans = list(proposed), example.plans
        if plans and not any(option.is_right for option in options):
            least = min((option.known[0] for option in options), default=UNLIKELY)
            options.append(_option(example, Wording(schema.vocabulary).of(plans[0]), least, is_right=True))
        if options:
            texts = [ids[1:-1][: reading.LONGEST_OPTION] for ids in tokens([option.text for option in options])]
            rows.append(OptionRow(tokens([example.asked])[0][1:-1][: reading.LONGEST_QUESTION], texts, options))
    return rows


def with_unlinked(schema: SchemaExamples, share: float, seed: int) -> SchemaExamples:
    """Return the schema with further examples: a share of the questions with one of their names unrecognised."""
    rng, more = random.Random(f"{schema.name} {seed}"), []
    for example in schema.examples:
        used = {branch.mention for branch in example.plan.branches} | set(example.plan.mentions)
        names = [place for place in range(len(example.spans)) if place in used]
        if names and rng.random() < share:
            more.append(example.unlinked(rng.choice(names), lower=rng.random() < 0.5))
    return replace(schema, examples=(*schema.examples, *more))


@dataclass(frozen=True, eq=False)
class ReaderFitting(Descent):
    """Trains networks in sequence with the same settings."""

    settings: ReaderSettings

    @classmethod
    def open(cls, settings: ReaderSettings, say: Callable[[str], None]) -> ReaderFitting:
        """Create a trainer, on a GPU if available."""
        return cls.start(networks.open_torch(), settings.seed, say, settings=settings)

    # 1 Meaning

    def fit_meaning(self, schemas: Sequence[Tokenised]) -> tuple[Any, list[float]]:
        """Train the network. Return it with its loss per epoch."""
        settings = self.settings
        encoder = networks.start_encoder(self.torch, settings.size)
        network = networks.meaning_network(self.torch, encoder).to(self.device)
        heads = [part for name, part in network.named_parameters() if not name.startswith("encoder.")]
        groups = [{"params": network.encoder.parameters(), "lr": settings.rate}]
        groups.append({"params": heads, "lr": settings.head_rate})

        def batches() -> list[list[tuple[Tokenised, list[int]]]]:
            found = [
                (one, part) for one in schemas for part in self._parts(list(range(len(one.texts))), settings.batch)
            ]
            return self._parts(found, settings.together)

        return network, self._descend(network, groups, batches, self._meaning_loss, settings.epochs)

    def _parts(self, whole: list[Any], size: int) -> list[Any]:
        shuffled = self.rng.sample(whole, len(whole))
        return [shuffled[at : at + size] for at in range(0, len(shuffled), size)]

    def _descend(
        self, network: Any, groups: list[Any], batches: Callable[[], list[Any]], loss: Any, epochs: int
    ) -> list[float]:
        torch, rates, means = self.torch, [group["lr"] for group in groups], []
        optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
        steps = max(20, epochs * len(batches()) + 2)  # the schedule fails with few steps
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=steps, pct_start=0.1)
        network.train()
        for epoch in range(epochs):
            losses = []
            for batch in batches():
                optimizer.zero_grad(set_to_none=True)
                found = loss(network, batch)
                found.backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                losses.append(found.detach())
            means.append(float(torch.stack(losses).mean()))
            self.say(f"{type(network).__name__}: epoch {epoch + 1} of {epochs}, loss {means[-1]:.3f}")
        network.eval()
        return means

    def _meaning_loss(self, network: Any, batch: Sequence[tuple[Tokenised, list[int]]]) -> Any:
        hops = "hops" if self.rng.random() < self.settings.described else "plain hops"
        parts, total = [], 0
        for one, chosen in batch:
            parts += [one.labels[hops], one.labels["attributes"], one.labels["types"]]
            parts.append([ids for place in chosen for ids in one.texts[place]])
        vectors = self._meanings(network, [ids for part in parts for ids in part])
        cuts = iter(self.torch.split(vectors, [len(part) for part in parts]))
        for one, chosen in batch:
            kinds = ("hops", "attributes", "types")
            labels = {kind: self.torch.nn.functional.normalize(next(cuts), dim=-1) for kind in kinds}
            lengths, said = [len(one.texts[place]) for place in chosen], next(cuts)
            starts = dict(zip(chosen, np.cumsum([0, *lengths[:-1]]).tolist(), strict=True))
            texts = [ids for place in chosen for ids in one.texts[place]]
            total = total + self._lessons_loss(network, one, starts, said, labels, texts)
            total = total + self._paths_loss(network, one, starts, said, labels["hops"])
        return total / (self.settings.batch * self.settings.together)  # equal weight for every question in every step

    def _meanings(self, network: Any, texts: Sequence[Ids], parts: int = 4) -> Any:
        """Return the vectors of texts. Texts of similar length are read together."""
        order = np.argsort([len(ids) for ids in texts], kind="stable")
        some = [[texts[at] for at in part] for part in np.array_split(order, parts) if len(part)]
        with self.halved():
            found = [network(self.padded(part)) for part in some]
        return self.torch.cat(found).index_select(0, self.tensor(np.argsort(order)))

    def _lessons_loss(
        self,
        network: Any,
        one: Tokenised,
        starts: dict[int, int],
        said: Any,
        labels: dict[str, Any],
        texts: Sequence[Ids],
    ) -> Any:
        torch, lessons, total = self.torch, defaultdict(list), 0
        for place, start in starts.items():
            for lesson in one.lessons[place]:
                lessons[lesson.head].append((start + lesson.text, lesson.right, lesson.allowed))
        for head, targets in lessons.items():
            rows, right, allowed = zip(*targets, strict=True)
            own = said.index_select(0, self.tensor(rows))
            if head in SKETCHED:
                scores = network.classes[head](network.sketched(own, [texts[row] for row in rows]))
            elif head in network.classes:
                scores = network.classes[head](own)
            else:
                scores = network.turned(own, (head,))[0] @ labels[LABELS.get(head, "attributes")].T
            if head == "quantity":
                scores = torch.cat((scores, network.turned(own, ("counted quantity",))[0] @ labels["hops"].T), 1)
            if head == "switch":
                scores = torch.cat((network.no_switch.expand(len(rows), 1), scores), 1)
            if allowed[0]:
                scores = scores.masked_fill(~self.tensor(allowed), IMPOSSIBLE)
            loss = torch.nn.functional.cross_entropy(scores, self.tensor(right), reduction="sum")
            total = total + WEIGHTS[head] * loss
        return total

    def _paths_loss(self, network: Any, one: Tokenised, starts: dict[int, int], said: Any, hops: Any) -> Any:
        by_type: dict[int, list[tuple[int, list[int]]]] = defaultdict(list)
        total = 0
        for place, start in starts.items():
            example = one.schema.examples[place]
            for at, kind in enumerate(example.types):
                right = [one.paths[kind][path] for path in _right(example, at)]
                if right:
                    by_type[kind].append((start + 1 + at, right))
        for kind, targets in by_type.items():
            own = said.index_select(0, self.tensor([row for row, _ in targets]))
            scores = network.turned(own, HEADS[:6]) @ hops.T
            heads, every = iter(scores), []
            for length, steps in enumerate(one.steps[kind]):
                added = [next(heads).index_select(1, self.tensor(steps[:, at])) for at in range(length + 1)]
                every.append(sum(added) + network.lengths[length])
            likely = self.torch.cat(every, 1).log_softmax(1)
            each = [(row, place, 1 / len(right)) for row, (_, right) in enumerate(targets) for place in right]
            rows, places, shares = (self.tensor(column) for column in zip(*each, strict=True))
            total = total - (likely[rows, places] * shares).sum()
        return total

    # 2 Proposals

    def proposals(self, schemas: Schemas, tokens: Tokens) -> dict[str, list[list[PlanOption]]]:
        """Return the proposals for each schema from a network trained on the other folds."""
        found: dict[str, list[list[PlanOption]]] = {}
        for fold in range(self.settings.folds):
            rest, own = split(schemas, fold, self.settings.folds, self.settings.seed)
            own = [with_unlinked(one, self.settings.unlinked, self.settings.seed) for one in own]
            if own:
                self.say(f"proposals for {len(own)} schemas by an encoder trained on {len(rest)} others")
                network, _ = self.fit_meaning([Tokenised.of(one, tokens) for one in rest])
                found |= {one.name: propose(one, self._computed(network, one, tokens)) for one in own}
        return found

    def _computed(self, network: Any, schema: SchemaExamples, tokens: Tokens, batch: int = 512) -> Encoders:
        known = schema.vocabulary
        asked = [text for example in schema.examples for text in example.texts]
        texts = list(dict.fromkeys([*known.hop_texts, *known.attribute_texts, *known.type_texts, *asked]))
        ids = tokens(texts)
        with self.torch.inference_mode():
            parts = [self._meanings(network, ids[at : at + batch]).cpu().numpy() for at in range(0, len(ids), batch)]
        vectors = dict(zip(texts, np.concatenate(parts), strict=True))
        return _Computed(vectors=vectors, matrices=networks.meaning_heads(network))

    # 3 Choice

    def fit_choice(self, encoder: Any, rows: list[OptionRow]) -> tuple[Any, list[float]]:
        """Train the network from `encoder`. Return it with its loss per epoch."""
        settings = self.settings
        network = networks.choice_network(self.torch, encoder).to(self.device)
        groups = [{"params": network.parameters(), "lr": settings.choice_rate}]

        batches = partial(self._parts, rows, settings.choice_batch)
        return network, self._descend(network, groups, batches, self._choice_loss, settings.choice_epochs)

    def _choice_loss(self, network: Any, batch: Sequence[OptionRow]) -> Any:
        pairs, types, known, where, tops, right = [], [], [], [], [], []
        for at, row in enumerate(batch):
            kept, first = self._drawn(row), [FIRST_TOKEN, *row.question, LAST_TOKEN]
            for place, option in enumerate(kept, 1):
                pairs.append([*first, *row.texts[option], LAST_TOKEN])
                types.append([*[0] * len(first), *[1] * (len(row.texts[option]) + 1)])
                known.append(row.options[option].known)
                where.append((at, place))
            tops.append(max(row.options[option].known[0] for option in kept))
            right.append(next((place for place, option in enumerate(kept, 1) if row.options[option].is_right), 0))
        with self.halved():
            read = network(self.padded(pairs), self.padded(types))
        read = read + self.tensor(known) @ network.known
        none = network.none[0] + network.none[1] * self.tensor(tops)
        scores = self.torch.full((len(batch), 1 + max(self.settings.options)), IMPOSSIBLE, device=self.device)
        scores = scores.index_put(tuple(self.tensor(where).T), read)
        scores = self.torch.cat((none[:, None], scores[:, 1:]), 1)
        return self.torch.nn.functional.cross_entropy(scores, self.tensor(right))

    def _drawn(self, row: OptionRow) -> list[int]:
        """Draw the most likely wrong options and usually a right one, in random order."""
        is_right = [option.is_right for option in row.options]
        kept = [index for index, right in enumerate(is_right) if not right][
            : self.rng.choice(self.settings.options) - 1
        ]
        if any(is_right) and (not kept or self.rng.random() > self.settings.hidden):
            kept.append(is_right.index(True))
        return self.rng.sample(kept, len(kept))


def split(schemas: Schemas, fold: int, folds: int, seed: int) -> tuple[Schemas, Schemas]:
    """Return the schemas of the other folds, and of this fold."""
    own = names_of_fold((one.name for one in schemas), fold, folds, seed)
    return [one for one in schemas if one.name not in own], [one for one in schemas if one.name in own]


def measure(schemas: Schemas, encoders: Encoders) -> dict[str, float]:
    """Measure how often a reader with these encoders is right, given the names, and detects unanswerable questions."""
    shares = defaultdict(list)
    for schema in schemas:
        for example, options in zip(schema.examples, propose(schema, encoders), strict=True):
            is_right = [option.is_right for option in options]
            texts, known = [option.text for option in options], [option.known for option in options]
            priors, shared = [prior for prior, _, _ in known], [(names, more) for _, names, more in known]
            scores = encoders.choose([example.asked] * len(texts), texts, priors, shared, BUDGET)
            if example.plan.form == "none":
                shares["none"].append(int(np.argmax(scores)) == 0)
                continue
            shares["right"].append(bool(options) and is_right[int(np.argmax(scores[1:]))])
            shares["first"].append(bool(options) and is_right[0])
            shares["proposed"].append(any(is_right))
    return {name: float(np.mean(every)) for name, every in shares.items()} | {"questions": len(shares["right"])}


def fit_reader(
    schemas: Schemas, out: Path, settings: ReaderSettings, card: dict[str, Any], say: Callable[[str], None]
) -> dict[str, float]:
    """Train on all schemas and write the weights. Return the losses of the first and last epoch."""
    if len(schemas) < 2:
        raise InputError(f"training needs at least 2 schemas, not {len(schemas)}: add sources")
    fitting, tokens = ReaderFitting.open(settings, say), word_tokens()
    proposals = fitting.proposals(schemas, tokens)
    read = [with_unlinked(one, settings.unlinked, settings.seed) for one in schemas]
    rows = [row for one in read for row in choice_rows(one, proposals[one.name], tokens)]
    meaning, losses = fitting.fit_meaning([Tokenised.of(one, tokens) for one in schemas])
    choice, its = fitting.fit_choice(copy.deepcopy(meaning.encoder), rows)
    heads = networks.meaning_heads(meaning) | networks.choice_heads(choice)
    heads["pairs"] = heads["pairs"].astype(np.float16)
    pooled, states = {"meaning.onnx": meaning.encoder}, {"choice.onnx": choice.encoder}
    export_network(fitting.torch, out, card, pooled=pooled, states=states, heads=heads)
    return {"first_loss": losses[0], "loss": losses[-1], "first_choice_loss": its[0], "choice_loss": its[-1]}


def train_reader(
    sources: Sequence[Path],
    out: Path,
    *,
    left_out: str | None = None,
    epochs: int = 7,
    seed: int = 0,
    say: Callable[[str], None] = print,
) -> dict[str, float]:
    """Train on all schemas except those left out, and measure on these.

    `left_out` is a fold such as "0/3", or prefixes of schema names such as "j_,k_".
    """
    settings, schemas = ReaderSettings(epochs=epochs, seed=seed), read_sources(sources)
    left: Schemas = []
    if left_out is not None and "/" in left_out:
        schemas, left = split(schemas, *parse_fold(left_out), seed)
    elif left_out is not None:
        starts = tuple(left_out.split(","))
        left = [one for one in schemas if one.name.startswith(starts)]
        schemas = [one for one in schemas if not one.name.startswith(starts)]
    card: dict[str, Any] = {
        "start": networks.start_card(),
        "sources": [str(source) for source in sources],
        "questions": {one.name: len(one.examples) for one in schemas},
        "left_out": left_out,
        "seed": seed,
        "settings": asdict(settings),
    }
    figures = fit_reader(schemas, out, settings, card, say)
    if left:
        figures |= measure(left, Encoders(out))
        add_figures(out, figures)
    return figures
