// Text with tables in Markdown as it should look; some characters marked, in a table the rows that hold them.

import { h, type Child } from "./dom";

type Span = readonly number[] | null | undefined;
const RULE = /^[|\s:-]+$/;

const isRow = (line: string): boolean => line.trimStart().startsWith("|");
const cells = (line: string): string[] =>
  line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

/** The span counts code points, as the server does. */
export function withTables(text: string, span: Span): Child[] {
  const shown: Child[] = [];
  let rows: HTMLTableRowElement[] = [], start = 0;
  const close = () => {
    if (rows.length) shown.push(h("div", { class: "rows", tabindex: 0 }, h("table", {}, rows)));
    rows = [];
  };
  const lines = text.split("\n");
  lines.forEach((line, place) => {
    const length = [...line].length, from = Math.max((span?.[0] ?? 0) - start, 0), to = Math.min((span?.[1] ?? 0) - start, length);
    const isMarked = from < to;
    if (!isRow(line)) {
      close();
      const letters = [...line], part = (one: number, other?: number) => letters.slice(one, other).join("");
      shown.push(isMarked ? [part(0, from), h("mark", {}, part(from, to)), part(to)] : line, place + 1 < lines.length && "\n");
    } else if (!RULE.test(line)) {
      const isHeader = isRow(lines[place + 1] ?? "") && RULE.test(lines[place + 1]!);
      rows.push(h("tr", {}, cells(line).map((cell) => h(isHeader ? "th" : "td", {}, isMarked ? h("mark", {}, cell) : cell))));
    }
    start += length + 1;
  });
  close();
  return shown;
}
