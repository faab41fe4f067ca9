// Compare: two methods side by side on one question.

import * as api from "./api";
import { answerHead, outage, remarks } from "./answer_head";
import { groupsOf } from "./answer_list";
import { answerCard } from "./answers";
import { fill, h, notice, words } from "./dom";
import { choice, exampleList } from "./question_form";
import { go, href } from "./route";
import { t } from "./texts";

const SHOWN = 10;

export async function compareView(host: HTMLElement, base: api.BaseDetails, given: URLSearchParams): Promise<void> {
  const methods = base.methods.map((one): [string, string] => [one.name, words(one.name)]);
  const one = given.get("method") ?? base.default_method;
  const two = given.get("other") ?? methods.find(([name]) => name !== one)?.[0] ?? one;
  const box = h("input", { type: "text", name: "question", dir: "auto", "aria-label": t("question.label"), value: given.get("q") ?? "", maxlength: 2000, placeholder: t("compare.hint") });
  const left = choice(t("compare.left"), "left", methods, one), right = choice(t("compare.right"), "right", methods, two);
  const model = choice(t("model"), "model", base.models.map((name) => [name, name === "none" ? t("model.none") : name]), given.get("model") ?? base.default_model);
  const value = (label: HTMLLabelElement) => label.querySelector("select")!.value;
  const result = h("div", { class: "result" });
  fill(host, h("div", { class: "question asked" }, h("h1", {}, t("compare.title")),
    h("form", { class: "ask", role: "search", onsubmit: (event: Event) => {
      event.preventDefault();
      if (box.value.trim()) go(href("compare", { base: base.name, q: box.value.trim(), method: value(left), other: value(right), model: value(model) }));
    } }, h("div", { class: "box" }, box, h("button", { type: "submit", class: "primary" }, t("view.compare"))),
      h("div", { class: "row wrap settings" }, left, right, base.models.length > 1 && model))), result);
  const question = given.get("q");
  if (!question) {
    host.firstElementChild!.append(h("p", {}, h("a", { href: href("evaluations", { base: base.name }) }, t("evaluations.link"))));
    const compared = (text: string) => go(href("compare", { base: base.name, q: text, method: value(left), other: value(right), model: value(model) }));
    host.firstElementChild!.append(exampleList(base, compared) ?? "");
    return;
  }
  const columns = [one, two].map((method) => ({ method, element: h("section", { class: "main", "aria-label": method }, h("h2", {}, words(method)), h("p", { class: "status muted" }, h("span", { class: "thread", "aria-hidden": "true" }), t("asking"))) }));
  fill(result, h("div", { class: "columns even" }, columns.map((column) => column.element)));
  const runs = await Promise.all(columns.map(async ({ method, element }) => {
    try { return await api.ask(base.name, { question, method, model: given.get("model") ?? "", k: 10, fixes: {} }); }
    catch (failure) { fill(element, h("h2", {}, words(method)), notice((failure as Error).message)); return null; }
  }));
  runs.forEach((run, place) => {
    if (!run) return;
    const other = runs[1 - place];
    const ranks = new Map(other?.answers.map((answer) => [answer.key, answer.rank]) ?? []);
    const beside = (answer: api.Answer) => {
      if (!other) return undefined;
      const rank = ranks.get(answer.key);
      return rank === undefined ? t("beside.only") : rank === answer.rank ? t("beside.same") : t("beside.place", { rank });
    };
    const head = answerHead(base, run);
    head.setAttribute("aria-label", t("answer.of", { method: words(columns[place]!.method) }));
    fill(columns[place]!.element, h("h2", {}, words(run.method)), outage(run), head,
      groupsOf(run).map(({ title, answers }) => [h("h3", {}, title), h("div", { class: "answers" }, answers.slice(0, SHOWN).map((answer) => answerCard(base, answer, () => {}, beside(answer))))]), remarks(run));
  });
}
