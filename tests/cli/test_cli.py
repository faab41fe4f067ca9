"""The command line on real files, from build to answer: results on stdout, errors on stderr, exit codes."""

import gzip
import inspect
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from clew import __version__, cli
from clew.answering.methods.catalog import DEFAULT_METHOD
from clew.cli import output
from clew.documents.passages import PASSAGE_LENGTH
from clew.lab.synthesis.templates import KINDS
from clew.lab.training.dense_retriever import DenseSettings
from clew.store.curation.duplicates import LEAST

NODES = [
    {"id": "G1", "type": "gene", "name": "FBN1", "text": "Encodes fibrillin 1, a protein of connective tissue."},
    {
        "id": "D1",
        "type": "disease",
        "name": "Marfan syndrome",
        "synonyms": ["MFS"],
        "text": "Long fingers, loose lens.",
    },
    {"id": "P1", "type": "phenotype", "name": "Arachnodactyly", "synonyms": ["long fingers"], "text": "Thin fingers."},
    {"id": "P2", "type": "phenotype", "name": "Ectopia lentis", "text": "Dislocation of the lens.", "year": 1912},
]
EDGES = [
    ("source", "relation", "target", "frequency"),
    ("G1", "associated_with", "D1", ""),
    ("D1", "has_phenotype", "P1", "80-99%"),
    ("D1", "has_phenotype", "P2", "60%"),
]


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    with gzip.open(folder / "nodes.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(node) + "\n" for node in NODES)
    (folder / "edges.tsv").write_text("".join("\t".join(edge) + "\n" for edge in EDGES))
    return folder


@pytest.fixture(scope="module")
def base(sources):
    import clew

    clew.build([sources / "nodes.jsonl.gz", sources / "edges.tsv"], sources / "m.kb")
    return sources / "m.kb"


def test_build_info_show_find_and_verify(run, sources, tmp_path):
    folder = tmp_path / "m.kb"
    code, out, _ = run("build", sources / "nodes.jsonl.gz", sources / "edges.tsv", "-o", folder, "--json")
    assert (code, json.loads(out)["nodes"], json.loads(out)["edges"]) == (0, 4, 3)
    code, out, _ = run("info", folder, "--json")
    facts = json.loads(out)
    assert code == 0
    assert {"nodes", "edges", "node_types", "relations"} <= facts.keys()
    assert [kind["name"] for kind in facts["node_types"]] == ["disease", "gene", "phenotype"]
    assert "has_phenotype" in run("info", folder)[1]
    assert "80-99%" in run("show", folder, "Marfan syndrome")[1]
    found = json.loads(run("find", folder, "marfan sindrome", "--json")[1])
    assert (found[0]["key"], found[0]["how"]) == ("D1", "fuzzy")
    assert json.loads(run("find", folder, "lens", "--text", "--json")[1])[0]["key"] in ("D1", "P2")
    assert json.loads(run("verify", folder, "--json")[1])["sound"] is True


def test_a_database_is_built_by_its_url(run, tmp_path, monkeypatch):
    with sqlite3.connect(tmp_path / "shop.db") as shop:
        shop.execute("CREATE TABLE city (id INTEGER PRIMARY KEY, name TEXT)")
        shop.execute("INSERT INTO city VALUES (1, 'Riga'), (2, 'Oslo')")
    shop.close()
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("build", "sqlite:///shop.db", "-o", "shop.kb", "--json")
    assert (code, json.loads(out)["nodes"]) == (0, 2)
    assert json.loads(run("find", "shop.kb", "Riga", "--json")[1])[0]["key"] == "city/1"
    code, _, err = run("build", "sqlite:///no.db", "-o", "no.kb")
    assert code == 2
    assert "no such file" in err


@pytest.mark.parametrize("method", ["bm25", "vector_search", "hybrid"])
def test_an_answer_as_json_has_the_promised_shape(run, base, method):
    code, out, _ = run("ask", base, "dislocation of the lens", "--method", method, "-k", "2", "--json")
    answer = json.loads(out)
    assert code == 0
    assert {"question", "method", "model", "answers", "fallbacks", "seconds"} <= answer.keys()
    assert len(answer["answers"]) == 2
    first = answer["answers"][0]
    assert {"rank", "key", "name", "type", "score", "evidence"} <= first.keys()
    assert first["key"] in ("P2", "D1")
    assert first["evidence"]


def test_a_name_can_be_fixed_or_excluded(run, base):
    question = "Which disease has long fingers?"

    def grounded(*more) -> dict[str, list[str]]:
        code, out, _ = run("ask", base, question, "-m", "focus_plus", "--json", *more)
        assert code == 0
        names = json.loads(out)["query"]["constants"]
        return {name["text"]: [node["key"] for node in name["nodes"]] for name in names}

    assert grounded() == {"long fingers": ["P1"]}
    assert grounded("--fix", "Long Fingers=P2") == {"long fingers": ["P2"]}
    assert grounded("--fix", "long fingers=P1", "--fix", "long fingers=P2") == {"long fingers": ["P1", "P2"]}
    assert not any(grounded("--exclude", "long fingers").values())
    code, _, err = run("ask", base, question, "--fix", "long fingers=nobody")
    assert code == 2
    assert "nobody" in err
    code, _, err = run("ask", base, question, "--fix", "long fingers=P1", "--exclude", "long fingers")
    assert code == 2
    assert "both" in err


def test_a_relation_can_be_turned_round_and_another_type_asked_for(run, base):
    question = "Which disease has long fingers?"
    code, out, _ = run("ask", base, question, "-m", "focus_plus", "--json", "--type", "gene")
    assert code == 0
    assert json.loads(out)["query"]["target"]["type"] == "gene"
    code, _, err = run("ask", base, question, "-m", "focus_plus", "--relation", "has_phenotype=^has_phenotype")
    assert code == 2
    assert "the other way round" in err


def test_an_answer_for_people_shows_rank_name_type_and_evidence(run, base):
    code, out, _ = run("ask", base, "dislocation of the lens", "--method", "bm25")
    assert code == 0
    assert "Ectopia lentis" in out
    assert "“Dislocation of the lens.”" in out


def test_a_name_that_looks_like_a_style_or_a_picture_is_shown_as_it_is(run, tmp_path):
    import clew

    name = "[bold]T[/bold] :smile: [/red] cell"
    nodes = [{"key": "C1", "name": name, "text": "A cell of the thymus."}]
    edges = [{"head": "C1", "relation": "like", "tail": "C1"}]
    clew.build(clew.from_tables(nodes, edges), tmp_path / "c.kb")
    assert name in run("show", tmp_path / "c.kb", "C1")[1]
    assert name in run("ask", tmp_path / "c.kb", "thymus", "--method", "bm25")[1]


@pytest.mark.parametrize(("settings", "shown"), [({}, "\x1b[1mT\x1b[0m ␛[2J\n"), ({"NO_COLOR": "1"}, "T ␛[2J\n")])
def test_a_terminal_is_sent_styles_of_ours_and_no_command_of_a_text(monkeypatch, settings, shown):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", Terminal())
    output.out.line(("T", "bold"), " \x1b[2J")
    assert sys.stdout.getvalue() == shown


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["info", "nowhere.kb"], 2, "does not exist"),
        (["ask", "BASE", ""], 2, "the question is empty"),
        (["ask", "BASE", "what", "--method", "magic"], 2, "no method 'magic'; there are: "),
        (["ask", "BASE", "what", "--method", "bm25", "-O", "k=many"], 2, "k must be a number"),
        (["ask", "BASE", "what", "--method", "bm25", "-O", "z=1"], 2, "has no option 'z'"),
        (["show", "BASE", "Nobody At All Xyzzy"], 2, "no node has the key or the name"),
        (["build", "missing.csv", "-o", "x.kb"], 2, "missing.csv"),
        (["update", "nowhere.kb", "--delete-nodes", "X"], 2, "nowhere.kb"),
    ],
)
def test_bad_input_gets_one_clear_line_on_stderr(run, base, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    got, out, err = run(*[base if argument == "BASE" else argument for argument in arguments])
    assert (got, out) == (code, "")
    assert message in err.replace("\n", " ")
    assert "Traceback" not in err


def test_an_altered_file_is_named_and_the_exit_code_says_failure(run, base, tmp_path):
    folder = tmp_path / "copy.kb"
    shutil.copytree(base, folder)
    file = next(folder.rglob("out_targets.npy"))
    file.write_bytes(file.read_bytes()[:-1] + b"\x7f")
    code, _, err = run("verify", folder)
    assert code == 1
    assert "out_targets.npy" in err.replace("\n", "")


def test_an_update_from_the_command_line(run, base, tmp_path):
    folder = tmp_path / "copy.kb"
    shutil.copytree(base, folder)
    (tmp_path / "more.csv").write_text("id,type,name\nP3,phenotype,Tall stature\n")
    code, out, _ = run("update", folder, "--nodes", tmp_path / "more.csv", "--delete-nodes", "G1", "--json")
    assert (code, json.loads(out)["nodes"], json.loads(out)["edges"]) == (0, 4, 2)


def test_every_command_explains_itself(run):
    for command in cli.COMMANDS:
        code, out, _ = run(*command.split(), "--help")
        assert code == 0
        assert "Usage" in out


def test_the_version_is_printed():
    done = subprocess.run([sys.executable, "-m", "clew", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"clew {__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete_and_completes(shell):
    script = subprocess.run(
        [sys.executable, "-m", "clew", "completion", shell], capture_output=True, text=True, check=True
    )
    assert "_CLEW_COMPLETE" in script.stdout
    asked = {**os.environ, "_CLEW_COMPLETE": "complete_bash", "COMP_WORDS": "clew ask --me", "COMP_CWORD": "2"}
    done = subprocess.run(
        [Path(sys.executable).with_name("clew")], env=asked, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["--method"]


def test_defaults_in_signatures_are_those_of_the_library():
    """The command line repeats them, because importing the library takes longer than most commands."""
    defaults = {
        (names, name): parameter.default
        for names, (place, _) in cli.COMMANDS.items()
        for name, parameter in inspect.signature(cli._function(place)).parameters.items()
    }
    assert defaults["ask", "method"] == defaults["chat", "method"] == DEFAULT_METHOD
    assert defaults["eval", "method"] == [DEFAULT_METHOD]
    assert defaults["build", "passage_length"] == PASSAGE_LENGTH
    assert defaults["dedup", "least"] == LEAST
    assert defaults["synth", "kinds"] == ",".join(KINDS)
    assert defaults["train dense_retriever", "epochs"] == DenseSettings.epochs
    assert defaults["train dense_retriever", "rate"] == DenseSettings.rate
