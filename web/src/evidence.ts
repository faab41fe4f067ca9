// Evidence in words: paths as chips one can open, quotations with their place, judgements in small print.

import type { BaseDetails, Evidence, Fact, NodeRef } from "./api";
import { h, nameOf, words } from "./dom";
import { chip, showNode } from "./node_dialog";
import { showPage } from "./page_dialog";
import { withTables } from "./pipe_table";
import { reason } from "./reasons";
import { href } from "./route";
import { t } from "./texts";

export function shownEvidence(base: BaseDetails, piece: Evidence, number?: number): HTMLElement {
  const mark = number === undefined ? null : h("span", { class: "number" }, `[${number}]`);
  if (piece.kind === "path" || piece.kind === "fact") return traceable(h("li", { class: "path" }, mark, factsOf(piece).map((fact) => shownFact(base, fact))), factsOf(piece));
  if (piece.kind === "passage") return h("li", { class: "passage" }, mark, quoted(piece), source(base, piece));
  return h("li", { class: "judgement" }, mark, reason(piece) ?? piece.text);
}

/** While a path is pointed at, or something in it has the focus, pictures of it show it. */
function traceable(element: HTMLElement, facts: Fact[]): HTMLElement {
  const tell = (told: Fact[]) => () => document.dispatchEvent(new CustomEvent("path", { detail: told }));
  for (const kind of ["pointerenter", "focusin"]) element.addEventListener(kind, tell(facts));
  for (const kind of ["pointerleave", "focusout"]) element.addEventListener(kind, tell([]));
  return element;
}

/** Tells a picture which path to show, as long as the picture is there. */
export function onPath(picture: HTMLElement, show: (facts: Fact[]) => void): void {
  const told = (event: Event) => picture.isConnected ? show((event as CustomEvent<Fact[]>).detail) : document.removeEventListener("path", told);
  document.addEventListener("path", told);
}

/** A quotation with what says it marked. */
export function quoted(piece: Evidence): HTMLElement {
  return h("blockquote", { dir: "auto" }, withTables(piece.text, piece.mark));
}

export const markedText = (piece: Evidence): string => piece.mark ? [...piece.text].slice(piece.mark[0], piece.mark[1]).join("") : piece.text;

export const placeOf = (piece: Evidence): string => !piece.file ? "" : piece.page ? t("page.of", { file: piece.file, page: piece.page }) : piece.file;

/** A piece of evidence in a line; facts that begin at this very node do not name it again. */
export function glimpse(base: BaseDetails, piece: Evidence, key?: string): string {
  const facts = factsOf(piece);
  return facts.length ? facts.map((fact) => `${fact.head.key === key ? "" : `${fact.head.name} `}${labelOf(base, fact.relation)} ${fact.tail.name}`).join("; ") : markedText(piece);
}

const labelOf = (base: BaseDetails, relation: string) => base.relations.find((row) => row.name === relation)?.label ?? words(relation);

export const factsOf = (piece: Evidence): Fact[] =>
  piece.kind === "path" ? (piece.facts ?? []) : piece.kind === "fact" ? [piece as unknown as Fact] : [];

function shownFact(base: BaseDetails, fact: Fact): HTMLElement {
  const more = Object.entries(fact.attributes ?? {}).filter(([, value]) => value !== null && value !== "");
  return h("span", { class: "fact" },
    chip(base, fact.head), h("span", { class: "relation" }, `— ${labelOf(base, fact.relation)} →`), chip(base, fact.tail),
    more.length > 0 && h("small", { class: "muted" }, more.map(([name, value]) => `${name} ${value}`).join(", ")));
}

export function source(base: BaseDetails, piece: Evidence): HTMLElement | null {
  if (!piece.node) return null;
  if (!piece.file) {
    const node = piece.node;
    return h("button", { type: "button", onclick: () => void showNode(base, node.key, piece.text), class: "source", "aria-label": t("source.read", { name: node.name }) }, nameOf(node.name));
  }
  const address = href("documents", { base: base.name, doc: piece.file, piece: piece.node.key, quote: markedText(piece) });
  const printed = base.documents && piece.page && /\.pdf$/i.test(piece.file);
  return h("span", { class: "place" },
    printed ? h("button", { type: "button", onclick: () => void showPage(base, piece, address), class: "source", "aria-label": t("source.page", { place: placeOf(piece) }) }, nameOf(placeOf(piece)))
      : h("a", { class: "source", href: address }, nameOf(placeOf(piece))),
    piece.section && h("small", { class: "muted section" }, piece.section));
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
