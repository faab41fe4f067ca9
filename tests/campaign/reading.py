"""Flipped bytes, hostile sources, documents, questions, replies and requests: an answer, or an error that says why."""

import json
import random
import shutil
import signal
import threading
import time
import zipfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import hostile
import httpx
from bases import copied
from commands import NEW, Writers
from fastapi.testclient import TestClient
from trials import SECONDS, apart, judged

import clew
from clew.answering.methods.catalog import method_names
from clew.core.errors import ClewError
from clew.documents.building import from_reply
from clew.documents.reading import replied
from clew.documents.repairing import repair
from clew.models.scripted import ScriptedModel
from clew.server.app import create_app
from clew.server.settings import ClientLimits, ServerSettings, named_bases
from clew.store.building import build, check, update
from clew.store.graph.manifest import LOCK
from clew.store.open_base import OpenRemoteBase
from clew.store.remote.sparql import SparqlKnowledgeBase
from clew.store.remote.sparql_endpoint import Politeness, SparqlEndpoint
from clew.store.sources.files import SourceOptions
from clew.store.sources.read import read_sources
from conftest import tables

ASKED = {"graph": ("Which disease has long fingers?", "bm25", "focus_plus", "vector_search"),
         "documents": ("What does a boat of 9 m pay?", "bm25", "vector_search")}  # fmt: skip
TOGETHER = 25
"""Replies or requests that one process is given."""
QUERIES = [
    'find x where (x: gene) -[associated_with]-> (d: disease) and (d) -[has_phenotype]-> "Polydactyly": phenotype',
    "find x.name, count(distinct d) as n where (x: gene) -[associated_with]-> (d) group by x having count(*) >= 2",
    "find x where (x: gene) order by length(x.key) desc, x.name first 5 skip 1",
    'find distinct x where (x) -[is_a*]-> node("P4", "P3") and not exists {(d) -[has_phenotype]-> (x)}',
    'find p.name where (d) -[e: has_phenotype]-> (p) and e.frequency starts with "80" and e.relation != d.name',
    'find d.name, g.name where (d: disease) and optional {(g: gene) -[associated_with]-> (d) and g.name contains "1"}',
    '(find x where (x: gene)) except (find x where (x) -[associated_with]-> node("BBS"))',
    "find ((find count(x) where (x: gene)) - (find count(x) where (x: disease)))",
    "find x.type, max(x.name) where (x) group by x.type order by max(x.name) desc first 1 with ties",
    "find sum(x.n * 2 + 1), avg(round(x.n / 3)) where (x: place) and x.n between 1 and 5 group by year(x.day)",
    'find x where (x: place) and (x.n in [1, 2, "a"] or x.day is missing or lower(x.name) ends with "7")',
    "find x, y where (x: place) -[next{1,3}]-> (y) and x.n > (find avg(z.n) where (z: place))",
]
QUESTIONS = 100
"""Questions that one process is asked."""


def flipped(writers: Writers, seed: int, place: Path) -> list[str]:
    """One byte of one file is changed, or the file is cut there.

    `verify` finds it, no answer changes, and `repair` restores it or says why it cannot.
    """
    pick = random.Random(seed)
    kind = pick.choice(["graph", "documents"])
    base = copied(getattr(writers, kind), place / "flipped.kb")
    files = sorted(path for path in base.rglob("*") if path.is_file() and path.name not in (LOCK, ".lock"))
    file = pick.choice(files)
    whole = bytearray(file.read_bytes())
    spot = pick.randrange(len(whole))
    whole[spot] ^= pick.randrange(1, 256)
    is_cut = pick.random() >= 0.8
    file.write_bytes(whole[:spot] if is_cut else whole)
    may_be_missing = is_cut and file.name == "keys.bin"  # vectors that no row names: they are computed when needed
    question, *methods = ASKED[kind]

    def ask() -> str | None:
        if not check(base) and not may_be_missing:
            return "missed: verify calls it sound"
        with suppress(ClewError):
            opened = clew.open(base)
            for method in methods:
                with suppress(ClewError):
                    if str(opened.ask(question, method).candidates) != said(getattr(writers, kind), kind, method):
                        return f"changed: {method} answers otherwise"
        return None

    def mend() -> str | None:
        repair(base)
        left = check(base)
        return f"unsound after the repair: {left[0]}" if left else None

    for method in methods:
        said(getattr(writers, kind), kind, method)
    wrong = [apart(ask), apart(mend)]
    return [f"{file.relative_to(base)} at {spot}: {one}" for one in wrong if one]


