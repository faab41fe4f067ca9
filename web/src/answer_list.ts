// The answers: what matches, some at a time and with the total, as cards or as a table; then, apart, what is only near.

import type { Answer, BaseDetails, Run } from "./api";
import { answerCard } from "./answers";
import { decides, isFromDocuments } from "./answer_head";
import { answerTable } from "./answer_table";
import { announce, button, fill, h } from "./dom";
import { t } from "./texts";

export type Look = "cards" | "table";
const STEP = 10;

export interface Listing { element: HTMLElement; openFirst(): void }

/** The passages that the answer does not rest on: near it, never part of it. */
function otherPassages(run: Run): Answer[] {
  const cited = new Set(run.found ? run.evidence.map((piece) => piece.node?.key) : []);
  return run.answers.filter((answer) => !cited.has(answer.key));
}

export function answerList(base: BaseDetails, run: Run, look: Look, onLook: (look: Look) => void, onOpen: (answer: Answer) => void): Listing {
  const isText = isFromDocuments(run), matching = run.answers.filter((one) => one.group === "match"), near = run.answers.filter((one) => one.group === "near");
  const groups = isText ? [group(t("list.passages"), otherPassages(run), null)]
    : !decides(run) ? [group(t("list.ranked"), run.answers, null)]
    : [group(run.found ? t("list.matches") : "", run.found ? matching : [], run.matches), group(t("list.near"), run.found ? near : run.answers, null, "divider")];
  const element = h("div", { class: "listing" });
  const looks = () => !isText && run.answers.length > 1 && h("div", { class: "looks", role: "group", "aria-label": t("list.as") }, (["cards", "table"] as const).map((one) =>
    button(one === "cards" ? t("list.cards") : t("list.table"), () => { look = one; onLook(one); draw(); element.querySelector<HTMLElement>(".looks [aria-pressed=true]")?.focus(); }, { class: "quiet", "aria-pressed": String(one === look) })));
  const draw = () => {
    fill(element, groups.map((one) => one(isText ? "cards" : look)));
    element.querySelector(".group > header")?.append(looks() || "");
  };
  draw();

  function group(title: string, answers: Answer[], total: number | null, kind = ""): (look: Look) => HTMLElement | null {
    let most = STEP;
    const host = h("section", { class: `group ${kind}`, "aria-label": title });
    const show = (as: Look) => {
      if (!answers.length) return null;
      const shown = answers.slice(0, most), all = Math.max(total ?? 0, answers.length);
      const list = as === "table" ? answerTable(base, shown, onOpen)
        : h("div", { class: "answers", role: "list", "aria-label": title }, shown.map((answer) => h("div", { role: "listitem" }, answerCard(base, answer, () => onOpen(answer)))));
      const more = () => { most += STEP; step(); };
      const step = () => { show(as); announce(t("list.shown", { shown: Math.min(most, answers.length), all })); };
      fill(host, h("header", { class: "row" }, h("h2", {}, title), h("small", { class: "muted count" }, all > 1 && t("of", { shown: shown.length, all }))), list,
        h("div", { class: "row wrap more" },
          shown.length < answers.length && button(t("list.more", { count: Math.min(STEP, answers.length - shown.length) }), more),
          shown.length < answers.length - STEP && button(t("list.all", { count: answers.length }), () => { most = answers.length; step(); }, { class: "quiet" }),
          shown.length === answers.length && all > answers.length && h("small", { class: "muted" }, t("list.closer", { shown: answers.length, all }))));
      return host;
    };
    return show;
  }

  const openFirst = () => {
    const first = element.querySelector<HTMLDetailsElement>("details.answer");
    if (first) first.open = true; else if (run.answers[0]) onOpen(run.answers[0]);
  };
  return { element, openFirst };
}
