"""Files of every format become the same tables, whatever they are called and however they are written."""

import csv
import datetime
import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.core.errors import InputError, SourceError
from clew.store.sources.files import SourceOptions, parse_columns
from clew.store.sources.jsonl import read_json
from clew.store.sources.read import read_sources

NAME = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=8)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
DATE = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
NODE = st.tuples(
    NAME, NAME, st.lists(NAME, max_size=3), TEXT, st.none() | st.integers(-(10**15), 10**15), st.none() | DATE
)


@st.composite
def graphs(draw):
    """Nodes by key, and edges between them with a weight."""
    keys = draw(
        st.lists(NAME, unique=True, min_size=1, max_size=5)
        | st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, min_size=1, max_size=5)
    )
    nodes = [
        {"key": key, "type": kind, "name": name, "aliases": aliases, "text": text, "size": size, "born": born}
        for key in keys
        for kind, name, aliases, text, size, born in [draw(NODE)]
    ]
    ends = st.sampled_from(keys)
    weight = st.none() | st.floats(allow_nan=False, allow_infinity=False)
    edges = draw(st.lists(st.tuples(ends, NAME, ends, weight), min_size=1, max_size=6))
    return nodes, [dict(zip(("head", "relation", "tail", "weight"), edge, strict=True)) for edge in edges]


def as_separated(rows, separator):
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), delimiter=separator, quoting=csv.QUOTE_ALL)
    writer.writeheader()
    for row in rows:
        writer.writerow({k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()})
    return out.getvalue().encode()


def as_json_lines(rows):
    return b"".join(json.dumps(row, default=str, ensure_ascii=False).encode() + b"\n" for row in rows)


def as_parquet(rows):
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


FORMATS = {
    "csv": lambda rows: as_separated(rows, ","),
    "tsv": lambda rows: as_separated(rows, "\t"),
    "jsonl": as_json_lines,
    "parquet": as_parquet,
    "json": lambda rows: json.dumps(rows, default=str).encode(),
}


def normal(rows):
    """Values as they must arrive, whichever way a format writes what is not there."""
    empty = ("", None, [])
    return [
        {k: str(v) if k in ("key", "head", "tail") else v for k, v in row.items() if v not in empty} for row in rows
    ]


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=60, deadline=None)
@given(graph=graphs(), packed=st.booleans())
def test_a_graph_written_in_any_format_reads_back_equal(tmp_path_factory, form, graph, packed):
    folder = tmp_path_factory.mktemp("graph")
    paths = []
    for name, rows in zip(("nodes", "edges"), graph, strict=True):
        content = FORMATS[form](rows)
        path = folder / f"{name}.{form}{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(content, 1) if packed else content)
        paths.append(path)
    tables = read_sources(paths)
    (nodes,), (edges,) = tables.nodes, tables.edges
    assert normal(nodes.table.to_pylist()) == normal(graph[0])
    assert normal(edges.table.to_pylist()) == normal(graph[1])
    if isinstance(graph[0][0]["key"], int) and all(abs(node["key"]) < 10**18 for node in graph[0]):
        assert nodes.table.schema.field("key").type == pa.int64()


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("id,label\n1,Ann\n", {"key": 1, "name": "Ann"}),
        ("id,name,label\n1,Ann,person\n", {"key": 1, "name": "Ann", "type": "person"}),
        ("Node ID;Title;Category;Abstract\nx;T;book;long\n", {"key": "x", "name": "T", "type": "book", "text": "long"}),
        (
            "id:ID,name,:LABEL,born:int\n1,Ann,person,1970\n",
            {"key": 1, "name": "Ann", "type": "person", "born": 1970},
        ),
        ("id,name,key\n1,Ann,K\n", {"key": 1, "name": "Ann", "key_": "K"}),
        ("name,text\nAnn,tall\n", {"key": "Ann", "name": "Ann", "text": "tall"}),
        ("id\tsynonyms\n1\ta|b; c\n", {"key": 1, "aliases": ["a", "b; c"]}),
        ("id,synonyms\n1,a; b\n", {"key": 1, "aliases": ["a", "b"]}),
        ('id\tname\n1\t5" pipe\n2\t"\n', {"key": 1, "name": '5" pipe'}),
        ('id\tname\n1\t"Heroes" of old\n2\t"x"\n', {"key": 1, "name": '"Heroes" of old'}),
        ('id\tname\n1\t"a\n""b""\n"\n2\tx\n', {"key": 1, "name": 'a\n"b"'}),
    ],
)
def test_node_columns_are_found_by_name(tmp_path, content, expected):
    (piece,) = read_sources([written(tmp_path, "nodes.csv" if "\t" not in content else "nodes.tsv", content)]).nodes
    assert piece.table.to_pylist()[0] == expected