@cache
def said(base: Path, kind: str, method: str) -> str:
    """What a sound base answers."""
    whole = copied(base, base.with_name(f"asked {base.name}"))  # asking may keep vectors in a base
    return str(clew.open(whole).ask(ASKED[kind][0], method).candidates)


def hostile_source(seed: int, place: Path) -> list[str]:
    """Files of nodes and edges: a sound base that answers, or a refusal that leaves nothing behind."""
    pick = random.Random(seed)
    folder = place / "source"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    given, skip = _source_files(pick, folder), pick.random() < 0.7
    include, exclude = (hostile.patterns(pick) if pick.random() < 0.3 else () for _ in range(2))

    def make() -> str | None:
        try:
            options = SourceOptions(skip_bad=skip, include=include, exclude=exclude)
            build(read_sources(given, options), folder / "kb", skip_bad=skip)
        except ClewError:
            return f"left behind: {folder / 'kb'}" if (folder / "kb").exists() else None
        problems = check(folder / "kb")
        clew.open(folder / "kb", embedder="hash").ask(hostile.question(pick) or "x", pick.choice(["bm25", "hybrid"]))
        return problems[0] if problems else None

    wrong = apart(make)
    return [f"{', '.join(file.name for file in given)}: {wrong}"] if wrong else []


def _source_files(pick: random.Random, folder: Path) -> list[Path]:
    shape = pick.random()
    if shape < 0.4:
        tables = (("nodes", ["key", "type", "name"]), ("edges", ["head", "relation", "tail"]))
        made = [(name, *hostile.table_file(pick, columns)) for name, columns in tables][: pick.choice([1, 2, 2])]
    elif shape < 0.6:
        made = [("things", *hostile.nested_file(pick))]
    elif shape < 0.75:
        made = [("graph", *hostile.typed_rdf(pick))]
    else:
        made = [(name, ".csv", content) for name, content in hostile.plain_files(pick)]
    files = [folder / f"{name}{ending}" for name, ending, _ in made]
    for file, (*_, content) in zip(files, made, strict=True):
        file.write_bytes(content)
    return [_archive(pick, files)] if pick.random() < 0.15 else files


def _archive(pick: random.Random, files: list[Path]) -> Path:
    """The files in a ZIP archive, half the time a damaged one."""
    archive = files[0].with_name("source.zip")
    with zipfile.ZipFile(
        archive, "w", pick.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
    ) as packed:
        for file in files:
            packed.write(file, pick.choice(["", "inner/", "../", "/etc/"]) + file.name)
    if pick.random() < 0.5:
        archive.write_bytes(hostile.cut_and_flipped(archive.read_bytes(), pick))
    return archive


def query_texts(writers: Writers, seed: int, _: Path) -> list[str]:
    """Texts of the query language over a graph with a long circle: rows, or an error that says why, and soon."""
    pick = random.Random(seed)
    texts = [hostile.query(pick, QUERIES) for _ in range(TOGETHER)]

    def ask(text: str) -> str | None:
        with suppress(ClewError):
            writers.circle.query(text)
        return None

    def ask_all() -> str | None:
        for text in texts:
            begun = time.thread_time()
            fault = judged(lambda text=text: ask(text))
            if fault or time.thread_time() - begun > SECONDS:
                return f"{fault or 'slow'} for {text!r}"
        return None

    wrong = apart(ask_all, seconds=SECONDS * 10, megabytes=4_000)
    return [wrong] if wrong else []


