"""Turn requirements into a question, with a grammar or with a model in a role."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from pydantic import BaseModel

from clew.answering.roles.score import read_yes_no
from clew.core import trace
from clew.core.errors import ReplyError
from clew.core.schema import Schema
from clew.lab.synthesis.grammar import relational_question
from clew.lab.synthesis.requirement import GraphRequirement
from clew.lab.synthesis.textual import TextualRequirement
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, Outcome, Prompt, ask, object_schema, read_json
from clew.store.index.protocol import Names
from clew.store.index.tokens import normalise

INSTRUCTIONS = {
    "user": "The question is plain and to the point.",
    "doctor": "Doctors ask directly and practically, about signs, complications, side effects and treatment.",
    "medical scientist": "Medical scientists ask precisely, about causes, genes, pathways and mechanisms.",
    "patient": "Patients avoid technical terms, tell a little of their situation and say what they feel.",
    "customer": "Customers say what they need the thing for and what it should be like.",
    "researcher": "Researchers name topics, methods and findings.",
}


def instruction(role: str) -> str:
    """Return a sentence about how a role speaks. Empty for unknown roles."""
    return INSTRUCTIONS.get(role, "")


How = Literal["grammar", "model draft", "model rewrite"]
DEFAULT_ROLE = "user"


def seeded(seed: int, slot: int, step: str) -> random.Random:
    """Return a reproducible random generator for one step of one question."""
    return random.Random(f"{seed}|{slot}|{step}")


@dataclass(frozen=True)
class QuestionDraft:
    """A question in progress: graph requirement, gold node and role."""

    slot: int
    requirement: GraphRequirement
    gold: int
    role: str
    with_text: bool
    seed: int

    def rng(self, step: str) -> random.Random:
        """Return the random generator of one step."""
        return seeded(self.seed, self.slot, step)


@dataclass(frozen=True, slots=True)
class WordedQuestion:
    """A question, how it was worded, and its relational requirement in plain words."""

    question: str
    how: How
    relational: str
    draft: str | None = None
    """The result of the first stage."""
    problem: str | None = None
    """Why the model's wording was rejected."""
    used: tuple[int, ...] | None = None
    """Indices of the textual properties in the question. None means all."""


@dataclass(frozen=True)
class GrammarFuser:
    """Words questions with `clew.lab.synthesis.grammar`."""

    schema: Schema
    name: str = "grammar 1"
    chooses: bool = False
    """Whether the fuser selects the properties, so that only these are judged."""

    def fuse(self, drafts: Sequence[QuestionDraft], texts: Sequence[TextualRequirement | None]) -> list[WordedQuestion]:
        """Return one wording per draft, in the same order."""
        return [self._one(draft, text) for draft, text in zip(drafts, texts, strict=True)]

    def _one(self, draft: QuestionDraft, text: TextualRequirement | None) -> WordedQuestion:
        template = draft.requirement.template
        names = {label: ref.name for label, ref in draft.requirement.entities.items()}
        relational = relational_question(template, names, self.schema, draft.rng("fusion"))
        if text is None:
            return WordedQuestion(_as_role(relational, draft), "grammar", relational)
        phrases = [one.text for one in text.properties]
        question = relational_question(template, names, self.schema, draft.rng("fusion"), phrases)
        return WordedQuestion(_as_role(question, draft), "grammar", relational)


def _as_role(question: str, draft: QuestionDraft) -> str:
    """Prefix some questions with the asker's role."""
    if draft.role == DEFAULT_ROLE or draft.rng("role").random() > 0.3:
        return question
    return f"I am a {draft.role}. {question}"


DRAFT, DRAFT_PRODUCT, REWRITE, SURVIVED = (
    Prompt.load("clew.lab.synthesis.prompts", name) for name in ("draft", "draft_product", "rewrite", "survived")
)
LONGEST = 600
"""Maximum length of a question, in characters."""
SCHEMA = object_schema({"question": {"type": "string"}})
PRODUCT_SCHEMA = object_schema(
    {"index": {"type": "array", "items": {"type": "integer"}}, "question": {"type": "string"}}
)


class _Reply(BaseModel):
    question: str


class _ProductReply(_Reply):
    index: list[int]


