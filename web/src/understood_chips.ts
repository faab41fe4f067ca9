// What was understood, as chips that can be changed: the names of the question and the relations it was read by.

import type { BaseDetails, Found, Run } from "./api";
import { button, fill, h, nameOf, words, type Child } from "./dom";
import { entityInput } from "./entity_input";
import { t } from "./texts";

export interface Changes { fixes: Record<string, string[]>; relations: Record<string, string> }
type Again = (changes: Changes) => void;
const BEFORE = /^the \d+ found before$/; // what an earlier answer found; not a name of this question

export function understoodChips(base: BaseDetails, run: Run, again: Again): HTMLElement | null {
  const now: Changes = { fixes: run.request.fixes ?? {}, relations: run.request.relations ?? {} };
  const constants = (run.query.constants ?? []).filter((one) => !BEFORE.test(one.text));
  const named = new Set(constants.map((one) => one.text)), gone = Object.keys(now.fixes).filter((name) => !named.has(name));
  const used = [...new Set((run.query.triplets ?? []).flatMap((one) => one.relation ?? []))];
  const lost = Object.entries(now.relations).filter(([, next]) => !used.includes(next));
  const chips: Child[] = [
    constants.map((one) => nameChip(base, one, now, again)),
    gone.map((name) => fixedChip(base, name, now, again)),
    used.map((name) => relationChip(base, name, now, again)),
    lost.map(([old, next]) => changedChip(`${labelOf(base, old)} → ${labelOf(base, next)}`, t("the.relation", { name: labelOf(base, old) }), () => again(without(now, "relations", old)))),
  ];
  if (!constants.length && !gone.length && !used.length && !lost.length) return null;
  return h("div", { class: "understood-chips" }, h("ul", { class: "chips", "aria-label": t("chips.label") }, chips), effect(run, now));
}

/** What a change has done, where that is easily overlooked. */
function effect(run: Run, now: Changes): Child {
  if (!Object.keys(now.fixes).length && !Object.keys(now.relations).length) return null;
  if (!run.query.triplets && !run.query.constants)
    return h("p", { class: "effect", role: "note" }, t("chips.noEffect"));
  const query = run.query as Record<string, unknown>;
  const required = ["triplets", "constants", "conditions", "counts", "either", "among"].some((part) => Array.isArray(query[part]) && (query[part] as unknown[]).length) || query.best;
  return required ? null : h("p", { class: "effect", role: "note" }, t("chips.nothingLeft"));
}

const labelOf = (base: BaseDetails, relation: string) => base.relations.find((row) => row.name === relation)?.label ?? words(relation);

function without<K extends keyof Changes>(now: Changes, part: K, name: string): Changes {
  return { ...now, [part]: Object.fromEntries(Object.entries(now[part]).filter(([one]) => one !== name)) };
}

const changedMark = () => h("em", { class: "changed" }, t("chips.changed"));
const undo = (what: string, action: () => void) => button(t("undo"), action, { class: "quiet", "aria-label": t("undo.change", { what }) });
const changedChip = (text: string, what: string, action: () => void) =>
  h("li", {}, h("span", { class: "chip" }, nameOf(text), changedMark()), undo(what, action));

function fixedChip(base: BaseDetails, name: string, now: Changes, again: Again): HTMLElement {
  const keys = now.fixes[name]!;
  return changedChip(`“${name}” → ${keys.length ? keys.join(", ") : t("chips.leftOut")}`, `“${name}”`, () => again(without(now, "fixes", name)));
}

/** A chip that opens its choices below it. */
function menu(face: Child[], choices: Child[]): HTMLDetailsElement {
  const made = h("details", { class: "menu" }, h("summary", { class: "chip", title: t("chips.change") }, face), h("div", { class: "choices" }, choices));
  made.addEventListener("keydown", (event) => { if (event.key === "Escape" && made.open) { made.open = false; made.querySelector("summary")!.focus(); } });
  made.addEventListener("focusout", (event) => { if (event.relatedTarget instanceof Node && !made.contains(event.relatedTarget)) made.open = false; });
  return made;
}

function nameChip(base: BaseDetails, one: { text: string; nodes: Found[]; alternatives: Found[] }, now: Changes, again: Again): HTMLElement {
  const fix = (keys: string[]) => again({ ...now, fixes: { ...now.fixes, [one.text]: keys } });
  const isChanged = one.text in now.fixes, first = one.nodes[0];
  const shown = one.nodes.length > 1 ? t("chips.andMore", { name: first!.name, count: one.nodes.length - 1 }) : first?.name ?? t("nothing");
  const seek = h("div", {});
  const isSame = one.nodes.length === 1 && shown.toLowerCase() === one.text.toLowerCase();
  return h("li", {}, menu([isSame ? nameOf(shown) : ["“", nameOf(one.text), "” → ", nameOf(shown)], isChanged && changedMark()], [
    h("p", { class: "muted" }, t("chips.what", { text: one.text })),
    [...one.nodes, ...one.alternatives].map((node, place) => h("button", { type: "button", class: "choice-row", onclick: () => fix([node.key]), "aria-pressed": String(place < one.nodes.length) },
      nameOf(node.name), h("small", { class: "muted" }, `${words(node.type)} · ${node.key}`))),
    button(t("chips.else"), () => fill(seek, entityInput(base, t("chips.means", { text: one.text }), (node) => fix([node.key]))), { class: "choice-row" }), seek,
    button(t("chips.nothing"), () => fix([]), { class: "choice-row" }),
  ]), isChanged && undo(`“${one.text}”`, () => again(without(now, "fixes", one.text))));
}

function relationChip(base: BaseDetails, name: string, now: Changes, again: Again): HTMLElement {
  const old = Object.keys(now.relations).find((one) => now.relations[one] === name) ?? name, isChanged = old !== name;
  const own = base.relations.filter((row) => row.name === name), fits = (row: BaseDetails["relations"][number]) => own.some((one) => one.head === row.head || one.tail === row.tail);
  const others = [...new Map(base.relations.filter((row) => row.name !== name).sort((a, b) => Number(fits(b)) - Number(fits(a)) || b.count - a.count).map((row) => [row.name, row])).values()];
  const label = labelOf(base, name);
  const choose = h("select", { "aria-label": t("chips.should", { label }) }, h("option", { value: "" }, t("chips.relation")),
    others.map((row) => h("option", { value: row.name }, `${row.label} (${words(row.head)} → ${words(row.tail)})`)));
  choose.addEventListener("change", () => { if (choose.value) again({ ...now, relations: { ...now.relations, [old]: choose.value } }); });
  return h("li", {}, menu([h("span", { class: "arrow", "aria-hidden": "true" }, "→ "), label, isChanged && changedMark()], [
    h("p", { class: "muted" }, t("chips.which")), choose,
  ]), isChanged && undo(t("the.relation", { name: labelOf(base, old) }), () => again(without(now, "relations", old))));
}
