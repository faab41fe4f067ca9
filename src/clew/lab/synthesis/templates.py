"""Relational templates: question patterns over the graph, in a small TOML language.

    [[template]]
    name = "drug_for_expressed_gene"
    paths = ["anatomy -[expression present]- gene/protein -[target]- drug"]
    words = ["What drug targets the genes or proteins expressed in <anatomy>?"]

Every path leads from something known to the answer, which is the last type of each path. Answers satisfy all paths.
A path starts with a type (an entity to name), `type#label` (the same entity for the same label), `?type` (any node) or
`type="Name"` (always this entity). `-[r]->` follows the stored direction, `<-[r]-` the opposite one, and `-[r]-` the
direction in the schema. `-[!r]-`, only as the last step, forbids the edge.
Placeholders of `words` are `<label>`, or `<type>` if the path has no label.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from clew.core.errors import InputError, NotFoundError, SchemaError
from clew.core.schema import Schema
from clew.core.texts import parse_toml
from clew.core.types import Direction

Kind = Literal["1-hop", "2-hop", "intersection", "negation", "metapath-and", "textual"]
KINDS: tuple[Kind, ...] = ("1-hop", "2-hop", "intersection", "negation", "metapath-and", "textual")
SHIPPED = {"amazon": ("customer",), "mag": ("researcher",), "prime": ("doctor", "medical scientist", "patient")}
"""The templates of STaRK's three bases, and the roles in the paper."""


@dataclass(frozen=True, slots=True)
class TemplateStep:
    """One edge of a path, in the direction of the answer."""

    source: str
    relation: str
    target: str
    direction: Direction
    """"out" along the stored direction, "in" against it, "any" until checked against the schema."""
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """Start of a path: an entity to name, the entity `name`, or any node of the type if `anything` is set."""

    type: str
    label: str
    anything: bool = False
    name: str | None = None


@dataclass(frozen=True, slots=True)
class TemplateBranch:
    """A path from its start to the answer."""

    start: Start
    steps: tuple[TemplateStep, ...]

    @property
    def negated(self) -> bool:
        """Whether its last edge is forbidden."""
        return self.steps[-1].negated


@dataclass(frozen=True, slots=True)
class Template:
    """Branches that the answer must satisfy, with optional wordings."""

    name: str
    kind: Kind
    branches: tuple[TemplateBranch, ...]
    words: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """The type of the answers."""
        return self.branches[0].steps[-1].target

    def __str__(self) -> str:
        return " & ".join(_shown(branch) for branch in self.branches)


