"""Published tables: every one names what exists, and one is run beside its peers on data of its form."""

import json
import sys

import pytest

from clew.answering.methods.catalog import method_names
from clew.cli import main
from clew.core.errors import InputError
from clew.lab.datasets.load import LOADERS
from clew.lab.evaluation.page import LABELS
from clew.lab.evaluation.reproducing import chosen_tables, published_tables


def test_every_table_names_data_sets_methods_and_metrics_that_exist():
    for table in published_tables().values():
        assert table.questions.partition(":")[0] in LOADERS
        assert set(table.methods) <= set(method_names())
        assert table.metric in LABELS
        assert table.peers
        assert table.setting


def test_an_unknown_table_is_refused_with_those_there_are():
    with pytest.raises(InputError, match="metaqa-1"):
        chosen_tables(["metaqa-9"])


def test_a_table_is_run_beside_its_peers_and_what_is_missing_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "data" / "metaqa" / "1-hop"
    folder.mkdir(parents=True)
    (folder.parent / "kb.txt").write_text("Alien|directed_by|Ridley Scott\nJaws|directed_by|Steven Spielberg\n")
    (folder / "qa_dev.txt").write_text("who directed [Alien]\tRidley Scott\nwho directed [Jaws]\tSteven Spielberg\n")
    (folder / "qa_dev_qtype.txt").write_text("movie_to_director\nmovie_to_director\n")
    out = tmp_path / "out"
    arguments = [
        "metaqa-1",
        "metaqa-2",
        "--data",
        str(tmp_path / "data"),
        "-o",
        str(out),
        "-m",
        "aligned_paths",
        "--json",
    ]
    monkeypatch.setattr(sys, "argv", ["clew", "reproduce", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert not ended.value.code, printed.err
    told = json.loads(printed.out)
    assert told["tables"]["metaqa-1"][0]["metrics"]["hit@1"] == 1.0
    assert set(told["left_out"]) == {"metaqa-2"}
    text = (out / "report.md").read_text("utf-8")
    assert "| aligned_paths | 100.0 [100.0, 100.0] | 2 |" in text
    assert "| NSM (He et al. 2021), as published | 97.1 |" in text
    assert (out / "report.html").is_file()
