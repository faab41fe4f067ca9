"""The public API: build a knowledge base, open it, ask, look around, evaluate.

The command line, the server, the chat and the adapters go through it; there is no second way from a question to an
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from clew.answering.methods import catalog
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import corrected
from clew.answering.queries.corrections import Corrections
from clew.core.disk import draft_of, refuse_existing
from clew.core.errors import InputError, needing
from clew.core.schema import Schema
from clew.core.trace import Recorder, Span, Unchecked
from clew.core.types import Answer, Direction
from clew.models.budget import Budget, Ledger
from clew.models.protocol import Embedder, LanguageModel
from clew.store.graph.tables import Tables
from clew.store.open_base import OpenBase

if TYPE_CHECKING:  # imported where they are used: most programs ask one kind of thing
    from clew.answering.conversation import Conversation
    from clew.answering.exploring import ShownSubgraph
    from clew.answering.methods.agent.tools import FoundNode
    from clew.documents.rows import DocumentOptions
    from clew.lab.datasets.questions import Dataset
    from clew.lab.evaluation.page import Evaluation
    from clew.models.prices import Estimate
    from clew.store.building import BuildReport
    from clew.store.graph.visibility import Rules
    from clew.store.sources.files import SourceOptions

Fixes = Mapping[str, Sequence[str]]
"""Name in a question → keys of the nodes that it stands for; an empty list where it names nothing."""


@dataclass(frozen=True)
class Base:
    """An open knowledge base that answers questions; safe for threads.

    >>> import clew
    >>> base = clew.open("medicine.kb")                                          # doctest: +SKIP
    >>> print(base.ask("Which genes cause Marfan syndrome?"))                    # doctest: +SKIP
    """

    tools: OpenBase
    ledger: Ledger
    """What its model has cost so far."""
    is_view: bool = False
    """Whether it is what some groups may see of another one."""

    @property
    def schema(self) -> Schema:
        """Node types, relations and attributes."""
        return self.tools.kb.schema

    def ask(
        self,
        question: str,
        method: str | Method = catalog.DEFAULT_METHOD,
        *,
        fixes: Fixes | None = None,
        relations: Mapping[str, str] | None = None,
        type: str | None = None,
        on_step: Callable[[Span], None] | None = None,
        on_text: Callable[[str], None] | None = None,
        recorder: Recorder | None = None,
        **options: object,
    ) -> Answer:
        """Answer a question by a method: its name with options, or `clew.methods.NAME(…)`.

        `fixes` says what names in the question stand for, `relations` which relation is meant in the place of another
        (as `answer.query["triplets"]` names it; `^` before it: the other way round), `type` what type the answers are
        meant to be of. `on_step` is told each step as it begins and ends, `on_text` what a model has written so far of
        the answer, unchecked and whole each time.
        """
        chosen = self.method(method, options)
        recorder = recorder or Recorder(on_step, on_text)
        tools = self.tools.corrected({name: tuple(keys) for name, keys in (fixes or {}).items()})
        answer = catalog.ask(chosen, question, corrected(tools, Corrections(relations or {}, type)), recorder)
        return replace(answer, trace=tuple(recorder.spans))

    def query(self, text: str, *, kinds: bool = True) -> Answer:
        """Carry out a query of the query language, such as `find x where (x: hut) and x.beds > 80`.

        With `kinds`, a name also stands for what lies below it in a hierarchy. Raises InputError for a query that
        cannot be read or that the schema does not allow.
        """
        return self.ask(text, "query", kinds=kinds)

    def conversation(self, method: str | Method = catalog.DEFAULT_METHOD, **options: object) -> Conversation:
        """Start a conversation, in which questions may refer to earlier ones."""
        from clew.answering.conversation import Conversation

        return Conversation(self.tools, self.method(method, options))

    async def aask(self, question: str, method: str | Method = catalog.DEFAULT_METHOD, **given: Any) -> Answer:
        """Ask without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(self.ask, question, method, **given)

    def stream(
        self, question: str, method: str | Method = catalog.DEFAULT_METHOD, **given: Any
    ) -> Iterator[Span | Unchecked | Answer]:
        """Yield the steps, the text that a model writes, and at last the checked answer."""
        events: SimpleQueue[Span | Unchecked | Answer | BaseException] = SimpleQueue()

        def written(text: str) -> None:
            events.put(Unchecked(text))

        def work() -> None:
            try:
                events.put(self.ask(question, method, on_step=events.put, on_text=written, **given))
            except BaseException as error:
                events.put(error)

        Thread(target=work, name="ask", daemon=True).start()
        while True:
            event = events.get()
            if isinstance(event, BaseException):
                raise event
            yield event
            if isinstance(event, Answer):
                return

    def estimate(
        self, question: str, method: str | Method = catalog.DEFAULT_METHOD, *, model: str, **options: object
    ) -> Estimate:
        """Estimate the cost of a question by a run with a free model that gives typical replies."""
        from clew.models.opening import open_estimating
        from clew.models.prices import Estimate

        if model == "none":
            return Estimate()
        counting = open_estimating(model)
        catalog.ask(self.method(method, options), question, self.tools.with_model(counting))
        return counting.estimate()

    def method(self, method: str | Method, options: Mapping[str, object] | None = None) -> Method:
        """Return a method by its name and options. A method object takes no options."""
        if isinstance(method, str):
            return catalog.create(method, options)
        if options:
            raise InputError(f"{next(iter(options))}: give the options of a method to {type(method).__name__}(…)")
        return method

    def with_model(self, model: str | LanguageModel | None) -> Base:
        """Return the same base with another model. Open files are shared."""
        return replace(self, tools=self.tools.with_model(_opened(model, self.ledger)))

    def for_groups(self, groups: Iterable[str]) -> Base:
        """Return the view of the base for members of these groups.

        It is made when it is first asked for, and kept. `[]` leaves what everybody may see.
        """
        from clew.store.group_views import view_for

        view = view_for(self.tools.described, groups)
        if view is None:
            return self
        tools = OpenBase.open(self.tools.opens(view), model=self.tools.model, embedder=self.tools.embedder_given)
        return replace(self, tools=tools, is_view=True)

    def find(self, text: str, type: str | None = None, k: int = 10, *, in_text: bool = False) -> list[FoundNode]:
        """Nodes by name (exact, then fuzzy, then by meaning), or by the words of their texts."""
        from clew.answering.methods.agent import tools

        return tools.find(self.tools, text, type, k, in_text=in_text)

    def show(self, node: str, most: int = 10) -> dict[str, Any]:
        """Return a node by key or name, with its document, its attributes and its first neighbours by relation."""
        from clew.answering.methods.agent import tools

        return tools.show(self.tools, node, most)

    def page_image(self, node: str, files: str | Path | None = None, *, scale: float = 1.5) -> bytes:
        """Return the PDF page of a passage, table or page as PNG with its lines marked.

        The file is looked for in the folder `files`, or else where this user built the base from and in the current
        folder; one that has changed since is refused.
        """
        from clew.answering import exploring
        from clew.documents.formats.pdf_render import render_page

        found = exploring.printed_page(self.tools, node, None if files is None else Path(files))
        return render_page(found.file, found.page, found.boxes, scale)

    def neighbours(
        self, node: str, relation: str | None = None, direction: Direction = "any", k: int = 20
    ) -> dict[str, Any]:
        """Return a node with some neighbours of each relation, as nodes, edges and counts."""
        from clew.answering import exploring

        return exploring.neighbours(self.tools, node, relation, direction, k)

    def mentions(self, text: str) -> list[dict[str, Any]]:
        """Return the names in a text with their possible nodes."""
        from clew.answering import exploring

        return exploring.mentions(self.tools, text)

    def subgraph(self, *entities: str, hops: int = 4, write: bool = False) -> ShownSubgraph:
        """Return all shortest paths from each entity to the last one. Entities are keys or names.

        With `write` the model tells it in sentences, and these are checked: `shown.written`.
        """
        from clew.answering import exploring

        return exploring.between(self.tools, entities, hops, write=write)

    def document(self, name: str) -> dict[str, Any]:
        """Return the passages and tables of a file in reading order, with their pages."""
        from clew.answering import exploring

        return exploring.document(self.tools, name)

    def update(
        self,
        sources: str | Path | Sequence[str | Path] = (),
        *,
        delete_nodes: Sequence[str] = (),
        delete_edges: Sequence[str | Path] = (),
        skip_bad: bool = False,
        widen: bool = False,
    ) -> Base:
        """Add, change and delete nodes and edges; returns the base as it is then.

        The column of groups is that of the base. Raise InputError with the list if something would be visible to more
        people, unless `widen` is set.
        """
        if self.is_view:
            raise InputError("what some groups may see cannot be changed: update the whole base")
        from clew.store.building import read_changes, update
        from clew.store.sources.files import SourceOptions

        place = self.tools.place
        delta = read_changes(
            place,
            [Path(source) for source in _listed(sources)],
            SourceOptions(skip_bad=skip_bad),
            delete_nodes=list(delete_nodes),
            delete_edges=[Path(file) for file in delete_edges],
        )
        update(place, delta, skip_bad=skip_bad, widen=widen)
        return replace(self, tools=OpenBase.open(place, model=self.tools.model, embedder=self.tools.embedder_given))

    def verify(self) -> list[str]:
        """Everything that is wrong with its files, or its tables; empty when all is well."""
        from clew.store.building import check

        return check(self.tools.place)

    def export(self, file: str | Path, *, force: bool = False) -> None:
        """Write a DuckDB file with the tables `nodes` and `edges`, on which `answer.query["sql"]` runs.

        An existing file is replaced only with `force`.
        """
        from clew.answering.queries.sql import tables

        with needing("duckdb"):
            import duckdb
        refuse_existing(Path(file), force=force)
        rows_of, draft = tables(self.tools.stored), draft_of(Path(file))
        try:
            for old in (draft, draft.with_name(f"{draft.name}.wal")):  # of an export that was killed
                old.unlink(missing_ok=True)
            with duckdb.connect(str(draft)) as database:
                for name, rows in rows_of.items():
                    database.register("rows", rows)
                    database.execute(f"CREATE TABLE {name} AS FROM rows")
            draft.replace(file)  # a kill before this leaves an older file as it was
        except (OSError, duckdb.Error) as error:
            raise InputError(f"DuckDB cannot write {file}: {error}") from error

    def __repr__(self) -> str:
        return f"Base({self.tools.kb!r}, model={self.tools.model_name!r})"