class _TemplateRow(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    paths: list[str]
    words: list[str] = []
    kind: Kind | None = None


class _TemplateFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    template: list[_TemplateRow]


def load_templates(place: str | Path, schema: Schema) -> tuple[Template, ...]:
    """Load a TOML file or the shipped templates `amazon`, `mag` or `prime`, and check them against a schema."""
    if str(place) in SHIPPED:
        text = files("clew.lab.synthesis.shipped").joinpath(f"{place}.toml").read_text("utf-8")
    else:
        try:
            text = Path(place).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise NotFoundError(f"{place} cannot be read as a file of templates: {error}") from error
    return tuple(fitted(template, schema) for template in parse_templates(text, str(place)))


def parse_templates(text: str, place: str = "templates") -> tuple[Template, ...]:
    """Parse TOML templates without a schema check."""
    try:
        rows = _TemplateFile.model_validate(parse_toml(text)).template
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise InputError(f"{place}: expected [[template]] entries with name, paths and words: {error}") from error
    if len(names := {row.name for row in rows}) < len(rows):
        raise InputError(f"{place}: duplicate template names: {len(rows)} templates have {len(names)} names")
    return tuple(_template(row, place) for row in rows)


def _template(row: _TemplateRow, place: str) -> Template:
    where = f"{place}: template {row.name!r}"
    if not row.paths:
        raise InputError(f"{where} has no path")
    branches = tuple(parse_path(path, number, where) for number, path in enumerate(row.paths, 1))
    template = Template(row.name, row.kind or kind_of(branches), branches, tuple(row.words))
    if len({branch.steps[-1].target for branch in branches}) > 1:
        raise InputError(f"{where}: paths end in different types: all must end in the answer's type")
    if all(branch.negated or branch.start.anything for branch in branches):
        raise InputError(f"{where}: at least one path must lead from a named entity without a forbidden edge")
    labels = {hole for branch in branches for hole in holes(branch.start)}
    for wording in row.words:
        asked = set(_HOLE.findall(wording))
        wanted = {b.start.label for b in branches if not b.start.anything and b.start.name is None}
        if asked - labels or not all(asked & set(holes(b.start)) for b in branches if b.start.label in wanted):
            raise InputError(
                f"{where}: the placeholders of {wording!r} must be {', '.join(f'<{one}>' for one in sorted(wanted))}"
            )
    return template


def holes(start: Start) -> tuple[str, ...]:
    """Return the allowed placeholders for a start. Empty if it names no entity."""
    return () if start.anything else tuple(dict.fromkeys((start.label, start.type)))


def kind_of(branches: tuple[TemplateBranch, ...]) -> Kind:
    """Classify a template by its shape."""
    if any(branch.negated for branch in branches):
        return "negation"
    if len(branches) == 1:
        return "1-hop" if len(branches[0].steps) == 1 else "2-hop"
    return "intersection" if all(len(branch.steps) == 1 for branch in branches) else "metapath-and"


_HOLE = re.compile(r"<([^<>]+)>")
_EDGE = re.compile(r"\s*(<?)-\[\s*(!?)\s*(.+?)\s*\]-(>?)\s*")
_START = re.compile(r'(\?)?([^#="]+?)(?:#([\w.-]+))?(?:="([^"]+)")?')


def parse_path(text: str, number: int, where: str) -> TemplateBranch:
    """Parse a path such as `anatomy -[expression present]- gene/protein -[target]-> drug`."""
    parts = _EDGE.split(text.strip())
    start = _START.fullmatch(parts[0].strip())
    types = [parts[0], *parts[5::5]]
    if start is None or len(parts) < 6 or not all(part.strip() for part in types):
        raise InputError(f"{where}: {text!r} is not a path: write type -[relation]-> type or type <-[relation]- type")
    anything, kind, label, name = start.groups()
    steps = []
    source = kind.strip()
    for place in range(1, len(parts), 5):
        left, negated, relation, right, target = parts[place : place + 5]
        if left and right:
            raise InputError(f"{where}: {text!r}: two directions on one edge: remove one, or both to use the schema's")
        direction: Direction = "in" if left else "out" if right else "any"
        steps.append(TemplateStep(source, relation, target.strip(), direction, bool(negated)))
        source = target.strip()
    if any(step.negated for step in steps[:-1]):
        raise InputError(f"{where}: {text!r}: only the last edge of a path can be forbidden")
    own = label or (kind.strip() if number == 1 else f"{kind.strip()}{number}")
    return TemplateBranch(Start(kind.strip(), own, bool(anything), name), tuple(steps))


def fitted(template: Template, schema: Schema) -> Template:
    """Resolve every direction. Raise SchemaError if the schema has no such edge."""
    for branch in template.branches:
        schema.node_type(branch.start.type)
    branches = tuple(
        replace(branch, steps=tuple(_directed(step, schema, template.name) for step in branch.steps))
        for branch in template.branches
    )
    if not schema.node_type(template.target).answer:
        raise SchemaError(f"template {template.name!r}: nodes of type {template.target!r} are not allowed as answers")
    return replace(template, branches=branches)


def _directed(step: TemplateStep, schema: Schema, template: str) -> TemplateStep:
    rows = schema.relation_rows(step.relation)
    along = any((row.head, row.tail) == (step.source, step.target) for row in rows)
    against = any((row.tail, row.head) == (step.source, step.target) for row in rows)
    if step.direction == "any" and step.source == step.target and along:
        raise SchemaError(
            f"template {template!r}: {step.relation!r} connects {step.source!r} to itself: add a direction"
        )
    fits = {"out": along, "in": against, "any": along or against}[step.direction]
    if not fits:
        known = "; ".join(f"{row.head} -[{row.name}]-> {row.tail}" for row in rows)
        raise SchemaError(
            f"template {template!r}: no edge {step.relation!r} leads from {step.source!r} to {step.target!r} "
            f"in that direction: use {known}"
        )
    return replace(step, direction=step.direction if step.direction != "any" else "out" if along else "in")


def _shown(branch: TemplateBranch) -> str:
    start = branch.start
    first = f"?{start.type}" if start.anything else f'{start.type}="{start.name}"' if start.name else start.type
    if not start.anything and start.label != start.type:
        first = first.replace(start.type, f"{start.type}#{start.label}", 1)
    arrows = {"out": ("-[", "]->"), "in": ("<-[", "]-"), "any": ("-[", "]-")}
    parts = [first]
    for step in branch.steps:
        left, right = arrows[step.direction]
        parts.append(f"{left}{'!' if step.negated else ''}{step.relation}{right} {step.target}")
    return " ".join(parts)
