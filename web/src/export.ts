// The listed answers to take away: a table, a text with citations, or everything.

import { ask, type Answer, type BaseDetails, type Run } from "./api";
import { certainty, isRanked, sentence } from "./answer_head";
import { groupsOf } from "./answer_list";
import { attributesOf } from "./answer_table";
import { button, h, save, words } from "./dom";
import { placeOf } from "./evidence";
import { tells } from "./reasons";
import { t } from "./texts";

/** A cell that a spreadsheet reads as text: what begins as a formula is quoted. */
function cell(value: unknown): string {
  let text = value === null || value === undefined ? "" : String(value);
  if (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text))) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const lines = (rows: unknown[][]) => rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
const shown = (value: Run["rows"][number][number]) => value !== null && typeof value === "object" ? value.name : value;

export function csv(run: Run): string {
  if (run.rows.length) return lines([run.columns, ...run.rows.map((row) => row.map(shown))]);
  const names = [...new Set(run.answers.flatMap((answer) => Object.keys(attributesOf(answer))))];
  const rows = run.answers.map((answer) => {
    const told = attributesOf(answer);
    return [answer.rank, answer.name, answer.type, answer.key, isRanked(run) ? "ranked" : answer.group, ...names.map((name) => told[name]), cited(answer).map(source).join(" | ")];
  });
  return lines([["rank", "name", "type", "key", "group", ...names, "evidence"], ...rows]);
}

const cited = (answer: { evidence: Answer["evidence"] }) => answer.evidence.filter((piece) => piece.kind !== "judgement" && tells(piece));
const source = (piece: Answer["evidence"][number]) => `${piece.text.replace(/\s+/g, " ").trim()}${placeOf(piece) ? ` (${placeOf(piece)})` : ""}`;
const escaped = (text: string) => text.replace(/([\\`*_[\]<>#|])/g, "\\$1");

export function markdown(run: Run, address: string): string {
  const sources: string[] = [];
  const cite = (pieces: Answer["evidence"]) => pieces.slice(0, 3).map((piece) => {
    const text = source(piece), known = sources.indexOf(text);
    return ` [${(known < 0 ? sources.push(text) : known + 1)}]`;
  }).join("");
  const line = (answer: Answer) => `${answer.rank}. **${escaped(answer.name)}** (${escaped(words(answer.type))})${cite(cited(answer))}`;
  const text = [`# ${escaped(run.question)}`, "", `${escaped(sentence(run))}${cite(cited(run))}`, ""];
  if (certainty(run)) text.push(`${certainty(run)}.`, "");
  if (run.understood) text.push(t("export.understood", { text: escaped(run.understood) }), "");
  if (run.rows.length) {
    const row = (cells: unknown[]) => `| ${cells.map((one) => escaped(String(one ?? ""))).join(" | ")} |`;
    text.push(row(run.columns), row(run.columns.map(() => "---")).replaceAll("\\", ""), ...run.rows.map((one) => row(one.map(shown))), "");
  } else for (const { title, answers, total } of groupsOf(run)) text.push(`## ${title}${total > answers.length ? ` (${t("of", { shown: answers.length, all: total })})` : ""}`, "", ...answers.map(line), "");
  if (sources.length) text.push(`## ${t("export.sources")}`, "", ...sources.map((text, place) => `[${place + 1}] ${escaped(text)}  `), "");
  return [...text, `<${address}>`, ""].join("\n");
}

/** A run with every answer: a list too long for one reply is sent in parts. */
async function whole(base: BaseDetails, run: Run): Promise<void> {
  for (let last = -1; run.answers.length < (run.matches ?? 0) && run.answers.length > last;) {
    last = run.answers.length;
    run.answers.push(...(await ask(base.name, { ...run.request, offset: last })).answers);
  }
}

export function downloads(base: BaseDetails, run: Run): HTMLElement[] {
  const one = (name: string, ending: string, type: string, make: () => string) =>
    button(name, async () => { await whole(base, run); save(`clew-${run.run}.${ending}`, new Blob([make()], { type: `${type};charset=utf-8` })); }, { class: "quiet", "aria-label": t("download.answers", { format: name }) });
  return [
    one("CSV", "csv", "text/csv", () => `\ufeff${csv(run)}`),
    one("Markdown", "md", "text/markdown", () => markdown(run, location.href)),
    one("JSON", "json", "application/json", () => JSON.stringify(run, null, 1)),
    button(t("print"), () => print(), { class: "quiet" }),
  ].map((made) => h("span", {}, made));
}
