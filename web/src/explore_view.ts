// Explore: two or more entities, the subgraph between them, and the subgraph in words.

import * as api from "./api";
import { button, copyButton, fill, h, nameOf, notice, save, words } from "./dom";
import { GraphPanel } from "./graph_panel";
import { entityInput } from "./entity_input";
import { go, href } from "./route";
import { counted, language, t } from "./texts";

export async function exploreView(host: HTMLElement, base: api.BaseDetails, given: URLSearchParams, signal: AbortSignal): Promise<void> {
  const keys = given.getAll("e");
  const show = (next: string[]) => go(href("explore", { base: base.name, e: next }));
  const problem = h("div", {});
  const chosen = await Promise.all(keys.map(async (key): Promise<api.NodePage | null> => {
    try { return await api.node(base.name, key); }
    catch (failure) {
      if (!(failure instanceof api.Refused) || failure.status === 401) throw failure;
      problem.append(notice(failure.status === 404 ? t("nothing.called", { name: key }) : failure.message, button(t("remove.it"), () => show(keys.filter((other) => other !== key)))));
      return null;
    }
  }));
  if (signal.aborted) return;
  const result = h("div", { class: "result" }), hint = h("div", {});
  fill(host,
    h("div", { class: "question asked" },
      h("h1", {}, t("explore.title")),
      h("p", { class: "muted" }, t("explore.what")),
      h("ul", { class: "chips entities", "aria-label": t("explore.chosen") }, chosen.map((node, place) => node && h("li", { class: "chip" }, nameOf(node.name), h("small", { class: "muted" }, words(node.type)),
        button("×", () => show(keys.filter((_, other) => other !== place)), { class: "quiet", "aria-label": t("remove.named", { name: node.name }) })))),
      entityInput(base, t("explore.add"), (node) => show([...keys.filter((key) => key !== node.key), node.key])),
      problem, hint),
    result);
  if (chosen.includes(null)) return;
  if (!keys.length) { await begin(base, hint, show); return; }
  const panel = new GraphPanel(base, t("explore.caption"));
  if (keys.length === 1) {
    fill(result, panel.element);
    panel.add([{ ...chosen[0]!, role: "question entity" }], []);
    await panel.expand(panel.graph.layout.get(chosen[0]!.key)!);
    return;
  }
  fill(result, h("p", { class: "status muted" }, h("span", { class: "thread", "aria-hidden": "true" }), t("explore.following")));
  let found: api.Graph, drawing: Blob;
  try { [found, drawing] = await Promise.all([api.subgraph(base.name, keys), api.picture(base.name, keys)]); }
  catch (failure) {
    if (!(failure instanceof api.Refused) || failure.status === 401) throw failure;
    fill(result, notice(failure.message));
    return;
  }
  if (!found.edges.length) {
    fill(result, h("div", { class: "empty" }, h("h2", {}, t("explore.empty")), h("p", { class: "muted" }, t("explore.noPath"))));
    return;
  }
  const url = URL.createObjectURL(drawing);
  fill(result, h("div", { class: "columns even" },
    h("section", { class: "main" }, h("p", { class: "status muted", id: "path-count" }, countedPaths(found)), panel.element),
    h("section", { class: "side" },
      h("h2", {}, t("explore.words")), h("p", { class: "document framed", dir: "auto", id: "subgraph-text", tabindex: 0 }, found.text),
      h("div", { class: "row wrap" }, copyButton(found.text, t("copy.text")), copyButton(location.href, t("copy.link"))),
      h("h2", {}, t("explore.drawing")),
      h("img", { class: "drawing", src: url, alt: t("explore.alt", { nodes: found.nodes.length, edges: found.edges.length }) }),
      h("div", { class: "row wrap downloads" },
        button("SVG", () => save("subgraph.svg", drawing), { class: "quiet", "aria-label": t("download.drawing", { format: "SVG" }) }),
        button("JSON", () => save("subgraph.json", new Blob([JSON.stringify(found, null, 1)], { type: "application/json" })), { class: "quiet", "aria-label": t("download.subgraph", { format: "JSON" }) })))));
  panel.add(found.nodes.map((node) => ({ ...node, role: node.role === "between" ? undefined : node.role })), found.edges);
}

/** How many of the shortest paths are shown; only those through the least connected nodes are, where there are very many. */
export function countedPaths(found: api.Graph): string {
  const paths = found.paths as { count: number; kept: string[][] }[];
  const kept = paths.reduce((sum, one) => sum + one.kept.length, 0), all = paths.reduce((sum, one) => sum + one.count, 0);
  const lost = paths.filter((one) => !one.kept.length).length;
  const shown = found.complete || kept >= all ? counted("paths.all", all) : t("paths.some", { kept: kept.toLocaleString(language), all: all.toLocaleString(language) });
  return lost ? `${shown} ${counted("paths.lost", lost)}` : shown;
}

// Where to begin: names from the questions that fit the base.
async function begin(base: api.BaseDetails, host: HTMLElement, show: (keys: string[]) => void): Promise<void> {
  const named = await Promise.all(base.examples.map(async (text) => (await api.mentions(base.name, text)).at(-1)?.nodes[0]));
  const nodes = new Map(named.flatMap((node) => (node ? [[node.key, node] as const] : [])));
  if (nodes.size) fill(host, h("div", { class: "chips" }, h("span", { class: "muted" }, t("explore.begin")),
    [...nodes.values()].map((node) => button(node.name, () => show([node.key]), { class: "chip" }))));
}
