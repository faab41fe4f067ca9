// Ask: the question, the answer, what matches and what is near, and beside them graph, query and trace.

import * as api from "./api";
import { answerHead, isFromDocuments, outage, remarks, sentence } from "./answer_head";
import { answerList, type Look } from "./answer_list";
import { followUp, link, readAsked, readTurns, shownTurns, type Turn } from "./conversation";
import { announce, button, copyButton, fill, h, notice } from "./dom";
import { graphOf } from "./evidence";
import { downloads } from "./export";
import { GraphPanel } from "./graph_panel";
import { shownQuery } from "./query_view";
import { exampleList, questionForm } from "./question_form";
import { go, href, note } from "./route";
import { tabs } from "./tabs";
import { Timeline } from "./trace";
import { effect, understoodChips } from "./understood_chips";
import { t } from "./texts";

export async function askView(host: HTMLElement, base: api.BaseDetails, given: URLSearchParams, signal: AbortSignal): Promise<void> {
  const kept = await keptRun(base, given.get("run"));
  if (signal.aborted) return;
  const asked = kept ? { ...kept.request, model: kept.request.model === base.default_model ? "" : kept.request.model } : readAsked(given), look: Look = given.get("as") === "table" ? "table" : "cards";
  const turns = kept ? ownTurns(kept, readTurns(given)) : readTurns(given);
  const form = questionForm(base, asked, (next) => go(link(base.name, next, { turns })));
  if (!asked.question) {
    fill(host, h("div", { class: "question" }, h("h1", {}, t("ask.title")), form.element,
      exampleList(base, (text) => go(link(base.name, { ...form.asked(), question: text })))));
    return;
  }
  document.title = `${asked.question} · Clew`;
  const result = h("div", { class: "result" });
  fill(host, h("h1", { class: "asked-question", dir: "auto" }, asked.question), shownTurns(base.name, turns, asked),
    h("div", { class: "question asked" }, form.element), result);
  const own = new AbortController(), stop = () => own.abort();
  signal.addEventListener("abort", stop);
  const page = new Page(base, asked, turns, look, result, stop);
  if (kept) { page.finish(kept); return; }
  try {
    await api.stream(base.name, asked, own.signal, (kind, content) => {
      if (own.signal.aborted) return;
      if (kind === "span") page.timeline.show(content);
      else if (kind === "unchecked") page.showUnchecked(content);
      else if (kind === "run") page.finish(content);
      else if (kind === "error") page.fail(content.error);
    });
    if (!page.done && !own.signal.aborted) page.fail(t("ask.cut"));
  } catch (failure) {
    if (signal.aborted) return;
    if (own.signal.aborted) { page.fail(t("ask.stopped")); return; }
    if (!(failure instanceof api.Refused) || failure.status === 401) throw failure;
    page.fail(failure.message);
  }
}

/** A finished run by its id; null where it was forgotten, and the question is asked again. */
async function keptRun(base: api.BaseDetails, run: string | null): Promise<api.Run | null> {
  if (!run) return null;
  try { return await api.run(base.name, run); }
  catch (failure) {
    if (failure instanceof api.Refused && (failure.status === 404 || failure.status === 422)) return null;
    throw failure;
  }
}

/** The conversation that a run was asked in, whatever the address says; runs of its turns where the address knows them. */
const ownTurns = (run: api.Run, told: Turn[]): Turn[] =>
  (run.request.history ?? []).map((question, place, all) => told.slice(-all.length)[place]?.question === question ? told.slice(-all.length)[place]! : { question, run: null });

class Page {
  readonly timeline = new Timeline();
  done = false;
  private main = h("div", { class: "answered", "aria-busy": "true" });
  private status: HTMLElement;
  private graphHost = h("div", {}, h("p", { class: "muted" }, t("ask.open")));
  private queryHost = h("div", {}, h("p", { class: "muted" }, "…"));
  private side = tabs([[t("tab.graph"), this.graphHost], [t("tab.query"), this.queryHost], [t("tab.trace"), this.timeline.element]]);

  constructor(private base: api.BaseDetails, private asked: api.Asked, private turns: Turn[], private look: Look, result: HTMLElement, stop: () => void) {
    this.status = h("div", { class: "status muted", role: "status" }, h("span", { class: "thread", "aria-hidden": "true" }), t("ask.following"), button(t("ask.stop"), stop, { class: "stop" }));
    const aside = h("aside", { class: "side", "aria-label": t("ask.beside") }, this.side.element);
    const jump = button(t("ask.jump"), () => aside.scrollIntoView({ block: "start" }), { class: "quiet jump" });
    fill(result, h("div", { class: "columns" }, h("section", { class: "main" }, h("div", { class: "row" }, this.status, jump), this.main), aside));
    this.side.choose(t("tab.trace"));
  }

