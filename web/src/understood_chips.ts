// What was understood, as chips that can be changed: names, relations and their direction, and what type is asked for.

import type { Asked, BaseDetails, Found, Query, Term } from "./api";
import { button, fill, h, nameOf, words, type Child } from "./dom";
import { entityInput } from "./entity_input";
import { t } from "./texts";

export interface Changes { fixes: Record<string, string[]>; relations: Record<string, string>; type: string | null; options: NonNullable<Asked["options"]> }
type Again = (changes: Changes) => void;
const BEFORE = /^the \d+ found before$/; // what an earlier answer found; not a name of this question
const ANY = "*", TURNED = "^"; // as the server names any relation, and one that is meant the other way round
const plain = (meant: string) => meant.replace(/^\^/, "");

/** Chips of a query, and of every change that it does not show. */
export function understoodChips(base: BaseDetails, query: Query, asked: Asked, again: Again): HTMLElement | null {
  const now: Changes = { fixes: asked.fixes ?? {}, relations: asked.relations ?? {}, type: asked.type ?? null, options: asked.options ?? {} };
  const constants = (query.constants ?? []).filter((one) => !BEFORE.test(one.text));
  const named = new Set(constants.map((one) => one.text)), gone = Object.keys(now.fixes).filter((name) => !named.has(name));
  const used = [...new Set([...(query.triplets ?? []).map((one) => one.relation ?? ANY), ...(query.best?.relation ? [query.best.relation] : [])])];
  const lost = Object.entries(now.relations).filter(([, next]) => !used.includes(plain(next)));
  const kind = used.length ? query.target?.type ?? null : null;
  const chips: Child[] = [
    kind && typeChip(base, kind, now, again),
    now.type && now.type !== kind && changedChip(t("chips.type", { type: typeOf(base, now.type) }), t("the.type"), () => again({ ...now, type: null })),
    constants.map((one) => nameChip(base, one, now, again)),
    gone.map((name) => fixedChip(name, now, again)),
    used.map((name) => relationChip(base, name, query, now, again)),
    kindsChip(query, now, again),
    lost.map(([old, next]) => changedChip(`${labelOf(base, old)} → ${labelOf(base, plain(next))}`, t("the.relation", { name: labelOf(base, old) }), () => again(without(now, "relations", old)))),
  ];
  if (!constants.length && !gone.length && !used.length && !lost.length && !now.type) return null;
  return h("div", { class: "understood-chips" }, h("ul", { class: "chips", "aria-label": t("chips.label") }, chips));
}

/** What a change has done, where that is easily overlooked. */
export function effect(query: Query, asked: Asked): HTMLElement | null {
  if (!Object.keys(asked.fixes ?? {}).length && !Object.keys(asked.relations ?? {}).length && !asked.type) return null;
  if (!query.triplets && !query.constants) return h("p", { class: "effect", role: "note" }, t("chips.noEffect"));
  const parts = query as Record<string, unknown>;
  const required = ["triplets", "constants", "conditions", "counts", "either", "among"].some((part) => Array.isArray(parts[part]) && (parts[part] as unknown[]).length) || query.best;
  return required ? null : h("p", { class: "effect", role: "note" }, t("chips.nothingLeft"));
}

const labelOf = (base: BaseDetails, relation: string) => relation === ANY ? t("query.anyRelation") : base.relations.find((row) => row.name === relation)?.label ?? words(relation);
const typeOf = (base: BaseDetails, kind: string) => base.node_types.find((one) => one.name === kind)?.label ?? words(kind);

function without<K extends "fixes" | "relations">(now: Changes, part: K, name: string): Changes {
  return { ...now, [part]: Object.fromEntries(Object.entries(now[part]).filter(([one]) => one !== name)) };
}

const changedMark = () => h("em", { class: "changed" }, t("chips.changed"));
const undo = (what: string, action: () => void) => button(t("undo"), action, { class: "quiet", "aria-label": t("undo.change", { what }) });
const changedChip = (text: string, what: string, action: () => void) =>
  h("li", {}, h("span", { class: "chip" }, nameOf(text), changedMark()), undo(what, action));

