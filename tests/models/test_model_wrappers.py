"""What stands between a method and a model: cache, budget, limits, retries, trace."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import pytest

from chat_server import ChatServer, Handler, chat_body, serving
from clew.core import trace
from clew.core.errors import InputError, PendingError, StorageError
from clew.models.budget import Budget, Ledger
from clew.models.openai_chat import OpenAIChat
from clew.models.opening import open_estimating, open_model
from clew.models.prices import Price
from clew.models.protocol import Completion, Message, Request, Usage
from clew.models.reply_store import ReplyStore
from clew.models.scripted import ScriptedModel
from clew.models.settings import Settings
from clew.models.wrappers import Budgeted, Cached, Limited, Retrying, Traced
from repeats import repeats


def request(text: object = "hello", **options) -> Request:
    return Request((Message("user", str(text)),), **options)


def echo(asked: Request) -> str:
    return f"echo {asked.messages[-1].content}"


class TestCached:
    def test_nothing_is_asked_twice_and_order_is_kept(self, tmp_path):
        model = ScriptedModel(echo)
        cached = Cached(model, ReplyStore(tmp_path / "replies.sqlite"))
        texts = [done.text for done in cached.complete([request(n) for n in (1, 2, 1, 3)])]
        assert texts == ["echo 1", "echo 2", "echo 1", "echo 3"]
        again = Cached(model, ReplyStore(tmp_path / "replies.sqlite")).complete([request(3), request(4)])
        assert [(done.text, done.usage.cached) for done in again] == [("echo 3", True), ("echo 4", False)]
        assert len(model.asked) == 4

    @pytest.mark.parametrize(
        "other",
        [
            request(max_tokens=9),
            request(temperature=0.5),
            request(schema={"type": "object"}),
            request(stop=("x",)),
            request(seed=1),
            request(top_logprobs=3),
            Request((Message("system", "hello"),)),
        ],
    )
    def test_every_part_of_a_request_counts(self, tmp_path, other):
        model = ScriptedModel(echo)
        cached = Cached(model, ReplyStore(tmp_path / "replies.sqlite"))
        cached.complete([request()])
        cached.complete([other])
        assert len(model.asked) == 2

    def test_two_models_do_not_share_replies(self, tmp_path):
        store = ReplyStore(tmp_path / "replies.sqlite")
        first, second = ScriptedModel(echo, name="a"), ScriptedModel(echo, name="b")
        Cached(first, store).complete([request()])
        Cached(second, store).complete([request()])
        assert len(second.asked) == 1

    def test_failures_are_not_kept(self, tmp_path):
        left: list[str | None] = [None, "better"]
        cached = Cached(ScriptedModel(lambda _: left.pop(0)), ReplyStore(tmp_path / "replies.sqlite"))
        assert cached.complete([request()])[0].error
        assert cached.complete([request()])[0].text == "better"

    def test_threads_that_ask_the_same_at_once_pay_once(self, tmp_path):
        def slowly(asked: Request) -> str:
            time.sleep(0.05)
            return echo(asked)

        model = ScriptedModel(slowly)
        cached = Cached(Limited(model, concurrency=4), ReplyStore(tmp_path / "replies.sqlite"))
        batches = [[request(n) for n in order] for order in ((1, 2, 3), (3, 2, 1), (2, 3, 1), (1, 3, 2))]
        results = trace.concurrently(cached.complete, batches, limit=4)
        assert Counter(echo(asked) for asked in model.asked) == {f"echo {n}": 1 for n in (1, 2, 3)}
        assert [[done.text for done in result] for result in results] == [[echo(r) for r in b] for b in batches]

    def test_many_processes_write_one_file(self, tmp_path):
        script = (
            "import sys; from pathlib import Path; from clew.models.reply_store import ReplyStore;"
            "from clew.models.protocol import Completion; store = ReplyStore(Path(sys.argv[1]));"
            "[store.put(f'{sys.argv[2]}-{n % 50}', Completion('x' * 100)) for n in range(200)]"
        )
        file = tmp_path / "replies.sqlite"
        running = [subprocess.Popen([sys.executable, "-c", script, str(file), str(n)]) for n in range(4)]
        assert [process.wait() for process in running] == [0] * 4
        assert len(ReplyStore(file)) == 200

    def test_the_file_stays_below_its_cap_and_keeps_the_newest(self, tmp_path):
        store = ReplyStore(tmp_path / "replies.sqlite", cap=20_000)
        for n in range(300):
            store.put(str(n), Completion("x" * 300))
        assert 20 < len(store) < 60
        assert store.get(["299", "0"]).keys() == {"299"}

    def test_any_text_survives_the_store(self, tmp_path):
        store = ReplyStore(tmp_path / "replies.sqlite")
        kept = Completion("𝔘 \ud800 \x00 é", Usage(3, 4, 0.5, 1.5), cut=True, logprobs=({"a": -0.25},))
        store.put("k", kept)
        found = store.get(["k"])["k"]
        assert (found.text, found.cut, found.logprobs) == (kept.text, kept.cut, kept.logprobs)
        assert found.usage == Usage(3, 4, 0.5, 1.5, cached=True)

    def test_a_file_that_is_no_cache_is_refused(self, tmp_path):
        (tmp_path / "replies.sqlite").write_bytes(b"these are my holiday pictures" * 100)
        with pytest.raises(StorageError, match="cannot be used as a cache"):
            ReplyStore(tmp_path / "replies.sqlite")


def test_32_requests_are_under_way_at_once_keep_order_and_share_a_cache(tmp_path):
    asked = [request(n) for n in range(32)]
    together = threading.Barrier(len(asked))  # nobody is answered before all have asked

    def reply(body):
        together.wait(timeout=60)
        return "echo " + body["messages"][0]["content"]

    with serving(reply) as server:
        limited = Limited(Retrying(OpenAIChat(server.url, "m")), concurrency=32)
        cached = Cached(limited, ReplyStore(tmp_path / "replies.sqlite"))
        done = cached.complete(asked)
        assert [d.text for d in done] == [f"echo {n}" for n in range(32)]
        calls = len(server.bodies)
        assert all(d.usage.cached for d in cached.complete(asked[::-1]))
        assert len(server.bodies) == calls


class TestBudgeted:
    CALLS = 100

    def run(self, budget: Budget):
        class Counting:
            name, context_tokens, calls, lock = "counting", 8192, 0, threading.Lock()

            def complete(self, requests):
                with self.lock:
                    self.calls += len(requests)
                return [Completion("x", Usage(50, 50, 0.01)) for _ in requests]

        inner = Counting()
        ledger = Ledger(budget, clock=lambda: 0.02 * inner.calls)  # a call takes 20 ms
        done = Budgeted(Limited(inner, concurrency=4), ledger).complete([request(n) for n in range(self.CALLS)])
        assert len(done) == self.CALLS
        return inner.calls, ledger, done

    def test_calls(self):
        calls, ledger, done = self.run(Budget(calls=7))
        assert (calls, ledger.refused) == (7, 93)
        assert all(d.failure == "budget" for d in done[7:])
        assert "7 calls" in (ledger.cut_short or "")

    def test_tokens(self):
        calls, ledger, _ = self.run(Budget(tokens=1000))
        assert 10 <= calls <= 14
        assert ledger.tokens <= 1000 + 4 * 100

    def test_dollars(self):
        calls, ledger, _ = self.run(Budget(dollars=0.2))
        assert 20 <= calls <= 24
        assert ledger.dollars <= 0.2 + 4 * 0.01 + 1e-9

    def test_seconds(self):
        calls, ledger, _ = self.run(Budget(seconds=0.2))
        assert 10 <= calls <= 14
        assert ledger.seconds <= 0.2 + 4 * 0.02 + 1e-9

    def test_no_cap_refuses_nothing(self):
        calls, ledger, _ = self.run(Budget())
        assert (calls, ledger.cut_short) == (self.CALLS, None)

    def test_a_cached_reply_costs_nothing(self, tmp_path):
        store = ReplyStore(tmp_path / "replies.sqlite")
        Cached(ScriptedModel(echo), store).complete([request(1), request(2)])
        ledger = Ledger(Budget(calls=1))
        done = Cached(Budgeted(ScriptedModel(echo), ledger), store).complete([request(n) for n in (1, 2, 3)])
        assert [d.error for d in done] == [None] * 3
        assert ledger.calls == 1

    def test_a_negative_cap_is_refused(self):
        with pytest.raises(InputError, match="zero or more"):
            Budget(dollars=-1)


class TestLimited:
    def test_never_more_than_the_limit_at_once(self):
        running, most, lock, together = 0, 0, threading.Lock(), threading.Barrier(3)

        def reply(asked: Request) -> str:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            together.wait(timeout=60)  # and never fewer, while there is something to ask
            with lock:
                running -= 1
            return echo(asked)

        done = Limited(ScriptedModel(reply), concurrency=3).complete([request(n) for n in range(21)])
        assert [d.text for d in done] == [f"echo {n}" for n in range(21)]
        assert most == 3

    def test_the_rate_is_kept(self):
        begun = time.perf_counter()
        Limited(ScriptedModel(echo), concurrency=8, per_minute=1200).complete([request(n) for n in range(6)])
        assert time.perf_counter() - begun >= 5 * 60 / 1200

    def test_batches_are_cut_and_put_together_again(self):
        sizes = []

        class Batching:
            name, context_tokens = "batching", 8192

            def complete(self, requests):
                sizes.append(len(requests))
                return [Completion(echo(r)) for r in requests]

        done = Limited(Batching(), concurrency=2, batch=4).complete([request(n) for n in range(10)])
        assert [d.text for d in done] == [f"echo {n}" for n in range(10)]
        assert sorted(sizes) == [2, 4, 4]


class TestConcurrently:
    def test_a_failure_stops_the_drawing_and_the_first_by_position_is_raised(self):
        drawn, third = [], Future()

        def items():
            for n in range(100):
                drawn.append(n)
                yield n

        def work(n: int) -> int:
            if n == 3:
                third.set_result(threading.current_thread())
            else:
                third.result(60).join()  # it has failed before any other ends
            if n in (2, 3):
                raise InputError(f"item {n}")
            return n

        with pytest.raises(InputError, match="item 2"):
            trace.concurrently(work, items(), limit=4)
        assert len(drawn) == 4

    def test_what_is_pending_lets_the_others_go_on(self):
        done = []

        def work(n: int) -> None:
            done.append(n)
            raise PendingError("wait")

        for limit in (1, 4):
            done.clear()
            with pytest.raises(PendingError):
                trace.concurrently(work, range(10), limit=limit)
            assert sorted(done) == list(range(10))

    def test_spans_stay_below_the_caller(self):
        def work(n: int) -> int:
            with trace.span("inner", n=n):
                return n

        with trace.recording() as recorder, trace.span("outer"):
            assert trace.concurrently(work, range(5)) == list(range(5))
        assert {span.parent for span in recorder.spans if span.name == "inner"} == {0}


RUN = """
import json, os, sys, httpx
from clew.models.opening import open_model
from clew.models.protocol import Message, Request

