"""Questions are read as triplet queries without a model."""

import pytest

from clew.core.query import Condition
from clew.index.protocol import Link, Mention
from clew.index.tokens import stem, tokenise
from clew.models.embedding.onnx import OnnxEmbedder
from clew.reading.triplets.schema_linker import SchemaLinker
from conftest import EDGES, NODES, build_graph, tables


class ExactNames:
    """Every name and alias by its stems, longest match first."""

    def __init__(self, kb):
        self.kb, self.known = kb, {}
        for key, _, name, aliases, _ in NODES:
            for alias in (name, *aliases):
                self.known.setdefault(self._stems(alias), []).append((kb.find(key), alias))

    def _stems(self, text):
        return tuple(stem(token.text) for token in tokenise(text))

    def link(self, text, *, type=None, k=5):
        found = self.known.get(self._stems(text), [])
        links = [Link(node, alias, "exact", 1.0) for node, alias in found]
        return tuple(link for link in links if type in (None, self.kb.type_of(link.node)))[:k]

    def mentions(self, text, *, fuzzy=True):
        tokens, found, first = tokenise(text), [], 0
        while first < len(tokens):
            for last in range(len(tokens), first, -1):
                start, end = tokens[first].start, tokens[last - 1].end
                if links := self.link(text[start:end]):
                    found.append(Mention(start, end, text[start:end], links))
                    first = last - 1
                    break
            first += 1
        return found


@pytest.fixture(scope="module")
def linker(tmp_path_factory):
    kb = build_graph(tables(edges=EDGES), tmp_path_factory.mktemp("linker") / "t.kb")
    return SchemaLinker(kb, ExactNames(kb), OnnxEmbedder.bundled(threads=1))


def reading(linker, question):
    return str(linker.parse(question, linker.kb.schema).query).replace(":gene", "").replace(":disease", "")


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("Which genes are associated with Marfan syndrome?", "?gene where (?gene associated_with “Marfan syndrome”)"),
        (
            "Which genes are associated with diseases that present with both polydactyly and rod-cone dystrophy?",
            (
                "?gene where (?gene associated_with ?disease) and (?disease has_phenotype “polydactyly”:phenotype)"
                " and (?disease has_phenotype “rod-cone dystrophy”:phenotype)"
            ),
        ),
        (
            "Which diseases do not show arachnodactyly?",
            "?disease where NOT (?disease has_phenotype “arachnodactyly”:phenotype)",
        ),
        (
            "Which genes are not associated with any disease that shows arachnodactyly?",
            "?gene where NOT (?gene associated_with ?disease) and (?disease has_phenotype “arachnodactyly”:phenotype)",
        ),
        (
            "Which phenotypes are kinds of abnormal finger?",
            "?phenotype:phenotype where (?phenotype:phenotype is_a “abnormal finger”:phenotype)",
        ),
        (
            "How many phenotypes has BBS?",
            "how many ?phenotype:phenotype where (“BBS” has_phenotype ?phenotype:phenotype)",
        ),
        (
            "Which diseases have at least two phenotypes?",
            "?disease where (?disease has_phenotype ?phenotype:phenotype) and count of phenotype per disease >= 2",
        ),
    ],
)
def test_a_question_is_read_as_the_query_it_means(linker, question, query):
    assert reading(linker, question) == query


def test_what_no_part_of_the_query_accounts_for_is_left_to_the_text(linker):
    parse = linker.parse("Which gene that encodes fibrillin is associated with MFS?", linker.kb.schema)
    assert parse.query.unexplained == ("encodes fibrillin",)


def test_a_reading_without_answers_gives_way_to_one_that_has_some(linker):
    parse = linker.parse("Which genes are associated with BBS and MFS?", linker.kb.schema)
    assert len(parse.query.constants()) == 1
    assert any(len(other.constants()) == 2 for other in parse.alternatives)


def test_a_question_that_names_nothing_asks_for_every_node_of_a_type(linker):
    parse = linker.parse("Which phenotype is progressive?", linker.kb.schema)
    assert (parse.query.triplets, parse.query.target.type) == ((), "phenotype")


def test_numbers_and_dates_become_conditions(tmp_path):
    import pyarrow as pa

    from clew.kb.tables import Piece, Tables

    nodes = {"key": ["a", "b", "c"], "type": ["paper", "paper", "author"], "name": ["One", "Two", "Ann Lee"],
             "aliases": [[], [], []], "text": ["", "", ""], "year": [1990, 2005, None]}  # fmt: skip
    edges = {"head": ["c", "c"], "relation": ["writes", "writes"], "tail": ["a", "b"]}
    kb = build_graph(Tables((Piece(pa.table(nodes), "n"),), (Piece(pa.table(edges), "e"),)), tmp_path / "papers.kb")
    names = ExactNames.__new__(ExactNames)
    names.kb, names.known = (
        kb,
        {("ann", "le"): [(kb.find("c"), "Ann Lee")], ("ann", "lee"): [(kb.find("c"), "Ann Lee")]},
    )
    query = SchemaLinker(kb, names).parse("Which papers by Ann Lee have a year after 2000?", kb.schema).query
    assert query.conditions == (Condition("paper", "year", ">", 2000),)
    assert [triplet.relation for triplet in query.triplets] == ["writes"]
