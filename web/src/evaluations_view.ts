// Evaluations: the runs over each set of questions, compared, and what went wrong in them, with the trace.

import * as api from "./api";
import { fill, h, nameOf, notice } from "./dom";
import { choice } from "./question_form";
import { go, href } from "./route";
import { t } from "./texts";

const STEP = 20;

export async function evaluationsView(host: HTMLElement, base: string | undefined, given: URLSearchParams, signal: AbortSignal): Promise<void> {
  const title = h("h1", {}, t("evaluations.title"));
  let found: api.Evaluation[];
  try { found = await api.evaluations(); }
  catch (failure) {
    if (signal.aborted || !(failure instanceof api.Refused) || failure.status === 401) throw failure;
    fill(host, h("div", { class: "account" }, title, notice(failure.message)));
    return;
  }
  if (signal.aborted) return;
  const set = found.find((one) => one.title === given.get("set")) ?? found[0];
  if (!set) { fill(host, h("div", { class: "account" }, title, h("p", { class: "muted" }, t("evaluations.none")))); return; }
  const run = set.runs.find((one) => one === given.get("run")) ?? set.runs[0]!;
  const chosen = (label: string, options: readonly string[], now: string, take: (next: string) => Record<string, string>) => {
    const made = choice(label, "choice", options.map((one) => [one, one]), now);
    made.addEventListener("change", () => go(href("evaluations", { base, ...take(made.querySelector("select")!.value) })));
    return made;
  };
  const failures = h("section", {});
  fill(host, h("div", { class: "account wide" }, title, chosen(t("evaluations.set"), found.map((one) => one.title), set.title, (next) => ({ set: next })),
    set.tables.map(shownTable),
    h("section", {}, h("h2", {}, t("evaluations.failures")), chosen(t("evaluations.run"), set.runs, run, (next) => ({ set: set.title, run: next })), failures)));
  await drawFailures(failures, set.title, run, STEP);
}

function shownTable(table: api.Evaluation["tables"][number]): HTMLElement {
  return h("section", {}, h("h2", {}, table.title),
    h("div", { class: "rows answer-table", tabindex: 0, role: "region", "aria-label": table.title }, h("table", {},
      h("thead", {}, h("tr", {}, table.columns.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, table.rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, nameOf(cell)))))))),
    table.note && h("p", { class: "muted" }, table.note));
}

async function drawFailures(host: HTMLElement, set: string, run: string, most: number): Promise<void> {
  const found = await api.failures(set, run, most);
  if (!found.length) { fill(host, h("p", { class: "muted" }, t("evaluations.allRight"))); return; }
  const list = (label: string, values: string[]) => [h("dt", {}, label), h("dd", {}, values.length ? nameOf(values.join(", ")) : "–")];
  fill(host, h("ul", { class: "people", "aria-label": t("evaluations.failures") }, found.map((one) => h("li", {}, h("details", {},
    h("summary", {}, nameOf(one.question)),
    h("dl", { class: "attributes" }, list(t("evaluations.gold"), one.gold), list(t("evaluations.found"), one.found),
      list(t("evaluations.metrics"), Object.entries(one.metrics).map(([name, value]) => `${name} ${value.toFixed(2)}`)),
      one.error && list(t("trace.error"), [one.error]), one.fallbacks.length > 0 && list(t("evaluations.fallbacks"), one.fallbacks)),
    one.trace.length > 0 && h("pre", { tabindex: 0 }, one.trace.join("\n")))))),
    found.length === most && h("div", {}, h("button", { type: "button", class: "quiet", onclick: () => void drawFailures(host, set, run, most + STEP) }, t("log.more"))));
}
