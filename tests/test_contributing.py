"""The method of CONTRIBUTING.md works as it stands, and so does its test."""

import re
import sys
import types

from clew.answering.methods.catalog import METHODS
from conftest import ROOT

MODULE = "clew.answering.methods.neighbour_vote"


def test_the_method_of_the_walk_through_works(monkeypatch, tiny_tables, tmp_path):
    method, test = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.DOTALL)
    module = types.ModuleType(MODULE)
    monkeypatch.setitem(sys.modules, MODULE, module)
    exec(compile(method, "CONTRIBUTING.md", "exec"), vars(module))
    monkeypatch.setitem(METHODS, "neighbour_vote", module.NeighbourVote)
    written: dict[str, object] = {}
    exec(compile(test, "CONTRIBUTING.md", "exec"), written)
    written["test_votes_are_the_sums_of_the_scores_around"]()
    written["test_what_a_described_node_is_joined_to_comes_first"](tiny_tables, tmp_path)
