// The query behind an answer, formally: its triplets, how each name was found, and text to copy.

import type { BaseDetails, Query, Run, Term } from "./api";
import { copyButton, h, nameOf, words, type Child } from "./dom";
import { chip } from "./node_dialog";
import { t } from "./texts";

const HOW: Record<string, string> = { exact: t("how.exact"), fuzzy: t("how.fuzzy"), vector: t("how.vector") };
const FEW = 4;

export function shownQuery(base: BaseDetails, run: Run): HTMLElement {
  const query: Query = run.query ?? {};
  if (!query.triplets && !query.constants && !query.query)
    return h("div", { class: "query" }, h("p", { class: "muted" }, t("query.none", { method: words(run.method) })));
  const constants = query.constants ?? [], triplets = query.triplets ?? [];
  return h("div", { class: "query" },
    query.text && h("p", { class: "formal" }, query.text),
    triplets.length > 0 && h("ul", { class: "triplets", "aria-label": t("query.triplets") }, triplets.map((triplet) =>
      h("li", {}, triplet.negated && h("strong", {}, `${t("query.not")} `), term(triplet.head), h("span", { class: "relation" }, ` — ${words(triplet.relation ?? t("query.anyRelation"))} → `), term(triplet.tail)))),
    constants.length > 0 && [h("h3", {}, t("query.names")), h("ul", { class: "groundings" }, constants.map((constant) => h("li", {},
      h("strong", {}, "“", nameOf(constant.text), "”"), " → ",
      constant.nodes.length ? constant.nodes.slice(0, FEW).map((node) => [chip(base, node), h("small", { class: "muted" }, ` ${HOW[node.how] ?? node.how} `)] as Child) : h("em", {}, t("nothing")),
      constant.nodes.length > FEW && h("small", { class: "muted" }, t("andMore", { count: constant.nodes.length - FEW })))))],
    (query.relaxed ?? []).length > 0 && h("p", { class: "muted" }, t("query.relaxed", { text: query.relaxed!.join("; ") })),
    (query.unexplained ?? []).length > 0 && h("p", { class: "muted" }, t("query.unexplained", { text: query.unexplained!.join(", ") })),
    formal("SPARQL", query.sparql), formal("Cypher", query.cypher), formal("SQL (DuckDB)", query.sql));
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