@dataclass(frozen=True)
class ModelFuser:
    """Drafts, rewrites and checks questions, starting from the grammar's wording."""

    schema: Schema
    names: Names
    writer: LanguageModel
    rewriter: LanguageModel
    trusting: bool = False
    """Whether to skip rule-based checks. Only for estimates."""

    chooses: bool = False

    @property
    def name(self) -> str:
        """Description with the models' names."""
        return f"drafted by {self.writer.name}, rewritten by {self.rewriter.name}"

    def fuse(self, drafts: Sequence[QuestionDraft], texts: Sequence[TextualRequirement | None]) -> list[WordedQuestion]:
        """Return one wording per draft, in the same order."""
        plain = GrammarFuser(self.schema).fuse([replace(draft, role="user") for draft in drafts], texts)
        tasks = [_Task(*row) for row in zip(drafts, texts, plain, strict=True)]
        drafted = ask(self.writer, [self._draft(task) for task in tasks], role="draft")
        tasks = [  # without a draft, use the grammar's wording with all properties
            task if outcome.value is None else replace(task, used=outcome.value.used)
            for task, outcome in zip(tasks, drafted, strict=True)
        ]
        first = [Outcome(None if one.value is None else one.value.question, one.problem) for one in drafted]
        second = self._rewritten(tasks, first)
        stages: dict[How, list[Outcome[str]]] = {"model rewrite": second, "model draft": first}
        wordings = [
            (place, how, text)
            for how, outcomes in stages.items()
            for place, outcome in enumerate(outcomes)
            if (text := outcome.value) is not None
        ]
        fit = [row for row in wordings if self.trusting or self._problem(tasks[row[0]], row[2]) is None]
        asks = [self._survives(tasks[place], text) for place, _, text in fit]
        said = ask(self.rewriter, asks, role="check")
        chosen: dict[int, WordedQuestion] = {}
        for (place, how, text), outcome in zip(fit, said, strict=True):
            if (outcome.value or 0.0) >= 0.5 and place not in chosen:
                used = tasks[place].used
                chosen[place] = WordedQuestion(text, how, plain[place].relational, first[place].value, used=used)
        return [chosen.get(place) or self._fallen_back(tasks[place], first[place]) for place in range(len(tasks))]

    def _rewritten(self, tasks: Sequence[_Task], first: Sequence[Outcome[str]]) -> list[Outcome[str]]:
        written = [place for place, outcome in enumerate(first) if outcome.value is not None]
        asks = [self._rewrite(tasks[place], first[place].value or "") for place in written]
        found: list[Outcome[str]] = [Outcome(None, "there was no draft")] * len(tasks)
        for place, outcome in zip(written, ask(self.rewriter, asks, role="rewrite"), strict=True):
            found[place] = outcome
        return found

    def _fallen_back(self, task: _Task, first: Outcome[str]) -> WordedQuestion:
        text = first.value
        problem = first.problem or (self._problem(task, text) if text else None) or "a requirement was lost"
        trace.fallback("fuse", problem, "the wording of the grammar")
        return replace(task.plain, problem=problem, draft=text)

    def _problem(self, task: _Task, question: str) -> str | None:
        """Return the problem if an entity is missing or was invented, otherwise None."""
        said = f" {normalise(question)} "
        for name in task.names:
            if f" {normalise(name)} " not in said:
                return f"{name!r} was lost"
        known = normalise(f"{task.plain.question} {task.requirements}")
        for mention in self.names.mentions(question, fuzzy=False):
            folded = normalise(mention.text)
            if " " in folded and folded not in known:
                return f"{mention.text!r} was invented"
        return None

    def _draft(self, task: _Task) -> Ask[_Drafted]:
        filled = DRAFT.fill(
            role=task.draft.role,
            type=self._type(task),
            instruction=instruction(task.draft.role),
            requirements=task.requirements,
            names=task.listed_names,
        )
        return Ask(filled, _read_draft, schema=SCHEMA, max_tokens=250, temperature=0.7, seed=task.draft.slot)

    def _rewrite(self, task: _Task, question: str) -> Ask[str]:
        filled = REWRITE.fill(role=task.draft.role, type=self._type(task), question=question, names=task.listed_names)
        return Ask(filled, _read, schema=SCHEMA, max_tokens=250, temperature=0.7, seed=task.draft.slot)

    def _survives(self, task: _Task, question: str) -> Ask[float]:
        filled = SURVIVED.fill(question=question, requirements=task.requirements)
        return Ask(filled, read_yes_no, max_tokens=4)

    def _type(self, task: _Task) -> str:
        return self.schema.node_type(task.draft.requirement.template.target).label


@dataclass(frozen=True)
class ProductFuser(ModelFuser):
    """STaRK-AMAZON's fusion: the model omits requirements that reviews contradict and reports those it used."""

    chooses: bool = True

    def _draft(self, task: _Task) -> Ask[_Drafted]:
        text = task.text
        if text is None:
            return super()._draft(task)
        stated = [one.text for one in text.properties]
        numbered = [*stated, f"goes with what this asks for: {task.plain.relational}"]
        filled = DRAFT_PRODUCT.fill(
            item=text.item or self._type(task),
            requirements="\n".join(f"{number}. {one}" for number, one in enumerate(numbered, 1)),
            negative="\n".join(f"- {one}" for one in text.negative) or "- nothing",
            role=task.draft.role,
            instruction=instruction(task.draft.role),
            relational=str(len(numbered)),
            names=task.listed_names,
        )
        read = partial(_read_product, count=len(stated))
        return Ask(filled, read, schema=PRODUCT_SCHEMA, max_tokens=300, temperature=0.7, seed=task.draft.slot)


Fuser = GrammarFuser | ModelFuser


@dataclass(frozen=True)
class _Drafted:
    question: str
    used: tuple[int, ...] | None = None


@dataclass(frozen=True)
class _Task:
    draft: QuestionDraft
    text: TextualRequirement | None
    plain: WordedQuestion
    used: tuple[int, ...] | None = None

    @property
    def names(self) -> list[str]:
        return [ref.name for ref in self.draft.requirement.entities.values()]

    @property
    def listed_names(self) -> str:
        return ", ".join(f"“{name}”" for name in self.names)

    @property
    def requirements(self) -> str:
        text = self.text if self.text is None or self.used is None else self.text.using(self.used)
        properties = () if text is None else text.properties
        return "\n".join([f"- {self.plain.relational}", *(f"- its text says: {one.text}" for one in properties)])


def _read_draft(completion: Completion) -> _Drafted:
    return _Drafted(_read(completion))


def _read_product(completion: Completion, count: int) -> _Drafted:
    """Parse a draft. `index` numbers the textual requirements from 1, then the required relational one."""
    index = set(read_json(completion.text, _ProductReply).index)
    used = tuple(sorted(number - 1 for number in index if 1 <= number <= count))
    if count + 1 not in index or not used:
        raise ReplyError(f"expected number {count + 1} and at least one other number in `index`")
    return _Drafted(_read(completion), used)


def _read(completion: Completion) -> str:
    question = " ".join(read_json(completion.text, _Reply).question.split())
    if not question or len(question) > LONGEST:
        raise ReplyError(f"expected one question of at most {LONGEST} characters")
    return question