@pytest.mark.parametrize(
    "header", ["source,relation,target", "from,type,to", "Subject,Predicate,Object", ":START_ID,:TYPE,:END_ID"]
)
def test_edge_columns_are_found_by_name(tmp_path, header):
    tables = read_sources([written(tmp_path, "links.csv", f"{header},weight\n1,knows,2,0.5\n")])
    assert tables.edges[0].table.to_pylist() == [{"head": 1, "relation": "knows", "tail": 2, "weight": 0.5}]
    assert tables.implicit


def test_a_mapping_overrides_what_the_names_suggest(tmp_path):
    path = written(tmp_path, "nodes.csv", "id,name,nickname\n1,Ann,Annie\n")
    options = SourceOptions(columns=parse_columns(["name=nickname", "key=name"]))
    assert read_sources([path], options).nodes[0].table.to_pylist() == [{"key": "Ann", "name": "Annie", "id": 1}]
    with pytest.raises(InputError, match="--map text=story: no source has it: the columns are id, name, nickname"):
        read_sources([path], SourceOptions(columns={"text": "story"}))
    with pytest.raises(InputError, match="expected ROLE=COLUMN"):
        parse_columns(["colour=red"])


def test_attributes_are_typed_by_content_and_codes_stay_text(tmp_path):
    content = (
        "id,whole,real,yes,day,moment,code,mixed,gap\n"
        "1,5,1.5,true,2020-02-29,2020-01-01T10:00:00,007,5,NA\n"
        "2,-3,2,False,1999-12-31,2020-01-01 10:00,123,x,7\n"
    )
    (piece,) = read_sources([written(tmp_path, "nodes.csv", content)]).nodes
    kinds = [piece.table.schema.field(name).type for name in piece.table.column_names[1:]]
    assert kinds == [
        *(pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("us"), pa.string(), pa.string(), pa.int64()),
    ]
    assert piece.table["gap"].to_pylist() == [None, 7]


def test_an_attribute_that_is_a_number_here_and_a_word_there_is_text(tmp_path):
    first = written(tmp_path, "actors.csv", "id,size\n1,5\n")
    second = written(tmp_path, "films.csv", "id,size\n2,large\n")
    tables = read_sources([first, second])
    assert [piece.table.to_pylist()[0] for piece in tables.nodes] == [
        {"key": "actors/1", "type": "actor", "name": "actor 1", "size": "5"},
        {"key": "films/2", "type": "film", "name": "large", "size": "large"},
    ]


@pytest.mark.parametrize("separator", ["\t", "|", ","])
def test_triples_need_no_header_and_lose_outer_spaces(tmp_path, separator):
    rows = [(" Ann", "knows", "Bob"), ("Bob", "knows", "Łukasz"), ("Bob", "likes", "5")]
    path = written(tmp_path, "kb.txt", "\n".join(map(separator.join, rows)))
    tables = read_sources([path], SourceOptions(node_type="person"))
    assert tables.implicit
    assert tables.implicit_type == "person"
    assert [tuple(row.values()) for row in tables.edges[0].table.to_pylist()] == [("Ann", "knows", "Bob"), *rows[1:]]


