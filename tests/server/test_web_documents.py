"""Documents: what may be uploaded, what becomes of it, and what a hostile one cannot do."""

import io
import time
import zipfile
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import clew
from browser_fixtures import HOSTILE
from clew.core.errors import InputError
from clew.server.app import create_app
from clew.server.documents import DocumentFolder, check_content, checked_name
from clew.server.routes_bases import summary
from clew.server.serving import Served, ServedBase
from clew.server.settings import ClientLimits, ServerSettings
from documents_made import ruled_pdf

TEXT = b"# The thread\n\nAriadne gave Theseus a clew of thread. With it he left the labyrinth of Crete."


def client(folder: Path, **limits) -> TestClient:
    settings = ServerSettings({}, {"papers": folder}, limits=ClientLimits(**limits))
    return TestClient(create_app(settings), base_url="http://localhost")


def finished(page: TestClient) -> dict:
    for _ in range(600):
        listing = page.get("/v1/bases/papers/documents").json()
        if listing["build"]["state"] in ("idle", "failed"):
            return listing
        time.sleep(0.1)
    raise AssertionError("the build does not end")


def test_an_uploaded_document_is_built_asked_read_and_deleted(tmp_path):
    with client(tmp_path / "papers") as page:
        assert page.post("/v1/bases/papers/ask", json={"question": "who?"}).status_code == 404
        assert page.put("/v1/bases/papers/documents/thread.md", content=TEXT).status_code == 202
        assert finished(page)["documents"][0]["indexed"]
        answer = page.post("/v1/bases/papers/ask", json={"question": "Who gave a clew?", "method": "bm25"}).json()
        quoted = answer["answers"][0]["evidence"][0]
        assert quoted["file"] == "thread.md"
        pieces = page.get("/v1/bases/papers/documents/thread.md").json()["pieces"]
        [cited] = [piece for piece in pieces if piece["key"] == quoted["node"]["key"]]
        assert quoted["text"].strip() in cited["text"]
    resumed = DocumentFolder(tmp_path / "papers")
    resumed.resume()
    assert resumed.state().state == "idle"  # nothing changed: nothing is built
    with client(tmp_path / "papers") as page:
        assert page.delete("/v1/bases/papers/documents/thread.md").status_code == 202
        assert finished(page)["documents"] == []
        assert not page.get("/v1/bases").json()[0]["ready"]


def test_an_uploaded_table_is_a_graph_as_on_the_command_line(tmp_path):
    with client(tmp_path / "papers") as page:
        page.put("/v1/bases/papers/documents/boats.csv", content=b"boat,harbour,length\nGull,Riga,7\nTern,Riga,9\n")
        listing = finished(page)
        assert listing["build"]["error"] in (None, "")
        assert listing["documents"][0]["indexed"]
    base = clew.open(tmp_path / "papers" / "base.kb")
    assert {row.name for row in base.schema.node_types} == {"boat", "harbour"}


def test_the_last_document_may_go_while_its_base_is_told_of(tmp_path, monkeypatch):
    with client(tmp_path / "papers") as page:
        page.put("/v1/bases/papers/documents/thread.md", content=TEXT)
        finished(page)
    served = Served(ServerSettings({}, {"papers": tmp_path / "papers"})).bases["papers"]
    assert summary(served).ready
    seen = served._state()
    served.documents._empty()
    monkeypatch.setattr(ServedBase, "_state", lambda _: seen + 1)  # was there a moment ago
    assert served.is_ready
    assert served.base_if_ready() is None
    assert not summary(served).ready


def test_a_build_that_was_killed_is_resumed_by_the_next_server(tmp_path):
    folder = DocumentFolder(tmp_path / "papers")
    folder.put("thread.md", TEXT)
    folder.close(patience=0.0)  # often before the process of the build was started
    assert folder.indexed() == {}
    assert folder._process is None or folder._process.poll() is not None, "it would lock the base for the next server"
    with client(tmp_path / "papers") as page:
        assert finished(page)["documents"][0]["indexed"]


@pytest.mark.parametrize(
    "name", ["../a.md", "a/b.md", "..\\a.md", ".hidden.md", "a.exe", "a", "", "a\0.md", "C:a.md", "x" * 200 + ".md"]
)
def test_names_that_lead_elsewhere_are_refused(name):
    with pytest.raises(InputError):
        checked_name(name)


def test_a_traversal_over_http_writes_nothing(tmp_path):
    page = client(tmp_path / "papers")
    for name in ("..%2fevil.md", "%2e%2e%2fevil.md", "..%5cevil.md", "%2fetc%2fevil.md"):
        assert page.put(f"/v1/bases/papers/documents/{name}", content=TEXT).status_code in (404, 405, 422)
    assert not list(tmp_path.rglob("*evil*"))


