"""Train the network that chooses among the plans for a question.

The encoder of passages learns to tell the right plan from likely wrong ones. It sees neither the earlier scores of the
plans nor the words that they share with the question: how much these count is fitted on other schemas. It also learns
the scores of a larger encoder that was trained on the same questions before, the teacher, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from clew.answering.reading import encoders as reading
from clew.answering.reading.encoders import Encoders
from clew.answering.reading.plan import Plan, Wording
from clew.answering.reading.proposals import Proposer
from clew.answering.reading.quantities import quantities
from clew.answering.reading.reader import CHOSEN_AMONG, MOST_NUMBERS, PLANS
from clew.answering.reading.scoring import Labels, QuestionScorer, TypedSpan, masked, shared_words
from clew.answering.reading.vocabulary import Vocabulary
from clew.lab.datasets.files import find_file, read_records
from clew.lab.training import networks
from clew.lab.training.gradient import Descent, Ids
from clew.lab.training.reader.examples import Example, SchemaExamples, normal
from clew.models.embedding.onnx import FIRST_TOKEN, LAST_TOKEN
from clew.models.passages import SHIPPED as PASSAGES

Tokens = Callable[[Sequence[str]], list[Ids]]
ANSWERED, VOCABULARIES = "options.jsonl", "vocabularies.jsonl"
"""Files of questions whose proposed plans were executed, and of their vocabularies. They may be gzipped."""
UNLIKELY = -8.0
"""Prior of a right plan if nothing was proposed."""
IMPOSSIBLE = -1e4
"""Score of a masked option. It is finite, since the loss of infinite scores has no gradient."""


@dataclass(frozen=True)
class PlanOption:
    """A proposed plan as text, with its prior and two word-overlap scores."""

    text: str
    known: tuple[float, float, float]
    is_right: bool


def propose(schema: SchemaExamples, encoders: Encoders) -> list[list[PlanOption]]:
    """Return the plans for each question that the reader would choose from, given the names."""
    known, found = schema.vocabulary, []
    scorer = QuestionScorer(known, encoders, Labels(known, encoders))
    proposer, wording = Proposer(known), Wording(known)
    for one in schema.examples:
        scores = scorer.score(one.question, one.spans, one.types, one.quantities, one.categories)
        scores = replace(scores, denied=one.denied_categories, parts=one.parts)
        plans, right = proposer.propose(scores, PLANS), {normal(plan) for plan in one.plans}
        found.append([_option(one, wording.of(p.plan), p.score, normal(p.plan) in right) for p in plans])
    return found


def _option(example: Example, text: str, prior: float, is_right: bool) -> PlanOption:
    shared = shared_words(masked(example.question, example.spans), text)
    return PlanOption(text, (max(prior, reading.LEAST_PRIOR), *shared), is_right)


@dataclass(frozen=True, eq=False)
class OptionRow:
    """A question and its options as tokens."""

    questions: list[Ids]
    """The question as it is read with each option."""
    texts: list[Ids]
    options: list[PlanOption]

    @classmethod
    def of(cls, asked: Sequence[str], options: list[PlanOption], tokens: Tokens) -> OptionRow:
        """Tokenise the texts."""
        questions = [ids[1:-1][: reading.LONGEST_QUESTION] for ids in tokens(asked)]
        texts = [ids[1:-1][: reading.LONGEST_OPTION] for ids in tokens([option.text for option in options])]
        return cls(questions, texts, options)


class OptionRecord(BaseModel):
    """A plan that the reader proposed for a question over a base."""

    asked: str
    text: str
    prior: float
    shared: tuple[float, float]
    is_right: bool


class AnsweredQuestion(BaseModel):
    """A question with its proposed plans. Executing them has shown which one gives the answer."""

    owner: str = Field(alias="schema")
    question: str
    names: list[tuple[int, int, str]]
    """Start, end and type of each name."""
    plan: Plan | None
    options: list[OptionRecord]

    def row(self, tokens: Tokens) -> OptionRow:
        """Return the question as a training row."""
        options = [PlanOption(one.text, (one.prior, *one.shared), one.is_right) for one in self.options]
        return OptionRow.of([one.asked for one in self.options], options, tokens)

    def example(self, vocabulary: Vocabulary) -> Example | None:
        """Return the question with its plan as an example. None without a plan."""
        if self.plan is None:
            return None
        spans = tuple(TypedSpan(start, end, vocabulary.type_words(kind)) for start, end, kind in self.names)
        types = tuple(vocabulary.schema.type_code[kind] for _, _, kind in self.names)
        outside = [
            one for one in quantities(self.question) if not any(one.start < s.end and s.start < one.end for s in spans)
        ]
        return Example(self.question, spans, types, tuple(outside[:MOST_NUMBERS]), self.plan)


class VocabularyRecord(BaseModel):
    """The vocabulary of a base with answered questions."""

    owner: str = Field(alias="schema")
    vocabulary: Vocabulary


def has_answered(source: Path) -> bool:
    """Return whether a folder has answered questions instead of questions with queries."""
    return any((source / name).is_file() for name in (ANSWERED, f"{ANSWERED}.gz"))


def read_answered(sources: Sequence[Path]) -> list[AnsweredQuestion]:
    """Read the answered questions of the folders that have some."""
    files = [find_file(source / ANSWERED) for source in sources if has_answered(source)]
    return [one for file in files for one in read_records(file, AnsweredQuestion)]


def answered_schemas(sources: Sequence[Path], asked: Sequence[AnsweredQuestion]) -> list[SchemaExamples]:
    """Return the vocabularies of the answered questions, with the questions that have a plan."""
    examples: dict[str, list[Example]] = {}
    files = [find_file(source / VOCABULARIES) for source in sources if has_answered(source)]
    known = {one.owner: one.vocabulary for file in files for one in read_records(file, VocabularyRecord)}
    for one in asked:
        if (example := one.example(known[one.owner])) is not None:
            examples.setdefault(one.owner, []).append(example)
    return [SchemaExamples(name, known[name], tuple(own)) for name, own in examples.items()]


def choice_rows(schema: SchemaExamples, proposals: Sequence[Sequence[PlanOption]], tokens: Tokens) -> list[OptionRow]:
    """Build the training rows of the choice. Add a missing right plan as the least likely option."""
    rows = []
    for example, proposed in zip(schema.examples, proposals, strict=True):
        options, plans = list(proposed), example.plans
        if plans and not any(option.is_right for option in options):
            least = min((option.known[0] for option in options), default=UNLIKELY)
            options.append(_option(example, Wording(schema.vocabulary).of(plans[0]), least, is_right=True))
        if options:
            rows.append(OptionRow.of([example.asked] * len(options), options, tokens))
    return rows


@dataclass(frozen=True)
class ChoiceSettings:
    """Training settings of the choice.

    A question is read with `options` plans: the right one and some of the `top` wrong ones. With probability `hidden`
    none is right. The scores of the teacher, divided by `softness`, are a share `taught` of the loss.
    """

    epochs: int = 10
    rate: float = 1.6e-4
    batch: int = 128
    options: int = 8
    top: int = 15
    hidden: float = 0.12
    teacher: str | None = None
    teacher_epochs: int = 4
    teacher_rate: float = 4e-5
    taught: float = 0.8
    softness: float = 2.0


@dataclass(frozen=True, eq=False)
class ChoiceFitting(Descent):
    """Trains the choice."""

    settings: ChoiceSettings

    def fit(self, rows: Sequence[OptionRow], size: networks.EncoderSize | None) -> tuple[Any, list[float]]:
        """Train the network. Return it with its loss per epoch. `size` is for a randomly initialised encoder."""
        torch, own = self.torch, self.settings
        if size is None:
            encoder = networks.exported_encoder(torch, PASSAGES / "encoder.onnx")
        else:
            encoder = networks.start_encoder(torch, size)
        network, teacher = networks.choice_network(torch, encoder).to(self.device), None

        def descend(learner: Any, epochs: int, rate: float) -> list[float]:
            def loss(batch: Sequence[int]) -> Any:
                return self._loss(learner, [rows[index] for index in batch], teacher)

            return self.descend(learner, len(rows), (own.batch, own.batch), loss, epochs, rate)

        if own.teacher is not None:
            larger = networks.teacher_encoder(torch, Path(own.teacher))
            learner = networks.choice_network(torch, larger, larger.width).to(self.device)
            descend(learner, own.teacher_epochs, own.teacher_rate)
            teacher = learner
        return network, descend(network, own.epochs, own.rate)

    def _loss(self, network: Any, batch: Sequence[OptionRow], teacher: Any) -> Any:
        settings, nn = self.settings, self.torch.nn.functional
        drawn = [self._drawn(row) for row in batch]
        scores = self._scores(network, batch, drawn)
        right = [int(row.options[kept[0]].is_right) for row, kept in zip(batch, drawn, strict=True)]
        loss = nn.cross_entropy(scores, self.tensor(right))
        if teacher is None:
            return loss
        with self.torch.no_grad():
            told = nn.softmax(self._scores(teacher, batch, drawn) / settings.softness, 1)
        apart = nn.kl_div(nn.log_softmax(scores / settings.softness, 1), told, reduction="batchmean")
        return (1 - settings.taught) * loss + settings.taught * settings.softness**2 * apart

    def _scores(self, network: Any, batch: Sequence[OptionRow], drawn: Sequence[Sequence[int]]) -> Any:
        """Return the score of no option, then those of the drawn options, one row per question."""
        read = self._read(network, batch, drawn, self.settings.options)
        return self.torch.cat((network.none.expand(len(batch), 1), read), 1)

    def _read(self, network: Any, rows: Sequence[OptionRow], chosen: Sequence[Sequence[int]], width: int) -> Any:
        """Return the scores of the chosen options, one row per question."""
        pairs, types, where = [], [], []
        for at, (row, kept) in enumerate(zip(rows, chosen, strict=True)):
            for place, option in enumerate(kept):
                first = [FIRST_TOKEN, *row.questions[option], LAST_TOKEN]
                pairs.append([*first, *row.texts[option], LAST_TOKEN])
                types.append([*[0] * len(first), *[1] * (len(row.texts[option]) + 1)])
                where.append((at, place))
        with self.halved():
            read = network(self.padded(pairs), self.padded(types))
        scores = self.torch.full((len(rows), width), IMPOSSIBLE, device=self.device)
        return scores.index_put(tuple(self.tensor(where).T), read)

    def _drawn(self, row: OptionRow) -> list[int]:
        """Draw wrong options, half of them the most likely ones, and usually put a right one before them."""
        settings, right = self.settings, [index for index, option in enumerate(row.options) if option.is_right]
        wrong = [index for index in range(len(row.options)) if index not in right][: settings.top]
        kept = right[:1] if right and (not wrong or self.rng.random() > settings.hidden) else []
        room = settings.options - len(kept)
        if len(wrong) > room:
            wrong = wrong[: room // 2] + self.rng.sample(wrong[room // 2 :], room - room // 2)
        return kept + wrong

    def combine(self, network: Any, rows: Sequence[OptionRow]) -> list[float]:
        """Fit the weights of the read score, the prior and the two overlaps, then the score of no option.

        The score of no option is a constant plus a multiple of the highest prior.
        """
        torch, among = self.torch, range(CHOSEN_AMONG)
        known, right, read = [], [], []
        with torch.inference_mode():
            for at in range(0, len(rows), 64):
                part = rows[at : at + 64]
                read.append(self._read(network, part, [among[: len(row.options)] for row in part], CHOSEN_AMONG))
        for row in rows:
            own = row.options[:CHOSEN_AMONG]
            known.append([option.known for option in own] + [(0.0, 0.0, 0.0)] * (CHOSEN_AMONG - len(own)))
            right.append(next((place for place, option in enumerate(own, 1) if option.is_right), 0))
        told, truth = self.tensor(known).float(), self.tensor(right)
        features = torch.cat((torch.cat(read).clone()[..., None], told), 2)
        tops = self.tensor([max(option.known[0] for option in row.options) for row in rows]).float()
        weights = torch.tensor(networks.COMBINATION, device=self.device, requires_grad=True)
        optimizer = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

        def loss() -> Any:
            optimizer.zero_grad()
            none = weights[4] + weights[5] * tops
            scores = torch.cat((none[:, None], features @ weights[:4]), 1)
            found = torch.nn.functional.cross_entropy(scores, truth) + 1e-4 * weights.square().sum()
            found.backward()
            return found

        optimizer.step(loss)
        return [float(weight) for weight in weights.detach()]
