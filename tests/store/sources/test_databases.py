"""A database becomes a graph: tables types, rows nodes, foreign keys relations, link tables relations too."""

import datetime
import sqlite3
import sys

import pytest

import clew
from clew.core.errors import InputError, MissingExtraError, NotFoundError, SourceError
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.sources.objects import rows
from clew.store.sources.read import from_database, read_sources

LIBRARY = """
CREATE TABLE Author (AuthorId INTEGER PRIMARY KEY, FirstName TEXT, LastName TEXT, Title TEXT, Photo BLOB);
CREATE TABLE Book (Isbn TEXT PRIMARY KEY, Title TEXT, Description TEXT, Published DATE, Price NUMERIC, type TEXT,
  SequelOf TEXT REFERENCES Book, PublisherId INTEGER REFERENCES Publisher(Id));
CREATE TABLE Publisher (Id INTEGER PRIMARY KEY, Company TEXT, City TEXT);
CREATE TABLE BookAuthor (AuthorId INTEGER REFERENCES Author, Isbn TEXT REFERENCES Book, Share REAL,
  PRIMARY KEY (AuthorId, Isbn));
CREATE TABLE Loan (LoanId INTEGER PRIMARY KEY, Isbn TEXT REFERENCES Book, Due DATE);
CREATE TABLE tagging (id INTEGER PRIMARY KEY, book TEXT REFERENCES Book, tag INTEGER REFERENCES tag(id),
  UNIQUE (book, tag));
CREATE TABLE tag (id INTEGER PRIMARY KEY, slug TEXT);
CREATE TABLE Empty (Id INTEGER PRIMARY KEY);
CREATE VIEW Cheap AS SELECT * FROM Book;
INSERT INTO Author VALUES (1, 'Ursula', 'Le Guin', 'Dr', x'ff00'), (2, 'Iain', 'Banks', 'Dr', NULL);
INSERT INTO Publisher VALUES (7, 'Orbit', 'London'), (8, 'Ace', 'New York');
INSERT INTO Book VALUES ('978-1', 'The Dispossessed', 'Anarres and Urras.', '1974-05-01', 9.5, 'novel', NULL, 8),
  ('978-2', 'Excession', NULL, '1996-06-13', 7, 'novel', '978-1', 7);
INSERT INTO BookAuthor VALUES (1, '978-1', 1.0), (2, '978-2', 0.5);
INSERT INTO Loan VALUES (41, '978-2', '2024-01-02'), (42, '978-2', NULL);
INSERT INTO tag VALUES (1, 'utopia'), (2, 'space');
INSERT INTO tagging VALUES (5, '978-1', 1), (6, '978-2', 1);
"""


def database(file, script):
    with sqlite3.connect(file) as connection:
        connection.executescript(script)
    connection.close()
    return file


@pytest.fixture
def library(tmp_path):
    return database(tmp_path / "library.db", LIBRARY)


def nodes_of(tables):
    return {row.pop("key"): row for row in rows(tables.nodes)}


def edges_of(tables):
    return {(row["head"], row["relation"], row["tail"]) for row in rows(tables.edges)}


def test_a_table_with_the_key_of_another_describes_its_rows(tmp_path):
    script = """
    CREATE TABLE genes (_id INTEGER PRIMARY KEY, gid TEXT);
    CREATE TABLE info (_id INTEGER REFERENCES genes(_id), symbol TEXT, long_name TEXT);
    CREATE TABLE terms (_id INTEGER REFERENCES genes(_id), term TEXT);
    INSERT INTO genes VALUES (1, '751'), (2, '100'), (3, '9');
    INSERT INTO info VALUES (3, 'COX1', 'cytochrome c oxidase 1'), (1, 'SNCA', 'synuclein alpha');
    INSERT INTO terms VALUES (1, 'membrane'), (1, 'nucleus');
    """
    tables = read_sources([database(tmp_path / "genes.db", script)])
    nodes = nodes_of(tables)
    assert {row["type"] for row in nodes.values()} == {"gene", "term"}
    found = {row["gid"]: (row["name"], row["symbol"]) for row in nodes.values() if row["type"] == "gene"}
    assert found["751"] == ("synuclein alpha", "SNCA")
    assert found["9"] == ("cytochrome c oxidase 1", "COX1")
    assert found["100"][1] is None
    assert any("info" in note and "keys" in note for note in tables.notes)


