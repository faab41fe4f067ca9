// The answer first: what was found and how sure that is, how the question was understood, and what was not used.

import type { BaseDetails, Evidence, Run } from "./api";
import { h, percent, words, type Child } from "./dom";
import { markedText, quoted, shownEvidence, source } from "./evidence";
import { withTables } from "./pipe_table";
import { unused } from "./reasons";
import { cost } from "./trace";

export const NOT_FOUND = "I did not find this";
const GIVEN_UP = "model"; // the step of a fallback that says that a model was given up
const ASKED_AS = "asked as: ";

/** Whether a method says what matches, or only ranks. */
export const decides = (run: Run): boolean => run.text !== null || run.form !== null || !run.found;

/** The answer in a sentence, always. */
export function sentence(run: Run): string {
  if (run.text) return run.text;
  if (!run.answers.length) return "I did not find this.";
  return decides(run) ? `Found: ${run.answers[0]!.name}.` : `The nearest by what is written: ${run.answers[0]!.name}.`;
}

/** How it was answered without the model that was asked for; the first thing to know. */
export function outage(run: Run): HTMLElement | null {
  const first = run.fallbacks[0];
  if (first?.step !== GIVEN_UP) return null;
  return h("div", { class: "notice outage", role: "note" },
    h("p", {}, h("strong", {}, "The model did not answer."), " This was answered without it, so it may be less exact."),
    h("details", {}, h("summary", {}, "Details"), h("p", { class: "muted" }, run.notes[0] ?? first.reason)));
}

export function answerHead(base: BaseDetails, run: Run, ...more: Child[]): HTMLElement {
  const isFromText = isFromDocuments(run), best = run.found ? wholePassage(run) : null;
  const sure = run.found && run.certainty !== null && h("p", { class: "certainty" }, certainty(run.certainty, isFromText, best !== null));
  const isAnswered = run.found && (run.answers.length > 0 || run.text !== null);
  return h("section", { class: best ? "written best" : isAnswered ? "written" : "written empty", "aria-label": best ? "The passage that says it" : "Answer", tabindex: -1 },
    best ? [quoted(best), source(base, best)] : said(run), sure, understanding(base, run), more,
    !best && run.found && run.evidence.length > 0 && h("ol", { class: "evidence" }, run.evidence.filter((piece) => piece.kind !== "judgement").map((piece, place) => shownEvidence(base, piece, place + 1))));
}

function said(run: Run): Child {
  const text = sentence(run);
  if (run.found && (run.answers.length > 0 || run.text !== null)) return h("div", { class: "said" }, withTables(text, null));
  const [, first, rest] = /^(.*?)(?:\.\s*|\n|$)([\s\S]*)$/.exec(text)!;
  const more = rest!.replace(/^I understood: .*$/m, "").trim();
  return [h("h2", {}, first || NOT_FOUND), more && h("p", {}, more),
    h("p", { class: "muted" }, run.answers.length ? "What is nearest follows; none of it is put forward as the answer." : "Other words may find it. Explore looks names up as you type.")];
}

/** How the question was understood, what it was asked as, and what was not used. */
function understanding(base: BaseDetails, run: Run): Child {
  const asked = run.notes.find((note) => note.startsWith(ASKED_AS))?.slice(ASKED_AS.length);
  const left = unused(base, run), changed = run.notes.filter((note) => note.startsWith("changed by you"));
  return [
    asked && h("p", { class: "asked-as" }, h("span", { class: "muted" }, "Asked as: "), asked),
    changed.map((note) => h("p", { class: "asked-as" }, note)),
    run.understood && !run.text?.startsWith("I understood") && h("p", { class: "understood" }, h("span", { class: "muted" }, "I understood: "), run.understood),
    left.length > 0 && h("p", { class: "unused" }, h("span", { class: "muted" }, "Not used: "), left.join(", ")),
    !decides(run) && run.answers.length > 0 && h("p", { class: "muted" }, "This method only ranks what is written; it does not tell what matches."),
  ];
}

function certainty(value: number, isFromText: boolean, quotes: boolean): string {
  if (!isFromText) return `${percent(value)} sure that I understood the question`;
  const sure = value >= 0.9 ? "almost certainly" : value >= 0.7 ? "very likely" : value >= 0.45 ? "probably" : "perhaps";
  return `${percent(value)} sure: this ${quotes ? `${sure} says it` : `is ${sure} right`}`;
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

/** What only those want to know who look closely. */
export function remarks(run: Run): HTMLElement {
  const notes = run.notes.filter((note) => !note.startsWith(ASKED_AS));
  return h("details", { class: "remarks muted" }, h("summary", {}, "How this was answered"),
    notes.map((note) => h("p", {}, note)),
    run.fallbacks.map((one) => h("p", { class: "fallback" }, `${one.step}: ${one.reason}; ${one.instead}`)),
    h("p", {}, `${words(run.method)}, ${cost(run)}`));
}
