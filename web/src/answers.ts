// One answer as a card that opens its evidence.

import type { Answer, BaseDetails } from "./api";
import { button, h, nameOf, number, words } from "./dom";
import { glimpse, placeOf, shownEvidence } from "./evidence";
import { showNode } from "./node_dialog";
import { reasons, tells } from "./reasons";
import { t } from "./texts";

export function typeDot(base: BaseDetails, type: string): HTMLElement {
  const dot = h("span", { class: "dot" });
  dot.style.background = `var(--type-${Math.max(0, base.node_types.findIndex((row) => row.name === type)) % 8})`;
  return dot;
}

/** Why it is listed, in a line. */
export function why(base: BaseDetails, answer: Answer): string {
  const first = answer.evidence.find((piece) => piece.kind !== "judgement" && tells(piece));
  const said = reasons(answer);
  if (answer.group === "near" && said[0]) return first ? `${said[0]}: ${glimpse(base, first, answer.key)}` : said[0];
  return first ? glimpse(base, first, answer.key) : said.join("; ");
}

export function answerCard(base: BaseDetails, answer: Answer, onOpen: () => void, beside?: string): HTMLDetailsElement {
  const shown = answer.evidence.filter((piece) => piece.kind !== "judgement" && tells(piece)), said = reasons(answer);
  const place = shown.map(placeOf).find((one) => one), isFile = shown.some((piece) => piece.file);
  const raw = answer.evidence.filter((piece) => piece.kind === "judgement").map((piece) => piece.text);
  const card = h("details", { class: "answer", "data-key": answer.key },
    h("summary", {},
      h("span", { class: "rank" }, answer.rank),
      h("span", { class: "what" },
        h("span", { class: "name" }, nameOf(answer.name)),
        h("span", { class: "kind" }, typeDot(base, answer.type), words(answer.type), place && h("span", { class: "where" }, nameOf(place)), beside && h("em", {}, beside)),
        h("span", { class: "glimpse" }, nameOf(why(base, answer))))),
    h("ul", { class: "evidence" }, shown.map((piece) => shownEvidence(base, piece)),
      said.map((text) => h("li", { class: "judgement" }, text)),
      !shown.length && !said.length && h("li", { class: "muted" }, t("evidence.none")),
      h("li", { class: "foot" },
        !isFile && button(t("read.more"), () => void showNode(base, answer.key), { class: "quiet source", "aria-label": t("read.about", { name: answer.name }) }),
        h("details", { class: "raw" }, h("summary", {}, t("details")), h("p", { class: "muted" },
          [...raw, t("score", { rank: answer.rank, score: number(answer.score) }), answer.key].map((text) => h("span", {}, text)))))));
  card.addEventListener("toggle", (event) => { if (event.target === card && card.open) onOpen(); });
  return card;
}
