"""A folder of real documents: built, asked by content and by structure, changed, and built again."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import documents_made as made
from clew.answering.methods.knowledge_graph_prompting.method import KnowledgeGraphPrompting
from clew.core.errors import SourceError
from clew.core.trace import recording
from clew.core.types import Passage
from clew.documents import building as folder_module
from clew.documents.building import build_documents, from_reply, hold_documents
from clew.documents.formats import READERS
from clew.documents.passage_graph import EdgeOptions
from clew.documents.rows import DocumentOptions
from clew.store.building import build
from clew.store.graph.storage import read_manifest
from clew.store.open_base import OpenBase


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return made.make_folder(tmp_path_factory.mktemp("documents"))


@pytest.fixture(scope="module")
def built(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("built") / "kb"
    return build_documents([folder], place), OpenBase.open(place, embedder="hash")


@pytest.fixture(scope="module")
def answered(built):
    return lambda question: KnowledgeGraphPrompting().answer(question, built[1])


def test_files_that_cannot_be_read_are_named_and_the_rest_is_built(built):
    report, tools = built
    assert sorted(problem.file for problem in report.problems) == ["broken.pdf", "photo.png", "scan.pdf", "secret.pdf"]
    assert tools.kb.schema.answer_types == ("passage", "table")
    assert {ref.key for ref in tools.kb.refs(tools.kb.nodes("document").array)} == {
        "budget.pdf", "history.html", "letter.txt", "notes.md", "people.docx", "prices.csv", "rain.xlsx", "report.pdf"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("question", "file", "page", "quoted"),
    [
        ("Who has led the water board since 2014?", "people.docx", 2, "Gerda Holm has led the water board since 2014."),
        ("Where is a fifth station planned?", "report.pdf", 3, "A fifth station is planned near Schwerte."),
        ("When was the first bridge of Schwerte built?", "history.html", None, "Its first bridge was built in 1405."),
        ("How much was the invoice?", "letter.txt", 2, "Postscript: the invoice is 4,200 euros."),
    ],
)
def test_content_questions_cite_the_right_page_and_span(folder, answered, question, file, page, quoted):
    answer = answered(question)
    pieces = [*(piece for candidate in answer.candidates[:3] for piece in candidate.evidence), *answer.evidence]
    quotes = [piece for piece in pieces if isinstance(piece, Passage)]
    assert any((quote.file, quote.page) == (file, page) and quoted in quote.text for quote in quotes)
    for quote in quotes:
        extracted = READERS[Path(quote.file).suffix](folder / quote.file)
        assert extracted.text[quote.start : quote.end] == quote.text


@pytest.mark.parametrize(
    ("question", "nodes", "text"),
    [
        ("What is on page 3 of report.pdf?", ["report.pdf#page=00003"], "A fifth station is planned"),
        ("In Table 2 of report.pdf, which year had the most alarms?", ["report.pdf#table=00002"], "2021"),
        ("In table 1 of report.pdf which station has the highest flow", ["report.pdf#table=00001"], "Wetter"),
        (
            "What is the difference between page 1 and table 2 of the Water Report?",
            ["report.pdf#page=00001", "report.pdf#table=00002"],
            "page 1 (report.pdf): The water board",
        ),
        ("Which station on page 2 of report.pdf opened in 1968?", ["report.pdf#page=00002"], "Hagen"),
        ("the first table of notes.md: how deep is Christina?", ["notes.md#table=00001"], "302"),
        ('What does the section "Salt works" say?', ["notes.md#section=00002"], "The salt works of Unna were closed"),
    ],
)
def test_structural_questions_are_found_by_structure(answered, question, nodes, text):
    answer = answered(question)
    assert {part["node"] for part in answer.query["structure"]} == set(nodes)
    assert text in answer.text
    assert all(piece.file for piece in answer.evidence if isinstance(piece, Passage))


def test_what_does_not_exist_is_said_and_not_guessed(answered):
    with recording() as recorder:
        answer = answered("What is on page 9 of report.pdf?")
    assert "structure" not in answer.query
    assert not answer.found
    assert "There is no page 9 in report.pdf; it has 3 pages." in answer.text
    assert [fallback.reason for fallback in recorder.fallbacks] == ["there is no page 9 in report.pdf; it has 3 pages"]


def test_a_page_that_several_documents_have_is_said_to_be_unclear(answered):
    answer = answered("What is on page 2?")
    assert any("name one of them" in note for note in answer.notes)


def test_add_change_and_delete_a_file_equals_a_fresh_build(folder, tmp_path):
    source = shutil.copytree(folder, tmp_path / "source")
    build_documents([source], tmp_path / "kb")
    (source / "letter.txt").unlink()
    (source / "notes.md").write_text("# Unna\n\nUnna has a mayor, Ida Falk.\n", "utf-8")
    (source / "new.md").write_text("# Gerda Holm\n\nGerda Holm likes Unna.\n", "utf-8")
    build_documents([source], tmp_path / "kb")
    build_documents([source], tmp_path / "fresh")
    changed, fresh = read_manifest(tmp_path / "kb"), read_manifest(tmp_path / "fresh")
    assert changed.generation == fresh.generation
    assert changed.files == fresh.files
    kept = {file.name for file in (tmp_path / "kb" / "extracted").iterdir()}
    assert kept == {file.name for file in (tmp_path / "fresh" / "extracted").iterdir()}


def test_unchanged_files_are_not_read_again_and_their_vectors_are_kept(folder, tmp_path, monkeypatch):
    source = shutil.copytree(folder, tmp_path / "source")
    build_documents([source], tmp_path / "kb")
    OpenBase.open(tmp_path / "kb", embedder="hash").vectors.embed_all()
    read = []
    kept = folder_module.ExtractedCache.put
    monkeypatch.setattr(folder_module, "from_reply", lambda reply: (read.append(reply), from_reply(reply))[1])
    monkeypatch.setattr(folder_module.ExtractedCache, "put", lambda *given: (read.append("kept"), kept(*given)))
    (source / "new.md").write_text("# New\n\nOne new sentence.\n", "utf-8")
    build_documents([source], tmp_path / "kb")
    assert len(read) == 5  # three files that cannot be read, one that is new and kept
    assert read.count("kept") == 1
    vectors = OpenBase.open(tmp_path / "kb", embedder="hash").vectors
    assert vectors.embed_all() <= 3  # the new document, its section and its passage


@settings(max_examples=6, deadline=None)
@given(st.lists(st.sampled_from("abcde"), min_size=1, max_size=4), st.data())
def test_any_history_of_changes_ends_where_a_fresh_build_does(tmp_path_factory, names, data):
    root = tmp_path_factory.mktemp("history")
    source = root / "source"
    source.mkdir()
    for name in names:
        text = data.draw(st.text(alphabet="AaBb .\n#|-", min_size=1, max_size=60).filter(str.strip))
        (source / f"{name}.md").write_text(f"Note {name}.\n\n{text}", "utf-8")
        build_documents([source], root / "kb", DocumentOptions(passage_length=20))
    build_documents([source], root / "fresh", DocumentOptions(passage_length=20))
    assert read_manifest(root / "kb").generation == read_manifest(root / "fresh").generation


def test_sources_are_told_apart_from_tables_of_nodes_and_edges(folder, tmp_path):
    assert hold_documents([folder])
    assert hold_documents([folder / "letter.txt"])
    (tmp_path / "kb.txt").write_text("a|r|b\nb|r|c\n")
    assert not hold_documents([tmp_path / "kb.txt"])
    (tmp_path / "nodes.csv").write_text("key\na\n")
    (tmp_path / "README.md").write_text("# About\n")
    assert not hold_documents([tmp_path])


@pytest.mark.parametrize(
    ("names", "is_documents"),
    [
        (["prices.csv", "report.pdf"], True),
        (["prices.csv", "slides.pptx"], True),
        (["letters.mbox"], True),
        (["book.epub", "facts.json"], True),
        (["prices.csv"], False),
        (["nodes.csv", "edges.csv"], False),
        (["nodes.csv", "edges.csv", "paper.pdf"], False),
        (["facts.json", "README.md"], False),
        (["graph.ttl", "paper.pdf"], False),
    ],
)
def test_what_lies_beside_a_table_tells_what_it_is(names, is_documents, tmp_path):
    for name in names:
        (tmp_path / name).write_text("a,b\n1,2\n")
    assert hold_documents([tmp_path]) is is_documents


def test_passages_link_to_the_nodes_of_an_existing_base(tiny_tables, tmp_path):
    build(tiny_tables, tmp_path / "genes")
    (tmp_path / "a.md").write_text("# Case\n\nThe patient has polydactyly and rod-cone dystrophy.\n", "utf-8")
    (tmp_path / "b.md").write_text("# Report\n\nMarfan syndrome with long fingers.\n", "utf-8")
    options = DocumentOptions(entities=tmp_path / "genes")
    build_documents([tmp_path / "a.md", tmp_path / "b.md"], tmp_path / "kb", options)
    kb = OpenBase.open(tmp_path / "kb").kb
    named = {triple.tail for triple in kb.triples(kb.find("a.md#passage=000001")) if triple.relation == "mentions"}
    assert {ref.key for ref in kb.refs(sorted(named))} == {"P1", "P2"}
    assert any(triple.relation == "has_phenotype" for triple in kb.triples(kb.find("MFS")))


def test_a_folder_without_any_text_says_so(tmp_path):
    (tmp_path / "photo.png").write_bytes(b"x")
    with pytest.raises(SourceError, match=r"photo\.png"):
        build_documents([tmp_path], tmp_path / "kb")


def test_nearest_neighbours_are_edges_where_they_are_asked_for(folder, tmp_path):
    build_documents([folder], tmp_path / "kb", DocumentOptions(edges=EdgeOptions(("knn", "mdr"), nearest=2)))
    kb = OpenBase.open(tmp_path / "kb").local
    assert "tfidf" not in kb.schema.relation_names
    near, following = (
        {(head, tail) for head, tail in zip(edges.heads.tolist(), edges.tails.tolist(), strict=True)}
        for edges in (kb.edges(kb.nodes("passage"), kind) for kind in ("knn", "mdr"))
    )
    assert near
    assert following
