// One's own account: what one may do, the password, tokens for programs, and what one asked.

import * as api from "./api";
import { button, copyButton, fill, h, nameOf } from "./dom";
import { href } from "./route";
import { form, passwordForm } from "./sign_in_view";
import { counted, date, parts, t } from "./texts";

export async function accountView(host: HTMLElement, me: api.Me, reload: () => void): Promise<void> {
  const name = h("h1", {}, nameOf(me.name));
  if (me.must_change_password) {
    fill(host, h("div", { class: "question" }, name, h("p", {}, t("password.first")), passwordForm(h("h2", {}, t("password.title")), reload)));
    return;
  }
  const tokens = h("div", {}), asked = h("div", {});
  const leave = button(t("signIn.leave"), async () => { await api.signOut(); reload(); });
  const used = me.asks_per_day === null ? counted("account.asked", me.asks_today) : t("account.quota", { count: me.asks_today, most: me.asks_per_day });
  fill(host, h("div", { class: "account" },
    h("section", {}, h("div", { class: "row wrap" }, name, leave), h("p", { class: "muted" }, used),
      h("ul", { class: "files" }, Object.entries(me.roles).map(([base, role]) => h("li", {}, base === "*" ? t("team.everyBase") : nameOf(base), h("span", { class: "muted" }, t(`role.${role}`)))))),
    me.has_password && h("section", {}, passwordForm(h("h2", {}, t("password.title")), reload)),
    h("section", {}, h("h2", {}, t("tokens.title")), h("p", { class: "muted" }, t("tokens.what")), tokens),
    h("section", {}, h("h2", {}, t("history.title")), asked)));
  await Promise.all([drawTokens(tokens), drawHistory(asked)]);
}

async function drawTokens(host: HTMLElement, made?: string): Promise<void> {
  const found = await api.tokens();
  const writes = h("input", { type: "checkbox" });
  const more = form(h("h3", {}, t("tokens.new")), [["name", t("tokens.name"), { maxlength: "100" }]], t("tokens.make"), async ({ name }) => {
    await drawTokens(host, (await api.makeToken(name!, writes.checked)).token);
  });
  more.insertBefore(h("label", { class: "check" }, writes, h("span", {}, t("tokens.write"))), more.querySelector(".error"));
  fill(host,
    made && h("div", { class: "framed told", role: "status" }, h("p", {}, t("tokens.once")), h("code", {}, made), copyButton(made)),
    h("ul", { class: "files", "aria-label": t("tokens.title") }, found.map((one) => h("li", {}, nameOf(one.name),
      h("span", { class: "muted file-status" }, t(one.write ? "tokens.writes" : "tokens.reads"), " · ", t("tokens.used", { date: date(one.used) }), " · ", t("tokens.ends", { date: date(one.ends) })),
      button(t("remove"), async () => { await api.removeToken(one.id); await drawTokens(host); }, { class: "quiet", "aria-label": t("tokens.remove", { name: one.name }) })))),
    more);
}

async function drawHistory(host: HTMLElement): Promise<void> {
  const found = await api.history();
  if (!found.length) { fill(host, h("p", { class: "muted" }, t("history.none"))); return; }
  fill(host, h("ul", { class: "files", "aria-label": t("history.title") }, found.map((one) => h("li", {},
    h("a", { href: href("ask", { base: one.base, q: one.question, run: one.run }) }, nameOf(one.question)),
    h("span", { class: "muted file-status" }, parts("history.where", { base: nameOf(one.base), date: date(one.at) }))))),
    button(t("history.forget"), async () => { await api.forgetHistory(); await drawHistory(host); }, { class: "quiet" }));
}
