"""Implementation of `clew synth`: generate a folder of checked questions from a base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from clew.core.disk import refuse_foreign
from clew.core.errors import BudgetError, InputError, ModelError
from clew.core.version import __version__
from clew.lab.synthesis.enumerate import check_kinds, enumerate_templates, types_with_text
from clew.lab.synthesis.extraction import ModelExtractor, PhraseExtractor, ProductExtractor
from clew.lab.synthesis.forms import FORMS, MAX_ANSWERS, form_rows
from clew.lab.synthesis.fusion import DEFAULT_ROLE, GrammarFuser, ModelFuser, ProductFuser
from clew.lab.synthesis.judging import Judge, MeaningJudge, PhraseJudge, WordJudge, model_judges, product_judges
from clew.lab.synthesis.output import Made, ProgressLog, write_benchmark
from clew.lab.synthesis.pipeline import CHUNK, Steps, Synthesis, SynthesisPlan, draw_all, finish, synthesise
from clew.lab.synthesis.records import violations
from clew.lab.synthesis.requirement import Sampler
from clew.lab.synthesis.statistics import describe_rows, stark_statistics
from clew.lab.synthesis.templates import KINDS, SHIPPED, Kind, Template, load_templates
from clew.models.budget import Ledger
from clew.models.prices import Estimate, EstimatingModel
from clew.models.protocol import LanguageModel
from clew.store.open_base import OpenBase

LOG = "progress.jsonl"
SPARE, SPARE_WITH_A_MODEL = 0.1, 0.2
"""Share of additional questions in the first round, to replace rejected ones."""


@dataclass(frozen=True)
class BenchmarkOptions:
    """Options of a benchmark."""

    count: int = 1000
    kinds: tuple[str, ...] = KINDS
    templates: str | None = None
    """A TOML file, `amazon`, `mag`, `prime`, or None to enumerate templates from the schema."""
    roles: tuple[str, ...] = ()
    """Roles of the askers. The default is the roles of the shipped templates, or a user."""
    seed: int = 0
    beside: Path | None = None
    """A folder with the real STaRK questions, for comparison."""

    @property
    def askers(self) -> tuple[str, ...]:
        """The roles of the askers."""
        return self.roles or SHIPPED.get(self.templates or "", (DEFAULT_ROLE,))

    @property
    def forms(self) -> tuple[str, ...]:
        """Kinds that are forms of the query language. They get an equal share of the questions."""
        return tuple(kind for kind in self.kinds if kind in FORMS)

    @property
    def of_products(self) -> bool:
        """Whether texts give hard and soft requirements, like the paper for AMAZON."""
        return self.templates == "amazon"


@dataclass(frozen=True)
class Writers:
    """The models to use. Without a writer, no model is used."""

    writer: LanguageModel | None = None
    """Extracts and drafts. Also judges if there are no other judges."""
    rewriter: LanguageModel | None = None
    """Rewrites and checks. The default is the writer with a different prompt."""
    judges: tuple[LanguageModel, ...] = ()
    ledger: Ledger | None = None
    trusting: bool = False
    """Whether to skip checks of replies. Only for estimates."""


def make_benchmark(
    tools: OpenBase,
    folder: Path,
    wanted: BenchmarkOptions,
    writers: Writers | None = None,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Made:
    """Generate the questions, run all checks and write the files. Reuse finished results."""
    writers = writers or Writers()
    refuse_foreign(folder, (LOG,), "benchmark of `clew synth`", "name a new folder with --out")
    kb = tools.local
    plan, steps, remarks = prepare(tools, wanted, writers)
    log = ProgressLog(folder / LOG)
    done = (
        synthesise(steps, plan, log, progress, partial(_refuse_unfinished, writers.ledger))
        if plan.count
        else Synthesis()
    )
    if wanted.forms:
        wide = Sampler(kb, MAX_ANSWERS, MAX_ANSWERS, steps.sampler.most_uses)
        more = form_rows(wide, _relational(tools, wanted, wide), wanted.forms, wanted.count - plan.count, wanted.seed)
        done.rows += [{**row, "id": str(number)} for number, row in enumerate(more, len(done.rows))]
    if not done.rows:
        why = "; ".join(f"{reason}: {count}" for reason, count in done.turned_down.most_common(3))
        raise InputError(f"no question could be made over {kb.folder.name} ({why})")
    if len(done.rows) < wanted.count:
        remarks.append(f"{wanted.count} questions were asked for; the base gave {len(done.rows)} different ones")
    gates = violations(kb, done.rows)
    if failed := {gate: ids for gate, ids in gates.items() if ids}:
        raise AssertionError(f"generated questions fail a check: {failed}")
    made = _made(tools, folder, wanted, done, steps, gates, remarks)
    write_benchmark(made)
    return made


def prepare(tools: OpenBase, wanted: BenchmarkOptions, writers: Writers) -> tuple[SynthesisPlan, Steps, list[str]]:
    """Return the plan, the steps, and remarks about options that cannot be met."""
    kb = tools.local
    if wanted.count < 1:
        raise InputError(f"-n must be at least 1, not {wanted.count}")
    if not kb.edge_count:
        raise InputError(f"{kb.folder.name} has no edges: add edges to the base first")
    kinds = check_kinds((kind for kind in wanted.kinds if kind not in FORMS), FORMS)
    sampler = Sampler(kb, most_uses=max(3, wanted.count // 50))
    texts = types_with_text(kb) if "textual" in kinds else frozenset()
    templates = choose_templates(tools, wanted, kinds, sampler) if kinds else {}
    remarks = [f"no {kind} questions: this base gives none of a fit size" for kind in kinds if not templates[kind]]
    spare = SPARE if writers.writer is None else SPARE_WITH_A_MODEL
    count = wanted.count * len(kinds) // (len(kinds) + len(wanted.forms))
    plan = SynthesisPlan(count, templates, texts, roles=wanted.askers, seed=wanted.seed, spare=spare)
    if writers.writer is None:
        return plan, model_free_steps(tools, sampler), remarks
    return plan, model_steps(tools, sampler, writers, of_products=wanted.of_products), remarks


def estimate_benchmark(tools: OpenBase, wanted: BenchmarkOptions, model: EstimatingModel) -> Estimate:
    """Estimate calls and cost with one round of free placeholder replies."""
    plan, steps, _ = prepare(tools, wanted, Writers(model, trusting=True))
    drafts = [draft for _, draft in zip(range(plan.first_round), draw_all(steps, plan, Synthesis()), strict=False)]
    for begin in range(0, len(drafts), CHUNK):
        finish(steps, drafts[begin : begin + CHUNK])
    return model.estimate()


def _refuse_unfinished(ledger: Ledger | None) -> None:
    """Raise if a spent budget or an outage left questions without replies."""
    if ledger is not None and ledger.outage is not None:
        raise ModelError(f"{ledger.outage}; finished questions are stored, run again to continue")
    if ledger is not None and ledger.cut_short is not None:
        raise BudgetError(f"{ledger.cut_short}; finished questions are stored, run again with a larger budget")


def choose_templates(
    tools: OpenBase, wanted: BenchmarkOptions, kinds: Sequence[Kind], sampler: Sampler
) -> dict[Kind, tuple[Template, ...]]:
    """Return the templates of a file or the useful ones of the schema, by kind."""
    if wanted.templates is None:
        found = enumerate_templates(sampler, kinds, wanted.seed)
    else:
        found = list(load_templates(wanted.templates, tools.kb.schema))
    return {kind: tuple(template for template in found if template.kind == kind) for kind in kinds}


def _relational(tools: OpenBase, wanted: BenchmarkOptions, sampler: Sampler) -> list[Template]:
    """Return the templates of relational requirements."""
    found = choose_templates(tools, wanted, ("1-hop", "2-hop", "intersection"), sampler)
    return [template for some in found.values() for template in some]


def model_free_steps(tools: OpenBase, sampler: Sampler) -> Steps:
    """Build the steps without a model: distinctive phrases, a grammar, and judges by phrase, words and meaning."""
    kb, lexical = tools.local, tools.lexical
    judges: tuple[Judge, ...] = (PhraseJudge(kb), WordJudge(kb, lexical), MeaningJudge(tools.vectors))
    return Steps(kb, sampler, PhraseExtractor(kb, lexical), GrammarFuser(kb.schema), judges)


def model_steps(tools: OpenBase, sampler: Sampler, writers: Writers, *, of_products: bool) -> Steps:
    """Build the steps with models for extraction, drafting, rewriting and judging.

    For products: use hard and soft requirements, without those that reviews contradict, and filter each separately.
    """
    kb, writer = tools.local, writers.writer
    assert writer is not None
    extractor = ProductExtractor if of_products else ModelExtractor
    fuser = ProductFuser if of_products else ModelFuser
    judges = product_judges if of_products else model_judges
    return Steps(
        kb,
        sampler,
        extractor(kb, writer, writers.trusting),
        fuser(kb.schema, tools.names, writer, writers.rewriter or writer, writers.trusting),
        judges(kb, writers.judges or (writer,)),
    )


def _made(
    tools: OpenBase,
    folder: Path,
    wanted: BenchmarkOptions,
    done: Synthesis,
    steps: Steps,
    gates: dict[str, list[str]],
    remarks: list[str],
) -> Made:
    kb = tools.local
    name = kb.folder.name.removesuffix(".kb")
    statistics = [describe_rows(name, done.rows)]
    if wanted.beside is not None:
        statistics += stark_statistics(wanted.beside, len(done.rows))
    acceptance = {
        "drawn": done.drawn,
        **{f"turned down: {reason}": count for reason, count in sorted(done.turned_down.items())},
        "gold nodes put to the judges": done.gold_checked,
        "gold nodes that passed": done.gold_passed,
        "share that passed": f"{100 * done.gold_passed / done.gold_checked:.1f} %" if done.gold_checked else "—",
        "questions": len(done.rows),
    }
    settings = {
        "questions asked for": str(wanted.count),
        "templates": wanted.templates or "enumerated from the schema",
        "kinds": ", ".join(wanted.kinds),
        "roles": ", ".join(wanted.askers),
        "seed": str(wanted.seed),
        "textual requirements": steps.extractor.name,
        "wording": steps.fuser.name,
        "judges": ", ".join(judge.name for judge in steps.judges),
        "clew": __version__,
    }
    return Made(folder, name, done.rows, wanted.seed, settings, kb.notes, acceptance, gates, statistics, remarks)
