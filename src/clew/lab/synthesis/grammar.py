"""Generate questions without a model from clauses built with the schema's labels.

A relation's display name (or its inverse name, from tail to head) is a verb phrase ("has phenotype"), a participle
("directed by"), a preposition ("in language") or a noun ("release year"). Each gives different clauses. All nouns are
singular, which avoids agreement errors.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clew.core.schema import Relation, Schema
from clew.lab.synthesis.templates import Template, TemplateBranch, TemplateStep, holes

PREPOSITIONS = frozenset(
    ("about", "as", "at", "by", "for", "from", "in", "into", "of", "on", "onto", "over", "to", "under", "upon", "with")
)
VERBS = frozenset(("has", "is", "was", "are", "have", "contains", "includes", "shows"))
PAST = {"written": "wrote", "made": "made", "sung": "sang", "led": "led", "held": "held", "built": "built"}
PAST |= {"found": "found", "won": "won", "taken": "took", "given": "gave", "born": "bore", "known": "knew"}
NAMELESS = frozenset({"entity", "node", "thing", "item", "object", "resource"})
"""Type names without information."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A statement as predicates ("has phenotype X") and as relative clauses ("whose year is 1999")."""

    predicates: tuple[str, ...]
    relatives: tuple[str, ...] = ()

    @property
    def all_relatives(self) -> tuple[str, ...]:
        """Relative clauses, including one for each predicate."""
        return (*(f"that {predicate}" for predicate in self.predicates), *self.relatives)


def relational_question(
    template: Template, names: Mapping[str, str], schema: Schema, rng: random.Random, phrases: Sequence[str] = ()
) -> str:
    """Generate a question for a template with the given entity names and text phrases."""
    if template.words:
        question = _filled(rng.choice(template.words), template, names)
        return " ".join([question, *(rng.choice(_SENTENCES).format(phrase) for phrase in phrases)])
    ordered = sorted(template.branches, key=lambda branch: (branch.negated, len(branch.steps)))
    clauses = [(branch_clause(branch, names, schema, rng), branch.negated) for branch in ordered]
    clauses += [(_described(phrase), False) for phrase in phrases]
    return _assembled(schema.node_type(template.target).label, clauses, rng)


_SENTENCES = (
    "Its description mentions “{}”.",
    "It is described with the words “{}”.",
    "The one I mean has “{}” in its description.",
)


def _described(phrase: str) -> Clause:
    return Clause(
        (f"is described with the words “{phrase}”", f"has “{phrase}” in its description"),
        (f"whose description mentions “{phrase}”", f"described as “{phrase}”"),
    )


def branch_clause(branch: TemplateBranch, names: Mapping[str, str], schema: Schema, rng: random.Random) -> Clause:
    """Describe the end of a path."""
    start = branch.start
    other = f"any {schema.node_type(start.type).label}" if start.anything else names[start.label]
    for step in branch.steps[:-1]:
        clause = step_clause(step, other, schema)
        noun = schema.node_type(step.target).label
        each = f"any {noun}" if branch.negated else article(noun)
        other = f"{each} {rng.choice(clause.all_relatives)}"
    return step_clause(branch.steps[-1], other, schema)


def step_clause(step: TemplateStep, other: str, schema: Schema) -> Clause:
    """Describe the far end of an edge. `other` is the text for the near end."""
    row = relation_row(step, schema)
    noun = schema.node_type(step.source).label
    if step.direction == "in":
        return active(_unless_repeated(row.label, noun, other), other, step.negated)
    if row.inverse:
        return active(_unless_repeated(row.inverse, noun, other), other, step.negated)
    return passive(row.label, other, step.negated)


def _unless_repeated(label: str, noun: str, other: str) -> str:
    """Remove a repeated noun: `is associated with gene` before `a gene that …`."""
    repeated = other.startswith((f"{article(noun)} ", "any ")) and label.endswith(f" {noun}")
    return label[: -len(noun) - 1] if repeated else label


def relation_row(step: TemplateStep, schema: Schema) -> Relation:
    """Return the schema row of a step."""
    ends = (step.source, step.target) if step.direction == "out" else (step.target, step.source)
    return next(row for row in schema.relation_rows(step.relation) if (row.head, row.tail) == ends)


def active(label: str, other: str, negated: bool = False) -> Clause:
    """Build a clause whose subject is the head: subject — label — other."""
    shape = shape_of(label)
    if label.startswith("has ") and is_plural(label):
        shape, label = "noun", label.removeprefix("has ")
    if shape == "verb":
        predicate = f"{label} {other}"
        return Clause((negation(predicate) if negated else predicate,))
    verb, has = ("is not", "does not have") if negated else ("is", "has")
    if shape in ("participle", "preposition"):
        return Clause((f"{verb} {label} {other}",), () if negated else (f"{label} {other}",))
    if is_plural(label):
        return Clause((f"{has} {other} among its {label}",), () if negated else (f"with {other} among its {label}",))
    return Clause(
        (f"{has} {other} as its {label}",),
        (f"whose {label} {verb} {other}", *(() if negated else (f"with {other} as its {label}",))),
    )


