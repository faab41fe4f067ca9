// Ranked answers; each opens its evidence.

import type { Answer, BaseDetails, Evidence, Run } from "./api";
import { h, number, words } from "./dom";
import { glimpse, markedText, placeOf, quoted, shownEvidence, source } from "./evidence";
import { withTables } from "./pipe_table";
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
        h("span", { class: "kind" }, dot, words(answer.type), first && placeOf(first) && h("span", { class: "where" }, placeOf(first)), beside && h("em", {}, beside)),
        first && h("span", { class: "glimpse" }, glimpse(base, first))),
      h("span", { class: "score", title: "The score by which this method ranks; it means nothing to another method" }, number(answer.score))),
    h("ul", { class: "evidence" }, answer.evidence.map((piece) => shownEvidence(base, piece)),
      answer.evidence.length === 0 && h("li", { class: "muted" }, "no evidence was kept")));
  card.addEventListener("toggle", () => { if (card.open) onOpen(); });
  return card;
}

export function writtenAnswer(base: BaseDetails, run: Run): HTMLElement | null {
  if (!run.text || !run.found) return null;
  const best = wholePassage(run);
  const sure = run.certainty !== null && isFromDocuments(run) && h("p", { class: "certainty muted" }, certaintyInWords(run.certainty, best !== null));
  if (best) return h("section", { class: "written best", "aria-label": "The passage that says it" },
    quoted(best), source(base, best), sure);
  return h("section", { class: "written" }, h("div", { class: "said" }, withTables(run.text, null)), sure,
    (run.evidence ?? []).length > 0 && h("ol", { class: "evidence" }, run.evidence!.map((piece, place) => shownEvidence(base, piece, place + 1))));
}

/** The passage that is the answer itself, where nobody has written one in other words. */
function wholePassage(run: Run): Evidence | null {
  const first = run.evidence[0];
  if (!first || first.kind !== "passage" || !first.file || run.evidence.length > 1) return null;
  return run.value === null && (run.text === first.text || run.text === markedText(first)) ? first : null;
}

/** Whether a run answers from documents: with a passage or with sentences, or by saying that there is none. */
export const isFromDocuments = (run: Run): boolean =>
  run.text !== null && [...run.evidence, ...run.answers.flatMap((answer) => answer.evidence)].some((piece) => piece.kind === "passage" && piece.file);

/** The passages that the answer does not rest on: near it, never part of it. */
export function otherPassages(run: Run): Answer[] {
  const cited = new Set(run.found ? run.evidence.map((piece) => piece.node?.key) : []);
  return run.answers.filter((answer) => !cited.has(answer.key));
}

function certaintyInWords(certainty: number, quotes: boolean): string {
  const sure = certainty >= 0.9 ? "almost certainly" : certainty >= 0.7 ? "very likely" : certainty >= 0.45 ? "probably" : "perhaps";
  return `This ${quotes ? `${sure} says it` : `is ${sure} right`} (${Math.round(100 * certainty)} %)`;
}

export function remarks(run: Run): HTMLElement {
  return h("footer", { class: "remarks muted" },
    (run.notes ?? []).map((note) => h("p", {}, note)),
    run.fallbacks.map((one) => h("p", { class: "fallback" }, `${one.step}: ${one.reason}; ${one.instead}`)),
    h("p", {}, `${words(run.method)}, ${cost(run)}`));
}
