// Evidence in words: paths as chips one can open, quotations with their place, judgements in small print.

import type { BaseDetails, Evidence, Fact, NodeRef } from "./api";
import { button, h, words } from "./dom";
import { chip, showNode } from "./node_dialog";
import { href } from "./route";

export function shownEvidence(base: BaseDetails, piece: Evidence, number?: number): HTMLElement {
  const mark = number === undefined ? null : h("span", { class: "number" }, `[${number}]`);
  if (piece.kind === "path" || piece.kind === "fact") return h("li", { class: "path" }, mark, factsOf(piece).map((fact) => shownFact(base, fact)));
  if (piece.kind === "passage") return h("li", { class: "passage" }, mark, h("blockquote", {}, piece.text), source(base, piece));
  return h("li", { class: "judgement" }, mark, piece.text);
}

export function glimpse(base: BaseDetails, piece: Evidence): string {
  const facts = factsOf(piece);
  return facts.length ? facts.map((fact) => `${fact.head.name} — ${labelOf(base, fact.relation)} → ${fact.tail.name}`).join("; ") : piece.text;
}

const labelOf = (base: BaseDetails, relation: string) => base.relations.find((row) => row.name === relation)?.label ?? words(relation);

const factsOf = (piece: Evidence): Fact[] =>
  piece.kind === "path" ? (piece.facts ?? []) : piece.kind === "fact" ? [piece as unknown as Fact] : [];

function shownFact(base: BaseDetails, fact: Fact): HTMLElement {
  const more = Object.entries(fact.attributes ?? {}).filter(([, value]) => value !== null && value !== "");
  return h("span", { class: "fact" },
    chip(base, fact.head), h("span", { class: "relation" }, `— ${labelOf(base, fact.relation)} →`), chip(base, fact.tail),
    more.length > 0 && h("small", { class: "muted" }, more.map(([name, value]) => `${name} ${value}`).join(", ")));
}

function source(base: BaseDetails, piece: Evidence): HTMLElement | null {
  if (!piece.node) return null;
  if (!piece.file) {
    const node = piece.node;
    return button(node.name, () => void showNode(base, node.key, piece.text), { class: "source", "aria-label": `Read the source: ${node.name}` });
  }
  const place = piece.page ? `${piece.file}, page ${piece.page}` : piece.file;
  const address = href("documents", { base: base.name, doc: piece.file, piece: piece.node.key, quote: piece.text });
  return h("a", { class: "source", href: address }, place);
}

export function graphOf(evidence: Evidence[]): { nodes: NodeRef[]; edges: { head: string; relation: string; tail: string }[] } {
  const facts = evidence.flatMap(factsOf);
  const nodes = new Map<string, NodeRef>();
  for (const fact of facts) for (const node of [fact.head, fact.tail]) nodes.set(node.key, { key: node.key, name: node.name, type: node.type });
  return {
    nodes: [...nodes.values()],
    edges: facts.map((fact) => ({ head: fact.head.key, relation: fact.relation, tail: fact.tail.key })),
  };
}