def test_a_file_that_could_be_a_table_or_triples_is_a_table_unless_named(tmp_path):
    path = written(tmp_path, "people.csv", "person,friend_of,other\na,b,c\nd,e,f\n")
    assert read_sources([path]).nodes[0].table["type"].to_pylist() == ["person", "person"]
    assert read_sources([], SourceOptions(triples=(path,))).edges[0].table.num_rows == 3
    options = SourceOptions(edges=(path,), columns={"head": "person", "tail": "other", "relation": "friend_of"})
    assert read_sources([], options).edges[0].table.num_rows == 2


def test_rows_know_their_lines_even_among_quoted_line_breaks_and_blank_lines(tmp_path):
    path = written(tmp_path, "nodes.csv", 'id,text\r\n1,"two\r\nlines"\r\n\r\n2,one\r\n3,"a\nb\nc"\r\n4,end')
    (piece,) = read_sources([path]).nodes
    assert piece.table["text"].to_pylist() == ["two\r\nlines", "one", "a\nb\nc", "end"]
    assert [piece.line(row) for row in range(4)] == [2, 5, 6, 9]
    lines = written(tmp_path, "nodes.jsonl", '{"id": 1}\n\n{"id": 2}\n')
    (piece,) = read_sources([lines]).nodes
    assert [piece.line(row) for row in range(2)] == [1, 3]


def test_a_text_of_ten_megabytes_is_read_whole(tmp_path):
    long = "слово 字 " * 1_000_000
    table = written(tmp_path, "nodes.csv", f'id,text\n1,"{long}"\n2,short\n')
    lines = written(tmp_path, "more.jsonl", json.dumps({"id": 3, "type": "t", "text": long}))
    first, second = read_sources([table, lines]).nodes
    assert first.table["text"].to_pylist() == [long, "short"]
    assert second.table["text"].to_pylist() == [long]


def test_json_graphs_and_nested_records_are_read(tmp_path):
    graph = {
        "nodes": [{"id": "a", "info": {"size": 3, "tags": ["x", 1]}}, {"id": "b"}],
        "links": [{"source": "a", "target": "b", "label": "knows"}],
    }
    tables = read_sources([written(tmp_path, "graph.json", json.dumps(graph))])
    assert tables.nodes[0].table.to_pylist()[0] == {
        "key": "a",
        "info.size": 3,
        "info.tags": ["x", "1"],
    }
    assert tables.edges[0].table.to_pylist() == [{"head": "a", "relation": "knows", "tail": "b"}]


def test_other_encodings_are_read_when_named_or_marked(tmp_path):
    content = "id,name\n1,Zoë\n"
    latin = written(tmp_path, "nodes.csv", content.encode("latin-1"))
    marked = written(tmp_path, "entities.csv", content.encode("utf-16"))
    excel = written(tmp_path, "node.csv", content.encode("utf-8-sig"))
    expected = [{"key": 1, "name": "Zoë"}]
    assert read_sources([latin], SourceOptions(encoding="latin-1")).nodes[0].table.to_pylist() == expected
    for path in (marked, excel):
        assert read_sources([path]).nodes[0].table.to_pylist() == expected


def test_a_folder_of_two_encodings_is_read_and_a_note_says_so(tmp_path):
    written(tmp_path, "cats.csv", "id,name\n1,Zoë\n".encode("cp1252"))
    written(tmp_path, "dogs.csv", "id,name\n2,Béla\n".encode())
    tables = read_sources([tmp_path])
    assert {name for piece in tables.nodes for name in piece.table["name"].to_pylist()} == {"Zoë", "Béla"}
    [note] = [note for note in tables.notes if "cp1252" in note]
    assert "cats.csv" in note


def test_a_single_nul_byte_is_replaced_and_said(tmp_path):
    file = written(
        tmp_path, "cats.csv", b"id,name\n" + b"".join(b"%d,cat %d\n" % (n, n) for n in range(200)) + b"200,a\0b\n"
    )
    tables = read_sources([file])
    assert tables.nodes[0].table["name"].to_pylist()[-1] == "a\ufffdb"
    assert any("line 202" in note and "NUL" in note for note in tables.notes)