  /** What a model has written so far; the checked answer takes its place. */
  showUnchecked(written: api.Unchecked): void {
    fill(this.main, written.text && h("section", { class: "written unchecked", "aria-label": t("unchecked") },
      h("div", { class: "said", dir: "auto" }, written.text), h("p", { class: "muted" }, `${t("unchecked")} …`)));
  }

  fail(reason: string): void {
    this.end();
    this.timeline.end();
    fill(this.main, understoodChips(this.base, {}, this.asked, this.again), notice(reason, button(t("ask.again"), () => go(link(this.base.name, this.asked, { turns: this.turns })))));
    announce(reason);
  }

  finish(run: api.Run): void {
    this.end();
    this.timeline.all(run.trace);
    const { base, asked, turns } = this;
    const address = (look: Look) => link(base.name, asked, { turns, run: run.run, look });
    const list = answerList(base, run, this.look, (look) => note(address(look)), (answer) => void drawn(base, asked.question, answer, this.graphHost, this.side.choose, run.answers.filter((one) => one.group === "match" && one.evidence.length)));
    const head = answerHead(base, run, understoodChips(base, run.query, run.request, this.again), effect(run.query, run.request));
    fill(this.main, outage(run), head, list.element,
      h("div", { class: "row wrap downloads" }, thumbs(base, run), copyButton(() => location.href, t("copy.link")), downloads(base, run),
        h("a", { class: "quiet button", href: href("compare", { base: base.name, q: asked.question, method: asked.method }) }, t("compare.link"))),
      remarks(run), followUp(base.name, asked, run, turns));
    fill(this.queryHost, shownQuery(base, run));
    note(address(this.look));
    announce(sentence(run));
    if (isFromDocuments(run)) { if (run.answers[0]) void drawn(base, asked.question, run.answers[0], this.graphHost, this.side.choose); }
    else list.openFirst();
    if (!(document.activeElement instanceof HTMLInputElement)) head.focus({ preventScroll: true });
  }

  /** Ask the same with a change. */
  private again = (changes: Partial<api.Asked>): void => go(link(this.base.name, { ...this.asked, ...changes }, { turns: this.turns }));

  private end(): void {
    this.done = true;
    this.main.setAttribute("aria-busy", "false");
    this.status.remove();
  }
}

/** What `clew feedback` learns from; a follow-up is no whole question, and what is not found cannot be confirmed. */
function thumbs(base: api.BaseDetails, run: api.Run): HTMLElement | null {
  if (run.request.history?.length || !run.found || !run.answers.some((one) => one.group === "match")) return null;
  const told = h("small", { class: "muted", role: "status" });
  const made = ([[true, "\u{1F44D}", t("thumb.right")], [false, "\u{1F44E}", t("thumb.wrong")]] as const).map(([right, sign, label]) => button(sign, async () => {
    try {
      await api.judge(base.name, run.run, right);
      for (const one of made) one.setAttribute("aria-pressed", String(one.getAttribute("aria-label") === label));
      fill(told, t(right ? "thumb.kept" : "thumb.withdrawn"));
    } catch (failure) { fill(told, (failure as Error).message); }
  }, { class: "quiet thumb", "aria-label": label, title: label, "aria-pressed": "false" }));
  return h("span", { class: "row", role: "group", "aria-label": t("thumb.label") }, made, told);
}

async function drawn(base: api.BaseDetails, question: string, answer: api.Answer, host: HTMLElement, choose: (name: string) => void, others: api.Answer[] = []): Promise<void> {
  const panel = new GraphPanel(base, t("graph.around", { name: answer.name }));
  fill(host, panel.element, others.length > 1 && button(t("graph.all", { count: others.length }), () => {
    const all = new GraphPanel(base, t("graph.all", { count: others.length }));
    fill(host, all.element);
    for (const one of others) { const { nodes, edges } = graphOf(one.evidence); all.add([{ key: one.key, name: one.name, type: one.type, role: "answer" }, ...nodes], edges); }
    all.element.querySelector("canvas")!.focus({ preventScroll: true });
  }));
  choose(t("tab.graph"));
  const { nodes, edges } = graphOf(answer.evidence);
  const own: api.NodeRef = { key: answer.key, name: answer.name, type: answer.type, role: "answer" };
  if (edges.length) { panel.add([own, ...nodes], edges); return; }
  const named = (await api.mentions(base.name, question)).map((one) => one.nodes[0]!.key).filter((key) => key !== answer.key);
  const keys = [...new Set(named)].slice(0, 4);
  if (keys.length) {
    try {
      const found = await api.subgraph(base.name, [...keys, answer.key]);
      if (found.edges.length) {
        panel.add(found.nodes.map((node) => ({ ...node, role: node.role === "between" ? undefined : node.role })), found.edges);
        return;
      }
    } catch (failure) { if (!(failure instanceof api.Refused)) throw failure; }
  }
  panel.add([own], []);
  await panel.expand(panel.graph.layout.get(answer.key)!);
}
