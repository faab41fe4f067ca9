"""The real data sets are read as they are, with no options."""

from collections import Counter

import pytest

from clew.lab.datasets.hpo import hpo_schema
from clew.store.graph.build import write_graph
from clew.store.graph.tables import Problems
from clew.store.sources.read import read_sources


def rows(pieces, *columns):
    found = Counter()
    for piece in pieces:
        missing = [None] * piece.table.num_rows
        given = [piece.table[name].to_pylist() if name in piece.table.column_names else missing for name in columns]
        found.update(zip(*given, strict=True))
    return found


@pytest.mark.parametrize(
    ("files", "nodes", "edges"),
    [
        (["metaqa/kb.txt.gz"], 43_234, 133_582),
        (["stark_prime_mini/nodes.jsonl.gz", "stark_prime_mini/edges.tsv.gz"], 2_991, 11_288),
        (["webqsp/triples.tsv.gz"], None, 33_200),
        (["pathquestion/2H-kb.txt"], None, 1_211),
        (["hpo"], 36_853, 307_251),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_published_files_are_read_without_options(data, tmp_path, files, nodes, edges):
    facts = write_graph(read_sources([data / file for file in files]), tmp_path, Problems())
    assert facts.edges == edges
    assert nodes is None or facts.nodes == nodes


def test_the_demo_base_equals_the_published_one_but_for_what_nobody_shows(data, hpo_tables):
    ours, theirs = hpo_tables, read_sources([data / "hpo"])
    edge_columns = ("head", "relation", "tail")
    published = Counter()
    for (head, relation, tail, frequency), count in rows(theirs.edges, *edge_columns, "frequency").items():
        absent = frequency is not None and frequency.startswith("0/")
        published[head, "excludes_phenotype" if absent else relation, tail, frequency] += count
    worded = rows(ours.edges, *edge_columns, "frequency")
    coded = Counter()
    for (*edge, frequency), count in worded.items():
        code = frequency[frequency.index("(") + 1 : -1] if frequency and "(HP:" in frequency else frequency
        coded[(*edge, code)] += count
    assert coded == published
    named = Counter(
        (key, kind, "-" if name is None else name) for key, kind, name in rows(ours.nodes, "key", "type", "name")
    )
    assert named == rows(theirs.nodes, "key", "type", "name")

    def phenotypes(tables):  # the published file keeps the escapes of the OBO format
        return {
            (
                row["key"],
                row["text"].replace("\\n", "\n").replace("\\", ""),
                row["comment"] or "",
                tuple(row["aliases"]),
            )
            for row in tables.nodes[0].table.to_pylist()
            if row["type"] == "phenotype"
        }

    assert phenotypes(ours) == phenotypes(theirs)


def test_the_demo_base_has_attribution_and_a_schema_that_fits(tmp_path, hpo_tables):
    assert "release 2025-01-16" in hpo_tables.notes[0]
    schema = hpo_schema().apply(write_graph(hpo_tables, tmp_path, Problems()).schema)
    assert set(hpo_schema().relations) == set(schema.relation_names)
    assert all(row.transitive == (row.name == "is_a") for row in schema.relations)
    assert all(row.inverse and row.description for row in schema.relations)
