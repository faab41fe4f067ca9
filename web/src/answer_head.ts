// The answer first: what was found and how sure that is, how the question was understood, and what was not used.

import type { BaseDetails, Evidence, Run } from "./api";
import { h, nameOf, percent, words, type Child } from "./dom";
import { markedText, quoted, shownEvidence, source } from "./evidence";
import { withTables } from "./pipe_table";
import { unused } from "./reasons";
import { cost } from "./trace";
import { t } from "./texts";

const GIVEN_UP = "model"; // the step of a fallback that says that a model was given up
const ASKED_AS = "asked as: ";

/** Whether a method says what matches, or only ranks. */
export const decides = (run: Run): boolean => run.text !== null || run.form !== null || !run.found;

/** The answer in a sentence, always. */
export function sentence(run: Run): string {
  if (run.text) return run.text;
  if (!run.answers.length) return `${t("notFound")}.`;
  return decides(run) ? t("found", { name: run.answers[0]!.name }) : t("nearest", { name: run.answers[0]!.name });
}

/** How it was answered without the model that was asked for; the first thing to know. */
export function outage(run: Run): HTMLElement | null {
  const first = run.fallbacks[0];
  if (first?.step !== GIVEN_UP) return null;
  return h("div", { class: "notice outage", role: "note" },
    h("p", {}, h("strong", {}, t("outage.title")), ` ${t("outage.effect")}`),
    h("details", {}, h("summary", {}, t("details")), h("p", { class: "muted" }, run.notes[0] ?? first.reason)));
}

export function answerHead(base: BaseDetails, run: Run, ...more: Child[]): HTMLElement {
  const isFromText = isFromDocuments(run), best = run.found ? wholePassages(run) : [];
  const sure = run.found && run.certainty !== null && h("p", { class: "certainty" }, certainty(run.certainty, isFromText, best.length > 0));
  const isAnswered = run.found && (run.answers.length > 0 || run.text !== null);
  return h("section", { class: best.length ? "written best" : isAnswered ? "written" : "written empty", "aria-label": best.length ? t("passage.label") : t("answer"), tabindex: -1 },
    best.length ? best.map((piece, place) => [piece.section && piece.section !== best[place - 1]?.section && h("p", { class: "muted" }, piece.section), quoted(piece), source(base, piece)]) : said(run), sure, understanding(base, run), more,
    !best.length && run.found && run.evidence.length > 0 && h("ol", { class: "evidence" }, run.evidence.filter((piece) => piece.kind !== "judgement").map((piece, place) => shownEvidence(base, piece, place + 1))));
}

function said(run: Run): Child {
  const text = sentence(run);
  if (run.found && (run.answers.length > 0 || run.text !== null)) return h("div", { class: "said", dir: "auto" }, withTables(text, null));
  const [, first, rest] = /^(.*?)(?:\.\s*|\n|$)([\s\S]*)$/.exec(text)!;
  const more = rest!.replace(/^I understood: .*$/m, "").trim();
  return [h("h2", { dir: "auto" }, first || t("notFound")), more && h("p", { dir: "auto" }, more),
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
    !decides(run) && run.answers.length > 0 && h("p", { class: "muted" }, t("ranksOnly")),
  ];
}

function certainty(value: number, isFromText: boolean, quotes: boolean): string {
  if (!isFromText) return t("sure.understood", { percent: percent(value) });
  const how = t(value >= 0.9 ? "sure.certainly" : value >= 0.7 ? "sure.likely" : value >= 0.45 ? "sure.probably" : "sure.perhaps");
  return t(quotes ? "sure.says" : "sure.right", { percent: percent(value), how });
}

/** The passage that is the answer itself, where nobody has written one in other words. */
function wholePassages(run: Run): Evidence[] {
  const pieces = [...run.evidence].sort((one, other) => (one.start ?? 0) - (other.start ?? 0));
  if (run.value !== null || run.text === null || !pieces.length || !pieces.every((piece) => piece.kind === "passage" && piece.file)) return [];
  const isMarked = pieces.length === 1 && run.text.endsWith(markedText(pieces[0]!));
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