def test_unquoted_fields_may_hold_a_comma_before_a_blank(tmp_path):
    file = written(
        tmp_path, "agencies.csv", "id,code,name\n1,AE,Ministry, Emirates\n2,AU,Survey, Navy, Australia\n3,B,One\n"
    )
    tables = read_sources([file])
    assert tables.nodes[0].table["name"].to_pylist() == ["Ministry, Emirates", "Survey, Navy, Australia", "One"]
    assert any("agencies.csv" in note and "','" in note for note in tables.notes)
    file = written(tmp_path, "agencies.csv", "id,code,name\n1,AE,Ministry, Emirates\n2,AU,Survey,Navy\n")
    with pytest.raises(SourceError, match="fields instead of 3"):
        read_sources([file])


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([["a:1", "Mitte", 3.5], ["a:2", "Wedding", 4]], ["column 1", "column 2", "column 3"]),
        ([["code", "stop", "weight"], ["a:1", "Mitte", 3.5], ["a:2", "Wedding", 4]], ["code", "stop", "weight"]),
        ([["code", "stop", "weight"], ["a:1", "Mitte", "3"], ["a:2", "Wedding", "4"]], ["code", "stop", "weight"]),
    ],
)
def test_json_rows_are_a_table_with_or_without_a_header(tmp_path, rows, columns):
    [table] = read_json(json.dumps(rows).encode(), "stops.json", flat=False)
    assert table.table.column_names == columns
    assert table.table.num_rows == 2


def test_parts_of_a_parquet_table_are_one_table_called_like_their_folder(tmp_path):
    (tmp_path / "cities").mkdir()
    for number, name in enumerate(("Riga", "Tartu")):
        part = pa.table({"name": [name], "height": [7 + number]})
        pq.write_table(part, tmp_path / "cities" / f"part-0000{number}-5a1f-c000.snappy.parquet")
    [nodes] = read_sources([tmp_path / "cities"]).nodes
    assert nodes.table.select(["type", "name"]).to_pylist() == [
        {"type": "city", "name": "Riga"},
        {"type": "city", "name": "Tartu"},
    ]


def test_nodes_beside_edges_are_named_as_tables_are(tmp_path):
    (tmp_path / "concepts.csv").write_text("ID,GLOSS,FIELD,DEFINITION\n1,DUST,World,Grains.\n2,ASH,World,Of fire.\n")
    (tmp_path / "relations.csv").write_text("SOURCE,RELATION,TARGET\n1,similar,2\n")
    [nodes] = read_sources([tmp_path / "concepts.csv", tmp_path / "relations.csv"]).nodes
    assert nodes.table["name"].to_pylist() == ["DUST", "ASH"]


def test_edges_that_describe_their_ends_make_nodes_of_them(tmp_path):
    content = (
        "relation,display_relation,x_index,x_id,x_type,x_name,y_index,y_id,y_type,y_name\n"
        "protein_protein,ppi,0,9796,gene,PHYHIP,8889,56992,gene,KIF15\n"
        "indication,indication,5,DB1,drug,Aspirin,0,9796,gene,PHYHIP\n"
    )
    tables = read_sources([written(tmp_path, "kg.csv", content)])
    assert tables.nodes[0].table.to_pylist() == [
        {"key": 0, "type": "gene", "name": "PHYHIP", "id": "9796"},
        {"key": 5, "type": "drug", "name": "Aspirin", "id": "DB1"},
        {"key": 8889, "type": "gene", "name": "KIF15", "id": "56992"},
    ]
    assert tables.edges[0].table.to_pylist()[1] == {
        "head": 5, "relation": "indication", "tail": 0, "display_relation": "indication",
    }  # fmt: skip
    nodes = written(tmp_path, "nodes.csv", "id\n0\n5\n8889\n")
    assert "x_name" in read_sources([nodes, tmp_path / "kg.csv"]).edges[0].table.column_names


