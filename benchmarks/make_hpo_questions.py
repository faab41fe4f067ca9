"""Writes benchmarks/data/hpo_questions.jsonl: questions over the Human Phenotype Ontology with gold answers.

Each question mixes a relational requirement, a real path of the graph, with a textual one, a property of the answer's
document; some are textual only. Gold answers are computed here from the source files in plain Python, independently of
Clew: a disease that shows a phenotype also shows every broader one (the ontology's true-path rule); a phenotype seen
in none of the people examined (frequency 0/n) is not shown.

usage: python benchmarks/make_hpo_questions.py HPO_FOLDER [--seed 0] [--out benchmarks/data/hpo_questions.jsonl]
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

CHROMOSOME = re.compile(r"Map location: (\d+|X|Y)[pq]")
GENE_TEXTS = {
    "a kinase": r"\bkinase\b",
    "a receptor": r"\breceptor\b",
    "an ion channel": r"\bchannel\b",
    "a transporter": r"\btransporter\b|solute carrier",
    "a zinc finger protein": r"zinc finger",
    "a collagen": r"\bcollagen\b",
    "a dehydrogenase": r"dehydrogenase",
    "a mitochondrial protein": r"mitochondrial",
    "a ribosomal protein": r"ribosomal protein",
    "a phosphatase": r"\bphosphatase\b",
    "a keratin": r"\bkeratin\b",
    "a myosin": r"\bmyosin\b",
    "a transcription factor": r"transcription factor|homeobox|forkhead box",
    "a growth factor": r"growth factor",
    "a ubiquitin ligase": r"ubiquitin.*ligase",
    "a helicase": r"\bhelicase\b",
    "a dynein": r"\bdynein\b",
    "a synthase": r"\bsynthase\b",
    "a transmembrane protein": r"transmembrane",
    "a complement component": r"\bcomplement\b",
}
ORGANS = {
    "the kidneys": r"kidney|renal|nephr",
    "the heart": r"heart|cardi",
    "the liver": r"liver|hepat",
    "the lungs": r"\blung|pulmon|respirat",
    "the eyes": r"\beyes?\b|ocular|retin|cornea|optic|vision|visual",
    "the skin": r"\bskin|cutaneous|derm",
    "the brain": r"brain|cerebr|cerebell|encephal",
    "the muscles": r"muscle|muscular|myopath",
    "the bones": r"\bbones?\b|skelet|osteo|osse",
    "the blood": r"blood|hemato|erythro|anemia|platelet|leukocyte",
    "the ears": r"\bears?\b|hearing|deaf|cochlea",
    "the teeth": r"tooth|teeth|dental|dentin",
    "the hair": r"\bhair",
    "the fingers or toes": r"finger|\btoes?\b|digit|phalan",
    "the bowel": r"intestin|bowel|gastro|colon",
    "the hormones": r"hormon|endocrin|thyroid|insulin",
    "the nerves": r"\bnerves?\b|neuropath|axon",
}
REWORDED = {
    "decreased": "reduced", "increased": "raised", "abnormal": "unusual", "abnormally": "unusually", "absence": "lack",
    "elevated": "high", "affecting": "of", "located": "found", "reduced": "low", "characterized": "marked",
    "impaired": "poor", "enlargement": "swelling", "deviation": "departure", "inability": "being unable",
    "difficulty": "trouble", "excessive": "too much", "congenital": "inborn", "individual": "person",
    "deficiency": "shortage",
}  # fmt: skip


@dataclass(frozen=True)
class Ontology:
    """Nodes and edges of the source files."""

    nodes: dict[str, dict]
    out: dict[tuple[str, str], set[str]]
    into: dict[tuple[str, str], set[str]]

    @classmethod
    def read(cls, folder: Path) -> Ontology:
        with gzip.open(folder / "nodes.jsonl.gz", "rt", encoding="utf-8") as lines:
            nodes = {node["id"]: node for node in map(json.loads, lines)}
        out, into = defaultdict(set), defaultdict(set)
        with gzip.open(folder / "edges.tsv.gz", "rt", encoding="utf-8") as lines:
            next(lines)
            for line in lines:
                head, relation, tail, frequency = line.rstrip("\n").split("\t")
                if frequency.startswith("0/"):  # looked for and seen in nobody
                    continue
                out[head, relation].add(tail)
                into[tail, relation].add(head)
        return cls(nodes, dict(out), dict(into))

    def __hash__(self) -> int:
        return id(self)

    @cache  # noqa: B019 - one ontology per run
    def below(self, phenotype: str) -> frozenset[str]:
        found, new = {phenotype}, {phenotype}
        while new:
            new = {child for node in new for child in self.into.get((node, "is_a"), ())} - found
            found |= new
        return frozenset(found)

    @cache  # noqa: B019
    def showing(self, phenotype: str, relation: str = "has_phenotype") -> frozenset[str]:
        """The diseases that show a phenotype or a kind of it."""
        return frozenset(d for kind in self.below(phenotype) for d in self.into.get((kind, relation), ()))

    def genes(self, diseases: Iterable[str]) -> set[str]:
        return {gene for disease in diseases for gene in self.into.get((disease, "associated_with_disease"), ())}

    def diseases(self, gene: str) -> set[str]:
        return self.out.get((gene, "associated_with_disease"), set())

    def signs(self, diseases: Iterable[str]) -> set[str]:
        return {sign for disease in diseases for sign in self.out.get((disease, "has_phenotype"), ())}

    @cached_property
    def owners(self) -> dict[str, set[str]]:
        """Every name and synonym, lower-cased, with the nodes that have it."""
        found = defaultdict(set)
        for key, node in self.nodes.items():
            for name in (node["name"], *node.get("synonyms", ())):
                found[name.lower()].add(key)
        return found

    def is_named_alone(self, key: str) -> bool:
        """Whether no other node has one of its names: a question must say which node it means."""
        node = self.nodes[key]
        return all(len(self.owners[name.lower()]) == 1 for name in (node["name"], *node.get("synonyms", ())))

    def document(self, key: str) -> str:
        node = self.nodes[key]
        return " ".join([node["name"], *node.get("synonyms", ()), node["text"], node.get("comment", "")])


@dataclass(frozen=True)
class Draft:
    """A relational requirement: what it names, the nodes that satisfy it, and its query with the target first."""

    kind: str
    target: str
    names: dict[str, str]
    nodes: set[str]
    triplets: list[list[str]]
    wordings: tuple[str, ...]
    """With a hole for each name and `$text` for the textual requirement."""


@dataclass
class Writer:
    ontology: Ontology
    random: random.Random
    used: Counter = field(default_factory=Counter)

    def pick(self, keys: list[str]) -> str:
        return self.random.choice(keys)

    def name(self, key: str) -> str:
        """The name of a node, or one of its synonyms where it has a telling one."""
        node = self.ontology.nodes[key]
        others = [s for s in node.get("synonyms", ()) if len(s) > 6 and "," not in s and "(" not in s]
        chosen = (
            self.random.choice(others)
            if others and node["type"] == "phenotype" and self.random.random() < 0.3
            else None
        )
        name = chosen or node["name"]
        return name if node["type"] != "phenotype" else name[0].lower() + name[1:]

    def textual(self, target: str, nodes: set[str]) -> tuple[str, str, list[str]] | None:
        """A textual requirement that some but not most of the nodes meet: its wording, pattern and the nodes."""
        options = []
        if target == "gene":
            chromosomes = {m[1] for key in nodes if (m := CHROMOSOME.search(self.ontology.nodes[key]["text"]))}
            options += [(f"CHROMOSOME {c}", rf"Map location: {c}[pq]") for c in sorted(chromosomes)]
            options += GENE_TEXTS.items()
        else:
            options += ORGANS.items()
        self.random.shuffle(options)
        for phrase, pattern in options:
            meeting = sorted(key for key in nodes if re.search(pattern, self.ontology.document(key), re.IGNORECASE))
            if 1 <= len(meeting) <= min(15, 0.6 * len(nodes)):
                return phrase, pattern, meeting
        return None


WORDINGS = {
    "genes of a disease": (
        "Which gene associated with $d $text?",
        "Name the genes behind $d that $text.",
        "$d has been traced to several genes. Which of them $text?",
    ),
    "diseases of a gene": (
        "Which diseases associated with the $g gene $text?",
        "Variants of $g cause a disease that $text. Which one?",
        "What disease caused by $g $text?",
    ),
    "diseases with a sign": (
        "Which disease that presents with $s $text?",
        "Name diseases with $s that $text.",
        "What diseases show $s and $text?",
    ),
    "signs of a disease": (
        "Which phenotypes of $d $text?",
        "What phenotype seen in $d $text?",
        "Patients with $d show several phenotypes. Which of them $text?",
    ),
    "genes of diseases with a sign": (
        "Which genes associated with diseases that show $s $text?",
        "Name a gene that $text and is linked to diseases with $s.",
        "Which gene involved in a disease presenting with $s $text?",
    ),
    "signs of diseases of a gene": (
        "Which phenotypes of diseases associated with $g $text?",
        "What phenotypes that $text occur in the diseases caused by $g?",
        "Diseases due to $g have many phenotypes. Which of these $text?",
    ),
    "diseases that share a gene": (
        "Which other diseases that $text share a gene with $d?",
        "What disease that $text is associated with the same gene as $d?",
    ),
    "diseases with two signs": (
        "Which disease that shows both $a and $b $text?",
        "Name diseases with $a and $b that $text.",
        "What diseases present with $a as well as $b and $text?",
    ),
    "genes of diseases with two signs": (
        "Which genes that $text are associated with diseases that present with both $a and $b?",
        "A disease with $a and $b is associated with a gene that $text. Which gene?",
    ),
    "diseases with a sign and an inheritance": (
        "Which diseases with $m show $s and $text?",
        "Name a disease of $m that presents with $s and $text.",
    ),
    "signs of two diseases": (
        "Which phenotypes that $text occur in both $d and $e?",
        "What phenotypes common to $d and $e $text?",
    ),
    "diseases with one sign but not another": (
        "Which diseases with $a but without $b $text?",
        "Name diseases that show $a, do not show $b and $text.",
    ),
    "diseases of a gene without a sign": (
        "Which disease associated with $g does not present with $s and $text?",
        "What diseases caused by $g without $s $text?",
    ),
    "diseases with a sign and no gene": (
        "Which diseases with $s have no associated gene and $text?",
        "Name diseases showing $s without any known gene that $text.",
    ),
    "signs of one disease but not of another": (
        "Which phenotypes that $text occur in $d but not in $e?",
        "What phenotypes of $d that are not seen in $e $text?",
    ),
}
CAUSES, SHOWS = "associated_with_disease", "has_phenotype"
MODES = ("HP:0000006", "HP:0000007", "HP:0001417", "HP:0001419", "HP:0001423", "HP:0001427")
"""Modes of inheritance."""


def drafts(writer: Writer) -> Iterator[Draft]:
    """Relational requirements over random real paths, each kind in turn."""
    o, r = writer.ontology, writer.random

    def named(kind: str, test: Callable[[str], bool]) -> list[str]:
        return [key for key in o.nodes if o.nodes[key]["type"] == kind and o.is_named_alone(key) and test(key)]

    many_genes = named("disease", lambda d: len(o.into.get((d, CAUSES), ())) >= 3)
    busy_genes = sorted(named("gene", lambda g: len(o.diseases(g)) >= 3))
    rich = named("disease", lambda d: len(o.out.get((d, SHOWS), ())) >= 8)
    seen = {sign for d in rich for sign in o.out[d, SHOWS]}
    signs = sorted(named("phenotype", lambda p: p in seen and 5 <= len(o.showing(p)) <= 400))
    modes = [mode for mode in MODES if mode in o.nodes]
    gene_of, shows = ["?gene", CAUSES, "?disease"], ["?disease", SHOWS]

    def draft(kind: str, target: str, what: str, names: dict[str, str], nodes: set[str], *query: list[str]) -> Draft:
        return Draft(kind, target, names, set(nodes), list(query), WORDINGS[what])

    while True:
        d, g, s, mode = r.choice(many_genes), r.choice(busy_genes), r.choice(signs), r.choice(modes)
        first, second = r.choice(rich), r.choice(rich)
        own, others = o.out[first, SHOWS], o.out[second, SHOWS]
        a, b = r.sample([sign for sign in sorted(own) if o.is_named_alone(sign)] + signs[:2], 2)
        x = r.choice([sign for sign in sorted(o.signs(o.diseases(g))) if o.is_named_alone(sign)] or [s])
        related = {other for gene in o.genes([d]) for other in o.diseases(gene)} - {d}
        both, a_only = o.showing(a) & o.showing(b), o.showing(a) - o.showing(b)
        inherited = o.into.get((mode, "has_inheritance"), set()) & o.showing(s)
        without_gene = {disease for disease in o.showing(s) if not o.into.get((disease, CAUSES))}
        first_only = {sign for sign in own if not o.below(sign) & others}
        yield draft("1-hop", "gene", "genes of a disease", {"d": d}, o.genes([d]), ["?gene", CAUSES, d])
        yield draft("1-hop", "disease", "diseases of a gene", {"g": g}, o.diseases(g), [g, CAUSES, "?disease"])
        yield draft("1-hop", "disease", "diseases with a sign", {"s": s}, o.showing(s), [*shows, s])
        yield draft("1-hop", "phenotype", "signs of a disease", {"d": first}, own, [first, SHOWS, "?phenotype"])
        yield draft(
            "2-hop", "gene", "genes of diseases with a sign", {"s": s}, o.genes(o.showing(s)), gene_of, [*shows, s]
        )
        yield draft(
            "2-hop", "phenotype", "signs of diseases of a gene", {"g": g}, o.signs(o.diseases(g)),
            [g, CAUSES, "?disease"], [*shows, "?phenotype"],
        )  # fmt: skip
        yield draft("2-hop", "disease", "diseases that share a gene", {"d": d}, related, gene_of, ["?gene", CAUSES, d])
        yield draft(
            "intersection", "disease", "diseases with two signs", {"a": a, "b": b}, both, [*shows, a], [*shows, b]
        )
        yield draft(
            "intersection", "gene", "genes of diseases with two signs", {"a": a, "b": b}, o.genes(both),
            gene_of, [*shows, a], [*shows, b],
        )  # fmt: skip
        yield draft(
            "intersection", "disease", "diseases with a sign and an inheritance", {"m": mode, "s": s}, inherited,
            ["?disease", "has_inheritance", mode], [*shows, s],
        )  # fmt: skip
        yield draft(
            "intersection", "phenotype", "signs of two diseases", {"d": first, "e": second}, own & others,
            [first, SHOWS, "?phenotype"], [second, SHOWS, "?phenotype"],
        )  # fmt: skip
        yield draft(
            "negation", "disease", "diseases with one sign but not another", {"a": a, "b": b}, a_only,
            [*shows, a], ["!", *shows, b],
        )  # fmt: skip
        yield draft(
            "negation", "disease", "diseases of a gene without a sign", {"g": g, "s": x}, o.diseases(g) - o.showing(x),
            [g, CAUSES, "?disease"], ["!", *shows, x],
        )  # fmt: skip
        yield draft(
            "negation", "disease", "diseases with a sign and no gene", {"s": s}, without_gene,
            [*shows, s], ["!", *gene_of],
        )  # fmt: skip
        yield draft(
            "negation", "phenotype", "signs of one disease but not of another", {"d": first, "e": second}, first_only,
            [first, SHOWS, "?phenotype"], ["!", second, SHOWS, "?phenotype"],
        )  # fmt: skip


def verb_phrase(target: str, phrase: str, plural: bool) -> str:
    """A textual requirement as a verb phrase that follows its subject."""
    s = "" if plural else "s"
    if phrase.startswith("CHROMOSOME"):
        return f"{'lie' + s} on chromosome {phrase.split()[1]}"
    if target == "gene":
        return f"encode{s} {phrase}"
    return f"{'concern' if target == 'phenotype' else 'affect'}{s} {phrase}"


PLURALS = re.compile(r"\b(genes|diseases|phenotypes|them|these)\b")


def compose(writer: Writer, draft: Draft, number: int) -> dict | None:
    """A question from a draft, where a textual requirement tells its answers apart."""
    if not 2 <= len(draft.nodes) <= 300:
        return None
    textual = writer.textual(draft.target, draft.nodes)
    if textual is None:
        return None
    phrase, pattern, answers = textual
    wording = writer.pick(list(draft.wordings))
    plural = (
        bool(PLURALS.search(wording.split("$text")[0].rsplit(".", 1)[-1].split(" a ")[-1]))
        and "of them $text" not in wording
    )
    question = wording.replace("$text", verb_phrase(draft.target, phrase, plural))
    for hole, key in draft.names.items():
        question = question.replace(f"${hole}", writer.name(key))
    return {
        "id": f"hpo-{number}", "question": question[0].upper() + question[1:], "answers": answers, "type": draft.kind,
        "target": draft.target, "query": draft.triplets, "text": pattern, "filtered": len(draft.nodes),
    }  # fmt: skip


DESCRIPTIONS = (
    "Which phenotype is {}?",
    "What is the phenotype called that is described as {}?",
    "Which phenotype means {}?",
    "I am looking for a phenotype: {}.",
)


def textual_only(writer: Writer, number: int, keys: list[str]) -> dict | None:
    """A definition in other words, without the words of the name."""
    key = writer.pick(keys)
    node = writer.ontology.nodes[key]
    sentence = re.split(r"(?<=[a-z)])\.\s", node["text"])[0].rstrip(".")
    named = {
        word[:5]
        for word in re.findall(r"[a-z]+", " ".join([node["name"], *node.get("synonyms", ())]).lower())
        if len(word) > 3
    }
    words = sentence.split()
    content = [word for word in words if len(word) > 3]
    if not 6 <= len(words) <= 28 or sum(word.lower()[:5] in named for word in content) > 0.3 * len(content):
        return None
    reworded = " ".join(REWORDED.get(word.lower(), word if word.isupper() else word.lower()) for word in words)
    wording = writer.pick(list(DESCRIPTIONS))
    return {
        "id": f"hpo-{number}", "question": wording.format(reworded), "answers": [key], "type": "textual",
        "target": "phenotype", "query": [], "text": "", "filtered": 0,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "data" / "hpo_questions.jsonl")
    options = parser.parse_args()
    writer = Writer(Ontology.read(options.folder), random.Random(options.seed))
    wanted = Counter({"1-hop": 80, "2-hop": 80, "intersection": 80, "negation": 80, "textual": 60})
    defined = [k for k, node in writer.ontology.nodes.items() if node["type"] == "phenotype" and node["text"]]
    questions: list[dict] = []
    seen: set[str] = set()

    def keep(question: dict | None) -> None:
        if question and question["question"] not in seen and wanted[question["type"]] > 0:
            wanted[question["type"]] -= 1
            seen.add(question["question"])
            questions.append(question)

    makers: list[Callable[[], dict | None]] = [lambda: textual_only(writer, len(questions) + 1, defined)]
    for draft in drafts(writer):
        keep(compose(writer, draft, len(questions) + 1))
        if wanted["textual"]:
            keep(makers[0]())
        if not +wanted:
            break
    options.out.parent.mkdir(exist_ok=True)
    with options.out.open("w", encoding="utf-8") as file:
        for question in questions:
            file.write(json.dumps(question, ensure_ascii=False) + "\n")
    print(f"{len(questions)} questions in {options.out}: {dict(Counter(q['type'] for q in questions))}")


if __name__ == "__main__":
    main()
