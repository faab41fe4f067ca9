"""Grammars of what may arrive: texts, JSON, tables, documents and questions, odd in every way that was thought of."""

import csv
import gzip
import io
import json
import random
import zipfile

WORDS = [
    "gene",
    "disease",
    "Marfan syndrome",
    "BBS2",
    "long fingers",
    "finger",
    "near",
    "price",
    "Beta",
    "Alpha",
    "1200",
]
ODD = [
    "", " ", "\x00", "\x1b[2J", "\x1b]52;c;eA==\x07", "\ud800", "\udcff", "\u202eabc", "\ufeff", "\u2028", "é", "𝔘",
    "ß", "İ", "''", '"', "\\", "%s", "{}", "{0}", "$x", "[$]", "../..", "/etc/passwd", "<b>", "&amp;", "NaN", "1e999",
    "-0", "null", "true", "2024-13-45", "0x1F", "9" * 30, "a" * 300, "\t", "\r\n", "|", ";", ",", "()", "[[", "AND",
    "?x", "🧬" * 5,
]  # fmt: skip
ASKING = ["Which {} has {}?", "What is the {} of {}?", "How many {} are {}?", "{} or {}?", "Is {} {}?", "not {} and {}",
          "{} with the highest {}", "{} {} {}", "list {}", "{}"]  # fmt: skip
NAMES = [
    "key",
    "id",
    "type",
    "name",
    "aliases",
    "text",
    "head",
    "relation",
    "tail",
    "n",
    "x.y",
    "",
    "attribute head",
    "date",
]


def text(pick: random.Random) -> str:
    """Some words, some of them odd."""
    parts = [pick.choice(ODD if pick.random() < 0.3 else WORDS) for _ in range(pick.randrange(1, 5))]
    return pick.choice(["", " ", "-"]).join(parts)


def question(pick: random.Random) -> str:
    """A question, more or less."""
    shape = pick.random()
    if shape < 0.05:
        return text(pick) * pick.randrange(1, 400)
    if shape < 0.15:
        return "".join(chr(pick.randrange(0x20, 0x2FFF)) for _ in range(pick.randrange(60)))
    asked = pick.choice(ASKING)
    return asked.format(*(text(pick) if pick.random() < 0.4 else pick.choice(WORDS) for _ in range(3)))


def value(pick: random.Random, depth: int = 0) -> object:
    """A value as JSON has them."""
    shape = pick.random()
    if shape < 0.1 and depth < 4:
        return [value(pick, depth + 1) for _ in range(pick.randrange(4))]
    if shape < 0.2 and depth < 4:
        return {text(pick): value(pick, depth + 1) for _ in range(pick.randrange(4))}
    numbers = [0, -1, 3.5, True, None, 10**30, 2**63, -(2**63), 1e308, float("nan"), float("inf")]
    return pick.choice(numbers) if shape < 0.4 else text(pick)


def cut_and_flipped(content: bytes, pick: random.Random) -> bytes:
    """A content with some bytes changed, repeated or left out."""
    changed = bytearray(content)
    for _ in range(pick.randrange(1, 6)):
        if not changed:
            break
        place = pick.randrange(len(changed))
        how = pick.random()
        if how < 0.5:
            changed[place] = pick.randrange(256)
        elif how < 0.7:
            del changed[place : place + pick.randrange(1, 50)]
        elif how < 0.9:
            changed[place:place] = changed[place : place + pick.randrange(1, 200)]
        else:
            changed[place:place] = pick.choice(ODD).encode("utf-8", "surrogatepass")
    return bytes(changed)


def records(pick: random.Random, names: list[str]) -> list[dict[str, object]]:
    """Rows of a table, mostly with what they must have."""
    keys = [f"k{n}" for n in range(pick.randrange(1, 8))]
    rows = []
    for key in keys:
        row: dict[str, object] = {name: pick.choice(keys) for name in names if pick.random() < 0.97}
        if pick.random() < 0.9:
            row[names[0]] = key
        for _ in range(pick.randrange(4)):
            row[pick.choice(NAMES) if pick.random() < 0.7 else text(pick)] = value(pick)
        rows.append(row)
    return rows


def table_file(pick: random.Random, names: list[str]) -> tuple[str, bytes]:
    """The ending and the content of a file of nodes or edges, sometimes damaged, sometimes packed."""
    rows = records(pick, names)
    ending = pick.choice([".jsonl", ".json", ".csv", ".tsv", ".nt", ".ttl", ".rdf", ".txt"])
    if ending == ".jsonl":
        content = "\n".join(json.dumps(row) for row in rows).encode()
    elif ending == ".json":
        content = json.dumps(pick.choice([rows, {"nodes": rows, "edges": rows}, rows[0]])).encode()
    elif ending in (".csv", ".tsv", ".txt"):
        mark = "\t" if ending == ".tsv" else ","
        columns = list(dict.fromkeys(name for row in rows for name in row))
        lines = [columns, *([str(row.get(name, "")) for name in columns] for row in rows)]
        content = _separated(lines, mark, quoted=pick.random() < 0.85)
    else:
        content = _rdf(pick, ending)
    if pick.random() < 0.2:
        content = cut_and_flipped(content, pick)
    if pick.random() < 0.05:
        content = pick.choice([b"[" * 50_000, b'{"key": ' + b"9" * 6000 + b"}", b"", b"\xff\xfe" + content, b" " * 100])
    if pick.random() < 0.1:
        return f"{ending}.gz", gzip.compress(content)
    return ending, content


def _separated(lines: list[list[str]], mark: str, *, quoted: bool) -> bytes:
    if not quoted:
        return "\n".join(map(mark.join, lines)).encode("utf-8", "surrogatepass")
    written = io.StringIO()
    csv.writer(written, delimiter=mark).writerows([[cell.replace("\0", "") for cell in line] for line in lines])
    return written.getvalue().encode("utf-8", "replace")


def _rdf(pick: random.Random, ending: str) -> bytes:
    triples = [
        (f"http://x/{pick.randrange(5)}", f"http://x/p{pick.randrange(3)}", text(pick))
        for _ in range(pick.randrange(6))
    ]
    if ending == ".rdf":
        inner = "".join(f'<rdf:Description rdf:about="{s}"><x:p>{o}</x:p></rdf:Description>' for s, _, o in triples)
        entities = '<!DOCTYPE r [<!ENTITY a "b&a;">]>' if pick.random() < 0.2 else ""
        spaces = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/"'
        whole = f'<?xml version="1.0"?>{entities}<rdf:RDF {spaces}>{inner}</rdf:RDF>'
    else:
        whole = "\n".join(f"<{s}> <{p}> {json.dumps(o)} ." for s, p, o in triples)
    return whole.encode("utf-8", "replace")


def damaged_document(content: bytes, pick: random.Random) -> bytes:
    """A document with damage anywhere, or inside one part of its archive."""
    if content[:2] != b"PK" or pick.random() < 0.3:
        return cut_and_flipped(content, pick)
    parts = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as whole, zipfile.ZipFile(parts, "w", zipfile.ZIP_DEFLATED) as made:
        names = whole.namelist()
        hit = pick.choice(names)
        for name in names:
            inner = whole.read(name)
            if name == hit and pick.random() < 0.2:
                continue
            made.writestr(name, cut_and_flipped(inner, pick) if name == hit else inner)
    return parts.getvalue()
