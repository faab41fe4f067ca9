"""The Freebase question sets in their official layouts, from the files to measured answers."""

import json

import pytest

import clew
from conftest import TESTS

SAMPLE = TESTS / "data" / "freebase_sample"
SETS = {
    "cwq": "cwq:{}/cwq.json",
    "grailqa": "grailqa:{}/grailqa.json",
    "webquestions": "webquestions:{}/webquestions.json",
    "webqsp": "webqsp:{}:WebQSP.sample",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("freebase") / "sample.kb"
    clew.build([SAMPLE / "nodes.jsonl", SAMPLE / "edges.tsv"], folder)
    return folder


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("method", ["aligned_paths", "tournament_on_path"])
def test_official_records_are_asked_and_judged(run, base, name, method):
    code, out, err = run("eval", "-q", SETS[name].format(SAMPLE), "--kb", base, "-m", method, "--topics", "--json")
    assert code == 0, err
    [report] = json.loads(out)["runs"]
    assert (report["metrics"]["hits@1"], report["metrics"]["f1"]) == (1.0, 1.0)