def run(file):
    model = open_model(sys.argv[1] + "#m")
    requests = [Request((Message("user", f"question {n}"),)) for n in range(200)]
    texts = [done.text for done in model.complete(requests)]
    with open(file, "w") as opened:
        json.dump(texts, opened)

for line in sys.stdin:  # one run per line, each in a process of its own that need not import everything again
    child = os.fork()
    if not child:
        run(line.strip())
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


SINGLE_RUN = RUN.partition("for line in")[0] + "run(os.devnull)"


def charge_once(charged: Counter[str], lock: threading.Lock):
    """A repeated Idempotency-Key is not charged again, as payment APIs do; what is charged is counted."""

    def behave(handler: Handler, body) -> None:
        with lock:
            charged[handler.headers["Idempotency-Key"]] += handler.headers["Idempotency-Key"] not in charged
        handler.send(200, chat_body("echo " + body["messages"][0]["content"]))

    return behave


@pytest.mark.long
def test_a_run_killed_at_random_moments_pays_nothing_twice_and_ends_the_same(tmp_path):
    kills = repeats(6, 30)
    environment = {**os.environ, "CLEW_CACHE": str(tmp_path), "CLEW_CONFIG": str(tmp_path / "none.toml")}
    moments = random.Random(3)
    charged: Counter[str] = Counter()
    with serving(misbehave=[charge_once(charged, threading.Lock())] * 1000, latency=0.1) as server:
        runner = subprocess.Popen(
            [sys.executable, "-c", RUN, server.url],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )

        def run(kill_with: signal.Signals | None) -> Path:
            """Run, or run until a random moment; nothing that the cache holds may be asked again."""
            store = ReplyStore(tmp_path / "replies.sqlite")
            asked_before = len(server.bodies)
            known = {header["Idempotency-Key"] for header in server.headers}
            known = store.get(list(known)).keys()
            runner.stdin.write(f"{tmp_path / 'result.json'}\n")
            process = int(runner.stdout.readline())
            if kill_with is not None:
                while len(server.bodies) == asked_before:
                    time.sleep(0.002)
                time.sleep(moments.uniform(0, 0.1))
                os.kill(process, kill_with)
            runner.stdout.readline()
            asked = {header["Idempotency-Key"] for header in server.headers[asked_before:]}
            assert not asked & known
            return tmp_path / "result.json"

        for _ in range(kills):
            assert not run(moments.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM])).exists()
        server.latency = 0.0
        assert json.loads(run(None).read_text()) == [f"echo question {n}" for n in range(200)]
        assert len(charged) == 200
        assert set(charged.values()) == {1}
        # Asked again were only requests under way when a kill came: at most the eight that run at once, each time.
        assert len(server.bodies) - 200 <= kills * 8
        asked = len(server.bodies)
        run(None)
        assert len(server.bodies) == asked
        runner.stdin.close()
        runner.stdout.close()
        runner.wait()


