"""The construction with models: extraction, two stages of writing, judges, batches, budgets, estimates."""

import json
import re
from pathlib import Path

import pytest
from test_synthesis import read_all, small  # noqa: F401 - a fixture

from clew.core.errors import BudgetError, ModelError, PendingError
from clew.lab.synthesis.benchmark import BenchmarkOptions, Writers, estimate_benchmark, make_benchmark
from clew.lab.synthesis.records import violations
from clew.models.batch import BatchFolder
from clew.models.budget import Budget, Ledger
from clew.models.prices import EstimatingModel
from clew.models.protocol import Completion
from clew.models.scripted import ScriptedModel
from clew.models.wrappers import Budgeted
from clew.store.open_base import OpenBase


def reply(request) -> str:
    """A model that does its part, but loses names in every rewriting of a question about Syndrome 1…."""
    system, asked = request.messages[0].content, request.messages[-1].content
    if "collect what is said" in system:
        said = re.search(r"^text: (\w+ \w+)", asked, re.MULTILINE)
        return json.dumps({"properties": [{"text": said[1], "source": "text"}, {"text": "made up", "source": "text"}]})
    names = re.findall("“([^”]+)”", asked.split("exactly as they are written here:")[-1])
    if "write questions" in system:
        return json.dumps({"question": f"Drafted about {' and '.join(names)}, request {len(asked)}: which is it?"})
    if "rephrase" in system:
        kept = [name for name in names if not name.startswith("Syndrome 1")]
        return json.dumps({"question": f"Rewritten: which goes with {' and '.join(kept)}, {len(asked)}?"})
    if "says everything" in system:
        return "Yes."
    stated = re.findall(r"^(\d+)\. (.+)$", asked, re.MULTILINE)
    return json.dumps({number: text in asked.replace(f"{number}. {text}", "", 1) for number, text in stated})


WANTED = BenchmarkOptions(24, roles=("doctor", "patient"))


def rows_of(folder: Path):
    return [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]


def test_models_extract_write_and_judge_and_the_output_says_so(small: OpenBase, tmp_path: Path):  # noqa: F811
    report = make_benchmark(small, tmp_path, WANTED, Writers(ScriptedModel(reply)))
    rows = rows_of(tmp_path)
    assert len(rows) == 24
    assert not any(violations(small.kb, rows).values())
    assert {row["wording"]["how"] for row in rows} == {"model rewrite", "model draft"}
    assert {row["role"] for row in rows} == {"doctor", "patient"}
    textual = [row for row in rows if row["textual"]]
    assert textual
    for row in textual:
        assert row["textual"]["how"] == "model"
        assert [one["text"] for one in row["textual"]["properties"]] != ["made up"]
        assert len(row["votes"][row["gold"]]) == 3
    assert report.acceptance["gold nodes that passed"] == report.acceptance["gold nodes put to the judges"]


def test_a_wording_that_loses_a_requirement_falls_back_to_the_grammar(small: OpenBase, tmp_path: Path):  # noqa: F811
    def forgetful(request) -> str:
        return "no" if "says everything" in request.messages[0].content else reply(request)

    make_benchmark(small, tmp_path, WANTED, Writers(ScriptedModel(forgetful)))
    assert {row["wording"]["how"] for row in rows_of(tmp_path)} == {"grammar"}
    assert all(row["wording"]["problem"] == "a requirement was lost" for row in rows_of(tmp_path))


def test_a_batch_gives_what_a_model_at_hand_gives(small: OpenBase, tmp_path: Path):  # noqa: F811
    make_benchmark(small, tmp_path / "at hand", WANTED, Writers(ScriptedModel(reply, name="batch:local")))
    model = ScriptedModel(reply)
    for _ in range(12):
        batch = BatchFolder(tmp_path / "batch")
        try:
            make_benchmark(small, tmp_path / "batched", WANTED, Writers(batch))
            break
        except PendingError:
            answer(tmp_path / "batch", model)
    assert read_all(tmp_path / "batched") == read_all(tmp_path / "at hand")


def answer(folder: Path, model: ScriptedModel) -> None:
    """As `clew batch run` does."""
    from types import SimpleNamespace

    lines = (folder / "requests.jsonl").read_text().splitlines()
    with (folder / "replies.jsonl").open("a") as file:
        for line in map(json.loads, lines):
            messages = [SimpleNamespace(**message) for message in line["body"]["messages"]]
            message = {"role": "assistant", "content": reply(SimpleNamespace(messages=messages))}
            body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {}}
            response = {"status_code": 200, "body": body}
            file.write(json.dumps({"custom_id": line["custom_id"], "response": response}) + "\n")


def test_a_spent_budget_stops_the_run_and_more_of_it_goes_on(small: OpenBase, tmp_path: Path):  # noqa: F811
    def run(calls: int | None) -> int:
        model, ledger = ScriptedModel(reply), Ledger(Budget(calls=calls))
        make_benchmark(small, tmp_path / "cut", WANTED, Writers(Budgeted(model, ledger), ledger=ledger))
        return len(model.asked)

    with pytest.raises(BudgetError, match="run again with a larger budget"):
        run(150)
    rest = run(None)
    make_benchmark(small, tmp_path / "whole", WANTED, Writers(whole := ScriptedModel(reply)))
    assert read_all(tmp_path / "cut") == read_all(tmp_path / "whole")
    assert rest < len(whole.asked)


def test_a_server_that_goes_away_stops_the_run_and_turns_no_question_down(small: OpenBase, tmp_path: Path):  # noqa: F811
    class Leaving(ScriptedModel):
        def complete(self, requests):
            if len(self.asked) > 150:
                return [Completion("", error="no connection", retry_after=0.0) for _ in requests]
            return super().complete(requests)

    ledger = Ledger()
    with pytest.raises(ModelError, match="no connection; finished questions are stored"):
        make_benchmark(small, tmp_path / "cut", WANTED, Writers(Budgeted(Leaving(reply), ledger), ledger=ledger))
    make_benchmark(small, tmp_path / "cut", WANTED, Writers(ScriptedModel(reply)))
    make_benchmark(small, tmp_path / "whole", WANTED, Writers(ScriptedModel(reply)))
    assert read_all(tmp_path / "cut") == read_all(tmp_path / "whole")


def test_an_estimate_counts_every_part_and_spends_nothing(small: OpenBase):  # noqa: F811
    estimate = estimate_benchmark(small, WANTED, EstimatingModel("any"))
    assert estimate.calls > 3 * 24
