// Explore: two or more entities, the subgraph between them, and the subgraph in words.

import * as api from "./api";
import { button, copyButton, fill, h, save } from "./dom";
import { GraphPanel } from "./graph_panel";
import { entityInput } from "./entity_input";
import { go, href } from "./route";

export async function exploreView(host: HTMLElement, base: api.BaseDetails, given: URLSearchParams): Promise<void> {
  const keys = given.getAll("e");
  const show = (next: string[]) => go(href("explore", { base: base.name, e: next }));
  const chosen = await Promise.all(keys.map((key) => api.node(base.name, key)));
  const result = h("div", { class: "result" });
  fill(host,
    h("div", { class: "question asked" },
      h("h1", {}, "What lies between?"),
      h("p", { class: "muted" }, "Name two or more entities: all shortest paths to the last one, and the edges among them."),
      h("ul", { class: "chips entities", "aria-label": "Chosen entities" }, chosen.map((node, place) => h("li", { class: "chip" }, node.name, h("small", { class: "muted" }, node.type),
        button("×", () => show(keys.filter((_, other) => other !== place)), { class: "quiet", "aria-label": `Remove ${node.name}` })))),
      entityInput(base, "Add an entity", (node) => show([...keys.filter((key) => key !== node.key), node.key]))),
    result);
  if (!keys.length) return;
  const panel = new GraphPanel(base, "The subgraph between the entities");
  if (keys.length === 1) {
    fill(result, panel.element);
    panel.add([{ ...chosen[0]!, role: "question entity" }], []);
    await panel.expand(panel.graph.layout.get(chosen[0]!.key)!);
    return;
  }
  const found = await api.subgraph(base.name, keys);
  const drawing = await api.picture(base.name, keys);
  const url = URL.createObjectURL(drawing);
  fill(result, h("div", { class: "columns even" },
    h("section", { class: "main" }, panel.element),
    h("section", { class: "side" },
      h("h2", {}, "In words"), h("p", { class: "document", id: "subgraph-text" }, found.text),
      h("div", { class: "row wrap" }, copyButton(found.text, "Copy text"), copyButton(location.href, "Copy link")),
      h("h2", {}, "As a drawing"),
      h("img", { class: "drawing", src: url, alt: `Drawing of ${found.nodes.length} nodes and ${found.edges.length} edges; the text says the same in words` }),
      h("div", { class: "row wrap downloads" },
        button("SVG", () => save("subgraph.svg", drawing), { class: "quiet", "aria-label": "Download the drawing as SVG" }),
        button("JSON", () => save("subgraph.json", new Blob([JSON.stringify(found, null, 1)], { type: "application/json" })), { class: "quiet", "aria-label": "Download the subgraph as JSON" })))));
  panel.add(found.nodes.map((node) => ({ ...node, role: node.role === "between" ? undefined : node.role })), found.edges);
}