def open(
    base: str | Path | Sequence[str | Path],
    *,
    model: str | LanguageModel | None = None,
    embedder: str | Embedder | None = None,
    budget: Budget | None = None,
    groups: Iterable[str] | None = None,
) -> Base:
    """Open a knowledge base: a folder, several folders to ask as one base, or an address.

    Addresses are `postgresql://USER@HOST/DATABASE#BASE`, `sparql+http://HOST/query` and `bolt://USER@HOST:7687/DATABASE`;
    after the last two, `#texts=BASE` names a base with the names, texts and vectors of their nodes (`build`).

    `model` is what `--model` takes (`openai:NAME`, `http://…#NAME`, `gguf:FILE`, …) or any `LanguageModel`; `budget`
    caps what it may cost. `groups` are those of whoever asks (`Base.for_groups`); None means everything.
    """
    ledger = Ledger(budget or Budget())
    if not isinstance(base, str | Path):
        from clew.store.base_union import joined_base

        base = joined_base([Path(one) for one in base], groups) if len(base) != 1 else base[0]
    opened = Base(OpenBase.open(base, model=_opened(model, ledger), embedder=embedder), ledger)
    return opened if groups is None else opened.for_groups(groups)


def _opened(model: str | LanguageModel | None, ledger: Ledger) -> LanguageModel | None:
    """Return a model by its spec or as given, with traced calls that count against the budget."""
    if model is None or model == "none":
        return None
    if isinstance(model, str):
        from clew.models.opening import open_model

        return open_model(model, ledger=ledger)
    from clew.models.wrappers import Budgeted, Traced

    return model if isinstance(model, Traced) else Traced(Budgeted(model, ledger))