def packed(entries: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return made.getvalue()


def test_content_that_is_not_what_its_name_says_is_refused():
    wrong = {"a.pdf": TEXT, "a.docx": TEXT, "a.xlsx": packed({"x": b"1"}), "a.txt": b"\x7fELF\0\0", "b.md": b""}
    for name, content in wrong.items():
        with pytest.raises(InputError):
            check_content(name, content)
    check_content("a.md", TEXT)
    check_content("a.txt", "Ζήνων".encode("utf-16"))


def test_a_zip_bomb_is_refused_even_if_it_lies_about_its_size():
    bomb = packed({"[Content_Types].xml": b"", "word/document.xml": b"0" * 40_000_000})
    with pytest.raises(InputError, match="bomb"):
        check_content("a.docx", bomb)
    size = (40_000_000).to_bytes(4, "little")
    with pytest.raises(InputError):  # the lie is found when the sizes disagree, or by counting
        check_content("a.docx", bomb.replace(size, (100).to_bytes(4, "little")))


def test_uploads_are_limited_in_size_and_number(tmp_path):
    page = client(tmp_path / "papers", upload_bytes=100, most_files=1)
    assert page.put("/v1/bases/papers/documents/a.md", content=b"x" * 101).status_code == 413
    (tmp_path / "papers" / "files" / "a.md").write_bytes(TEXT)
    assert page.put("/v1/bases/papers/documents/b.md", content=b"# short").status_code == 422


def test_hostile_texts_leave_the_server_as_data(hostile):
    page = TestClient(create_app(ServerSettings({"hostile": hostile})), base_url="http://localhost")
    reply = page.post("/v1/bases/hostile/ask", json={"question": "ignore all previous", "method": "bm25"})
    assert reply.headers["content-type"] == "application/json"
    assert HOSTILE in reply.json()["answers"][0]["name"]
    drawing = page.get("/v1/bases/hostile/subgraph", params={"entity": ["BBS2", "P1"], "format": "svg"})
    assert "<script" not in drawing.text
    assert "<img" not in drawing.text
    text = page.get("/v1/bases/hostile/subgraph", params={"entity": ["BBS2", "P1"], "format": "text"})
    assert text.headers["content-type"].startswith("text/plain")
    assert text.headers["x-content-type-options"] == "nosniff"


def test_the_page_of_an_uploaded_pdf_is_drawn_and_nothing_else(tmp_path):
    ruled_pdf(tmp_path / "report.pdf")
    content = (tmp_path / "report.pdf").read_bytes()
    with client(tmp_path / "papers") as page:
        page.put("/v1/bases/papers/documents/report.pdf", content=content)
        page.put("/v1/bases/papers/documents/thread.md", content=TEXT)
        assert finished(page)["build"]["state"] == "idle"
        asked = {"question": "Who will build the fifth station?"}
        best = page.post("/v1/bases/papers/ask", json=asked).json()["evidence"][0]
        assert (best["file"], best["page"]) == ("report.pdf", 3)

        def drawn(key: str, *boxes: str):
            return page.get("/v1/bases/papers/page", params={"key": key, "box": list(boxes)})

        picture = drawn(best["node"]["key"], *(",".join(map(str, box)) for box in best["boxes"]))
        assert picture.headers["content-type"] == "image/png"
        assert picture.content.startswith(b"\x89PNG")
        assert drawn("report.pdf#page=00001").status_code == 200
        assert drawn("thread.md#passage=000001").status_code == 422
        assert drawn("nothing").status_code == 404
        for box in ("1,2,3", "a,b,c,d", "nan,0,1,1", "inf,0,1,1", "-1,0,1,1", "0,0,1,1e9", ""):
            assert drawn(best["node"]["key"], box).status_code == 422
        assert drawn(best["node"]["key"], *["0,0,1,1"] * 201).status_code == 422
        file = tmp_path / "papers" / "files" / "report.pdf"
        file.write_bytes(content + b"\n%")
        told = drawn(best["node"]["key"])
        assert told.status_code == 422
        assert "changed" in told.json()["error"]
        assert str(tmp_path) not in told.text
        file.unlink()
        assert drawn(best["node"]["key"]).status_code == 404
    other = TestClient(
        create_app(ServerSettings({"plain": tmp_path / "papers" / "base.kb"})), base_url="http://localhost"
    )
    assert other.get("/v1/bases/plain/page", params={"key": best["node"]["key"]}).status_code == 409
