// Ranked answers; each opens its evidence.

import type { Answer, BaseDetails, Run } from "./api";
import { h, number, words } from "./dom";
import { glimpse, shownEvidence } from "./evidence";
import { cost } from "./trace";

export function answerCard(base: BaseDetails, answer: Answer, onOpen: () => void, beside?: string): HTMLDetailsElement {
  const dot = h("span", { class: "dot" });
  const place = Math.max(0, base.node_types.findIndex((row) => row.name === answer.type)) % 8;
  dot.style.background = `var(--type-${place})`;
  const first = answer.evidence.find((piece) => piece.kind !== "judgement");
  const card = h("details", { class: "answer", "data-key": answer.key },
    h("summary", {},
      h("span", { class: "rank" }, answer.rank),
      h("span", { class: "what" },
        h("span", { class: "name" }, answer.name),
        h("span", { class: "kind" }, dot, words(answer.type), beside && h("em", {}, beside)),
        first && h("span", { class: "glimpse" }, glimpse(base, first))),
      h("span", { class: "score", title: "The score by which this method ranks; it means nothing to another method" }, number(answer.score))),
    h("ul", { class: "evidence" }, answer.evidence.map((piece) => shownEvidence(base, piece)),
      answer.evidence.length === 0 && h("li", { class: "muted" }, "no evidence was kept")));
  card.addEventListener("toggle", () => { if (card.open) onOpen(); });
  return card;
}

export function writtenAnswer(base: BaseDetails, run: Run): HTMLElement | null {
  if (!run.text) return null;
  return h("section", { class: "written" }, h("p", {}, run.text),
    (run.evidence ?? []).length > 0 && h("ol", { class: "evidence" }, run.evidence!.map((piece, place) => shownEvidence(base, piece, place + 1))));
}

export function remarks(run: Run): HTMLElement {
  return h("footer", { class: "remarks muted" },
    (run.notes ?? []).map((note) => h("p", {}, note)),
    run.fallbacks.map((one) => h("p", { class: "fallback" }, `${one.step}: ${one.reason}; ${one.instead}`)),
    h("p", {}, `${words(run.method)}, ${cost(run)}`));
}