def _listed(sources: str | Path | Sequence[str | Path]) -> Sequence[str | Path]:
    """Return a single source as a list."""
    return [sources] if isinstance(sources, str | Path) else sources


def build(
    sources: Tables | str | Path | Sequence[str | Path],
    folder: str | Path,
    *,
    options: SourceOptions | DocumentOptions | None = None,
    schema: str | Path | None = None,
    visible: Rules | None = None,
    skip_bad: bool = False,
    nodes_only: bool = False,
    widen: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> BuildReport:
    """Build a knowledge base from one or more files, databases by file or URL, a folder of documents, or tables.

    `folder` is the folder of the base, or `postgresql://USER@HOST/DATABASE#BASE`, which needs the extra `postgres`.
    Clew detects whether the files are documents. `SourceOptions` read them as nodes and edges, `DocumentOptions` as
    documents. `visible` restricts content to groups: pattern of files or keys → groups. `nodes_only` reads only the
    nodes of a remote graph, which must be the only source. `clew.open("sparql+http://HOST/query#texts=BASE")` then
    asks that graph for edges, and this base for names and texts. `widen` allows the new base to show content to more
    people than the base that it replaces. `say` receives the stages.
    """
    from clew.documents.building import build_documents, hold_documents
    from clew.documents.rows import DocumentOptions
    from clew.documents.workbooks import with_workbooks
    from clew.store.building import build as build_base
    from clew.store.building import into
    from clew.store.graph.schema_file import schema_edits
    from clew.store.graph.visibility import restricted
    from clew.store.remote_bases import read_remote_nodes, with_logins
    from clew.store.sources.categories import with_categories
    from clew.store.sources.databases import is_url
    from clew.store.sources.files import SourceOptions
    from clew.store.sources.read import read_sources

    given = () if isinstance(sources, Tables) else _listed(sources)
    paths = [Path(source) for source in given if not is_url(source)]
    if isinstance(options, DocumentOptions) or (paths and options is None and hold_documents(paths)):
        wanted = options if isinstance(options, DocumentOptions) else DocumentOptions(visible=visible or {})
        return build_documents(paths, folder, wanted, widen=widen)
    reading = replace(options or SourceOptions(skip_bad=skip_bad), visible=visible or {})
    edits = schema_edits(
        None if schema is None else Path(schema), [*paths, *reading.nodes, *reading.edges, *reading.triples]
    )
    say("reading")
    if nodes_only:
        tables = restricted(read_remote_nodes(given), visible or {})
    else:
        tables = sources if isinstance(sources, Tables) else read_sources(with_workbooks(with_logins(given)), reading)
        tables = with_categories(restricted(tables, visible or {}))

    def build_in(place: Path) -> BuildReport:
        return build_base(tables, place, edits=edits, skip_bad=skip_bad, widen=widen, say=say)

    return into(folder, build_in, say, widen=widen)


def evaluate(
    base: Base | str | Path,
    questions: str | Path | Dataset,
    methods: Sequence[str | Method] = (catalog.DEFAULT_METHOD,),
    *,
    limit: int | None = None,
    seed: int = 0,
    out: Path | None = None,
) -> Evaluation:
    """Put questions with gold answers to one or more methods and judge the answers.

    `questions` is a file of JSON lines with `question` and `answers`, or `NAME:PATH[:SPLIT]` of a published data set.
    """
    from clew.lab.datasets.load import load_dataset
    from clew.lab.datasets.questions import Dataset
    from clew.lab.evaluation.benchmark import Benchmark
    from clew.lab.evaluation.page import Evaluation

    opened = base if isinstance(base, Base) else open(base)
    dataset = questions if isinstance(questions, Dataset) else load_dataset(str(questions))
    benchmark = Benchmark(dataset.sample(limit, seed), given=opened.tools)
    chosen = [benchmark.method(method) if isinstance(method, str) else method for method in methods]
    return Evaluation(tuple(benchmark.run(method, out=out) for method in chosen))