def test_ones_and_zeros_are_truths_if_the_column_is_called_so(tmp_path):
    script = """
    CREATE TABLE chromosome (name TEXT PRIMARY KEY, is_circular INTEGER, has_genes INTEGER, copies INTEGER);
    INSERT INTO chromosome VALUES ('chrI', 0, 3, 1), ('chrM', 1, 1, 0), ('2micron', NULL, 0, 1);
    """
    nodes = nodes_of(read_sources([database(tmp_path / "genome.db", script)]))
    found = {row["name"]: (row["is_circular"], row["has_genes"], row["copies"]) for row in nodes.values()}
    assert found == {"chrI": (False, 3, 1), "chrM": (True, 1, 0), "2micron": (None, 0, 1)}
    assert [type(row["copies"]) for row in nodes.values()] == [int] * 3


def test_rows_become_nodes_called_by_what_names_them(library):
    tables = read_sources([library])
    nodes = nodes_of(tables)
    assert nodes["Author/1"] == {
        "type": "Author", "name": "Ursula Le Guin", "FirstName": "Ursula", "LastName": "Le Guin", "Title": "Dr"
    }  # fmt: skip
    book = nodes["Book/978-1"]
    assert (book["type"], book["name"], book["text"]) == ("Book", "The Dispossessed", "Anarres and Urras.")
    assert (book["Isbn"], book["Published"], book["Price"]) == ("978-1", datetime.date(1974, 5, 1), 9.5)
    assert book["type_"] == "novel", "a column called like a role keeps its values"
    assert [nodes[key]["name"] for key in ("Publisher/7", "tag/1", "Loan/42")] == ["Orbit", "utopia", "Loan 42"]
    assert {row["type"] for row in nodes.values()} == {"Author", "Book", "BookAuthor", "Publisher", "Loan", "tag"}
    shown = str(library)
    assert tables.notes[:2] == (
        f"Not read from {shown}, as they hold binary data: Author.Photo.",
        f"Tables of {shown} without rows: Empty.",
    )


def test_foreign_keys_and_link_tables_become_relations(library):
    tables = read_sources([library])
    assert edges_of(tables) == {
        ("Author/1", "book_author", "Book/978-1"),
        ("Author/2", "book_author", "Book/978-2"),
        ("Book/978-2", "sequel_of", "Book/978-1"),
        ("Book/978-1", "publisher", "Publisher/8"),
        ("Book/978-2", "publisher", "Publisher/7"),
        ("Loan/41", "isbn", "Book/978-2"),
        ("Loan/42", "isbn", "Book/978-2"),
        ("Book/978-1", "tagging", "tag/1"),
        ("Book/978-2", "tagging", "tag/1"),
        *((f"BookAuthor/{place}/978-{place}", "author", f"Author/{place}") for place in (1, 2)),
        *((f"BookAuthor/{place}/978-{place}", "isbn", f"Book/978-{place}") for place in (1, 2)),
    }
    shares = {key: node["Share"] for key, node in nodes_of(tables).items() if node["type"] == "BookAuthor"}
    assert shares == {"BookAuthor/1/978-1": 1.0, "BookAuthor/2/978-2": 0.5}


