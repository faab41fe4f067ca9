"""Bad sources get an error that names the file, the line, what is wrong and what to do."""

import gzip

import pytest

import clew
from clew.core.errors import NotFoundError, SourceError
from clew.store.sources.files import SourceOptions
from clew.store.sources.read import read_sources


@pytest.mark.parametrize(
    ("name", "content", "line", "message"),
    [
        ("nodes.csv", b"", None, "the file is empty"),
        ("nodes.csv", b" \n\n", None, "the file is empty"),
        ("nodes.csv", b"id,name\n", None, "no rows"),
        ("nodes.csv", b"id,name\n1,\xc3\xa9\n2,Zo\xeb\n", 3, r"byte 0xeb \(at 17\) is not utf-8: .*--encoding cp1252"),
        ("nodes.csv", b"id,name\n1,a\n2,Zo\xeb\x01\n", 3, r"byte 0xeb \(at 16\) is not utf-8"),
        ("nodes.csv", b"id,name\n1,a\n2,b\0c\n", 3, "NUL byte"),
        ("nodes.csv", b"id,name\n1,a\n2\n3,c\n", 3, "1 fields instead of 2: add the missing ones.*--skip-bad"),
        ("nodes.csv", b'id,name\n\n1,"a\nb"\n2,b,c\n', 5, "3 fields instead of 2: quote"),
        ("nodes.csv", b"id,name,id\n1,a,2\n", 1, "'id' appears more than once"),
        ("nodes.csv", b"id,name\n1,a\n,b\n", 3, r"the key \(column 'id'\) is empty"),
        ("nodes.csv", b"colour,shape\nred,round\n", None, "the columns are: colour, shape"),
        ("edges.csv", b"source,relation,target\n1,r,2\n1,r,\n", 3, r"the tail \(column 'target'\) is empty"),
        ("kb.txt", b"a|r|b\na|r|b\na|r\n", 3, "2 fields instead of 3"),
        ("nodes.jsonl", b'{"id": 1}\n{"id": 2,}\n', 2, "not JSON: .* at character"),
        ("nodes.jsonl", b'{"id": 1}\n[2]\n', 2, "expected a JSON object, found list"),
        ("graph.json", b'{"id": 1}\n{"id": 2}\n', 2, ".jsonl"),
        ("graph.json", b'{"id": 1}', None, "lists named nodes and edges"),
        ("nodes.parquet", b"PAR1 and no more", None, "not a whole Parquet file"),
        ("nodes.xyz", b"id\n1\n", None, "unknown format '.xyz'"),
        ("nodes.csv.gz", gzip.compress(b"id\n" + b"1\n" * 1000, mtime=0)[:-20], None, "gzip data is cut or damaged"),
        ("graph.nt", b"<http://a> <http://b> <http://c> .\n<http://a> <http://b>\n", 3, "not N-Triples"),
        ("graph.ttl", b"@prefix a: <http://a/> .\n", None, "no triples"),
    ],
)
def test_a_bad_file_is_named_with_line_and_remedy(tmp_path, name, content, line, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SourceError, match=message) as caught:
        read_sources([path])
    assert caught.value.file == str(path)
    assert caught.value.line == line
    assert caught.value.exit_code == 2


def test_missing_files_and_folders_without_anything_readable_are_named(tmp_path):
    for name in ("absent.csv", "absent.parquet", "absent.jsonl", "absent.ttl", "absent.zip"):
        with pytest.raises(NotFoundError, match=f"{name}: no such file"):
            read_sources([tmp_path / name])
    (tmp_path / "picture.png").write_bytes(b"x")
    (tmp_path / "feed").mkdir()
    (tmp_path / "feed" / "feed.rar").touch()
    with pytest.raises(SourceError, match=r"no readable files in this folder: unpack feed\.rar"):
        read_sources([tmp_path / "feed"])
    with pytest.raises(SourceError, match="no readable files in this folder"):
        read_sources([tmp_path])


def test_bad_rows_are_left_out_and_listed_when_asked(tmp_path):
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("id,name\n1,a\n2\n3,c,d\n4,e\n")
    more = tmp_path / "more.jsonl"
    more.write_text('{"id": 5}\n{"id": 6,}\n{"id": 7}\n')
    tables = read_sources([nodes, more], SourceOptions(skip_bad=True))
    assert [piece.table["key"].to_pylist() for piece in tables.nodes] == [[1, 4], [5, 7]]
    assert [[piece.line(row) for row in range(2)] for piece in tables.nodes] == [[2, 5], [1, 3]]
    assert [(problem.file, problem.line) for problem in tables.skipped] == [
        (str(nodes), 3),
        (str(nodes), 4),
        (str(more), 2),
    ]
    report = clew.build([nodes, more], tmp_path / "made.kb", skip_bad=True)
    assert report.skipped == len(report.problems) == 3


def test_a_quotation_mark_that_is_never_closed_does_not_swallow_rows(tmp_path):
    file = tmp_path / "places.csv"
    file.write_text('code,name\nAD,Andorra\nAE,"United Arab\nZZ,Other\n', "utf-8")
    with pytest.raises(SourceError, match="a quotation mark is never closed") as caught:
        read_sources([file])
    assert caught.value.line == 3
    file.write_text('code,name\nAD,"Andorra\nla Vella"\nZZ,Other\n', "utf-8")
    assert [piece.table.num_rows for piece in read_sources([file]).nodes] == [2]