def hostile_document(writers: Writers, seed: int, place: Path) -> list[str]:
    """A damaged document: its text, or the reason why there is none."""
    pick = random.Random(seed)
    original = pick.choice(sorted(writers.files.iterdir()))
    file = place / f"damaged{original.suffix}"
    file.write_bytes(hostile.damaged_document(original.read_bytes(), pick))

    def read() -> str | None:
        reply = from_reply(replied(file))
        return "refused without a reason" if isinstance(reply, str) and not reply.strip() else None

    wrong = apart(read, megabytes=4_000)
    return [f"{original.suffix}: {wrong}"] if wrong else []


def questions(writers: Writers, seed: int, _: Path) -> list[str]:
    """Questions over all methods and both bases, each within its time; where one fails, it is named."""
    pick = random.Random(seed)
    asked = [
        (pick.choice(["graph", "documents"]), pick.choice(method_names()), hostile.question(pick))
        for _ in range(QUESTIONS)
    ]

    def ask(kind: str, method: str, question: str) -> str | None:
        with suppress(ClewError):
            writers.opened[kind].ask(question, method)
        return None

    def ask_all() -> str | None:
        for one in asked:
            begun = time.thread_time()
            fault = judged(lambda one=one: ask(*one))
            taken = time.thread_time() - begun
            if fault or taken > SECONDS:
                return f"{fault or f'slow: {taken:.0f} seconds'} for {one!r}"
        return None

    wrong = apart(ask_all, seconds=SECONDS * 10)
    if wrong and wrong.startswith(("slow", "signal")):
        single = ((one, apart(lambda one=one: ask(*one))) for one in asked)
        return [f"{one!r}: {fault}" for one, fault in single if fault] or [wrong]
    return [wrong] if wrong else []


