// The query behind an answer, formally: its triplets, how each name was found, and text to copy.

import type { BaseDetails, Query, Run, Term } from "./api";
import { copyButton, h, nameOf, words, type Child } from "./dom";
import { chip } from "./node_dialog";

const HOW: Record<string, string> = { exact: "by its name", fuzzy: "by a similar name", vector: "by its meaning" };
const FEW = 4;

export function shownQuery(base: BaseDetails, run: Run): HTMLElement {
  const query: Query = run.query ?? {};
  if (!query.triplets && !query.constants && !query.sparql)
    return h("div", { class: "query" }, h("p", { class: "muted" }, `No formal query was read: ${words(run.method)} ranks texts by their words or their meaning.`));
  const constants = query.constants ?? [], triplets = query.triplets ?? [];
  return h("div", { class: "query" },
    query.text && h("p", { class: "formal" }, query.text),
    triplets.length > 0 && h("ul", { class: "triplets", "aria-label": "Triplets" }, triplets.map((triplet) =>
      h("li", {}, triplet.negated && h("strong", {}, "not "), term(triplet.head), h("span", { class: "relation" }, ` — ${words(triplet.relation ?? "any relation")} → `), term(triplet.tail)))),
    constants.length > 0 && [h("h3", {}, "How names were understood"), h("ul", { class: "groundings" }, constants.map((constant) => h("li", {},
      h("strong", {}, "“", nameOf(constant.text), "”"), " → ",
      constant.nodes.length ? constant.nodes.slice(0, FEW).map((node) => [chip(base, node), h("small", { class: "muted" }, ` ${HOW[node.how] ?? node.how} `)] as Child) : h("em", {}, "nothing"),
      constant.nodes.length > FEW && h("small", { class: "muted" }, `and ${constant.nodes.length - FEW} more`))))],
    (query.relaxed ?? []).length > 0 && h("p", { class: "muted" }, `Relaxed: ${query.relaxed!.join("; ")}`),
    (query.unexplained ?? []).length > 0 && h("p", { class: "muted" }, `Words that no triplet accounts for, left to the texts: ${query.unexplained!.join(", ")}`),
    formal("SPARQL", query.sparql), formal("Cypher", query.cypher));
}

function term(one: Term): HTMLElement {
  const kind = one.type ? words(one.type) : "";
  return one.constant !== undefined
    ? h("span", { class: "constant" }, "“", nameOf(one.constant ?? ""), "”")
    : h("span", { class: "variable" }, `?${one.variable || kind || "x"}`);
}

function formal(name: string, text: string | null | undefined): HTMLElement | null {
  if (!text) return null;
  return h("section", { class: "code" }, h("header", { class: "row" }, h("h3", {}, name), copyButton(text)), h("pre", { tabindex: 0 }, text));
}
