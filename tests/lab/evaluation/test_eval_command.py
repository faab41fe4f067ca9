"""`clew eval` and `clew report` from the command line, over plain questions and data sets that bring their base."""

import json
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from clew.answering.methods import catalog
from clew.answering.methods.protocol import Method
from clew.cli import main
from clew.core.errors import FormatError, PendingError
from clew.core.trace import fallback, span
from clew.core.types import Answer, Candidate
from clew.store.building import build
from conftest import TESTS, tables
from repeats import repeats


def words(text):
    return set(re.findall(r"\w{4,}", text.lower()))


@dataclass(frozen=True)
class WordCount(Method):
    """Ranks nodes by how many words of the question their text has."""

    name = "words"
    k: int = 5
    wait: float = 0.0
    pending: bool = False

    def answer(self, question, tools):
        if self.pending and "gene" in question:
            raise PendingError("answer the batch")
        time.sleep(self.wait)
        asked = words(question)
        with span("count"):
            scores = {n: len(asked & words(tools.kb.text(n))) for n in tools.kb.nodes()}
            if not any(scores.values()):
                fallback("count", "no word in common", "ranked by key")
        best = sorted(scores, key=lambda node: (-scores[node], node))[: self.k]
        refs = tools.kb.refs(best)
        return Answer(question, tuple(Candidate(r, scores[n]) for r, n in zip(refs, best, strict=True)))


@pytest.fixture(autouse=True)
def method(monkeypatch, tmp_path):
    monkeypatch.setitem(catalog.METHODS, "words", WordCount)
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def base(tmp_path):
    build(tables(), tmp_path / "tiny.kb")
    return tmp_path / "tiny.kb"