def test_a_database_is_built_and_asked_like_files(library, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    clew.build([library], tmp_path / "library.kb")
    kb = ArrayKnowledgeBase.open(tmp_path / "library.kb")
    again = kb.to_tables()
    assert nodes_of(again).keys() == nodes_of(read_sources([library])).keys()
    assert edges_of(again) == edges_of(read_sources(["sqlite:///library.db"]))
    answer = clew.open(tmp_path / "library.kb").ask("Which publisher has Excession?")
    assert answer.candidates[0].node.name == "Orbit"


def test_every_database_is_read_as_sqlite_is(library):
    pytest.importorskip("sqlalchemy")
    direct, through = from_database(f"sqlite:///{library}"), from_database(f"sqlite+pysqlite:///{library}")
    assert nodes_of(direct) == nodes_of(through)
    assert edges_of(direct) == edges_of(through)


def test_duckdb_files_are_read_with_their_keys_and_types(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "shop.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            """CREATE TABLE artist (id INTEGER PRIMARY KEY, name VARCHAR);
            CREATE TABLE album (id INTEGER PRIMARY KEY, title VARCHAR, released DATE, price DECIMAL(9, 2),
              artist_id INTEGER REFERENCES artist (id));
            CREATE TABLE guest (artist INTEGER REFERENCES artist (id), album INTEGER REFERENCES album (id),
              part VARCHAR, PRIMARY KEY (artist, album));
            CREATE VIEW cheap AS SELECT * FROM album;
            INSERT INTO artist VALUES (1, 'Radiohead'), (2, 'Humphrey Lyttelton');
            INSERT INTO album VALUES (7, 'Amnesiac', '2001-05-30', 9.50, 1);
            INSERT INTO guest VALUES (2, 7, 'trumpet')"""
        )
    for source in (file, f"duckdb:///{file}"):
        tables = read_sources([source])
        assert nodes_of(tables)["album/7"] == {
            "type": "album", "name": "Amnesiac", "released": datetime.date(2001, 5, 30), "price": 9.5
        }  # fmt: skip
        between = {
            ("guest/2/7", "artist", "artist/2"),
            ("guest/2/7", "album", "album/7"),
            ("artist/2", "guest", "album/7"),
        }
        assert edges_of(tables) == {("album/7", "artist", "artist/1"), *between}
    (tmp_path / "bad.duckdb").write_bytes(b"x" * 5000)
    with pytest.raises(SourceError, match="the database cannot be read"):
        read_sources([tmp_path / "bad.duckdb"])
    with pytest.raises(NotFoundError, match="duckdb:////FILE absolute"):
        read_sources(["duckdb:///nowhere.duckdb"])


def test_references_that_nobody_declared_are_seen_from_names_and_values(tmp_path):
    file = database(
        tmp_path / "plain.sqlite",
        """CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE companies (id INTEGER PRIMARY KEY, name TEXT, city_id INTEGER, rank_id INTEGER);
        CREATE TABLE works_at (PersonId INTEGER, company_id INTEGER);
        CREATE TABLE Person (PersonId INTEGER PRIMARY KEY, name TEXT);
        INSERT INTO cities VALUES (1, 'Riga'); INSERT INTO companies VALUES (1, 'Alfa', 1, 9), (2, 'Beta', NULL, 8);
        INSERT INTO Person VALUES (5, 'Ann'); INSERT INTO works_at VALUES (5, 2);""",
    )
    tables = read_sources([file])
    assert edges_of(tables) == {("companies/1", "city", "cities/1"), ("Person/5", "works_at", "companies/2")}
    assert nodes_of(tables)["companies/1"]["rank_id"] == 9


def test_a_database_without_declared_keys_has_those_of_its_names_and_values(tmp_path):
    script = """
    CREATE TABLE person (person_id INT, born INT);
    CREATE TABLE condition (condition_id INT, condition_name TEXT);
    CREATE TABLE diagnosis (person_id INT, main_condition_id INT, day TEXT);
    INSERT INTO person VALUES (1, 1950), (2, 1951), (9, 1976);
    INSERT INTO condition VALUES (50, 'asthma'), (51, 'gout');
    INSERT INTO diagnosis VALUES (1, 50, '2020-01-01'), (9, 50, '2021-01-01'), (9, 50, '2022-01-01');
    """
    tables = read_sources([database(tmp_path / "clinic.db", script)])
    ends = {(head.partition("/")[0], relation, tail) for head, relation, tail in edges_of(tables)}
    assert ends == {
        ("diagnosis", "person", "person/1"),
        ("diagnosis", "person", "person/9"),
        ("diagnosis", "main_condition", "condition/50"),
    }


def test_keys_of_several_columns_and_of_none_work(tmp_path):
    file = database(
        tmp_path / "rooms.db",
        """CREATE TABLE room (house TEXT, number INTEGER, PRIMARY KEY (house, number));
        CREATE TABLE booking (guest TEXT, house TEXT, number INTEGER,
          FOREIGN KEY (house, number) REFERENCES room (house, number));
        INSERT INTO room VALUES ('A/B', 1), ('A', 2);
        INSERT INTO booking VALUES ('Ann', 'A/B', 1), ('Bob', NULL, 3);""",
    )
    tables = read_sources([file])
    assert edges_of(tables) == {("booking/1", "room", "room/A%2FB/1")}
    assert nodes_of(tables)["booking/2"]["name"] == "Bob"


def test_a_reference_to_nothing_stops_the_build_unless_it_is_skipped(tmp_path):
    file = database(
        tmp_path / "broken.db",
        "CREATE TABLE a (id INTEGER PRIMARY KEY, name TEXT, b INTEGER REFERENCES b(id));"
        "CREATE TABLE b (id INTEGER PRIMARY KEY, name TEXT);"
        "INSERT INTO a VALUES (1, 'x', 5); INSERT INTO b VALUES (1, 'y');",
    )
    with pytest.raises(SourceError, match=r"table a, line 1: .*'b/5'"):
        clew.build([file], tmp_path / "broken.kb")
    assert clew.build([file], tmp_path / "broken.kb", skip_bad=True).skipped == 1


def test_what_is_no_database_is_refused_in_words(tmp_path, monkeypatch):
    (tmp_path / "thumbs.db").write_text("no database")
    with pytest.raises(SourceError, match="not an SQLite database"):
        read_sources([tmp_path / "thumbs.db"])
    with pytest.raises(NotFoundError, match="sqlite:////FILE absolute"):
        read_sources(["sqlite:///nowhere.db"])
    with pytest.raises(SourceError, match="no rows"):
        read_sources([database(tmp_path / "empty.db", "CREATE TABLE a (id INTEGER PRIMARY KEY);")])
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"SQLite format 3\0" + b"\1" * 4000)
    with pytest.raises(SourceError, match="the database cannot be read"):
        read_sources([damaged])
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(MissingExtraError, match=r"\[sql\]"):
        read_sources(["postgresql://me:secret@host/shop"])


def test_a_password_is_never_shown(tmp_path):
    pytest.importorskip("sqlalchemy")
    with pytest.raises(InputError) as refused:
        read_sources(["nosuch://me:secret@host/shop"])
    assert "secret" not in str(refused.value)
    assert "…@host/shop" in str(refused.value)


def test_truths_that_sqlite_holds_as_numbers_are_truths(tmp_path):
    with sqlite3.connect(tmp_path / "zoo.db") as made:
        made.execute("CREATE TABLE species (id INTEGER PRIMARY KEY, name TEXT, endangered BOOLEAN, legs BOOLEAN)")
        made.execute("INSERT INTO species VALUES (1, 'Lion', 1, 4), (2, 'Toucan', 0, 2), (3, 'Yeti', NULL, 2)")
    made.close()
    clew.build([tmp_path / "zoo.db"], tmp_path / "zoo.kb")
    kinds = clew.open(tmp_path / "zoo.kb").schema.attribute_types
    assert kinds["endangered"] == "boolean"
    assert kinds["legs"] == "integer"
