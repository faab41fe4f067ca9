"""Small bases in the layout of STaRK's releases: `python tests/official_stark.py FOLDER` writes amazon, mag and prime.

Files, names of types, relations and fields are those of the releases; the contents are made up. `edge_index`,
`edge_types` and `node_types` are tensors as `torch.save` writes them, made here without torch.
"""

from __future__ import annotations

import csv
import pickle
import random
import struct
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Edge = tuple[int, str, int]


class Layout:
    """Nodes and edges on the way into an official folder; ids count from 0."""

    def __init__(self) -> None:
        self.info: list[dict[str, Any]] = []
        self.types: list[str] = []
        self.edges: list[Edge] = []

    def add(self, kind: str, **fields: Any) -> int:
        self.info.append(fields)
        self.types.append(kind)
        return len(self.info) - 1

    def join(self, head: int, relation: str, tail: int) -> None:
        self.edges.append((head, relation, tail))

    def of(self, kind: str) -> list[int]:
        return [node for node, own in enumerate(self.types) if own == kind]

    def write(self, folder: Path, types: Sequence[str], relations: Sequence[str]) -> None:
        place = folder / "processed"
        place.mkdir(parents=True)
        parts = {
            "node_info": dict(enumerate(self.info)),
            "node_type_dict": dict(enumerate(types)),
            "edge_type_dict": dict(enumerate(relations)),
        }
        for name, content in parts.items():
            (place / f"{name}.pkl").write_bytes(pickle.dumps(content))
        write_tensor(place / "node_types.pt", [types.index(kind) for kind in self.types])
        write_tensor(place / "edge_types.pt", [relations.index(relation) for _, relation, _ in self.edges])
        ends = [head for head, _, _ in self.edges] + [tail for _, _, tail in self.edges]
        write_tensor(place / "edge_index.pt", ends, rows=2)


def write_tensor(file: Path, numbers: Sequence[int], rows: int = 0) -> None:
    """A tensor of whole numbers, in the form that torch.save gives it since PyTorch 1.6."""
    wide = len(numbers) // rows if rows else 0
    shape, strides = ((rows, wide), (wide, 1)) if rows else ((len(numbers),), (1,))
    storage = b"(X\x07\x00\x00\x00storagectorch\nLongStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
    pickled = (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + _whole(len(numbers)) + b"tQK\x00"
        + _tuple(shape) + _tuple(strides) + b"\x89ccollections\nOrderedDict\n)RtR."
    )  # fmt: skip
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/data/0", struct.pack(f"<{len(numbers)}q", *numbers))


def _whole(number: int) -> bytes:
    return b"J" + struct.pack("<i", number)


def _tuple(numbers: Sequence[int]) -> bytes:
    return b"(" + b"".join(map(_whole, numbers)) + b"t"


