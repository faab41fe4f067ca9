// Bases: what there is, made and described and deleted by admins, and the schema of the chosen one.

import * as api from "./api";
import { button, fill, h, nameOf, notice, words } from "./dom";
import { href } from "./route";
import { choice } from "./question_form";
import { form, type Entry } from "./sign_in_view";
import { counted, parts, t } from "./texts";

type Change = (work: () => Promise<unknown>, redraw?: () => void) => Promise<void>;

export async function basesView(host: HTMLElement, bases: api.BaseSummary[], name: string | undefined, signal: AbortSignal, reload: () => void): Promise<void> {
  const problem = h("div", {});
  const change: Change = async (work, redraw = reload) => {
    fill(problem);
    try { await work(); redraw(); } catch (failure) { fill(problem, notice((failure as Error).message)); }
  };
  const [{ may_make, deleted, sources }, chosen] = await Promise.all([api.managed(), name ? api.details(name) : null]);
  if (signal.aborted) return;
  fill(host, h("div", { class: "account" }, h("h1", {}, t("bases.title")), problem,
    h("ul", { class: "people", "aria-label": t("bases.title") },
      bases.map((one) => h("li", {}, baseRow(one, may_make, change))),
      deleted.map((one) => h("li", { class: "row" }, h("s", {}, nameOf(one)), button(t("undo"), () => change(() => api.restoreBase(one)), { "aria-label": t("docs.undo", { name: one }) })))),
    may_make && h("datalist", { id: "sources" }, sources.map((one) => h("option", { value: one }))),
    may_make && form(h("h2", {}, t("bases.new")), [
      ["name", t("bases.name"), { maxlength: "50", pattern: "[a-z0-9][a-z0-9_\\-]*", autocapitalize: "none" }],
      ["title", t("bases.label"), { maxlength: "200", required: false }],
      ...(sources.length ? [["source", t("bases.source"), { maxlength: "2000", required: false, list: "sources" }] as Entry] : []),
    ], t("bases.make"), async (values) => { await api.makeBase(values.name!, values.title!, values.source ?? ""); reload(); }),
    chosen?.may_choose_model && modelChoice(chosen, change),
    chosen && schema(chosen)));
}

/** Which model answers where nobody chooses one. */
function modelChoice(base: api.BaseDetails, change: Change): HTMLElement {
  const made = choice(t("model.default"), "model", base.models.map((one) => [one, one === "none" ? t("model.none") : one]), base.default_model);
  made.addEventListener("change", () => void change(() => api.chooseModel(base.name, made.querySelector("select")!.value), () => {})); // nothing else shows it
  return h("section", {}, h("h2", {}, parts("model.of", { base: nameOf(base.title || base.name) })), made);
}

function baseRow(base: api.BaseSummary, mayChange: boolean, change: Change): HTMLElement {
  const face = [h("a", { href: href("ask", { base: base.name }) }, nameOf(base.title || base.name)), " ",
    h("span", { class: "muted" }, base.title && base.title !== base.name ? [nameOf(base.name), " · "] : "", base.ready ? counted("nodes", base.nodes) : t("docs.none"))];
  const said = base.description && h("p", { dir: "auto" }, base.description);
  if (!mayChange || !base.managed) return h("div", {}, face, said);
  const title = h("input", { type: "text", maxlength: 200, value: base.title ?? "" }), text = h("textarea", { class: "by-hand", rows: 3, maxlength: 5000, dir: "auto" });
  text.value = base.description ?? "";
  return h("div", {}, face, said, h("details", {}, h("summary", { class: "muted" }, t("bases.change")), h("div", { class: "user" },
    h("label", {}, h("span", {}, t("bases.label")), title), h("label", {}, h("span", {}, t("bases.description")), text),
    h("div", { class: "row wrap" }, button(t("save"), () => void change(() => api.changeBase(base.name, title.value, text.value)), { class: "primary" }),
      button(t("delete"), () => void change(() => api.deleteBase(base.name)), { "aria-label": t("delete.named", { name: base.name }) })))));
}

/** What kinds of things there are, and how they are connected. */
function schema(base: api.BaseDetails): HTMLElement {
  const table = (title: string, columns: string[], rows: (string | HTMLElement)[][]) => h("div", { class: "rows answer-table", tabindex: 0, role: "region", "aria-label": title }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map((one) => h("th", { scope: "col" }, one)))), h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))));
  const count = (value: number) => value.toLocaleString(document.documentElement.lang);
  return h("section", {}, h("h2", {}, parts("schema.title", { base: nameOf(base.title || base.name) })),
    base.node_types.length > 0 && table(t("schema.types"), [t("schema.types"), t("schema.count"), t("schema.attributes")],
      base.node_types.map((row) => [nameOf(row.label), count(row.count), nameOf((row.attributes ?? []).map(words).join(", "))])),
    base.relations.length > 0 && table(t("relations"), [t("schema.from"), t("relations"), t("schema.to"), t("schema.count")],
      base.relations.map((row) => [nameOf(words(row.head)), nameOf(row.label), nameOf(words(row.tail)), count(row.count)])));
}
