// Ask: the question, the answers as they are ranked, and beside them graph, query and trace.

import * as api from "./api";
import { answerCard, isFromDocuments, otherPassages, remarks, writtenAnswer } from "./answers";
import { announce, button, copyButton, fill, h, notice, save } from "./dom";
import { graphOf } from "./evidence";
import { GraphPanel } from "./graph_panel";
import { shownQuery } from "./query_view";
import { exampleList, questionForm } from "./question_form";
import { go, href, note } from "./route";
import { tabs } from "./tabs";
import { Timeline } from "./trace";

function readFixes(given: URLSearchParams): Record<string, string[]> {
  const fixes: Record<string, string[]> = {};
  for (const text of given.getAll("fix")) {
    const place = text.lastIndexOf("→");
    const name = text.slice(0, place), key = text.slice(place + 1);
    fixes[name] = [...(fixes[name] ?? []), ...(key ? [key] : [])];
  }
  return fixes;
}

const writeFixes = (fixes: Record<string, string[]>) =>
  Object.entries(fixes).flatMap(([name, keys]) => (keys.length ? keys.map((key) => `${name}→${key}`) : [`${name}→`]));

export const link = (base: string, asked: api.Asked, run?: string) =>
  href("ask", { base, q: asked.question, method: asked.method, model: asked.model === "none" ? null : asked.model, fix: writeFixes(asked.fixes ?? {}), run });

export async function askView(host: HTMLElement, base: api.BaseDetails, given: URLSearchParams, signal: AbortSignal): Promise<void> {
  const form = questionForm(base, given, (asked) => go(link(base.name, asked)));
  const result = h("div", { class: "result" });
  fill(host, h("div", { class: given.get("q") ? "question asked" : "question" },
    !given.get("q") && h("h1", {}, "What would you like to know?"), form.element,
    !given.get("q") && exampleList(base, (text) => go(link(base.name, { ...form.asked(), question: text })))), result);
  if (!given.get("q")) return;
  const asked: api.Asked = { question: given.get("q")!, method: given.get("method"), model: given.get("model") ?? "none", k: 10, fixes: readFixes(given) };

  const list = h("div", { class: "answers", "aria-label": "Answers", role: "list", "aria-busy": "true" });
  const timeline = new Timeline();
  const graphHost = h("div", {}, h("p", { class: "muted" }, "Open an answer to see the graph around it.")), queryHost = h("div", {}, h("p", { class: "muted" }, "…"));
  const side = tabs([["Graph", graphHost], ["Query", queryHost], ["Trace", timeline.element]]);
  const status = h("p", { class: "status muted" }, h("span", { class: "thread", "aria-hidden": "true" }), "following the thread …");
  const aside = h("aside", { class: "side", "aria-label": "Graph, query and trace" }, side.element);
  const jump = button("Graph, query, trace ↓", () => aside.scrollIntoView({ block: "start" }), { class: "quiet jump" });
  const main = h("section", { class: "main" }, h("div", { class: "row" }, status, jump), list);
  fill(result, h("div", { class: "columns" }, main, aside));
  let done = false;
  const fail = (reason: string) => {
    done = true;
    list.setAttribute("aria-busy", "false");
    fill(status);
    timeline.end();
    list.before(notice(reason, button("Ask again", () => go(link(base.name, asked)))));
  };
  side.choose("Trace");
  const show = (answer: api.Answer) => {
    const card = answerCard(base, answer, () => void drawn(base, asked.question, answer, graphHost, side.choose));
    card.setAttribute("role", "listitem");
    list.append(card);
  };
  const finish = (run: api.Run) => {
    done = true;
    list.setAttribute("aria-busy", "false");
    timeline.all(run.trace);
    if (!list.childElementCount) run.answers.forEach(show);
    const written = writtenAnswer(base, run);
    const count = run.answers.length === 1 ? "1 answer" : run.answers.length ? `${run.answers.length} answers` : "";
    const documents = isFromDocuments(run);
    if (documents) {
      list.replaceChildren();
      otherPassages(run).forEach(show);
      list.setAttribute("aria-label", "Other passages");
      if (list.childElementCount) list.before(h("h2", { class: "others" }, "Other passages"));
    }
    const sure = run.certainty === null ? "" : `, the question read with ${Math.round(100 * run.certainty)} % certainty`;
    fill(status, count && run.found && !documents ? count + sure : "");
    const top = list.previousElementSibling?.matches("h2.others") ? list.previousElementSibling : list;
    if (!run.found && (run.answers.length || run.text)) top.before(h("div", { class: "empty" }, h("h2", {}, run.text ?? "I did not find this"),
      run.answers.length > 0 && h("p", { class: "muted" }, "What is nearest follows; none of it is put forward as the answer.")));
    else if (!run.answers.length && !written) list.before(h("div", { class: "empty" }, h("h2", {}, "No answer was found"),
      h("p", { class: "muted" }, "Other words or another method may find one. ", h("a", { href: href("explore", { base: base.name }) }, "Explore"), " looks names up as you type.")));
    if (written) top.before(written);
    fill(queryHost, shownQuery(base, run, (fixes) => go(link(base.name, { ...asked, fixes }))));
    const address = link(base.name, asked, run.run);
    note(address);
    list.after(h("div", { class: "row wrap downloads" },
      copyButton(location.href, "Copy link"),
      button("JSON", () => save(`clew-${run.run}.json`, new Blob([JSON.stringify(run, null, 1)], { type: "application/json" })), { class: "quiet", "aria-label": "Download the answers as JSON" }),
      h("a", { class: "quiet button", href: href("compare", { base: base.name, q: asked.question, method: asked.method }) }, "Compare methods")), remarks(run));
    announce(documents ? `${run.text}` : `${run.answers.length} answers. The first is ${run.answers[0]?.name ?? "none"}.`);
    if (documents) {
      if (run.answers[0]) void drawn(base, asked.question, run.answers[0], graphHost, side.choose);
      return;
    }
    const first = list.querySelector<HTMLDetailsElement>("details.answer");
    if (first && !list.querySelector("details[open]")) first.open = true;
  };
  const kept = given.get("run");
  if (kept) {
    try { finish(await api.run(base.name, kept)); return; }
    catch (failure) { if (!(failure instanceof api.Refused) || failure.status !== 404) throw failure; } // forgotten: ask again
  }
  try {
    await api.stream(base.name, asked, signal, (kind, content) => {
      if (signal.aborted) return;
      if (kind === "span") timeline.show(content);
      else if (kind === "answer") show(content);
      else if (kind === "run") finish(content);
      else if (kind === "error") fail(content.error);
    });
    if (!done && !signal.aborted) fail("The connection ended before the answer was complete.");
  } catch (failure) {
    if (signal.aborted) return;
    if (!(failure instanceof api.Refused) || failure.status === 401) throw failure;
    fail(failure.message);
  }
}

async function drawn(base: api.BaseDetails, question: string, answer: api.Answer, host: HTMLElement, choose: (name: string) => void): Promise<void> {
  const panel = new GraphPanel(base, `The graph around ${answer.name}`);
  fill(host, panel.element);
  choose("Graph");
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
