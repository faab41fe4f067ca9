// Signing in, and choosing a password.

import * as api from "./api";
import { fill, h, notice } from "./dom";
import { t } from "./texts";

export type Entry = [name: string, label: string, attributes?: Record<string, string | boolean>];

/** A form that says what went wrong beside its fields, and what went well. */
export function form(title: HTMLElement, entries: Entry[], action: string, work: (values: Record<string, string>) => Promise<string | void>): HTMLFormElement {
  const problem = h("p", { class: "error", role: "alert" }), well = h("p", { class: "muted", role: "status" });
  const inputs = entries.map(([name, , attributes]) => h("input", { name, type: "text", required: true, autocomplete: "off", ...attributes }));
  const send = h("button", { type: "submit", class: "primary" }, action);
  const made = h("form", { class: "account-form", onsubmit: async (event: Event) => {
    event.preventDefault();
    fill(problem); fill(well);
    send.disabled = true;
    try {
      const told = await work(Object.fromEntries(inputs.map((input) => [input.name, input.value])));
      for (const input of inputs) input.value = "";
      if (told) fill(well, told);
    } catch (failure) { fill(problem, (failure as Error).message); inputs[0]?.focus(); }
    send.disabled = false;
  } }, title, entries.map(([, label], place) => h("label", {}, h("span", {}, label), inputs[place]!)), problem, well, h("div", {}, send));
  return made;
}

export function signInView(host: HTMLElement, provider: string | null, isRefused: boolean, done: () => void): void {
  const made = form(h("h1", {}, t("signIn.title")), [
    ["name", t("signIn.name"), { autocomplete: "username", autocapitalize: "none", spellcheck: "false", maxlength: "100" }],
    ["password", t("signIn.password"), { type: "password", autocomplete: "current-password", maxlength: "1000" }],
  ], t("signIn.enter"), async ({ name, password }) => { await api.signIn(name!.trim(), password!); done(); });
  fill(host, h("div", { class: "question" }, isRefused && notice(t("signIn.refused")), made,
    provider && h("p", { class: "elsewhere" }, h("a", { class: "button", href: "/v1/oidc/start" }, t("signIn.at", { provider })))));
  made.querySelector("input")!.focus();
}

export function passwordForm(title: HTMLElement, done: () => void): HTMLFormElement {
  const hidden = { type: "password", maxlength: "1000" };
  return form(title, [
    ["old", t("password.old"), { ...hidden, autocomplete: "current-password" }],
    ["new", t("password.new"), { ...hidden, autocomplete: "new-password", minlength: "12" }],
    ["again", t("password.again"), { ...hidden, autocomplete: "new-password" }],
  ], t("password.change"), async (values) => {
    if (values.new !== values.again) throw new Error(t("password.differ"));
    await api.changePassword(values.old!, values.new!);
    done();
    return t("password.changed");
  });
}