def write_questions(folder: Path, rows: Sequence[tuple[str, Sequence[int]]]) -> None:
    """`stark_qa/stark_qa.csv` and the splits."""
    (folder / "stark_qa").mkdir(parents=True)
    with (folder / "stark_qa" / "stark_qa.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["id", "query", "answer_ids"])
        table.writerows([number, query, str(list(answers))] for number, (query, answers) in enumerate(rows))
    (folder / "split").mkdir()
    for name, part in (("train", range(0, len(rows), 2)), ("val", range(1, len(rows), 2))):
        (folder / "split" / f"{name}.index").write_text("\n".join(map(str, part)) + "\n")


THINGS = ("tent", "backpack", "lantern", "kettle", "hammock", "stove", "bottle", "jacket", "paddle", "helmet")
MATERIALS = ("ripstop nylon", "brushed steel", "waxed canvas", "carbon fibre", "cast aluminium", "merino wool")
USES = ("winter camping", "river rafting", "desert hiking", "city commuting", "alpine climbing", "beach picnics")
VIRTUES = ("packs down very small", "dries within an hour", "survives heavy hail", "folds with one hand")
FAULTS = ("the zipper broke after two weeks", "it leaks at the seams", "the handle came off")


def amazon(folder: Path, seed: int = 0) -> None:
    """Products with features, reviews and answered questions; brands, categories, colours."""
    pick, layout = random.Random(seed), Layout()
    for number in range(60):
        thing, material, use = THINGS[number % 10], MATERIALS[number % 6], USES[(number // 3) % 6]
        layout.add(
            "product",
            asin=f"B{number:09}",
            title=f"Summit {thing.capitalize()} {number + 100}",
            global_category="Sports & Outdoors",
            category=["Outdoor Recreation", use.title()],
            price=f"${pick.randrange(10, 90)}.99",
            brand=f"Brand {number % 7}",
            feature=[f"Made of {material}", f"Weighs {200 + 13 * number} grams"],
            rank=str(1000 + number),
            details={"item model number": f"SM-{number}"},
            description=[f"A {thing} for {use}. It {VIRTUES[number % 4]} and is made of {material}."],
            review=[
                {"reviewerID": "A1", "overall": 5.0, "vote": "3", "verified": True, "reviewTime": "01 2, 2016",
                 "summary": "Great", "reviewText": f"Perfect for {use}, it {VIRTUES[(number + 1) % 4]}."},
                {"reviewerID": "A2", "overall": 1.0, "vote": "", "verified": True, "reviewTime": "03 4, 2017",
                 "summary": "Disappointed", "reviewText": f"Sadly {FAULTS[number % 3]}."},
            ],
            qa=[{"questionType": "yes/no", "asin": f"B{number:09}", "question": "Is it waterproof?",
                 "answerType": "Y", "answer": f"Yes, thanks to the {material}."}],
        )  # fmt: skip
    for number in range(7):
        layout.add("brand", brand_name=f"Brand {number}")
    for use in USES:
        layout.add("category", category_name=use.title())
    for colour in ("olive green", "slate grey", "signal red"):
        layout.add("color", color_name=colour)
    brands, categories, colours = layout.of("brand"), layout.of("category"), layout.of("color")
    for product in layout.of("product"):
        layout.join(product, "has_brand", brands[product % 7])
        layout.join(product, "has_category", categories[(product // 3) % 6])
        layout.join(product, "has_color", colours[product % 3])
        for _ in range(3):
            layout.join(product, "also_buy", pick.randrange(60))
            layout.join(product, "also_view", pick.randrange(60))
    relations = ("also_buy", "also_view", "has_brand", "has_category", "has_color")
    layout.write(folder, ("product", "brand", "category", "color"), relations)
    write_questions(folder, [(f"A {THINGS[n % 10]} by Brand {n % 7} for {USES[(n // 3) % 6]}", [n]) for n in range(10)])


TOPICS = ("graph theory", "protein folding", "glacier dynamics", "speech synthesis", "soil chemistry")
FINDINGS = ("a bound that is tight", "a cheaper estimator", "an unexpected symmetry", "a failed replication")


def mag(folder: Path, seed: int = 0) -> None:
    """Papers with abstracts, their authors, institutions and fields of study."""
    pick, layout = random.Random(seed), Layout()
    for number in range(30):
        layout.add("author", DisplayName=f"Author {number:02} Lindqvist", PaperCount=number, CitationCount=-1)
    for number in range(6):
        layout.add("institution", DisplayName=f"University of Port {number}")
    for topic in TOPICS:
        layout.add("field_of_study", DisplayName=topic, Level=2)
    for number in range(60):
        topic, finding = TOPICS[number % 5], FINDINGS[number % 4]
        layout.add(
            "paper",
            mag_id=9000 + number,
            title=f"On {topic}, part {number}",
            abstract=f"We study {topic} with instruments of type {number % 9} and report {finding}.",
            OriginalVenue=f"Journal {number % 4}",
            Date=f"20{10 + number % 10}-01-01",
            PaperCitationCount=number,
        )
    authors, papers = layout.of("author"), layout.of("paper")
    for author in authors:
        layout.join(author, "author___affiliated_with___institution", layout.of("institution")[author % 6])
    for paper in papers:
        layout.join(paper, "paper___has_topic___field_of_study", layout.of("field_of_study")[(paper - papers[0]) % 5])
        for author in pick.sample(authors, 2):
            layout.join(author, "author___writes___paper", paper)
        for other in pick.sample(papers, 2):
            layout.join(paper, "paper___cites___paper", other)
    relations = (
        "author___affiliated_with___institution", "paper___cites___paper", "paper___has_topic___field_of_study",
        "author___writes___paper",
    )  # fmt: skip
    layout.write(folder, ("author", "institution", "field_of_study", "paper"), relations)
    named = [(layout.info[paper]["title"], paper) for paper in papers[:10]]
    write_questions(
        folder, [(f"the paper {title} that reports {FINDINGS[n % 4]}", [p]) for n, (title, p) in enumerate(named)]
    )


PRIME_TYPES = (
    "disease", "gene/protein", "molecular_function", "drug", "pathway", "anatomy", "effect/phenotype",
    "biological_process", "cellular_component", "exposure",
)  # fmt: skip
PRIME_RELATIONS = {
    "ppi": ("gene/protein", "gene/protein"), "carrier": ("drug", "gene/protein"), "enzyme": ("drug", "gene/protein"),
    "target": ("drug", "gene/protein"), "transporter": ("drug", "gene/protein"),
    "contraindication": ("drug", "disease"), "indication": ("drug", "disease"), "off-label use": ("drug", "disease"),
    "synergistic interaction": ("drug", "drug"), "associated with": ("disease", "gene/protein"),
    "parent-child": ("disease", "disease"), "phenotype absent": ("disease", "effect/phenotype"),
    "phenotype present": ("disease", "effect/phenotype"), "side effect": ("drug", "effect/phenotype"),
    "interacts with": ("exposure", "gene/protein"), "linked to": ("exposure", "disease"),
    "expression present": ("anatomy", "gene/protein"), "expression absent": ("anatomy", "gene/protein"),
}  # fmt: skip
MORE_PAIRS = (
    ("interacts with", "molecular_function", "gene/protein"), ("interacts with", "cellular_component", "gene/protein"),
    ("interacts with", "biological_process", "gene/protein"), ("interacts with", "pathway", "gene/protein"),
    ("interacts with", "exposure", "biological_process"), ("associated with", "effect/phenotype", "gene/protein"),
    ("parent-child", "anatomy", "anatomy"), ("parent-child", "pathway", "pathway"),
)  # fmt: skip
SIGNS = ("tremor of the jaw", "night sweats", "blurred vision", "brittle nails", "sudden hiccups")


def prime(folder: Path, seed: int = 0) -> None:
    """Ten types and eighteen relations; every edge stands both ways, as in the release."""
    pick, layout = random.Random(seed), Layout()
    for kind in PRIME_TYPES:
        for number in range(12):
            details: dict[str, Any] = {}
            if kind == "disease":
                details = {
                    "mondo_definition": f"A condition with {SIGNS[number % 5]} in stage {number}.",
                    "umls_description": f"Seen in region {number % 4}, often with {SIGNS[(number + 2) % 5]}.",
                }
            if kind == "drug":
                details = {
                    "description": f"A substance of class {number % 5} against {SIGNS[number % 5]}.",
                    "half_life": f"The half life is {number + 2} hours.",
                }
            if kind == "gene/protein":
                details = {"alias": [f"GX{number}"], "summary": f"Encodes a kinase of family {number % 4}."}
            name = f"{kind.split('/')[0].replace('_', ' ').capitalize()} {chr(65 + number)}{number}"
            layout.add(kind, id=str(7000 + number), type=kind, name=name, source="made up", details=details)
    pairs = [(relation, head, tail) for relation, (head, tail) in PRIME_RELATIONS.items()]
    for relation, head, tail in (*pairs, *MORE_PAIRS):
        for node in layout.of(head):
            for other in pick.sample(layout.of(tail), 3):
                layout.join(node, relation, other)
                layout.join(other, relation, node)
    layout.write(folder, PRIME_TYPES, tuple(PRIME_RELATIONS))
    diseases = layout.of("disease")[:10]
    write_questions(folder, [(f"a condition with {SIGNS[n % 5]} in stage {n}", [d]) for n, d in enumerate(diseases)])


BASES = {"amazon": amazon, "mag": mag, "prime": prime}

if __name__ == "__main__":
    for name, write in BASES.items():
        write(Path(sys.argv[1]) / name)