def test_ctrl_c_ends_a_run_and_keeps_what_had_come(tmp_path):
    environment = {**os.environ, "CLEW_CACHE": str(tmp_path), "CLEW_CONFIG": str(tmp_path / "none.toml")}
    with serving(latency=0.3) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", SINGLE_RUN, server.url],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        while len(server.bodies) < 6:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        assert len(server.bodies) < 200, "it did not end by itself"
        assert b"KeyboardInterrupt" in errors
        # An interrupt that hits while a reply is being stored leaves the four under way behind, and never more.
        assert len(server.bodies) - 4 <= len(ReplyStore(tmp_path / "replies.sqlite")) <= len(server.bodies)


class TestTraced:
    def model(self, tmp_path: Path) -> Traced:
        return Traced(Cached(ScriptedModel(echo), ReplyStore(tmp_path / "replies.sqlite")))

    def test_the_trace_shows_each_call_and_what_all_came_to(self, tmp_path):
        model = self.model(tmp_path)
        with trace.recording() as recorder:
            model.complete([request(1), request(2)])
            model.complete([request(1)])
        calls = [call for span in recorder.spans for call in span.calls]
        assert [call.cached for call in calls] == [False, False, True]
        assert calls[0].prompt_hash == calls[2].prompt_hash != calls[1].prompt_hash
        spending = recorder.spending()
        assert (spending.calls, spending.cached, spending.failed) == (3, 1, 0)
        assert spending.prompt_tokens == calls[0].prompt_tokens + calls[1].prompt_tokens

    def test_the_completions_are_the_same_with_and_without_it(self, tmp_path):
        plain = self.model(tmp_path / "a").complete([request(1), request(2)])
        with trace.recording():
            recorded = self.model(tmp_path / "b").complete([request(1), request(2)])
        assert [c.text for c in plain] == [c.text for c in recorded]


