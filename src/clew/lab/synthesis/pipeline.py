"""Generate a benchmark from any knowledge base in STaRK's four steps (Wu et al. 2024, §3.3).

1 sample a relational requirement   a template with entities, and every node that satisfies it
2 extract textual properties        from the text of one of these nodes, the gold node
3 fuse both into a question         with a grammar, or with a model in two stages
4 filter the other candidates       with judges that must all agree; the gold node must pass, too

Each run repeats step 1, which is deterministic for a seed. The log stores the results of steps 2 to 4.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from clew.core import trace
from clew.core.errors import InputError, PendingError
from clew.core.version import __version__
from clew.lab.synthesis.extraction import Extractor
from clew.lab.synthesis.fusion import DEFAULT_ROLE, Fuser, QuestionDraft, WordedQuestion, seeded
from clew.lab.synthesis.judging import Judge, Verdict, unanimous
from clew.lab.synthesis.output import ProgressLog
from clew.lab.synthesis.records import leaks, names_of, rejection, row_of
from clew.lab.synthesis.requirement import Sampler
from clew.lab.synthesis.templates import Kind, Template
from clew.lab.synthesis.textual import TextualRequirement, fields
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.index.tokens import normalise

CHUNK = 16
"""Number of questions that go through steps 2 to 4 together."""
TEXT_SHARE = 0.5
"""Share of the questions about types with texts that get a textual requirement, besides the kind `textual`."""
MOST_ANSWERS = 20
"""Maximum number of answers to a question."""
ROUNDS = 8
"""Maximum number of rounds that replace rejected questions."""
Result = Mapping[str, Any]


@dataclass(frozen=True)
class SynthesisPlan:
    """Number of questions, templates and roles."""

    count: int
    templates: Mapping[Kind, Sequence[Template]]
    with_text: frozenset[str] = frozenset()
    """Types whose questions may have a textual requirement."""
    roles: tuple[str, ...] = (DEFAULT_ROLE,)
    seed: int = 0
    spare: float = 0.1
    """Share of additional questions in the first round."""

    @property
    def first_round(self) -> int:
        """Number of questions in the first round."""
        return math.ceil(self.count * (1 + self.spare))

    def __post_init__(self) -> None:
        if self.count and not any(self.templates.values()):
            raise InputError(
                "no template gives questions with at least one and not too many answers on this base: "
                "write some in TOML (--templates FILE) or choose other --kinds"
            )


@dataclass
class Synthesis:
    """The finished questions, and counts of rejected ones."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    turned_down: Counter[str] = field(default_factory=Counter)
    drawn: int = 0
    gold_checked: int = 0
    gold_passed: int = 0


@dataclass(frozen=True)
class Steps:
    """The components: extractor of step 2, fuser of step 3, judges of step 4."""

    kb: ArrayKnowledgeBase
    sampler: Sampler
    extractor: Extractor
    fuser: Fuser
    judges: Sequence[Judge]


def synthesise(
    steps: Steps,
    plan: SynthesisPlan,
    log: ProgressLog,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    check: Callable[[], None] = lambda: None,
) -> Synthesis:
    """Draw, extract, fuse and filter until there are enough questions or no more can be drawn."""
    made = Synthesis()
    drawing = draw_all(steps, plan, made)
    questions: set[str] = set()
    wanted = plan.first_round
    for _ in range(ROUNDS):
        drafts = [draft for _, draft in zip(range(wanted), drawing, strict=False)]
        moved = partial(_moved, progress, len(made.rows), plan.count)
        for result in finish_all(steps, drafts, log, moved, check):
            _accept(result, made, questions)
        missing = plan.count - len(made.rows)
        if missing <= 0 or not drafts:
            break
        wanted = math.ceil(missing * 1.5) + 2
    made.rows = [{**row, "id": str(index)} for index, row in enumerate(made.rows[: plan.count])]
    return made


def _moved(progress: Callable[[int, int], None], before: int, total: int, done: int) -> None:
    progress(min(before + done, total), total)


def draw_all(steps: Steps, plan: SynthesisPlan, made: Synthesis) -> Iterator[QuestionDraft]:
    """Run step 1 for each question, cycling through the kinds and the templates of each kind."""
    kinds = [kind for kind, templates in plan.templates.items() if templates]
    seen: set[str] = set()
    failures = 0
    slot = 0
    while failures < 5 * len(kinds) + 20:  # all kinds are exhausted
        made.drawn += 1
        draft = _draw(steps, plan, kinds, slot, seen)
        slot += 1
        if draft is None:
            made.turned_down["no new requirement of a fit size was found"] += 1
            failures += 1
            continue
        failures = 0
        seen.add(draft.requirement.identity)
        steps.sampler.note(draft.requirement)
        yield draft


def _draw(steps: Steps, plan: SynthesisPlan, kinds: Sequence[Kind], slot: int, seen: set[str]) -> QuestionDraft | None:
    templates = plan.templates[kinds[slot % len(kinds)]]
    first = slot // len(kinds) % len(templates)
    rng = seeded(plan.seed, slot, "sampling")
    role = plan.roles[rng.randrange(len(plan.roles))]
    for template in (*templates[first:], *templates[:first]):
        may = template.target in plan.with_text
        with_text = may and (template.kind == "textual" or rng.random() < TEXT_SHARE)
        requirement = steps.sampler.draw(template, rng, with_text=with_text)
        if requirement is None or requirement.identity in seen:
            continue
        golds = [node for node in requirement.possible if not with_text or fields(steps.kb, node)]
        if golds:
            return QuestionDraft(slot, requirement, golds[rng.randrange(len(golds))], role, with_text, plan.seed)
    return None


