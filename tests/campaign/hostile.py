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


def nested(pick: random.Random, depth: int = 0) -> object:
    """Objects of objects and lists of objects, mostly of the same fields, as programs export them."""
    fields = ["id", "name", "items", "tags", "owner", "by key", "a.b", "", "row_id", "parent"]
    shape = pick.random()
    if depth > 5 or shape < 0.15:
        return value(pick, 3)
    if shape < 0.5:
        return [nested(pick, depth + 1) for _ in range(pick.randrange(5))]
    if shape < 0.7:
        chosen = pick.sample(fields, pick.randrange(1, 4))
        return [{name: nested(pick, depth + 2) for name in chosen} for _ in range(pick.randrange(1, 4))]
    names = [text(pick) if pick.random() < 0.3 else f"k{pick.randrange(40)}" for _ in range(pick.randrange(6))]
    if shape < 0.85:
        one = nested(pick, depth + 2)
        return {name: one if pick.random() < 0.8 else nested(pick, depth + 2) for name in names}
    return {name: nested(pick, depth + 1) for name in pick.sample(fields, pick.randrange(1, 5))}


def nested_file(pick: random.Random) -> tuple[str, bytes]:
    """The ending and the content of a file of nested JSON, sometimes deep, wide or damaged."""
    shape = pick.random()
    if shape < 0.03:
        depth = pick.choice([50, 500, 5_000, 100_000])
        return ".json", b'{"a": ' * depth + b"1" + b"}" * depth
    if shape < 0.06:
        rows = [{f"f{pick.randrange(10**6)}": {"x": number} for _ in range(20)} for number in range(60)]
        return ".json", json.dumps(pick.choice([rows, {"rows": rows}])).encode()
    whole = nested(pick)
    content = json.dumps(whole if isinstance(whole, dict | list) else {"a": [whole]}).encode("utf-8", "surrogatepass")
    return ".json", cut_and_flipped(content, pick) if pick.random() < 0.15 else content


def plain_files(pick: random.Random) -> list[tuple[str, bytes]]:
    """Tables as spreadsheets have them: keys, references to each other, lists in cells, and odd cells everywhere."""
    names = pick.sample(["customers", "orders", "product", "order_items", "data", "X"], pick.randrange(1, 4))
    return [(name, _plain_table(pick, names)) for name in names]


def _plain_table(pick: random.Random, tables: list[str]) -> bytes:
    rows = pick.choice([0, 1, 2, 5, 30])
    makers = {
        "id": lambda row: str(row),
        "name": lambda row: f"Name {row}",
        f"{pick.choice(tables)}_id": lambda _: str(pick.randrange(rows + 1)),
        pick.choice(tables).rstrip("s"): lambda _: f"Name {pick.randrange(rows + 1)}",
        "tags": lambda _: pick.choice(";|,").join(pick.choices(["red", "blue", "", text(pick)], k=3)),
        "date": lambda row: pick.choice(["2020-01-01", "31.12.99", "0000-00-00", str(row)]),
        "price": lambda _: pick.choice(["1,200", "1.5e400", "-0", "€ 3", "9" * 400, "inf", "nan", ""]),
        "kind": lambda _: pick.choice("AB"),
        text(pick): lambda _: text(pick),
    }
    columns = pick.sample([*makers], pick.randrange(1, len(makers) + 1))
    if pick.random() < 0.2:
        columns.append(pick.choice(columns))  # a header twice
    lines = [columns, *([makers[name](row) for name in columns] for row in range(rows))]
    if pick.random() < 0.2:
        lines = [line[: pick.randrange(1, len(line) + 1)] if pick.random() < 0.2 else line for line in lines]
    content = _separated(lines, pick.choice(",;\t|"), quoted=pick.random() < 0.85)
    return cut_and_flipped(content, pick) if pick.random() < 0.15 else content