def model_replies(writers: Writers, seed: int, _: Path) -> list[str]:
    """A model that says anything: an answer with what was rejected, or an error."""
    pick = random.Random(seed)
    shapes = [
        '{"triplets": [["?x", "has_phenotype", "P3"]]}',
        '{"score": 0.7}',
        '["A", "B"]',
        "yes",
        "A",
        '{"answer": "x [1]"}',
    ]

    def reply(_request: object) -> str | None:
        shape = pick.random()
        if shape < 0.1:
            return None
        if shape < 0.5:
            return json.dumps(hostile.value(pick))
        return hostile.cut_and_flipped(pick.choice(shapes).encode(), pick).decode("utf-8", "surrogateescape")

    def ask() -> str | None:
        for _ in range(TOGETHER // 5):
            kind, method = pick.choice(["graph", "documents"]), pick.choice(method_names())
            with suppress(ClewError):
                base = clew.open(writers.asked[kind], model=ScriptedModel(reply))
                base.ask(hostile.question(pick), method)
        return None

    wrong = apart(ask, seconds=SECONDS * 3)
    return [wrong] if wrong else []


def endpoint_replies(seed: int, _: Path) -> list[str]:
    """An endpoint that says anything, in the form of its protocol or not."""
    pick = random.Random(seed)

    def term() -> object:
        kind = pick.choice(["uri", "literal", "literal", "bnode", "other"])
        told = {"type": kind, "value": f"http://x/{pick.randrange(6)}" if kind == "uri" else hostile.text(pick)}
        return told if pick.random() < 0.95 else hostile.value(pick)

    def answer(request: httpx.Request) -> httpx.Response:
        query = request.content.decode()
        names = [name for name in "spoltnabvc" if f"%3F{name}" in query]
        rows = [{name: term() for name in names if pick.random() < 0.95} for _ in range(pick.randrange(6))]
        body = json.dumps({"results": {"bindings": rows}}).encode()
        if pick.random() < 0.15:
            body = hostile.cut_and_flipped(body, pick)
        return httpx.Response(pick.choice([200] * 12 + [400, 503, 302]), content=body)

    def ask() -> str | None:
        endpoint = SparqlEndpoint("http://endpoint.invalid/", politeness=Politeness(attempts=1, per_second=1e6, page=4))
        endpoint._client = httpx.Client(transport=httpx.MockTransport(answer))
        tools = OpenRemoteBase(SparqlKnowledgeBase(endpoint), None, "hash")
        clew.Base(tools, None).ask(hostile.question(pick) or "x")  # type: ignore[arg-type]
        return None

    wrong = apart(ask)
    return [wrong] if wrong else []


PATHS = ["/v1/bases", "/{}", "/metrics", "/mcp", "/v1/chat/completions", "/v1/bases/{}/ask"]
PATHS += [
    f"/v1/bases/graph/{part}" for part in ("ask", "find", "nodes", "mentions", "runs/x", "neighbours", "subgraph")
]


def requests(writers: Writers, seed: int, _: Path) -> list[str]:
    """Bodies, paths and headers of HTTP: no reply says that the server is at fault."""
    pick = random.Random(seed)

    def send() -> str | None:
        settings = ServerSettings(named_bases([writers.asked["graph"]]), limits=ClientLimits(per_minute=1_000_000))
        page = TestClient(create_app(settings), base_url="http://localhost", raise_server_exceptions=False)
        for _ in range(TOGETHER):
            path = pick.choice(PATHS).format(hostile.text(pick).encode("utf-8", "replace").hex())
            told: dict[str, object] = {"question": hostile.question(pick)}
            told |= {"method": pick.choice([*method_names(), "x"])}
            if pick.random() < 0.3:
                told |= {"history": [hostile.question(pick) or "x" for _ in range(pick.randrange(1, 4))]}
            body = json.dumps(told).encode()
            if pick.random() < 0.5:
                body = pick.choice(
                    [hostile.cut_and_flipped(body, pick), json.dumps(hostile.value(pick)).encode(), b"[" * 9999]
                )
            how = pick.choice(["GET", "POST", "POST", "PUT", "DELETE"])
            given = {"text": hostile.text(pick), "k": str(hostile.value(pick))[:20]}
            given = {name: value.encode("utf-8", "replace").decode() for name, value in given.items()}
            reply = page.request(how, path, content=body, params=given, headers={"Content-Type": "application/json"})
            if reply.status_code >= 500 and reply.status_code != 503:
                return f"internal: {how} {path} {body[:120]!r}: {reply.status_code} {reply.text[:120]}"
        return None

    wrong = apart(send, seconds=SECONDS * 3)
    return [wrong] if wrong else []


def together(writers: Writers, seed: int, place: Path) -> list[str]:
    """Threads ask while the base is updated and built anew: each answer is of the old base or of the new one."""
    pick = random.Random(seed)
    folder = copied(writers.graph, place / "shared.kb")
    faults: list[str] = []

    def ask(turns: int) -> None:
        try:
            for _ in range(turns):
                base = clew.open(folder)
                for method in pick.sample(["bm25", "focus_plus", "vector_search"], 2):
                    found = base.ask("long fingers", method).candidates
                    if not found:
                        faults.append(f"changed: {method} found nothing")
        except Exception as error:
            faults.append(f"internal: {type(error).__name__}: {str(error)[:200]}")

    def work() -> str | None:
        threads = [threading.Thread(target=ask, args=(3,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for turn in range(3):
            if turn % 2:
                build(tables(), folder)
            else:
                update(folder, NEW)
        for thread in threads:
            thread.join()
        return "; ".join(faults[:2]) or next(iter(check(folder)), None)

    wrong = apart(work, seconds=SECONDS * 3)
    return [wrong] if wrong else []


def little_memory(writers: Writers, seed: int, place: Path) -> list[str]:
    """With little memory a command says so, or does its work; the base stays whole."""
    pick = random.Random(seed)
    base = copied(writers.graph, place / "small.kb")
    held = int(Path("/proc/self/statm").read_text().split()[0]) * 4096 >> 20
    work = pick.choice(
        [
            lambda: build(tables([(f"k{n}", "t", f"name {n}", [], "word " * 400) for n in range(20_000)], []), base),
            lambda: clew.open(base).ask("long fingers", pick.choice(["bm25", "focus_plus", "hybrid"])),
            lambda: update(base, NEW),
        ]
    )
    ended = apart(lambda: work() and None, megabytes=held + pick.choice([8, 32, 64, 128]))
    wrong = [None if ended == f"signal {signal.SIGABRT:d}" else ended, *check(base)]  # a native library without memory
    return [one for one in wrong if one]
