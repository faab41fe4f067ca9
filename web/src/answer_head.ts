// The answer first: what was found and how sure that is, how the question was understood, and what was not used.

import type { BaseDetails, Evidence, Run } from "./api";
import { h, nameOf, words, type Child } from "./dom";
import { markedText, quoted, shownEvidence, source } from "./evidence";
import { withTables } from "./pipe_table";
import { unused } from "./reasons";
import { cost } from "./trace";
import { t } from "./texts";

const GIVEN_UP = "model"; // the step of a fallback that says that a model was given up
const ASKED_AS = "asked as: ";

const OPENING = /^(?:I am not sure|I did not find this(?: in these documents)?)\.\s*/; // how the server begins a text that says its state

/** Whether answers are only ranked: nothing says that one of them matches. */
export const isRanked = (run: Run): boolean => run.state === "maybe" && !run.matches && run.value === null;

/** The state of an answer in words; nothing where it was found. */
export const headline = (run: Run): string => (run.state === "found" ? "" : t(`state.${run.state}`));

/** The answer in a sentence, always. */
export const sentence = (run: Run): string => run.text && (run.state === "not_found" || OPENING.test(run.text)) ? run.text : [headline(run), run.text].filter(Boolean).join(" ");

/** How sure an answer is, where that says the same as its state. */
export const certainty = (run: Run): string => (run.percent === null ? "" : t("certainty", { percent: `${run.percent} %` }));

/** How it was answered without the model that was asked for; the first thing to know. */
export function outage(run: Run): HTMLElement | null {
  const first = run.fallbacks[0];
  if (first?.step !== GIVEN_UP) return null;
  return h("div", { class: "notice outage", role: "note" },
    h("p", {}, h("strong", {}, t("outage.title")), ` ${t("outage.effect")}`),
    h("details", {}, h("summary", {}, t("details")), h("p", { class: "muted" }, run.notes[0] ?? first.reason)));
}

export function answerHead(base: BaseDetails, run: Run, ...more: Child[]): HTMLElement {
  const best = run.found ? wholePassages(run) : [], sure = certainty(run);
  return h("section", { class: `written ${run.state}${best.length ? " best" : ""}`, "aria-label": best.length ? t("passage.label") : t("answer"), tabindex: -1 },
    best.length ? [headline(run) && h("h2", {}, headline(run)), best.map((piece, place) => [piece.section && piece.section !== best[place - 1]?.section && h("p", { class: "muted" }, piece.section), quoted(piece), source(base, piece)])] : said(run),
    sure && h("p", { class: "certainty" }, sure), understanding(base, run), more,
    !best.length && run.found && run.evidence.length > 0 && h("ol", { class: "evidence" }, run.evidence.filter((piece) => piece.kind !== "judgement").map((piece, place) => shownEvidence(base, piece, place + 1))));
}

function said(run: Run): Child {
  if (run.state !== "not_found") return [headline(run) && h("h2", {}, headline(run)), run.text && h("div", { class: "said", dir: "auto" }, withTables(run.text.replace(OPENING, ""), null))];
  const [, first, rest] = /^(.*?)(?:\.\s*|\n|$)([\s\S]*)$/.exec(run.text ?? "")!;
  const more = rest!.replace(/^I understood: .*$/m, "").trim();
  return [h("h2", { dir: "auto" }, first || headline(run)), more && h("p", { dir: "auto" }, more),
    h("p", { class: "muted" }, run.answers.length ? t("nearest.follows") : t("otherWords"))];
}

/** How the question was understood, what it was asked as, and what was not used. */
function understanding(base: BaseDetails, run: Run): Child {
  const asked = run.notes.find((note) => note.startsWith(ASKED_AS))?.slice(ASKED_AS.length);
  const left = unused(base, run), changed = run.notes.filter((note) => note.startsWith("changed by you"));
  return [
    asked && h("p", { class: "asked-as" }, h("span", { class: "muted" }, t("askedAs")), nameOf(asked)),
    changed.map((note) => h("p", { class: "asked-as" }, note)),
    run.understood && !run.text?.startsWith("I understood") && h("p", { class: "understood" }, h("span", { class: "muted" }, t("understood")), nameOf(run.understood)),
    left.length > 0 && h("p", { class: "unused" }, h("span", { class: "muted" }, t("unused")), nameOf(left.join(", "))),
    isRanked(run) && run.answers.length > 0 && h("p", { class: "muted" }, t("ranksOnly")),
  ];
}

/** The passage that is the answer itself, where nobody has written one in other words. */
function wholePassages(run: Run): Evidence[] {
  const pieces = [...run.evidence].sort((one, other) => (one.start ?? 0) - (other.start ?? 0));
  if (run.value !== null || run.text === null || !pieces.length || !pieces.every((piece) => piece.kind === "passage" && piece.file)) return [];
  const isMarked = run.text.endsWith(markedText(run.evidence[0]!));
  return isMarked || run.text.endsWith(pieces.map((piece) => piece.text).join("\n\n")) ? pieces : [];
}

/** Whether a run answers from documents: with a passage or with sentences, or by saying that there is none. */
export const isFromDocuments = (run: Run): boolean =>
  run.text !== null && [...run.evidence, ...run.answers.flatMap((answer) => answer.evidence)].some((piece) => piece.kind === "passage" && piece.file);

/** What only those want to know who look closely. */
export function remarks(run: Run): HTMLElement {
  const notes = run.notes.filter((note) => !note.startsWith(ASKED_AS));
  return h("details", { class: "remarks muted" }, h("summary", {}, t("remarks")),
    notes.map((note) => h("p", {}, note)),
    run.fallbacks.map((one) => h("p", { class: "fallback" }, `${one.step}: ${one.reason}; ${one.instead}`)),
    h("p", {}, `${words(run.method)}, ${cost(run)}`));
}
