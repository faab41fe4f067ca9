// The page: a header, one view at a time, and the token where the server asks for one.

import * as api from "./api";
import { askView } from "./ask_view";
import { compareView } from "./compare_view";
import { documentsView } from "./documents_view";
import { button, fill, h, notice } from "./dom";
import { exploreView } from "./explore_view";
import { referenceView } from "./reference_view";
import { current, go, href } from "./route";

const VIEWS: [string, string][] = [["ask", "Ask"], ["explore", "Explore"], ["compare", "Compare"], ["documents", "Documents"], ["api", "API"]];
const main = document.getElementById("main")!, header = document.getElementById("header")!;
let bases: api.BaseSummary[] = [];
let going = new AbortController();

async function show(): Promise<void> {
  going.abort();
  const own = (going = new AbortController());
  const { view, parameters } = current();
  try {
    if (!bases.length) bases = await api.bases();
    const name = parameters.get("base") ?? bases[0]?.name;
    drawHeader(view, name);
    if (view === "api") { await referenceView(main); return; }
    if (!name) { fill(main, h("p", { class: "question" }, "There is no base that you may ask.")); return; }
    const base = await api.details(name);
    if (own.signal.aborted) return;
    document.title = parameters.get("q") ? `${parameters.get("q")} · Clew` : `${name} · Clew`;
    const views: Record<string, () => Promise<void>> = {
      ask: () => askView(main, base, parameters, own.signal),
      explore: () => exploreView(main, base, parameters),
      compare: () => compareView(main, base, parameters),
      documents: () => documentsView(main, base, parameters, own.signal, () => void show()),
    };
    await (views[view] ?? views.ask!)();
  } catch (failure) {
    if (own.signal.aborted) return;
    if (failure instanceof api.Refused && failure.status === 401) askForToken(api.hasToken());
    else fill(main, h("div", { class: "question" }, notice((failure as Error).message, button("Try again", () => { bases = []; void show(); }),
      failure instanceof api.Refused && failure.status === 404 && bases.map((one) => h("a", { class: "button", href: href("ask", { base: one.name }) }, `Ask ${one.name}`)))));
  }
}

function drawHeader(view: string, base: string | undefined): void {
  const select = h("select", { "aria-label": "Knowledge base" }, !bases.some((one) => one.name === base) && h("option", { value: "" }, "choose a base"), bases.map((one) => h("option", { value: one.name }, one.name)));
  select.value = base ?? "";
  select.addEventListener("change", () => go(href(view === "api" ? "ask" : view, { base: select.value })));
  const summary = bases.find((one) => one.name === base);
  fill(header,
    h("a", { class: "brand", href: href("ask", { base }), "aria-label": "Clew, start" }, h("img", { src: "/static/icon.svg", alt: "", width: 28, height: 28 }), "Clew"),
    h("nav", { "aria-label": "Views" }, VIEWS.map(([name, label]) => h("a", { href: href(name, { base }), "aria-current": name === view ? "page" : null }, label))),
    h("div", { class: "row base" }, select, summary && summary.nodes > 0 && h("small", { class: "muted" }, `${summary.nodes.toLocaleString("en")} nodes`), themeButton()));
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
  }, { class: "quiet theme", "aria-label": "Light or dark" });
  return made;
}

function askForToken(isWrong: boolean): void {
  const field = h("input", { type: "password", "aria-label": "Token", autocomplete: "off", placeholder: "Token", "aria-invalid": isWrong ? "true" : null, "aria-describedby": isWrong ? "wrong-token" : null });
  fill(main, h("form", { class: "question token", onsubmit: (event: Event) => { event.preventDefault(); api.setToken(field.value.trim()); bases = []; void show(); } },
    h("h1", {}, "This server asks for a token"), isWrong && h("p", { class: "error", role: "alert", id: "wrong-token" }, "The server does not know this token. Check it and try again."), h("div", { class: "box" }, field, h("button", { type: "submit", class: "primary" }, "Enter"))));
  field.focus();
}

const theme = localStorage.getItem("clew-theme");
if (theme) document.documentElement.dataset.theme = theme;
addEventListener("hashchange", () => void show());
addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLElement && /INPUT|TEXTAREA|SELECT/.test(event.target.tagName);
  if (event.key === "/" && !typing) { event.preventDefault(); document.querySelector<HTMLElement>("[name=question], [role=combobox]")?.focus(); }
});
addEventListener("unhandledrejection", (event) => {
  const region = document.getElementById("announcer");
  if (region) region.textContent = String((event.reason as Error)?.message ?? "something failed");
});
void show();
