// The query behind an answer: triplets, how each name was understood with a control to change it, formal text to copy.

import type { BaseDetails, Found, Query, Run, Term } from "./api";
import { button, copyButton, h, type Child } from "./dom";
import { chip } from "./node_dialog";

export function shownQuery(base: BaseDetails, run: Run, again: (fixes: Record<string, string[]>) => void): HTMLElement {
  const query: Query = run.query ?? {};
  const fixes = run.request.fixes;
  const fixed = Object.keys(fixes).length > 0 && h("p", { class: "muted" },
    "Corrected: ", Object.entries(fixes).map(([name, keys]) => `“${name}” ${keys.length ? `means ${keys.join(", ")}` : "names nothing"}; `),
    button("undo all", () => again({}), { class: "quiet" }));
  if (!query.triplets && !query.constants) {
    return h("div", { class: "query" }, fixed,
      h("p", { class: "muted" }, `${run.method} reads no formal query: it ranks documents by their words and their meaning.`));
  }
  return h("div", { class: "query" },
    fixed,
    query.text && h("p", { class: "formal" }, query.text),
    h("ul", { class: "triplets", "aria-label": "Triplets" }, (query.triplets ?? []).map((triplet) =>
      h("li", {}, triplet.negated && h("strong", {}, "not "), term(triplet.head), h("span", { class: "relation" }, ` — ${(triplet.relation ?? "any relation").replaceAll("_", " ")} → `), term(triplet.tail)))),
    (query.constants ?? []).length > 0 && h("h3", {}, "How names were understood"),
    h("ul", { class: "groundings" }, (query.constants ?? []).map((constant) => grounding(base, constant, fixes, again))),
    (query.relaxed ?? []).length > 0 && h("p", { class: "muted" }, `Relaxed: ${query.relaxed!.join("; ")}`),
    (query.unexplained ?? []).length > 0 && h("p", { class: "muted" }, `Not in the query: ${query.unexplained!.join(", ")}`),
    formal("SPARQL", query.sparql), formal("Cypher", query.cypher));
}

function grounding(
  base: BaseDetails, constant: { text: string; nodes: Found[]; alternatives: Found[] },
  fixes: Record<string, string[]>, again: (fixes: Record<string, string[]>) => void,
): HTMLElement {
  const fix = (keys: string[]) => again({ ...fixes, [constant.text]: keys });
  const others = [...constant.nodes, ...constant.alternatives];
  const choice = h("select", { "aria-label": `What “${constant.text}” means` },
    h("option", { value: "" }, "means …"),
    others.map((node) => h("option", { value: node.key }, `${node.name} (${node.type}, ${node.how} ${node.score.toFixed(2)})`)));
  choice.addEventListener("change", () => { if (choice.value) fix([choice.value]); });
  return h("li", {},
    h("strong", {}, `“${constant.text}”`), " → ",
    constant.nodes.length ? constant.nodes.slice(0, 4).map((node) => [chip(base, node), h("small", { class: "muted" }, ` ${node.how} ${node.score.toFixed(2)} `)] as Child) : h("em", {}, "nothing"),
    constant.nodes.length > 4 && h("small", { class: "muted" }, `and ${constant.nodes.length - 4} more`),
    h("div", { class: "row wrap" }, choice, button("Exclude", () => fix([]), { class: "quiet", "aria-label": `Exclude “${constant.text}” and ask again` })));
}

function term(one: Term): HTMLElement {
  const kind = one.type ? one.type.replaceAll("_", " ") : "";
  return one.constant !== undefined
    ? h("span", { class: "constant" }, `“${one.constant}”`)
    : h("span", { class: "variable" }, `?${one.variable || kind || "x"}`);
}

function formal(name: string, text: string | undefined): HTMLElement | null {
  if (!text) return null;
  return h("section", { class: "code" }, h("header", { class: "row" }, h("h3", {}, name), copyButton(text)), h("pre", { tabindex: 0 }, text));
}