class TestKeysAndSettings:
    KEY = "sk-do-not-show-me"

    def settings(self, tmp_path: Path, server: ChatServer, config: str = "", **environment: str) -> Settings:
        file = tmp_path / "config.toml"
        file.write_text(config)
        file.chmod(0o600)
        place = {"CLEW_CONFIG": str(file), "CLEW_CACHE": str(tmp_path / "cache")}
        return Settings.load({**place, "OPENAI_BASE_URL": server.url, **environment})

    def test_a_key_is_sent_and_appears_nowhere_else(self, tmp_path, capfd, caplog):
        caplog.set_level("DEBUG")
        with serving() as server, trace.recording() as recorder:
            settings = self.settings(tmp_path, server, OPENAI_API_KEY=self.KEY)
            model = open_model("openai:gpt-4o-mini", settings=settings)
            assert model is not None
            assert model.complete([request()])[0].text == "fine"
            recorder.write(tmp_path / "trace.jsonl")
            assert server.headers[0]["Authorization"] == f"Bearer {self.KEY}"
            shown = "".join((*capfd.readouterr(), caplog.text, repr(model), repr(settings)))
        assert self.KEY not in shown
        for file in tmp_path.rglob("*"):
            assert not file.is_file() or self.KEY.encode() not in file.read_bytes(), file

    def test_openais_key_goes_to_no_other_server(self, tmp_path):
        with serving() as server:
            settings = self.settings(tmp_path, server, OPENAI_API_KEY=self.KEY)
            model = open_model(f"{server.url}#m", settings=settings, cache=False)
            assert model is not None
            model.complete([request()])
            assert "Authorization" not in server.headers[0]

    def test_a_named_model_finds_its_key_and_limits_in_the_file(self, tmp_path):
        with serving() as server:
            config = f'[keys]\n"{server.url}" = "{self.KEY}"\n'
            config += f'[models.fast]\nspec = "{server.url}#qwen"\ncontext_tokens = 32768\n'
            model = open_model("fast", settings=self.settings(tmp_path, server, config), cache=False)
            assert model is not None
            assert model.context_tokens == 32768
            model.complete([request()])
            assert server.headers[0]["Authorization"] == f"Bearer {self.KEY}"

    def test_a_file_with_keys_that_others_can_read_is_refused(self, tmp_path):
        file = tmp_path / "config.toml"
        file.write_text(f'[keys]\nopenai = "{self.KEY}"\n')
        file.chmod(0o644)
        with pytest.raises(InputError, match="chmod 600") as refused:
            Settings.load({"CLEW_CONFIG": str(file)})
        assert self.KEY not in str(refused.value)

    def test_a_wrong_file_is_refused_without_showing_keys(self, tmp_path):
        file = tmp_path / "config.toml"
        file.write_text(f'[keys]\nopenai = ["{self.KEY}"]\n')
        with pytest.raises(InputError, match=r"keys\.openai") as refused:
            Settings.load({"CLEW_CONFIG": str(file)})
        assert self.KEY not in str(refused.value)

    @pytest.mark.parametrize("spec", ["gpt-4o", "http://127.0.0.1:1/v1", "https://u:p@h/v1#m", "scripted:/no/such"])
    def test_a_wrong_spec_says_what_is_expected(self, spec, tmp_path):
        with pytest.raises(InputError):
            open_model(spec, settings=Settings.load({"CLEW_CONFIG": str(tmp_path / "none")}))

    def test_none_is_no_model(self):
        assert open_model(None) is None
        assert open_model("none") is None

    def test_dollars_need_a_price(self, tmp_path):
        places = {"CLEW_CONFIG": str(tmp_path / "config.toml"), "CLEW_CACHE": str(tmp_path)}
        settings = Settings.load({**places, "OPENAI_API_KEY": self.KEY})
        ledger = Ledger(Budget(dollars=1))
        with pytest.raises(InputError, match="no price"):
            open_model("openai:some-new-model", ledger=ledger, settings=settings)
        (tmp_path / "prices.toml").write_text('[models]\n"some-new-model" = {input = 1.0, output = 3.0}\n')
        assert open_model("openai:some-new-model", ledger=ledger, settings=settings) is not None

    def test_an_estimate_says_where_the_price_is_unknown(self, tmp_path):
        places = {"CLEW_CONFIG": str(tmp_path / "config.toml"), "CLEW_CACHE": str(tmp_path)}
        settings = Settings.load({**places, "OPENAI_API_KEY": self.KEY})
        for spec, told in (("openai:some-new-model", "price is unknown"), ("openai:gpt-4o-mini", "$0.0000")):
            estimate = open_estimating(spec, settings=settings).estimate()
            assert told in estimate.in_words()
            assert (estimate.dollars is None) == ("unknown" in told)


def test_a_dated_version_costs_what_its_model_costs():
    from clew.models.prices import FREE, PriceTable

    table = PriceTable({"gpt-4o": Price(input=2.5, output=10.0), "gpt-4o-mini": Price(input=0.15, output=0.6)})
    assert table.of("gpt-4o-mini-2024-07-18") == Price(input=0.15, output=0.6)
    assert table.of("gpt-4o-2024-08-06") == Price(input=2.5, output=10.0)
    assert table.of("gpt-4o-audio") == FREE