def typed_rdf(pick: random.Random) -> tuple[str, bytes]:
    """Triples with types, labels, classes and odd terms, for a build that reads only some types."""
    kind, label = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://www.w3.org/2000/01/rdf-schema#label"
    owl = "http://www.w3.org/2002/07/owl#"
    lines = []
    for _ in range(pick.randrange(1, 25)):
        subject = pick.choice([f"<http://x/{pick.randrange(6)}>", f"_:b{pick.randrange(3)}"])
        term = pick.choice([f"<http://x/{pick.randrange(6)}>", f"_:b{pick.randrange(3)}", json.dumps(text(pick))])
        lines.append(
            pick.choice(
                [
                    f"{subject} <{kind}> <http://x/T{pick.randrange(3)}> .",
                    f"{subject} <{kind}> <{owl}{pick.choice(['Class', 'Axiom', 'Restriction'])}> .",
                    f"{subject} <{label}> {json.dumps(text(pick))}{pick.choice(['', '@en', '@x-y', '^^<http://d>'])} .",
                    f"{subject} <{owl}annotatedSource> {term} .",
                    f"{subject} <http://x/p{pick.randrange(3)}> {term} .",
                ]
            )
        )
    content = "\n".join(lines).encode("utf-8", "replace")
    return pick.choice([".nt", ".ttl"]), cut_and_flipped(content, pick) if pick.random() < 0.2 else content


def patterns(pick: random.Random) -> tuple[str, ...]:
    """Types or keys to read or to leave out."""
    some = ["T0", "T?", "*", "http://x/*", "Class", "Axiom", "[", "[!a", "customer", "Node", "\x00", "://", text(pick)]
    return tuple(pick.sample(some, pick.randrange(0, 3)))


def query(pick: random.Random, sound: list[str]) -> str:
    """A query text: one that can be read with parts of others put into it, or damaged, or without end."""
    shape = pick.random()
    whole = pick.choice(sound)
    if shape < 0.1:
        return whole
    if shape < 0.2:
        return cut_and_flipped(whole.encode(), pick).decode("utf-8", "surrogateescape")
    if shape < 0.3:
        return "find x where " + " and ".join(
            f"({pick.choice('xyz')}{number})" for number in range(pick.randrange(2, 9))
        )
    if shape < 0.4:
        walk = pick.choice(["*", "+", "{1,9999999999}", "{99999999,}", "{5,2}", "{-1,}", "{0,0}"])
        relation, end = pick.choice(["any", "next", "has_phenotype"]), pick.choice(["->", "-"])
        return f"find x, y where (x) -[{relation}{walk}]{end} (y)"
    if shape < 0.5:
        expression = pick.choice(["(a+)+$", "(.*)*x", "[", "a{1000}{1000}", "(?P<x>", "\\\\p{Greek}", text(pick)])
        return f"find x where (x) and x.name matches {json.dumps(expression)}"
    if shape < 0.6:
        opened, closed = pick.choice([("(", ")"), ("not exists {(x) and ", "}"), ("((find x where ", "))"), ("-", "")])
        depth = pick.choice([5, 55, 70, 400])
        return f"find x where {opened * depth}(x){closed * depth}"[:9_999]
    if shape < 0.65:
        part = pick.choice(["1 + ", "2 * ", "(find x where (x)) union ", "not ", "x.n = 1 and ", "9", "- ", "abs("])
        return f"find {pick.choice(['', 'x where (x: place) and '])}{part * pick.choice([9, 99, 400, 9_000])}1"[:9_999]
    if shape < 0.7:
        quoted = pick.choice(["\\q", "\\u12", "\\ud800", "a\nb", "\\", "\x00", "\\\\d+"])
        return f'find x where (x) and x.name {pick.choice(["=", "matches", "contains"])} "{quoted}"'
    words = whole.split()
    for _ in range(pick.randrange(1, 6)):
        place = pick.randrange(len(words))
        other = pick.choice(pick.choice(sound).split())
        words[place] = pick.choice([other, text(pick), "9" * pick.choice([3, 30, 400]), "-1e308", words[place] * 2])
    return " ".join(words)


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
