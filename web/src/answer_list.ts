// The answers: what matches, a page at a time of all and filtered, as cards or as a table; then, apart, what is only near.

import { ask, type Answer, type BaseDetails, type Run } from "./api";
import { answerCard } from "./answers";
import { isFromDocuments, isRanked } from "./answer_head";
import { answerTable, attributesOf } from "./answer_table";
import { announce, button, fill, h } from "./dom";
import { t } from "./texts";

export type Look = "cards" | "table";
const STEP = 10, PAGE = 100, MANY = 1000; // shown at first, and then at a time; of more than MANY not all at once
const FILTERED = 20; // of more answers than these some can be looked for

export interface Listing { element: HTMLElement; openFirst(): void }
interface Group { title: string; answers: Answer[]; total: number; kind: string }

/** The passages that the answer does not rest on: near it, never part of it. */
function otherPassages(run: Run): Answer[] {
  const cited = new Set(run.found ? run.evidence.map((piece) => piece.node?.key) : []);
  return run.answers.filter((answer) => !cited.has(answer.key));
}

/** Answers by group, under the headings of their state. */
export function groupsOf(run: Run): Group[] {
  const matching = run.answers.filter((one) => one.group === "match"), near = run.answers.filter((one) => one.group === "near");
  const groups = isFromDocuments(run) ? [{ title: run.state === "not_found" ? t("near.not_found") : t("list.passages"), answers: otherPassages(run), total: 0, kind: "" }]
    : isRanked(run) ? [{ title: t("list.ranked"), answers: run.answers, total: 0, kind: "" }]
    : [{ title: run.state === "not_found" ? "" : t(`matches.${run.state}`), answers: run.state === "not_found" ? [] : matching, total: run.matches ?? 0, kind: "" },
      { title: t(`near.${run.state}`), answers: run.state === "not_found" ? run.answers : near, total: 0, kind: "divider" }];
  return groups.filter((one) => one.answers.length);
}

/** An answer that is a table. */
function rowsTable(run: Run): HTMLElement {
  let most = PAGE;
  const body = h("tbody", {}), below = h("div", { class: "row wrap more" });
  const shown = (cell: Run["rows"][number][number]) => cell === null ? "" : typeof cell === "object" ? cell.name : typeof cell === "number" ? cell.toLocaleString() : String(cell);
  const draw = () => {
    fill(body, run.rows.slice(0, most).map((row) => h("tr", {}, row.map((cell) => h("td", { dir: "auto" }, shown(cell))))));
    fill(below, run.rows.length > most && button(t("list.more", { count: Math.min(PAGE, run.rows.length - most) }), () => { most += PAGE; draw(); }));
  };
  draw();
  return h("section", { class: "group", "aria-label": t("table.label") },
    h("div", { class: "rows answer-table", tabindex: 0, role: "region", "aria-label": t("table.label") },
      h("table", {}, h("thead", {}, h("tr", {}, run.columns.map((column) => h("th", { scope: "col" }, column)))), body)), below);
}

const textOf = (answer: Answer) => [answer.name, answer.type, answer.key, ...Object.values(attributesOf(answer))].join(" ").toLowerCase();

export function answerList(base: BaseDetails, run: Run, look: Look, onLook: (look: Look) => void, onOpen: (answer: Answer) => void): Listing {
  const isText = isFromDocuments(run), groups = groupsOf(run).map(group);
  const element = h("div", { class: "listing" });
  if (run.rows.length) return { element: h("div", { class: "listing" }, rowsTable(run)), openFirst: () => { if (run.answers[0]) onOpen(run.answers[0]); } };
  const looks = () => !isText && run.answers.length > 1 && h("div", { class: "looks", role: "group", "aria-label": t("list.as") }, (["cards", "table"] as const).map((one) =>
    button(one === "cards" ? t("list.cards") : t("list.table"), () => { look = one; onLook(one); draw(); element.querySelector<HTMLElement>(".looks [aria-pressed=true]")?.focus(); }, { class: "quiet", "aria-pressed": String(one === look) })));
  const draw = () => {
    fill(element, groups.map((one) => one(isText ? "cards" : look)));
    element.querySelector(".looks")?.remove();
    element.querySelector(".group > header")?.append(looks() || "");
  };
  draw();

  function group({ title, answers, total, kind }: Group): (look: Look) => HTMLElement {
    let most = STEP, wanted = "", as = look;
    const list = h("div", {}), count = h("small", { class: "muted count" }), below = h("div", { class: "row wrap more" });
    const box = h("input", { type: "text", class: "filter", "aria-label": t("list.filter"), placeholder: t("list.filter"), oninput: () => { wanted = box.value.trim().toLowerCase(); most = STEP; show(); } });
    const host = h("section", { class: `group ${kind}`, "aria-label": title }, h("header", { class: "row" }, h("h2", {}, title), count), answers.length > FILTERED && box, list, below);
    const step = (next: number) => { most = next; show(); announce(t("list.shown", { shown: Math.min(most, answers.length), all: Math.max(total, answers.length) })); };
    const load = async () => { // what is left of a list too long for one reply
      const more = await ask(base.name, { ...run.request, offset: answers.length });
      const fresh = more.answers.filter((one) => one.group === "match");
      answers.push(...fresh);
      run.answers.splice(answers.length - fresh.length, 0, ...fresh);
      step(most + PAGE);
    };
    const show = () => {
      const fitting = wanted ? answers.filter((answer) => textOf(answer).includes(wanted)) : answers;
      const shown = fitting.slice(0, most), left = fitting.length - shown.length, all = wanted ? fitting.length : Math.max(total, answers.length);
      const next = shown.length < 2 * STEP ? STEP : PAGE;
      fill(count, (all > 1 || wanted) && t("of", { shown: shown.length, all: all.toLocaleString() }));
      fill(list, !shown.length ? h("p", { class: "muted" }, t("list.none")) : as === "table" ? answerTable(base, shown, onOpen)
        : h("div", { class: "answers", role: "list", "aria-label": title }, shown.map((answer) => h("div", { role: "listitem" }, answerCard(base, answer, () => onOpen(answer))))));
      fill(below,
        left > 0 && button(t("list.more", { count: Math.min(next, left) }), () => step(most + next)),
        left > next && fitting.length <= MANY && button(t("list.all", { count: fitting.length }), () => step(fitting.length), { class: "quiet" }),
        !left && total > answers.length && button(t("list.load", { count: Math.min(run.request.k ?? MANY, total - answers.length) }), () => void load()));
    };
    return (next) => { as = next; show(); return host; };
  }

  const openFirst = () => {
    const first = element.querySelector<HTMLDetailsElement>("details.answer");
    if (first) first.open = true; else if (run.answers[0]) onOpen(run.answers[0]);
  };
  return { element, openFirst };
}