def finish_all(
    steps: Steps,
    drafts: Sequence[QuestionDraft],
    log: ProgressLog,
    finished: Callable[[int], None],
    check: Callable[[], None],
) -> list[Result]:
    """Run steps 2 to 4 for drafts that are not in the log. If replies are pending, still make all other requests."""
    keys = [_key(steps, draft) for draft in drafts]
    left = [(key, draft) for key, draft in zip(keys, drafts, strict=True) if key not in log.known]
    left.sort(key=lambda pair: pair[1].with_text)  # drafts without text need no extraction
    pending: PendingError | None = None
    for begin in range(0, len(left), CHUNK):
        chunk = left[begin : begin + CHUNK]
        try:
            results = finish(steps, [draft for _, draft in chunk])
        except PendingError as waiting:
            pending = waiting
            continue
        check()  # before storing results that a spent budget may have spoilt
        log.add((key, result) for (key, _), result in zip(chunk, results, strict=True))
        finished(len(drafts) - len(left) + begin + len(chunk))
    if pending is not None:
        raise pending
    return [log.known[key] for key in keys]


def finish(steps: Steps, drafts: Sequence[QuestionDraft]) -> list[Result]:
    """Run steps 2 to 4 for a few questions."""
    with trace.span("textual", asked=len(drafts)):
        texts = steps.extractor.extract(drafts)  # 2
    if steps.fuser.chooses:
        return _finish_chosen(steps, drafts, texts)
    waiting: list[PendingError] = []
    verdicts: Sequence[Verdict | None] = ()
    wordings: Sequence[WordedQuestion] = ()

    with trace.span("filter", asked=len(drafts)):
        try:  # step 4 before 3: they are independent, and one batch should have the requests of both
            verdicts = _judged(steps, drafts, texts)
        except PendingError as pending:
            waiting.append(pending)
    with trace.span("fuse", asked=len(drafts)):
        try:
            wordings = steps.fuser.fuse(drafts, texts)  # 3
        except PendingError as pending:
            waiting.append(pending)
    if waiting:
        raise waiting[-1]
    return [
        _result(steps, draft, text, verdict, wording)
        for draft, text, verdict, wording in zip(drafts, texts, verdicts, wordings, strict=True)
    ]


def _finish_chosen(
    steps: Steps, drafts: Sequence[QuestionDraft], texts: Sequence[TextualRequirement | None]
) -> list[Result]:
    """Run steps 3 and 4 if the question selects its properties. Judge only these."""
    with trace.span("fuse", asked=len(drafts)):
        wordings = steps.fuser.fuse(drafts, texts)  # 3
    asked = [
        text if text is None or wording.used is None else text.using(wording.used)
        for text, wording in zip(texts, wordings, strict=True)
    ]
    with trace.span("filter", asked=len(drafts)):
        verdicts = _judged(steps, drafts, asked)  # 4
    return [_result(steps, *row) for row in zip(drafts, asked, verdicts, wordings, strict=True)]


def _judged(
    steps: Steps, drafts: Sequence[QuestionDraft], texts: Sequence[TextualRequirement | None]
) -> list[Verdict | None]:
    def judged(place: int) -> Verdict | None:
        text = texts[place]
        return None if text is None else unanimous(steps.judges, text, drafts[place].requirement.possible)

    return list(trace.concurrently(judged, range(len(drafts))))


def _result(
    steps: Steps,
    draft: QuestionDraft,
    text: TextualRequirement | None,
    verdict: Verdict | None,
    wording: WordedQuestion,
) -> Result:
    possible = draft.requirement.possible
    if draft.with_text and text is None:
        if draft.requirement.template.kind == "textual":
            return rejection("nothing distinctive is written about the gold node")
        if len(possible) > steps.sampler.most_candidates:
            return rejection("too many answers without a textual requirement")
    answers = possible if verdict is None else verdict.kept
    if verdict is not None and draft.gold not in answers:
        return rejection("the gold node failed its own check", gold_passed=False)
    passed = None if verdict is None else True
    if any(leaks(wording.question, names_of(steps.kb, node)) for node in answers):
        return rejection("the question names its answer", gold_passed=passed)
    return {"row": row_of(steps.kb, draft, text, verdict, wording, answers), "gold_passed": passed}


def _accept(result: Result, made: Synthesis, questions: set[str]) -> None:
    if result["gold_passed"] is not None:
        made.gold_checked += 1
        made.gold_passed += bool(result["gold_passed"])
    if "rejected" in result:
        made.turned_down[result["rejected"]] += 1
        return
    row = result["row"]
    folded = normalise(row["question"])
    if folded in questions:
        made.turned_down["the same question came up twice"] += 1
    elif len(row["answers"]) > MOST_ANSWERS:
        made.turned_down["too many answers"] += 1
    else:
        questions.add(folded)
        made.rows.append(dict(row))


def _key(steps: Steps, draft: QuestionDraft) -> str:
    """Hash everything that determines a result."""
    requirement, template = draft.requirement, draft.requirement.template
    parts = [
        __version__,
        steps.kb.manifest.generation,
        template.name,
        template.kind,
        template.words,
        requirement.identity,
        [draft.slot, draft.gold, draft.role, draft.with_text, draft.seed],
        [steps.extractor.name, steps.fuser.name, *(judge.name for judge in steps.judges)],
        requirement.candidates.array.tolist(),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()