@pytest.fixture
def questions(tmp_path):
    file = tmp_path / "own.jsonl"
    asked = [("which gene encodes fibrillin?", ["FBN1"]), ("more than five digits?", ["P1"]), ("zzz?", ["MFS"])]
    asked += [(f"fibrillin or photoreceptors {n}?", ["FBN1", "P2"]) for n in range(7)]
    lines = [{"id": f"q{n}", "question": q, "answers": a, "type": f"t{n % 2}"} for n, (q, a) in enumerate(asked)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def clew(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["clew", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return ended.value.code or 0, printed.out, printed.err


def test_eval_prints_the_promised_json(monkeypatch, capsys, base, questions):
    code, out, _ = clew(monkeypatch, capsys, "eval", "-q", questions, "--kb", base, "-m", "words", "--json")
    assert code == 0
    (run,) = json.loads(out)["runs"]
    promised = "dataset split method model n metrics latency_ms calls tokens cost fallbacks"
    assert list(run)[:11] == promised.split()
    assert (run["dataset"], run["method"], run["model"], run["n"]) == ("own", "words", "none", 10)
    assert run["metrics"]["hit@1"] == pytest.approx(0.9)
    assert run["fallback_steps"] == {"count": 1}
    assert run["match"] == "key"  # every gold answer is a key of the base


def test_gold_answers_may_be_names_and_aliases(monkeypatch, capsys, base, tmp_path):
    file = tmp_path / "names.jsonl"
    file.write_text(json.dumps({"question": "more than five digits?", "answers": ["Extra Fingers"]}) + "\n")
    _, out, _ = clew(monkeypatch, capsys, "eval", "-q", file, "--kb", base, "-m", "words", "--json")
    (run,) = json.loads(out)["runs"]
    assert (run["match"], run["metrics"]["hit@1"]) == ("strict", 1.0)


def test_eval_keeps_a_run_and_report_shows_it(monkeypatch, capsys, base, questions, tmp_path):
    out = tmp_path / "runs"
    common = ("eval", "-q", questions, "--kb", base, "-m", "words")
    code, printed, _ = clew(monkeypatch, capsys, *common, "--out", out)
    assert code == 0
    assert "own (full, n = 10, strict match)" not in printed  # matched by key: nothing to say about names
    assert "Hit@1" in printed
    code, _, message = clew(monkeypatch, capsys, *common, "--out", out, "-O", "k=2")
    assert code == 2
    assert "holds another run" in message
    page = tmp_path / "report.html"
    code, printed, _ = clew(monkeypatch, capsys, "report", out, "--html", page)
    assert code == 0
    assert "zzz?" in printed
    assert "count" in printed  # the trace of the failure
    assert "<svg" in page.read_text()
    code, printed, _ = clew(monkeypatch, capsys, "report", out, "--json")
    failure = json.loads(printed)["failures"][0]
    assert (failure["question"], failure["gold"]) == ("zzz?", ["Marfan syndrome (MFS)"])


def test_a_sample_and_a_label_are_shown(monkeypatch, capsys, base, questions):
    common = ("eval", "-q", questions, "--kb", base, "-m", "words", "--json")
    _, out, _ = clew(monkeypatch, capsys, *common, "--limit", "4", "--seed", "2", "--label", "reduced")
    (run,) = json.loads(out)["runs"]
    assert (run["n"], run["portion"]) == (4, "reduced: 4 of 10, seed 2")


def test_pending_questions_are_counted_and_the_command_says_what_to_do(monkeypatch, capsys, base, questions):
    common = ("eval", "-q", questions, "--kb", base, "-m", "words", "--json")
    code, out, message = clew(monkeypatch, capsys, *common, "-O", "pending=true")
    assert code == 1
    assert json.loads(out)["runs"][0]["waiting"] == 1
    assert "1 questions wait: answer the batch" in message


def test_a_data_set_brings_its_base_which_is_built_once(monkeypatch, capsys, tmp_path):
    (tmp_path / "2-hop").mkdir()
    (tmp_path / "kb.txt").write_text("Heat|directed_by|Michael Mann\nHeat|starred_actors|Al Pacino\n")
    (tmp_path / "2-hop" / "qa_dev.txt").write_text("who directed films of [al pacino]\tMichael Mann\n")
    for _ in range(2):
        command = ("eval", "-q", f"metaqa:{tmp_path}:2-hop-dev", "-m", "words", "--json")
        code, out, message = clew(monkeypatch, capsys, *command)
        assert code == 0, message
    assert json.loads(out)["runs"][0]["n"] == 1
    assert len(list((tmp_path / "cache" / "bases").glob("metaqa-*.kb"))) == 1


def test_a_base_in_the_cache_that_is_broken_or_of_another_version_is_built_again(monkeypatch, capsys, tmp_path):
    (tmp_path / "2-hop").mkdir()
    (tmp_path / "kb.txt").write_text("Heat|directed_by|Michael Mann\n")
    (tmp_path / "2-hop" / "qa_dev.txt").write_text("who directed [heat]\tMichael Mann\n")
    command = ("eval", "-q", f"metaqa:{tmp_path}:2-hop-dev", "-m", "words", "--json")
    clew(monkeypatch, capsys, *command)
    [base] = (tmp_path / "cache" / "bases").glob("metaqa-*.kb")
    next(base.rglob("types.npy")).unlink()
    code, _, message = clew(monkeypatch, capsys, *command)
    assert code == 0
    assert "rebuilding a cached base" in message
    assert "types.npy" in message
    built = (base / "manifest.json").stat().st_mtime_ns

    def refuse(_):
        raise FormatError("postings.npy is missing: another version")

    monkeypatch.setattr("clew.lab.datasets.base.open_lexical", refuse)
    code, _, message = clew(monkeypatch, capsys, *command)
    assert code == 0
    assert "postings.npy is missing" in message
    assert (base / "manifest.json").stat().st_mtime_ns > built


def test_documents_are_asked_in_one_pool_or_question_by_question(monkeypatch, capsys, tmp_path):
    def record(id, gold, other):
        context = [[gold, [f"{gold} is a river."]], [other, [f"{other} is something else."]]]
        facts = [[gold, 0]]
        question = f"which river is {gold.lower()}?"
        return {"_id": id, "question": question, "answer": gold, "supporting_facts": facts, "context": context}

    file = tmp_path / "dev.json"
    file.write_text(json.dumps([record("1", "Rhine", "Oslo"), record("2", "Elbe", "Bern")]))
    for more in ((), ("--graph", "tfidf", "--neighbours", "3"), ("--no-titles",), ("--per-question",)):
        command = ("eval", "-q", f"hotpotqa:{file}", "-m", "words", "--json", *more)
        code, out, message = clew(monkeypatch, capsys, *command)
        assert code == 0, message
        (run,) = json.loads(out)["runs"]
        assert run["metrics"]["recall@2"] == 1.0
        assert run["metrics"]["precision"] == (0.5 if more == ("--per-question",) else 0.25)
        assert "em" not in run["metrics"]  # nothing was written
        code, out, message = clew(monkeypatch, capsys, *command[:4], "golden_passages", "--json", *more)
        assert code == 0, message
        assert json.loads(out)["runs"][0]["metrics"]["precision"] == 1.0  # told by the data set what is gold


def test_what_cannot_be_evaluated_is_said_clearly(monkeypatch, capsys, base, questions):
    code, _, message = clew(monkeypatch, capsys, "eval", "-q", questions, "-m", "words")
    assert (code, "has no knowledge base: pass one with --kb" in message) == (2, True)
    code, _, message = clew(monkeypatch, capsys, "eval", "-q", questions, "--kb", base, "-m", "nothing")
    assert (code, "no method 'nothing'" in message) == (2, True)
    common = ("eval", "-q", questions, "--kb", base, "-m", "words")
    code, _, message = clew(monkeypatch, capsys, *common, "-m", "words")
    assert (code, "given twice" in message) == (2, True)
    code, _, message = clew(monkeypatch, capsys, *common, "-O", "depth=3")
    assert (code, "words has no option 'depth'" in message) == (2, True)
    code, _, message = clew(monkeypatch, capsys, *common, "--per-question")
    assert (code, "remove --per-question" in message) == (2, True)


def test_options_are_for_all_methods_or_for_one(monkeypatch, capsys, base, questions):
    monkeypatch.setitem(catalog.METHODS, "others", WordCount)
    common = ("eval", "-q", questions, "--kb", base, "-m", "words", "-m", "others", "--json")
    _, out, _ = clew(monkeypatch, capsys, *common, "-O", "wait=0.001", "-O", "others.k=2")
    words, others = (run["parameters"] for run in json.loads(out)["runs"])
    assert (words["k"], others["k"], words["wait"]) == (5, 2, 0.001)


SCRIPT = """
import sys, time
sys.path[:0] = {tests!r}
from test_eval_command import WordCount
sleep = time.sleep
time.sleep = lambda seconds: sleep(20 * seconds)  # time enough to kill it, wherever this runs
from clew.answering.methods import catalog
from clew.cli import main
catalog.METHODS["words"] = WordCount
main()
"""


@pytest.mark.long
def test_the_command_killed_at_random_moments_resumes_to_the_identical_report(
    monkeypatch, capsys, tmp_path, base, questions
):
    script = SCRIPT.format(tests=[str(TESTS), str(Path(__file__).parent)])
    common = ("eval", "-q", questions, "--kb", base, "-m", "words", "-O", "wait=0.05", "-j", "2", "--json")
    command = [sys.executable, "-c", script, *map(str, common), "--out", str(tmp_path / "killed")]
    answers = tmp_path / "killed" / "own" / "words" / "answers.jsonl"
    dice = random.Random(5)

    def written():
        return answers.stat().st_size if answers.exists() else 0

    def report(folder):
        found = json.loads(clew(monkeypatch, capsys, "report", folder, "--json")[1])
        for run in found["runs"]:
            del run["latency_ms"]
        for failure in found["failures"]:
            del failure["trace"]
        return found

    kills = 0
    for _ in range(repeats(2, 20)):
        before = written()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and written() == before:
            time.sleep(0.005)
        time.sleep(dice.uniform(0, 0.03))
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    assert kills
    assert 0 < len(answers.read_bytes().splitlines()) <= 10
    for folder in ("killed", "whole"):
        clew(monkeypatch, capsys, *common, "--out", tmp_path / folder)
    assert report(tmp_path / "killed") == report(tmp_path / "whole")
