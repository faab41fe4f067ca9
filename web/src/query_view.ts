// The query behind an answer: triplets, how each name was understood with a control to change it, formal text to copy.

import type { BaseDetails, Found, Query, Run, Term } from "./api";
import { button, copyButton, fill, h, words, type Child } from "./dom";
import { entityInput } from "./entity_input";
import { chip } from "./node_dialog";

const OTHER = "\n"; // no key holds a line break
const HOW: Record<string, string> = { exact: "by its name", fuzzy: "by a similar name", vector: "by its meaning" };

export function shownQuery(base: BaseDetails, run: Run, again: (fixes: Record<string, string[]>) => void): HTMLElement {
  const query: Query = run.query ?? {};
  const fixes = run.request.fixes ?? {};
  const fixed = Object.keys(fixes).length > 0 && h("p", { class: "muted" },
    "Corrected: ", Object.entries(fixes).map(([name, keys]) => `“${name}” ${keys.length ? `means ${keys.join(", ")}` : "names nothing"}; `),
    button("undo all", () => again({}), { class: "quiet" }));
  if (!query.triplets && !query.constants && !query.sparql) {
    return h("div", { class: "query" }, fixed,
      h("p", { class: "muted" }, `No formal query was read: ${words(run.method)} ranks texts by their words or their meaning.`));
  }
  return h("div", { class: "query" },
    fixed,
    query.text && h("p", { class: "formal" }, query.text),
    h("ul", { class: "triplets", "aria-label": "Triplets" }, (query.triplets ?? []).map((triplet) =>
      h("li", {}, triplet.negated && h("strong", {}, "not "), term(triplet.head), h("span", { class: "relation" }, ` — ${words(triplet.relation ?? "any relation")} → `), term(triplet.tail)))),
    (query.constants ?? []).length > 0 && h("h3", {}, "How names were understood"),
    h("ul", { class: "groundings" }, (query.constants ?? []).map((constant) => grounding(base, constant, fixes, again))),
    (query.relaxed ?? []).length > 0 && h("p", { class: "muted" }, `Relaxed: ${query.relaxed!.join("; ")}`),
    (query.unexplained ?? []).length > 0 && h("p", { class: "muted" }, `Words that no triplet accounts for, left to the texts: ${query.unexplained!.join(", ")}`),
    formal("SPARQL", query.sparql), formal("Cypher", query.cypher));
}

function grounding(
  base: BaseDetails, constant: { text: string; nodes: Found[]; alternatives: Found[] },
  fixes: Record<string, string[]>, again: (fixes: Record<string, string[]>) => void,
): HTMLElement {
  const fix = (keys: string[]) => again({ ...fixes, [constant.text]: keys });
  const others = [...constant.nodes, ...constant.alternatives];
  const choice = h("select", { "aria-label": `What “${constant.text}” means` },
    h("option", { value: "" }, "It means something else …"),
    others.map((node) => h("option", { value: node.key }, `${node.name} (${words(node.type)}, ${node.key})`)),
    h("option", { value: OTHER }, "Look another name up …"));
  const controls = h("div", { class: "row wrap" }, choice, button("Exclude", () => fix([]), { class: "quiet", "aria-label": `Exclude “${constant.text}” and ask again` }));
  choice.addEventListener("change", () => {
    if (choice.value === OTHER) fill(controls, entityInput(base, `What “${constant.text}” means`, (node) => fix([node.key])));
    else if (choice.value) fix([choice.value]);
  });
  return h("li", {},
    h("strong", {}, `“${constant.text}”`), " → ",
    constant.nodes.length ? constant.nodes.slice(0, 4).map((node) => [chip(base, node), h("small", { class: "muted" }, ` ${HOW[node.how] ?? node.how} `)] as Child) : h("em", {}, "nothing"),
    constant.nodes.length > 4 && h("small", { class: "muted" }, `and ${constant.nodes.length - 4} more`),
    controls);
}

function term(one: Term): HTMLElement {
  const kind = one.type ? words(one.type) : "";
  return one.constant !== undefined
    ? h("span", { class: "constant" }, `“${one.constant}”`)
    : h("span", { class: "variable" }, `?${one.variable || kind || "x"}`);
}

function formal(name: string, text: string | null | undefined): HTMLElement | null {
  if (!text) return null;
  return h("section", { class: "code" }, h("header", { class: "row" }, h("h3", {}, name), copyButton(text)), h("pre", { tabindex: 0 }, text));
}
