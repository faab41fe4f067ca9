// The team: users with roles, groups and quotas for an admin of the server, the members of a base for its admin, the log.

import * as api from "./api";
import { button, copyButton, fill, h, nameOf, notice } from "./dom";
import { choice } from "./question_form";
import { form } from "./sign_in_view";
import { date, t } from "./texts";

const ROLES = ["reader", "editor", "admin"] as const;
const role = (label: string, chosen: string | undefined): HTMLLabelElement =>
  choice(label, "role", [["", t("role.none")], ...ROLES.map((one): [string, string] => [one, t(`role.${one}`)])], chosen ?? "");

type Told = { name: string; password: string };
type Redraw = (told?: Told) => Promise<void>;

export async function teamView(host: HTMLElement, me: api.Me, bases: string[], base: string | undefined): Promise<void> {
  const users = h("section", {}), members = h("section", {}), log = h("section", {});
  const isAdmin = me.roles["*"] === "admin", isBaseAdmin = base !== undefined && (isAdmin || me.roles[base] === "admin");
  fill(host, h("div", { class: "account" }, h("h1", {}, t("team.title")), !isAdmin && !isBaseAdmin && h("p", { class: "muted" }, t("team.notAdmin")), isAdmin && users, isBaseAdmin && members, isAdmin && log));
  const draw: Redraw = async (told) => { // everything at once: no part moves another from under a hand
    const [found, roles, lines] = await Promise.all([isAdmin && api.users(), isBaseAdmin && api.members(base), isAdmin && api.auditLog()]);
    if (found) drawUsers(users, found, bases, draw, told);
    if (roles) drawMembers(members, roles, base!, draw);
    if (lines) drawLog(log, lines);
  };
  await draw();
}

function drawUsers(host: HTMLElement, found: api.User[], bases: string[], again: Redraw, told: Told | undefined): void {
  fill(host, h("h2", {}, t("team.users")),
    told && h("div", { class: "framed told", role: "status" }, h("p", {}, t("team.once", { name: told.name })), h("code", {}, told.password), copyButton(told.password)),
    h("ul", { class: "people", "aria-label": t("team.users") }, found.map((user) => h("li", {}, userRow(user, bases, again)))),
    form(h("h3", {}, t("team.new")), [["name", t("signIn.name"), { maxlength: "64", pattern: "[a-zA-Z0-9][a-zA-Z0-9._@+\\-]*", autocapitalize: "none" }]], t("team.make"), async ({ name }) => again(await api.makeUser(name!))));
}

function userRow(user: api.User, bases: string[], again: Redraw): HTMLElement {
  const problem = h("div", {});
  const change = async (work: () => Promise<Told | void>) => {
    try { await again((await work()) ?? undefined); } catch (failure) { fill(problem, notice((failure as Error).message)); }
  };
  const choices = ["*", ...bases].map((base): [string, HTMLLabelElement] => [base, role(base === "*" ? t("team.everyBase") : base, user.roles[base])]);
  const groups = h("input", { type: "text", maxlength: 2000, value: user.groups.join(", ") });
  const quota = h("input", { type: "number", min: 0, value: user.asks_per_day ?? "" });
  const save = () => change(async () => {
    const roles = Object.fromEntries(choices.map(([base, label]) => [base, label.querySelector("select")!.value]).filter(([, chosen]) => chosen));
    await api.changeUser(user.name, { roles, groups: groups.value.split(",").map((one) => one.trim()).filter(Boolean), asks_per_day: quota.value === "" ? null : Number(quota.value) } as api.UserChange);
  });
  const kept = Object.entries(user.roles).map(([base, own]) => `${base === "*" ? t("team.everyBase") : base}: ${t(`role.${own}`)}`).join(", ");
  return h("details", {}, h("summary", {}, h("strong", {}, nameOf(user.name)), " ", h("span", { class: "muted" }, user.active ? kept || t("role.none") : t("team.isOff"))),
    h("div", { class: "user" }, h("div", { class: "row wrap" }, choices.map(([, label]) => label)),
      h("label", {}, h("span", {}, t("team.groups")), groups), h("label", {}, h("span", {}, t("team.quota")), quota),
      h("p", { class: "muted" }, t("team.lastSeen", { date: date(user.signed_in) })), problem,
      h("div", { class: "row wrap" }, button(t("save"), save, { class: "primary" }),
        button(t(user.active ? "team.off" : "team.on"), () => change(async () => { await api.changeUser(user.name, { active: !user.active }); })),
        button(t("team.reset"), () => change(() => api.resetPassword(user.name))),
        sure(t("remove"), () => change(() => api.removeUser(user.name))))));
}

/** A button that asks once more. */
function sure(label: string, work: () => Promise<void>): HTMLButtonElement {
  let asked = false;
  const made = button(label, () => { if (asked) void work(); else { asked = true; made.textContent = t("sure"); } });
  made.addEventListener("blur", () => { asked = false; made.textContent = label; });
  return made;
}

function drawMembers(host: HTMLElement, found: Awaited<ReturnType<typeof api.members>>, base: string, again: Redraw): void {
  const set = (name: string, chosen: string) => api.setMember(base, name, chosen || null).then(() => again());
  const rows = Object.entries(found).map(([name, own]) => {
    const label = role(name, own);
    label.addEventListener("change", () => void set(name, label.querySelector("select")!.value));
    return h("li", {}, label);
  });
  fill(host, h("h2", {}, t("team.members", { base })), h("ul", { class: "files", "aria-label": t("team.members", { base }) }, rows.length ? rows : h("li", { class: "muted" }, t("team.noMembers"))),
    form(h("h3", {}, t("team.addMember")), [["name", t("signIn.name"), { maxlength: "64" }]], t("team.add"), async ({ name }) => { await set(name!.trim(), "reader"); }));
}

function drawLog(host: HTMLElement, lines: api.Audit[]): void {
  const body = h("tbody", {}), more = button(t("log.more"), async () => add(await api.auditLog(last)), { class: "quiet" });
  let last: number | undefined;
  const add = (found: typeof lines) => {
    last = found.at(-1)?.id;
    body.append(...found.map((line) => h("tr", {}, h("td", {}, date(line.at)), [line.actor, line.what, line.about, line.address].map((text) => h("td", {}, nameOf(text))))));
    more.hidden = found.length < 100;
  };
  fill(host, h("h2", {}, t("log.title")), h("div", { class: "rows log", tabindex: 0, role: "region", "aria-label": t("log.title") }, h("table", {}, h("thead", {}, h("tr", {}, (["log.at", "log.who", "log.what", "log.about", "log.address"] as const).map((key) => h("th", { scope: "col" }, t(key))))), body)), more);
  add(lines);
}