def test_a_folder_with_nodes_and_edges_is_read_without_what_lies_beside_them(tmp_path):
    written(tmp_path, "nodes.csv", "id\na\n")
    written(tmp_path, "edges.csv", "head,relation,tail\na,r,a\n")
    written(tmp_path, "queries.csv", "id,query\n1,why?\n")
    tables = read_sources([tmp_path])
    assert len(tables.nodes) == 1
    assert "queries.csv" in tables.notes[0]
    (tmp_path / "edges.csv").unlink()
    assert len(read_sources([tmp_path]).nodes) == 2


@pytest.mark.parametrize("ends", [("start", "end"), ("from", "to"), ("start", "target")])
def test_a_node_file_with_columns_that_could_be_ends_is_a_node_file(tmp_path, ends):
    rows = [{"id": key, "name": key.upper(), "type": "war", ends[0]: 1914, ends[1]: None} for key in ("a", "b")]
    (tmp_path / "nodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "edges.tsv").write_text("source\trelation\ttarget\na\tbefore\tb\n")
    read = read_sources([tmp_path / "nodes.jsonl", tmp_path / "edges.tsv"])
    assert [piece.table["name"].to_pylist() for piece in read.nodes] == [["A", "B"]]
    assert len(read.edges) == 1


def test_quotation_marks_around_a_name_are_part_of_it_unless_the_file_quotes(tmp_path):
    file = tmp_path / "edges.tsv"
    file.write_text('source\trelation\ttarget\n"Heroes"\tby\tBowie\nLow\tby\tBowie\n')
    assert read_sources([file]).edges[0].table["head"].to_pylist() == ['"Heroes"', "Low"]
    file.write_text('"source"\t"relation"\t"target"\n"Heroes"\t"by"\t"Bowie"\n')
    assert read_sources([file]).edges[0].table["head"].to_pylist() == ["Heroes"]
    file.write_text('source\trelation\ttarget\n"He\tro"\tby\tBowie\n"Low"\tby\tBowie\n')
    assert read_sources([file]).edges[0].table["head"].to_pylist() == ["He\tro", "Low"]


def test_blanks_after_separators_and_marks_behind_a_backslash_are_read_as_they_are_meant(tmp_path):
    file = tmp_path / "runners.csv"
    file.write_text(
        'Name,              Country, Time,  Year\n"Usain Bolt",      "JAM",   9.63,  2012\n'
        '"T. \\"Eddie\\" Tolan", "USA",  10.30 , 1932\n"O\'Hara,  S.\n  Jr.",     "USA",  10.4,  1936\n'
    )
    (piece,) = read_sources([file]).nodes
    assert piece.table["name"].to_pylist() == ["Usain Bolt", 'T. "Eddie" Tolan', "O'Hara,  S.\n  Jr."]
    assert piece.table["Country"].to_pylist() == ["JAM", "USA", "USA"]
    assert (piece.table["Time"].type, piece.table["Year"].type) == (pa.float64(), pa.int64())
    file.write_text(file.read_text() + '"Hal Davis", "USA"\n')
    with pytest.raises(InputError) as short:
        read_sources([file])
    assert short.value.line == 6


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('1,"C:\\",x\n2," ""a"" b", y\n', (["C:\\", ' "a" b'], ["x", " y"])),
        ('1,"19\\" rack, old",x\n2,"C:\\\\", y\n', (['19" rack, old', "C:\\"], ["x", " y"])),
        ('1,"a, ","b"\n2,"c\\""d", e\n', (["a, ", 'c\\"d'], ["b", " e"])),
    ],
)
def test_what_only_looks_like_another_dialect_stays_as_it_is(tmp_path, written, expected):
    (tmp_path / "nodes.csv").write_text("id,note,rest\n" + written)
    (piece,) = read_sources([tmp_path / "nodes.csv"]).nodes
    assert (piece.table["note"].to_pylist(), piece.table["rest"].to_pylist()) == expected
