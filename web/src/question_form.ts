// The box one asks in, with the choice of method and model and what that would cost.

import * as api from "./api";
import { button, fill, h, words } from "./dom";
import { MOST_ROWS } from "./conversation";
import { href } from "./route";
import { parts, t } from "./texts";

export interface Form { element: HTMLFormElement; asked(): api.Asked }

export function choice(label: string, name: string, options: [string, string][], chosen: string): HTMLLabelElement {
  const select = h("select", { name }, options.map(([value, shown]) => h("option", { value }, shown)));
  select.value = options.some(([value]) => value === chosen) ? chosen : (options[0]?.[0] ?? "");
  return h("label", { class: "choice" }, h("span", {}, label), select);
}

export function exampleList(base: api.BaseDetails, take: (question: string) => void): HTMLElement | null {
  if (!base.ready) return h("p", {}, parts("ready.upload", { link: h("a", { href: href("documents", { base: base.name }) }, t("ready.link")) }));
  if (!base.examples.length) return null;
  return h("div", { class: "examples" }, h("h2", {}, t("examples")), h("ul", {},
    base.examples.map((text) => h("li", {}, button(text, () => take(text), { class: "example", dir: "auto" })))));
}

export function questionForm(base: api.BaseDetails, given: Partial<api.Asked>, submit: (asked: api.Asked) => void): Form {
  const box = h("textarea", {
    name: "question", dir: "auto", rows: 1, maxlength: 2000, required: true, "aria-label": t("question.label"),
    placeholder: base.ready ? t("question.hint") : t("question.first"),
  });
  box.value = given.question ?? "";
  const known = base.methods.map((one): [string, string] => [one.name, one.name === base.default_method ? t("method.auto") : words(one.name)]);
  const method = choice(t("method"), "method", known, given.method ?? base.default_method);
  const model = choice(t("model"), "model", base.models.map((one) => [one, one === "none" ? t("model.none") : one]), given.model || base.default_model);
  const price = h("output", { class: "price muted", "aria-live": "polite" });
  const summary = h("p", { class: "summary muted" });
  const value = (label: HTMLLabelElement) => label.querySelector("select")!.value;
  const asked = (): api.Asked => ({ question: box.value.trim(), method: value(method) === base.default_method ? null : value(method), model: value(model) === base.default_model ? "" : value(model), k: MOST_ROWS, fixes: {} });
  const describe = () => { summary.textContent = base.methods.find((one) => one.name === value(method))?.summary ?? ""; };
  const tell = async () => {
    describe();
    if (value(model) === "none" || !box.value.trim()) { price.textContent = value(model) === "none" ? t("price.free") : ""; return; }
    const waiting = document.createTextNode(t("price.estimating"));
    fill(price, waiting);
    const told = await api.estimate(base.name, asked()).then(({ words }) => t("price.about", { price: words }), (failure: Error) => failure.message);
    if (waiting.parentNode) fill(price, told); // else another model was chosen meanwhile
  };
  const grow = () => { box.style.height = "auto"; box.style.height = `${Math.min(200, box.scrollHeight)}px`; };
  box.addEventListener("input", grow);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); element.requestSubmit(); }
  });
  const element = h("form", { class: "ask", role: "search", onsubmit: (event: Event) => { event.preventDefault(); if (asked().question) submit(asked()); } },
    h("div", { class: "box" }, box, h("button", { type: "submit", class: "primary", disabled: !base.ready }, t("view.ask"))),
    h("div", { class: "row wrap settings" }, base.models.length > 1 && [model, price],
      h("details", { class: "advanced", open: value(method) !== base.default_method }, h("summary", {}, t("advanced")), h("div", { class: "row wrap" }, method, summary))));
  method.addEventListener("change", tell);
  model.addEventListener("change", tell);
  describe();
  setTimeout(() => { grow(); if (!box.value) box.focus({ preventScroll: true }); });
  return { element, asked };
}
