// The page: a header, one view at a time, and the token where the server asks for one.

import * as api from "./api";
import { accountView } from "./account_view";
import { askView } from "./ask_view";
import { basesView } from "./bases_view";
import { compareView } from "./compare_view";
import { documentsView } from "./documents_view";
import { button, fill, h, nameOf, notice } from "./dom";
import { evaluationsView } from "./evaluations_view";
import { exploreView } from "./explore_view";
import { referenceView } from "./reference_view";
import { current, go, href } from "./route";
import { signInView } from "./sign_in_view";
import { teamView } from "./team_view";
import { chooseLanguage, counted, language, LANGUAGES, t } from "./texts";

const VIEWS = (["ask", "explore", "compare", "documents", "api"] as const).map((name): [string, string] => [name, t(`view.${name}`)]);
const main = document.getElementById("main")!, header = document.getElementById("header")!;
let bases: api.BaseSummary[] = [], me: api.Me | null = null, hasUsers: boolean | null = null, provider: string | null = null;
let going = new AbortController();

async function show(): Promise<void> {
  going.abort();
  const own = (going = new AbortController());
  const { view, parameters } = current();
  try {
    if (hasUsers === null) ({ users: hasUsers, provider } = await api.health());
    if (hasUsers && (!me || view === "account" || view === "team")) me = await api.me();
    if (own.signal.aborted) return;
    if (hasUsers && !me) { drawHeader(view, undefined); signInView(main, provider, parameters.get("problem") === "provider", anew); return; }
    if (!bases.length) bases = await api.bases();
    if (own.signal.aborted) return;
    const name = parameters.get("base") ?? bases[0]?.name;
    drawHeader(view, name);
    if (me && (view === "account" || me.must_change_password)) { document.title = `${t("account.title")} · Clew`; await accountView(main, me, anew); return; }
    if (me && view === "team") { document.title = `${t("team.title")} · Clew`; await teamView(main, me, bases.map((one) => one.name), name); return; }
    if (view === "bases") { document.title = `${t("bases.title")} · Clew`; await basesView(main, bases, name, own.signal, () => { bases = []; void show(); }); return; }
    if (view === "evaluations") { document.title = `${t("evaluations.title")} · Clew`; await evaluationsView(main, name, parameters, own.signal); return; }
    if (view === "api") { document.title = `${t("api.title")} · Clew`; await referenceView(main, name, own.signal); return; }
    if (!name) { fill(main, h("p", { class: "question" }, h("a", { href: href("bases", {}) }, t("base.none")))); return; }
    const base = await api.details(name);
    if (own.signal.aborted) return;
    document.title = parameters.get("q") ? `${parameters.get("q")} · Clew` : `${name} · Clew`;
    const views: Record<string, () => Promise<void>> = {
      ask: () => askView(main, base, parameters, own.signal),
      explore: () => exploreView(main, base, parameters, own.signal),
      compare: () => compareView(main, base, parameters),
      documents: () => documentsView(main, base, parameters, own.signal),
    };
    await (views[view] ?? views.ask!)();
  } catch (failure) {
    if (own.signal.aborted) return;
    if (failure instanceof api.Refused && failure.status === 401 && hasUsers) anew();
    else if (failure instanceof api.Refused && failure.status === 401) askForToken(api.hasToken());
    else fill(main, h("div", { class: "question" }, notice((failure as Error).message, button(t("tryAgain"), () => { bases = []; void show(); }),
      failure instanceof api.Refused && failure.status === 404 && bases.map((one) => h("a", { class: "button", href: href("ask", { base: one.name }) }, t("base.ask", { name: one.name }))))));
  }
}

/** Somebody else has signed in, or nobody. */
function anew(): void { bases = []; me = null; void show(); }

function drawHeader(view: string, base: string | undefined): void {
  const select = h("select", { "aria-label": t("base.label") }, !bases.some((one) => one.name === base) && h("option", { value: "" }, t("base.choose")), bases.map((one) => h("option", { value: one.name }, one.title || one.name)));
  select.value = base ?? "";
  select.addEventListener("change", () => go(href(view === "api" || view === "account" ? "ask" : view, { base: select.value })));
  const summary = bases.find((one) => one.name === base);
  fill(header,
    h("a", { class: "brand", href: href("ask", { base }), "aria-label": t("start") }, h("img", { src: "/static/icon.svg", alt: "", width: 28, height: 28 }), "Clew"),
    h("nav", { "aria-label": t("views") }, views().map(([name, label]) => h("a", { href: href(name, { base }), "aria-current": name === view ? "page" : null }, label))),
    h("div", { class: "row base" }, (!hasUsers || me) && select, views().length > 0 && h("a", { class: "quiet button about-base", href: href("bases", { base }), "aria-current": view === "bases" ? "page" : null }, summary && summary.nodes > 0 ? counted("nodes", summary.nodes) : t("bases.title")),
      me && h("a", { class: "quiet button", href: href("account", { base }), "aria-current": view === "account" ? "page" : null, "aria-label": `${t("account.title")}: ${me.name}` }, nameOf(me.name)), languageMenu(), themeButton()));
}

function languageMenu(): HTMLSelectElement {
  const made = h("select", { class: "language", "aria-label": t("language") }, Object.entries(LANGUAGES).map(([code, { name }]) => h("option", { value: code, lang: code }, name)));
  made.value = language;
  made.addEventListener("change", () => chooseLanguage(made.value));
  return made;
}

/** What one may open: the team is for those who look after it. */
function views(): [string, string][] {
  if (hasUsers && (!me || me.must_change_password)) return [];
  return [...VIEWS, ...(me && Object.values(me.roles).includes("admin") ? [["team", t("team.title")] as [string, string]] : [])];
}

function themeButton(): HTMLButtonElement {
  const isDark = () => document.documentElement.dataset.theme === "dark" ||
    (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const made = button(isDark() ? "☀" : "☾", () => {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    localStorage.setItem("clew-theme", next);
    made.textContent = next === "dark" ? "☀" : "☾";
    dispatchEvent(new Event("resize"));
    for (const canvas of document.querySelectorAll("canvas")) canvas.dispatchEvent(new Event("themechange"));
  }, { class: "quiet theme", "aria-label": t("theme") });
  return made;
}

function askForToken(isWrong: boolean): void {
  const field = h("input", { type: "password", "aria-label": t("token.label"), autocomplete: "off", placeholder: t("token.label"), "aria-invalid": isWrong ? "true" : null, "aria-describedby": isWrong ? "wrong-token" : null });
  fill(main, h("form", { class: "question token", onsubmit: (event: Event) => { event.preventDefault(); api.setToken(field.value.trim()); bases = []; void show(); } },
    h("h1", {}, t("token.title")), isWrong && h("p", { class: "error", role: "alert", id: "wrong-token" }, t("token.wrong")), h("div", { class: "box" }, field, h("button", { type: "submit", class: "primary" }, t("token.enter")))));
  field.focus();
}

document.querySelector(".skip")!.textContent = t("skip");
const theme = localStorage.getItem("clew-theme");
if (theme) document.documentElement.dataset.theme = theme;
addEventListener("hashchange", () => void show());
addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLElement && /INPUT|TEXTAREA|SELECT/.test(event.target.tagName);
  if (event.key === "/" && !typing) { event.preventDefault(); document.querySelector<HTMLElement>("[name=question], [role=combobox]")?.focus(); }
});
addEventListener("unhandledrejection", (event) => {
  const region = document.getElementById("announcer");
  if (region) region.textContent = String((event.reason as Error)?.message ?? t("failed"));
});
void show();
