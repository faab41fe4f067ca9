"""Several processes answer, one server keeps: what a client sees is the same, and nothing is computed twice."""

import asyncio
import json
import os
import signal
import threading
import time
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from clew.core.errors import InputError, NotFoundError
from clew.server.answering import WorkerEndedError, WorkerPool
from clew.server.app import create_app
from clew.server.running import listen
from clew.server.serving import ServedBase
from clew.server.settings import ServerSettings, named_bases
from clew.server.wire import AskRequest
from clew.store.building import build
from conftest import tables

QUESTION = "Which disease has extra fingers?"


@pytest.fixture(scope="module")
def settings(tmp_path_factory) -> ServerSettings:
    folder = tmp_path_factory.mktemp("served") / "tiny.kb"
    build(tables(), folder)
    return ServerSettings(named_bases([folder]), {"papers": tmp_path_factory.mktemp("papers") / "papers"})


@pytest.fixture(scope="module")
def page(settings):
    with TestClient(create_app(replace(settings, workers=2)), base_url="http://localhost") as opened:
        yield opened
        workers = list(opened.app.state.clew.asker.workers._all)
    assert [worker.returncode for worker in workers] == [0, 0]  # they end with the server


def without_times(run: dict) -> dict:
    trace = [{name: span[name] for name in ("id", "parent", "name", "error")} for span in run["trace"]]
    return {**run, "run": "", "seconds": 0, "trace": trace}


def ask(page: TestClient, question: str = QUESTION, query: str = "", **more):
    return page.post(f"/v1/bases/tiny/ask{query}", json={"question": question, "method": "hybrid", **more})


def test_processes_answer_like_the_server_itself_and_runs_are_found_again(page, settings):
    alone = TestClient(create_app(settings), base_url="http://localhost")
    run = ask(page).json()
    assert without_times(run) == without_times(ask(alone).json())
    assert page.get(f"/v1/bases/tiny/runs/{run['run']}").json() == run
    assert ask(page).json()["run"] == run["run"]  # remembered


def test_steps_are_streamed_from_another_process(page):
    told = ask(page, "arachnodactyly in connective tissue", "?stream=true").text.strip().split("\n\n")
    kinds = [event.split("\n")[0].removeprefix("event: ") for event in told]
    assert kinds[0] == "span"
    assert kinds[-1] == "run"
    spans = [json.loads(event.partition("\ndata: ")[2]) for event in told if event.startswith("event: span")]
    assert {span["name"] for span in spans if span["seconds"] is not None}


def test_errors_of_a_question_cross_the_process_border(page):
    assert ask(page, fixes={"extra fingers": ["nothing has this key"]}).status_code == 404
    assert ask(page, "  ").status_code == 422


def test_processes_see_documents_as_soon_as_they_are_built(page):
    for name, text, question in (
        ("one.md", b"# Crete\n\nAriadne gave Theseus a clew of thread.", "Who gave Theseus a clew?"),
        ("two.md", b"# Athens\n\nAegeus waited for white sails on the cliff.", "Who waited for white sails?"),
    ):
        assert page.put(f"/v1/bases/papers/documents/{name}", content=text).status_code == 202
        while page.get("/v1/bases/papers/documents").json()["build"]["state"] not in ("idle", "failed"):
            time.sleep(0.1)
        for number in range(2):  # both processes
            asked = {"question": f"{question}{' ' * number}", "method": "bm25"}
            first = page.post("/v1/bases/papers/ask", json=asked).json()["answers"][0]
            assert first["evidence"][0]["file"] == name


def test_a_process_that_was_killed_is_replaced(settings):
    pool = WorkerPool(settings.bases, (), 1)
    pool.start()
    request, tiny = AskRequest(question=QUESTION, method="bm25"), ServedBase("tiny", settings.bases["tiny"])
    try:
        assert json.loads(pool.answer(tiny, request, "r" * 12))["run"] == "r" * 12
        [worker] = pool._all
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait(250)
        with pytest.raises(WorkerEndedError, match="ask again"):
            pool.answer(tiny, request, "s" * 12)
        assert json.loads(pool.answer(tiny, request, "t" * 12))["answers"]
        with pytest.raises(NotFoundError):
            pool.answer(tiny, AskRequest(question=QUESTION, method="nobody's"), "u" * 12)
        with pytest.raises(InputError):
            pool.answer(tiny, AskRequest(question=" ", method="bm25"), "v" * 12)
        [worker] = pool._all
    finally:
        pool.close()
    assert worker.returncode == 0


def test_a_question_that_is_under_way_is_not_computed_again(settings):
    app = create_app(settings)
    asker, base = app.state.clew.asker, app.state.clew.served.bases["tiny"]
    release, begun = threading.Event(), []
    real = asker._answer

    def slow(*given):
        begun.append(given)
        release.wait(250)
        return real(*given)

    asker._answer = slow

    async def together() -> list[bytes]:
        request = AskRequest(question=QUESTION, method="bm25")
        first = asyncio.create_task(asker.ask(base, request))
        others = [asyncio.create_task(asker.ask(base, request)) for _ in range(5)]
        await asyncio.sleep(0.05)
        first.cancel()  # the one who asked first goes away, the others still get their answer
        release.set()
        return await asyncio.gather(*others)

    answers = asyncio.run(together())
    assert len(set(answers)) == len(begun) == 1


def test_the_same_work_is_done_for_two_at_once(settings):
    """Two who looked at the documents of a base at the same moment were told of an internal error."""
    asker, together = create_app(settings).state.clew.asker, threading.Barrier(2)

    async def twice() -> list[int]:
        return await asyncio.gather(asker.in_thread(together.wait), asker.in_thread(together.wait))

    assert sorted(asyncio.run(twice())) == [0, 1]


def test_replies_are_sent_at_once():
    """A reply in two pieces must not wait for the acknowledgement of the first: that took 40 ms a question."""
    import socket

    async def accepted() -> int:
        options: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            options.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = listen("127.0.0.1", 0)
        async with await asyncio.start_server(serve, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            found = await options
            writer.close()
            return found

    assert asyncio.run(accepted()) != 0
