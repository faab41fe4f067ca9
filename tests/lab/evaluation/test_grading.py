"""A grader says what is right: in both orders, and beside exact match."""

import json

import pytest

from clew.core.errors import InputError
from clew.lab.evaluation.grading import grade, read_grade, summarise_grades
from clew.lab.evaluation.run_folder import QuestionRow
from clew.models.protocol import Completion
from prompts_sent import Sends, matches_golden


class Grades:
    """Right where the prediction holds the first word of the answer; a name of two letters only when it comes first."""

    name, context_tokens = "grades", 4096

    def __init__(self):
        self.seen = []

    def complete(self, requests):
        self.seen += [request.messages[-1].content for request in requests]
        return [
            Completion(self._grade(request.messages[-1].content.partition("the following question:")[2]))
            for request in requests
        ]

    def _grade(self, prompt):
        lines = dict(line.split(": ", 1) for line in prompt.splitlines() if ": " in line)
        if lines["Prediction"] == "Bo":
            return "1" if prompt.index("Prediction") < prompt.index("Answer") else "0"
        return str(int(lines["Answer"].split()[0] in lines["Prediction"]))


def row(id, text):
    return QuestionRow(id, f"question {id}", None, (), 1, {}, text=text)


GOLD = {"1": ("Ann Lee",), "2": ("Bo Diddley",), "3": ("Cy",), "4": ("Di",)}
ROWS = [row("1", "it is Ann"), row("2", "Bo"), row("3", "Cy"), row("4", None)]


def test_right_is_what_both_orders_call_right_and_agreement_is_told():
    model = Grades()
    grades = grade(ROWS, GOLD, model)
    assert [one.right for one in grades] == [True, False, True, False]
    assert len(model.seen) == 6  # what was not written is not asked about
    found = summarise_grades(grades)
    assert (found.accuracy, found.gold_first, found.prediction_first, found.orders_agree) == (0.5, 0.5, 0.75, 0.75)
    assert (found.em, found.agrees_with_em) == (0.25, 0.75)
    assert found.kappa_with_em == pytest.approx((0.75 - 0.5) / 0.5)
    assert found.low <= 0.5 <= found.high


@pytest.mark.parametrize(
    ("reply", "right"),
    [("1", True), (" 0.", False), ("0.5", None), ("Return: 0", False), ("10", None), ("1 or 0", None)],
)
def test_a_grade_is_the_only_one_or_nought(reply, right):
    if right is None:
        with pytest.raises(Exception, match="expected 1 or 0"):
            read_grade(Completion(reply))
    else:
        assert read_grade(Completion(reply)) is right


def test_another_data_set_is_refused():
    with pytest.raises(InputError, match="no gold answer"):
        grade(ROWS, {"9": ("x",)}, Grades())


def test_the_prompt_is_that_of_the_paper():
    model = Sends("1")
    grade(ROWS[:1], GOLD, model)
    assert matches_golden("evaluation/grade", model.sent)


def test_a_run_is_graded_from_the_command_line(run, tmp_path):
    corpus = tmp_path / "set"
    corpus.mkdir()
    (corpus / "corpus.jsonl").write_text(json.dumps({"title": "Ann", "text": "Ann Lee wrote the song Blue."}) + "\n")
    asked = {"id": "1", "question": "Who wrote the song Blue?", "answer": "Ann Lee", "gold_titles": ["Ann"]}
    (corpus / "questions.jsonl").write_text(json.dumps(asked) + "\n")
    assert run("eval", "-q", f"corpus:{corpus}", "-m", "tf_idf", "--out", tmp_path / "runs")[0] == 0
    batch = tmp_path / "batch"
    code, _, err = run("grade", tmp_path / "runs", "-q", f"corpus:{corpus}", "--model", f"batch:{batch}")
    assert code != 0
    assert "wait" in err
    lines = [json.loads(line) for line in (batch / "requests.jsonl").read_text().splitlines()]
    replies = [
        {
            "custom_id": line["custom_id"],
            "response": {"status_code": 200, "body": {"choices": [{"message": {"content": "1"}}]}},
        }
        for line in lines
    ]
    (batch / "replies.jsonl").write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    code, out, err = run("grade", tmp_path / "runs", "-q", f"corpus:{corpus}", "--model", f"batch:{batch}", "--json")
    assert code == 0, err
    assert json.loads(out)["tf_idf"]["accuracy"] == 1.0