def passive(label: str, other: str, negated: bool = False) -> Clause:
    """Build a clause whose subject is the tail: other — label — subject."""
    shape, words = shape_of(label), label.split()
    verb = "is not" if negated else "is"
    if words[0] == "has" and len(words) > 1:
        return _noun_of(" ".join(words[1:]), other, negated)
    if shape == "verb":
        said = negation(label) if negated else label
        return Clause((), (f"that {other} {said}", f"which {other} {said}"))
    if shape == "participle" and words[-1] == "by" and len(words) == 2:
        past = PAST.get(words[0], words[0])
        did = f"has not {words[0]}" if negated else past
        return Clause((f"{did} {other}",), (f"by which {other} {verb} {words[0]}",))
    if shape == "preposition" and len(words) > 1:
        return _noun_of(" ".join(words[1:]), other, negated)
    if shape in ("participle", "preposition"):
        return Clause(
            (), (f"that {other} {verb} {label}", f"{words[-1]} which {other} {verb} {' '.join(words[:-1])}".strip())
        )
    return _noun_of(label, other, negated)


def _noun_of(noun: str, other: str, negated: bool) -> Clause:
    verb, has = ("is not", "does not have") if negated else ("is", "has")
    if is_plural(noun):
        return Clause((f"{verb} among the {noun} of {other}",), (f"that {other} {has} among its {noun}",))
    return Clause(
        (f"{verb} {'a' if not negated else 'the'} {noun} of {other}".replace(" a ", f" {_a(noun)} ", 1),),
        (f"that {other} {has} as {noun}",),
    )


def shape_of(label: str) -> str:
    """Classify a relation's label: "verb", "participle", "preposition" or "noun"."""
    words = label.lower().split()
    first = words[0] if words else ""
    if first in VERBS or (first == "does" and len(words) > 1):
        return "verb"
    if first in PREPOSITIONS:
        return "preposition"
    follows = len(words) > 1 and words[1] in PREPOSITIONS
    if follows and (first.endswith("ed") or first in PAST):
        return "participle"
    ends = first.endswith("s") and not first.endswith(("ss", "us", "is", "as"))
    return "verb" if ends and (follows or len(words) == 1) else "noun"


def is_plural(noun: str) -> bool:
    """Return whether a noun phrase looks like a plural."""
    return noun.endswith("s") and not noun.endswith(("ss", "us", "is"))


def negation(predicate: str) -> str:
    """Negate a third-person predicate."""
    first, _, rest = predicate.partition(" ")
    if first in ("is", "was", "are"):
        return f"{first} not {rest}"
    if first == "does":
        return f"is not known to be one that {predicate}"
    if first == "has":
        return f"does not have {rest}"
    if first.endswith("ies"):
        base = first[:-3] + "y"
    elif first.endswith(("sses", "ches", "shes", "xes", "oes")):
        base = first[:-2]
    else:
        base = first.removesuffix("s")
    return f"does not {base} {rest}".strip()


def article(noun: str) -> str:
    """Add the indefinite article: `a disease`, `an author`."""
    return f"{_a(noun)} {noun}"


def _a(noun: str) -> str:
    return "an" if noun[:1].lower() in "aeiou" and not noun.lower().startswith(("uni", "eu", "one")) else "a"


def _assembled(noun: str, clauses: Sequence[tuple[Clause, bool]], rng: random.Random) -> str:
    asked = all(clause.predicates for clause, _ in clauses) and rng.random() < 0.6
    parts = [rng.choice(clause.predicates if asked else clause.all_relatives) for clause, _ in clauses]
    text = parts[0]
    for place, (part, (_, negated)) in enumerate(zip(parts[1:], clauses[1:], strict=True), 1):
        comma = "," if len(parts[place - 1]) > 60 else ""
        joined = rng.choice(("but", "yet")) if negated else rng.choice(("and", "and also"))
        text += f"{comma} {joined} {part}"
    nameless = noun.lower() in NAMELESS
    if asked:
        opening = rng.choice(("Who or what", "What") if nameless else (f"Which {noun}", f"What {noun}"))
        return f"{opening} {text}?"
    thing = "thing" if nameless else noun
    opening, end = rng.choice(_OPENINGS)
    sentence = f"{opening.format(noun=thing, a_noun=article(thing))} {text}{end}"
    return sentence[:1].upper() + sentence[1:]


_OPENINGS = (
    ("Find every {noun}", "."),
    ("Name each {noun}", "."),
    ("I am looking for {a_noun}", "."),
    ("Is there {a_noun}", "?"),
    ("What is the {noun}", "?"),
    ("Please list any {noun}", "."),
    ("Can you tell me {a_noun}", "?"),
    ("I need to know of {a_noun}", "."),
    ("Show me any {noun}", "."),
    ("{noun}", ""),
)


def _filled(wording: str, template: Template, names: Mapping[str, str]) -> str:
    for branch in template.branches:
        for hole in holes(branch.start):
            wording = wording.replace(f"<{hole}>", names[branch.start.label])
    return wording if re.search(r"[.?!]$", wording) else f"{wording}."
