// Answers as a table that can be sorted by any column.

import type { Answer, BaseDetails } from "./api";
import { typeDot, why } from "./answers";
import { announce, button, fill, h, nameOf, words } from "./dom";
import { factsOf } from "./evidence";
import { showNode } from "./node_dialog";
import { language, t } from "./texts";

const MOST_COLUMNS = 5;
const order = new Intl.Collator(language, { numeric: true, sensitivity: "base" });

/** Attributes of an answer, and of the facts it rests on where those are not about several at once. */
export function attributesOf(answer: Answer): Record<string, unknown> {
  const facts = answer.evidence.flatMap(factsOf);
  return { ...(facts.length === 1 ? facts[0]!.attributes ?? {} : {}), ...answer.attributes };
}

/** The attributes that most of these answers have. */
export function columnsOf(answers: Answer[]): string[] {
  const counts = new Map<string, number>();
  for (const answer of answers) for (const name of Object.keys(attributesOf(answer))) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1]).slice(0, MOST_COLUMNS).map(([name]) => name);
}

export function answerTable(base: BaseDetails, answers: Answer[], onOpen: (answer: Answer) => void): HTMLElement {
  const types = new Set(answers.map((answer) => answer.type));
  const columns: [string, (answer: Answer) => unknown][] = [
    ["#", (answer) => answer.rank], [t("table.name"), (answer) => answer.name],
    ...(types.size > 1 ? [[t("table.type"), (answer) => words(answer.type)] as [string, (answer: Answer) => unknown]] : []),
    ...columnsOf(answers).map((name): [string, (answer: Answer) => unknown] => [words(name), (answer) => attributesOf(answer)[name]]),
    [t("table.why"), (answer) => why(base, answer)],
  ];
  let by = 0, down = false;
  const head = h("tr"), body = h("tbody");
  const draw = () => {
    const value = columns[by]![1], empty = (one: unknown) => one === undefined || one === null || one === "";
    const sorted = [...answers].sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      if (empty(a) || empty(b)) return Number(empty(a)) - Number(empty(b)); // what is not known comes last either way
      const placed = typeof a === "number" && typeof b === "number" ? a - b : order.compare(String(a), String(b));
      return down ? -placed : placed;
    });
    fill(head, columns.map(([name], place) => h("th", { scope: "col", "aria-sort": place === by ? (down ? "descending" : "ascending") : null },
      button(name, () => { down = place === by && !down; by = place; draw(); announce(t("table.sorted", { name })); head.querySelectorAll("button")[place]!.focus(); },
        { class: "quiet", "aria-label": name === "#" ? t("table.byRank") : t("table.sort", { name }) }))));
    fill(body, sorted.map((answer) => h("tr", { "data-key": answer.key }, columns.map(([name, one]) => h("td", { class: name === t("table.why") ? "why" : null },
      name === t("table.name") ? h("span", { class: "named" }, typeDot(base, answer.type), h("button", { type: "button", class: "link", onclick: () => { onOpen(answer); void showNode(base, answer.key); } }, nameOf(answer.name)))
        : empty(one(answer)) ? "" : nameOf(String(one(answer))))))));
  };
  draw();
  return h("div", { class: "rows answer-table", tabindex: 0, role: "region", "aria-label": t("table.label") }, h("table", {}, h("thead", {}, head), body));
}
