// Why something is listed, in everyday words; what the method itself says stays under "Details".

import type { Answer, BaseDetails, Evidence, Run } from "./api";
import { words } from "./dom";
import { t, type Key } from "./texts";

const SAID: [RegExp, Key][] = [
  [/below the named nodes/, "reason.below"],
  [/with \d+ near names/, "reason.similar"],
  [/requirement relaxed/, "reason.loosened"],
  [/another reading/, "reason.reading"],
  [/reading that is not sure/, "reason.unsure"],
  [/satisfies the query/, "reason.all"],
  [/by (words and )?meaning/, "reason.meaning"],
  [/by (its )?words/, "reason.words"],
];
const RANKED = /^(document|query|.* reranking|matcher.*|.*search)$/;

/** A judgement in everyday words; null where it only says how a method ranked. */
export function reason(piece: Evidence): string | null {
  const said = SAID.find(([pattern]) => pattern.test(piece.text))?.[1];
  if (said) return t(said);
  if (piece.by === "absent") return t("reason.absent", { text: piece.text.replace(/^absent: /, "") });
  return piece.score === null && !RANKED.test(piece.by ?? "") ? words(piece.text) : null;
}

/** The reasons of an answer, each once. */
export const reasons = (answer: Answer): string[] =>
  [...new Set(answer.evidence.flatMap((piece) => (piece.kind === "judgement" ? reason(piece) ?? [] : [])))];

/** A passage that only repeats the name and the type of its node tells nothing. */
export const tells = (piece: Evidence): boolean =>
  piece.kind !== "passage" || !(piece.text.trim() === "" || (piece.node && piece.text === `${piece.node.name} (${piece.node.type})`));

/** What was not used, in words: a requirement is shown as `(?x:disease has_phenotype “…”): what became of it`. */
export function unused(base: BaseDetails, run: Run): string[] {
  return run.dropped.map((text) => {
    const found = /^\((.*)\): (.*)$/.exec(text);
    if (!found) return `“${text}”`;
    const row = base.relations.find((one) => found[1]!.includes(` ${one.name} `));
    const named = /“(.*)”/.exec(found[1]!)?.[1];
    return t("unused.that", { relation: row ? `“${row.label}”` : t("unused.connected"), named: named ? ` ${named}` : "", why: found[2]! });
  });
}
