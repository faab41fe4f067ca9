"""A claim as SPARQL 1.1, in the names of the base's RDF export, or of the endpoint the base is behind."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import count

from clew.answering.queries.claims import TARGET, Block, Claim, Named, Requirement
from clew.answering.queries.finishing import NUMBER
from clew.answering.queries.grounding import follows
from clew.answering.queries.problem import Check, checks
from clew.core.query import Best, Condition
from clew.core.texts import OPAQUE
from clew.core.types import NodeSet
from clew.store.graph.iris import LABEL, attribute_iri, node_iri, relation_iri, type_iri
from clew.store.graph.protocol import KnowledgeBase
from clew.store.remote.remote import is_sparql

MOST_RELATIONS = 500
"""Any relation means any of so many at an endpoint; where it has more, just any."""
DOUBLE = "<http://www.w3.org/2001/XMLSchema#double>"


def sparql_of_block(block: Block, kb: KnowledgeBase, variable: str = TARGET) -> str:
    """A query for what one of the variables of a block stands for."""
    writer = _Sparql(kb)
    writer.block(block, "  ")
    return "\n".join([f"SELECT DISTINCT ?{variable} WHERE {{", *writer.lines, "}"])


def sparql(claim: Claim, kb: KnowledgeBase) -> str:
    """A query whose results are the IRIs of the answers, their number, whether there are any, or a value of each."""
    writer = _Sparql(kb)
    if claim.best is None:
        writer.matches(claim, "  ")
    else:
        writer.best(claim, claim.best)
    if claim.asked is not None:
        writer.lines.append(f"  FILTER(?{TARGET} IN ({', '.join(writer.nodes(claim.asked))}))")
    if claim.asks == "value" and claim.attribute is not None:
        writer.lines.append(f"  ?{TARGET} {writer.attribute(claim.attribute)} ?value .")
    head = {
        "number": f"SELECT (COUNT(DISTINCT ?{TARGET}) AS ?number) WHERE {{",
        "truth": "ASK {",
        "value": f"SELECT DISTINCT ?{TARGET} ?value WHERE {{",
    }.get(claim.asks, f"SELECT DISTINCT ?{TARGET} WHERE {{")
    return "\n".join([head, *writer.lines, "}"])


@dataclass
class _Sparql:
    kb: KnowledgeBase
    lines: list[str] = field(default_factory=list)
    numbers: count[int] = field(default_factory=lambda: count(1))

    def matches(self, claim: Claim, indent: str) -> None:
        if len(claim.blocks) == 1:
            self.block(claim.blocks[0], indent)
            return
        for place, block in enumerate(claim.blocks):
            self.lines.append(f"{indent}{'UNION ' if place else ''}{{")
            self.block(block, indent + "  ")
            self.lines.append(f"{indent}}}")

    def best(self, claim: Claim, best: Best) -> None:
        """The answers with their amounts, and beside them the amount that none exceeds; equal ones all stay."""
        self.lines.append(f"  {{ SELECT ?{TARGET} ?amount WHERE {{")
        self.amounts(claim, best, "    ")
        self.lines.append("  } }")
        self.lines.append(f"  {{ SELECT ({'MAX' if best.most else 'MIN'}(?amount) AS ?goal) WHERE {{")
        self.amounts(claim, best, "    ")
        self.lines.append("  } }")
        self.lines.append("  FILTER(?amount = ?goal)")

    def amounts(self, claim: Claim, best: Best, indent: str) -> None:
        if best.attribute is not None:
            self.matches(claim, indent)
            kind = self.kb.schema.attribute_types.get(best.attribute)
            stored = "?stored" if kind == "text" else "?amount"
            self.lines.append(f"{indent}?{TARGET} {self.attribute(best.attribute)} {stored} .")
            if kind in ("boolean", "list"):
                self.lines.append(f"{indent}FILTER(false)")
            elif kind == "text":
                self.lines.append(f"{indent}FILTER(REGEX(?stored, {_quoted(f'^{NUMBER}$')}))")
                self.lines.append(f'{indent}BIND({DOUBLE}(REPLACE(?stored, ",", "")) AS ?amount)')
            return
        predicate = self.relation(best.relation) if best.relation else f"?relation{next(self.numbers)}"
        pattern = f"?{TARGET} {predicate} ?other" if best.is_head else f"?other {predicate} ?{TARGET}"
        self.lines.append(f"{indent}{{ SELECT ?{TARGET} (COUNT(DISTINCT ?other) AS ?amount) WHERE {{")
        self.matches(claim, indent + "  ")
        self.lines.append(f"{indent}  OPTIONAL {{")
        self.lines.append(f"{indent}    {pattern} .")
        if best.of is not None:
            self.type("other", best.of, indent + "    ")
        self.lines.append(f"{indent}  }}")
        self.lines.append(f"{indent}}} GROUP BY ?{TARGET} }}")

    def block(self, block: Block, indent: str) -> None:
        for number in block.counts:
            self.lines.append(f"{indent}{{ SELECT ?{number.variable} WHERE {{")
            self.body(replace(block, never={}), indent + "  ")  # counted before anything is left out
            having = f"COUNT(DISTINCT ?{number.of}) {number.comparison} {number.value}"
            self.lines.append(f"{indent}}} GROUP BY ?{number.variable} HAVING ({having}) }}")
        self.body(block, indent)

    def body(self, block: Block, indent: str) -> None:
        for variable, nodes in block.only.items():
            self.lines.append(f"{indent}VALUES ?{variable} {{ {' '.join(self.nodes(nodes))} }}")
        for requirement in block.required:
            self.edge(requirement, indent)
        tied = {variable for edge in block.required if edge.relation for variable in edge.variables}
        for variable, kind in block.types.items():
            if kind is not None or variable not in tied:  # relations lead to nodes alone
                self.type(variable, kind, indent)
        for variable, nodes in block.never.items():
            self.lines.append(f"{indent}FILTER(?{variable} NOT IN ({', '.join(self.nodes(nodes))}))")
        for variable, wanted in block.nameless.items():
            self.named(variable, wanted, indent)
        for condition in block.conditions:
            self.condition(condition, indent)
        for absence in block.absences:
            self.lines.append(f"{indent}FILTER NOT EXISTS {{")
            self.edge(absence.edge, indent + "  ")
            if absence.inner is not None:
                self.block(absence.inner, indent + "  ")
            self.lines.append(f"{indent}}}")

    def type(self, variable: str, kind: str | None, indent: str) -> None:
        if is_sparql(self.kb):
            stated = None if kind is None else self.kb.type_iri(kind)
            self.lines += [] if stated is None else [f"{indent}?{variable} <{self.kb.reading.type}> <{stated}> ."]
            return
        shown = f"?type{next(self.numbers)}" if kind is None else f"<{type_iri(kind)}>"
        self.lines.append(f"{indent}?{variable} a {shown} .")

    def named(self, variable: str, is_nameless: bool, indent: str) -> None:
        """Whether a name is one that only a machine reads; at an endpoint what has no label goes by its IRI."""
        label, name = f"?name{next(self.numbers)}", ""
        if is_sparql(self.kb):
            self.lines.append(f"{indent}OPTIONAL {{ ?{variable} <{self.kb.reading.label}> {label} }}")
            name = f'COALESCE(STR({label}), REPLACE(STR(?{variable}), "^.*[/#:]", ""))'
        else:
            self.lines.append(f"{indent}?{variable} <{LABEL}> {label} .")
        test = f"REGEX({name or label}, {_quoted(f'^({OPAQUE.pattern})$')})"
        self.lines.append(f"{indent}FILTER({'' if is_nameless else '!'}{test})")

    def condition(self, condition: Condition, indent: str) -> None:
        value = f"?value{next(self.numbers)}"
        self.lines.append(f"{indent}?{condition.variable} {self.attribute(condition.attribute)} {value} .")
        joined = checks(condition, self.kb.schema)
        tests = joined.joiner("&&", "||").join(_compared(value, check) for check in joined.tests)
        self.lines.append(f"{indent}FILTER({tests or ('true' if joined.all else 'false')})")

    def edge(self, requirement: Requirement, indent: str) -> None:
        head, tail = (self.end(end, indent) for end in (requirement.head, requirement.tail))
        if requirement.relation is not None:
            predicate = self.relation(requirement.relation)
            path = f"({predicate}|^{predicate})" if requirement.any_direction else predicate
            self.lines.append(f"{indent}{head} {path} {tail} .")
            return
        relation = f"?relation{next(self.numbers)}"
        if is_sparql(self.kb) and len(self.kb.schema.relation_names) <= MOST_RELATIONS:
            told = " ".join(map(self.relation, self.kb.schema.relation_names))  # not those that say what a node is
            self.lines.append(f"{indent}VALUES {relation} {{ {told} }}")
        either = f" UNION {{ {tail} {relation} {head} }}" if requirement.any_direction else ""
        self.lines.append(f"{indent}{{ {head} {relation} {tail} }}{either}")

    def end(self, end: str | Named, indent: str) -> str:
        if isinstance(end, str):
            return f"?{end}"
        terms = self.nodes(end.nodes)
        top = terms[0]
        if len(terms) > 1:
            top = f"?constant{next(self.numbers)}"
            self.lines.append(f"{indent}VALUES {top} {{ {' '.join(terms)} }}")
        if not end.expansions:
            return top
        steps = [
            f"{self.relation(one.relation.name)}*"
            if follows(one.relation, upward=one.upward)
            else f"(^{self.relation(one.relation.name)})*"
            for one in reversed(end.expansions)
        ]
        widened = f"?constant{next(self.numbers)}"
        self.lines.append(f"{indent}{widened} {'/'.join(steps)} {top} .")
        return widened

    def nodes(self, nodes: NodeSet) -> list[str]:
        keys = [ref.key for ref in self.kb.refs(nodes.array)]
        if is_sparql(self.kb):
            return [key if key.startswith('"') else f"<{key}>" for key in keys]
        return [f"<{node_iri(key)}>" for key in keys]

    def relation(self, name: str) -> str:
        return f"<{self.kb.predicate(name) if is_sparql(self.kb) else relation_iri(name)}>"

    def attribute(self, name: str) -> str:
        known = self.kb.attributes.get(name) if is_sparql(self.kb) else None
        return f"<{known or attribute_iri(name)}>"


def _compared(value: str, check: Check) -> str:
    match check.kind:
        case "text" if check.comparison == "contains":
            return f"CONTAINS(LCASE(STR({value})), {_quoted(check.value)})"
        case "text":
            return f"LCASE(STR({value})) {check.comparison} {_quoted(check.value)}"
        case "day":  # as text: stored dates may have a time, or only a month or a year, which is before all its days
            first = check.value.removesuffix("-01").removesuffix("-01")
            return f'SUBSTR(STR({value}), 1, 10) {check.comparison} "{first}"'
        case _:
            return f"{value} {check.comparison} {check.value}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
