// One node with its document and its neighbours, in a dialog that Escape closes.

import * as api from "./api";
import { button, fill, h, marked, nameOf } from "./dom";
import { go, href } from "./route";
import { t } from "./texts";

let dialog: HTMLDialogElement | null = null;

export async function showNode(base: api.BaseDetails, key: string, quote: string | null = null): Promise<void> {
  if (!dialog) {
    dialog = h("dialog", { "aria-labelledby": "node-name" });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog!.close(); });
    document.body.append(dialog);
  }
  const open = dialog, waiting = h("p", { class: "muted" }, t("reading"));
  fill(open, waiting);
  if (!open.open) open.showModal();
  let page: api.NodePage;
  try {
    page = await api.node(base.name, key);
  } catch (failure) {
    if (waiting.isConnected) fill(open, h("p", { class: "error", role: "alert" }, (failure as Error).message), button(t("close"), () => open.close()));
    return;
  }
  if (!waiting.isConnected) return; // another node was opened meanwhile
  const shown = Object.entries(page.attributes).filter(([, value]) => value !== null && value !== "");
  fill(open,
    h("header", { class: "row" },
      h("div", {}, h("h2", { id: "node-name" }, nameOf(page.name)), h("p", { class: "muted" }, `${page.type.replaceAll("_", " ")} · ${page.key}`)),
      button("×", () => open.close(), { class: "quiet close", "aria-label": t("close") })),
    h("p", { class: "document", dir: "auto" }, marked(page.document, quote)),
    shown.length > 0 && h("dl", { class: "attributes" }, shown.map(([name, value]) => [h("dt", {}, name), h("dd", {}, nameOf(String(value)))])),
    page.neighbors.map((group) => h("section", {},
      h("h3", {}, `${group.direction === "in" ? "← " : ""}${group.relation.replaceAll("_", " ")}${group.direction === "out" ? " →" : ""} `, h("small", {}, group.count)),
      h("p", { class: "chips" }, group.nodes.map((node) => chip(base, node)), group.count > group.nodes.length && h("small", { class: "muted" }, t("andMore", { count: group.count - group.nodes.length }))))),
    h("footer", { class: "row wrap" },
      button(t("explore.from"), () => { open.close(); go(href("explore", { base: base.name, e: page.key })); })));
}

export function chip(base: api.BaseDetails, node: api.NodeRef): HTMLButtonElement {
  return h("button", { type: "button", onclick: () => void showNode(base, node.key), class: "chip", title: `${node.type} · ${node.key}` }, nameOf(node.name));
}
