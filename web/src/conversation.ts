// A conversation stands in the address: its earlier questions, each with the run that answered it.

import * as api from "./api";
import { sentence } from "./answer_head";
import { button, h, nameOf } from "./dom";
import { go, href } from "./route";
import { t } from "./texts";

export interface Turn { question: string; run: string | null }
export const MOST_ROWS = 10_000; // answers that the server sends at once
const UNKNOWN = "-", MOST = 20; // earlier questions that the server takes

export interface Place { turns?: Turn[]; run?: string | null; look?: string | null }

export function readTurns(given: URLSearchParams): Turn[] {
  const runs = given.getAll("hr");
  return given.getAll("h").map((question, place) => ({ question, run: runs[place] && runs[place] !== UNKNOWN ? runs[place]! : null }));
}

/** The address of a question at its place in a conversation. */
export function link(base: string, asked: api.Asked, { turns = [], run, look }: Place = {}): string {
  const kept = turns.slice(-MOST);
  return href("ask", {
    base, q: asked.question, method: asked.method, model: asked.model || null, fix: writeFixes(asked.fixes ?? {}),
    rel: Object.entries(asked.relations ?? {}).map(([old, next]) => `${old}→${next}`), type: asked.type, kinds: asked.options?.kinds === false ? "no" : null,
    h: kept.map((turn) => turn.question), hr: kept.map((turn) => turn.run ?? UNKNOWN), run, as: look === "table" ? look : null,
  });
}

/** What an address asks. */
export function readAsked(given: URLSearchParams): api.Asked {
  const fixes: Record<string, string[]> = {}, relations: Record<string, string> = {};
  for (const [name, key] of pairs(given, "fix")) fixes[name] = [...(fixes[name] ?? []), ...(key ? [key] : [])];
  for (const [old, next] of pairs(given, "rel")) if (next) relations[old] = next;
  return { question: given.get("q") ?? "", method: given.get("method"), model: given.get("model") ?? "", k: MOST_ROWS, options: given.get("kinds") === "no" ? { kinds: false } : {}, fixes, relations, type: given.get("type"), history: readTurns(given).map((turn) => turn.question).slice(-MOST) };
}

const pairs = (given: URLSearchParams, name: string): [string, string][] =>
  given.getAll(name).map((text) => [text.slice(0, text.lastIndexOf("→")), text.slice(text.lastIndexOf("→") + 1)]);

const writeFixes = (fixes: Record<string, string[]>) =>
  Object.entries(fixes).flatMap(([name, keys]) => (keys.length ? keys.map((key) => `${name}→${key}`) : [`${name}→`]));

/** The turns before this one: each with its sentence, and a link that opens it again. */
export function shownTurns(base: string, turns: Turn[], asked: api.Asked): HTMLElement | null {
  if (!turns.length) return null;
  return h("section", { class: "turns", "aria-label": t("turns.label") },
    h("ol", {}, turns.map((turn, place) => {
      const said = h("p", { class: "muted" });
      if (turn.run) api.run(base, turn.run).then((run) => { said.replaceChildren(nameOf(sentence(run))); }, () => { said.textContent = t("turns.forgotten"); });
      const at = link(base, { question: turn.question, method: asked.method, model: asked.model }, { turns: turns.slice(0, place), run: turn.run });
      return h("li", {}, h("a", { href: at, "aria-label": t("turns.open", { question: turn.question }) }, nameOf(turn.question)), said);
    })),
    button(t("turns.new"), () => go(href("ask", { base })), { class: "quiet" }));
}

/** A field for the next question of the conversation. */
export function followUp(base: string, asked: api.Asked, run: api.Run, turns: Turn[]): HTMLElement {
  const box = h("input", { type: "text", name: "follow-up", dir: "auto", maxlength: 2000, autocomplete: "off", "aria-label": t("follow.label"), placeholder: t("follow.hint") });
  return h("form", { class: "follow", role: "search", "aria-label": t("follow.form"), onsubmit: (event: Event) => {
    event.preventDefault();
    const question = box.value.trim();
    if (question) go(link(base, { question, method: asked.method, model: asked.model }, { turns: [...turns, { question: asked.question, run: run.run }] }));
  } }, h("div", { class: "box" }, box, h("button", { type: "submit", class: "primary" }, t("view.ask"))),
    button(t("turns.new"), () => go(href("ask", { base })), { class: "quiet" }));
}