function fixedChip(name: string, now: Changes, again: Again): HTMLElement {
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

/** A list to choose from; what is chosen is asked again. */
function chooser(label: string, first: string, options: [string, string][], choose: (value: string) => void): HTMLSelectElement {
  const made = h("select", { "aria-label": label }, h("option", { value: "" }, first), options.map(([value, shown]) => h("option", { value }, shown)));
  made.addEventListener("change", () => { if (made.value) choose(made.value); });
  return made;
}

function typeChip(base: BaseDetails, kind: string, now: Changes, again: Again): HTMLElement {
  const isChanged = now.type === kind, face = t("chips.type", { type: typeOf(base, kind) });
  const others = base.node_types.filter((one) => one.answer && one.name !== kind).map((one): [string, string] => [one.name, one.label]);
  return h("li", {}, menu([face, isChanged && changedMark()], [
    h("p", { class: "muted" }, t("chips.whichType")),
    chooser(t("chips.typeShould"), t("chips.otherType"), others, (type) => again({ ...now, type })),
  ]), isChanged && undo(t("the.type"), () => again({ ...now, type: null })));
}

/** That names stand for what lies below them, too; or that this was turned off. */
function kindsChip(query: Query, now: Changes, again: Again): HTMLElement | null {
  const { kinds: _, ...others } = now.options, isOff = now.options.kinds === false;
  if (isOff) return changedChip(t("chips.kindsOff"), t("the.kinds"), () => again({ ...now, options: others }));
  return query.kinds ? h("li", {}, menu([t("chips.kinds", { kinds: query.kinds })], [h("p", { class: "muted" }, t("chips.kindsWhat")),
    button(t("chips.kindsOff"), () => again({ ...now, options: { ...now.options, kinds: false } }), { class: "choice-row" })])) : null;
}

function relationChip(base: BaseDetails, name: string, query: Query, now: Changes, again: Again): HTMLElement {
  const old = Object.keys(now.relations).find((one) => plain(now.relations[one]!) === name) ?? name, isChanged = old in now.relations;
  const own = base.relations.filter((row) => row.name === name), fits = (row: BaseDetails["relations"][number]) => own.some((one) => one.head === row.head || one.tail === row.tail);
  const others = [...new Map(base.relations.filter((row) => row.name !== name).sort((a, b) => Number(fits(b)) - Number(fits(a)) || b.count - a.count).map((row) => [row.name, row])).values()];
  const label = labelOf(base, name), mean = (next: string) => again(next === old ? without(now, "relations", old) : { ...now, relations: { ...now.relations, [old]: next } });
  const canTurn = own.some((row) => own.some((one) => one.head === row.tail && one.tail === row.head)), isTurned = now.relations[old]?.startsWith(TURNED);
  const edge = canTurn ? (query.triplets ?? []).find((one) => one.relation === name) : undefined; // only there its direction can be another
  return h("li", {}, menu([edge && [endOf(base, edge.head), " "], h("span", { class: "arrow", "aria-hidden": "true" }, "→ "), label, edge && [" → ", endOf(base, edge.tail)], isChanged && changedMark()], [
    h("p", { class: "muted" }, t("chips.which")),
    chooser(t("chips.should", { label }), t("chips.relation"), others.map((row) => [row.name, `${row.label} (${words(row.head)} → ${words(row.tail)})`]), mean),
    canTurn && button(t("chips.turn"), () => mean(isTurned ? name : TURNED + name), { class: "choice-row" }),
  ]), isChanged && undo(t("the.relation", { name: labelOf(base, old) }), () => again(without(now, "relations", old))));
}

/** An end of a requirement: what the question names, or the type of what is not named. */
const endOf = (base: BaseDetails, end: Term): Child => end.constant ? nameOf(end.constant) : end.type ? typeOf(base, end.type) : "?";
