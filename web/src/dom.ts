// Elements from plain values. Text always becomes a text node: nothing a base says is ever read as markup.

import { language, t } from "./texts";

export type Child = Node | string | number | null | undefined | false | Child[];
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: any) => void)>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else if (name === "value" && "value" in element) (element as any).value = String(value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(parent: Node, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

export function button(label: string, action: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return h("button", { type: "button", onclick: action, ...attributes }, label);
}

export function announce(text: string): void {
  const region = document.getElementById("announcer");
  if (region) region.textContent = text;
}

export function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** Copies; where the browser does not let it (plain HTTP on a network), the text is shown, chosen, to copy by hand. */
export function copyButton(text: string | (() => string), label = t("copy")): HTMLElement {
  const made = button(label, async () => {
    const copied = typeof text === "string" ? text : text();
    try {
      await navigator.clipboard.writeText(copied);
      made.textContent = t("copied");
      announce(t("copied"));
      setTimeout(() => (made.textContent = label), 1500);
    } catch {
      const field = h("textarea", { class: "by-hand", rows: 2, readonly: true, "aria-label": t("copy.byHand") });
      field.value = copied;
      host.querySelector(".uncopied")?.remove();
      host.append(h("span", { class: "uncopied", role: "alert" }, t("copy.refused"), field));
      field.focus();
      field.select();
    }
  }, { class: "quiet" });
  const host = h("span", { class: "copy" }, made);
  return host;
}

export function notice(text: string, ...actions: Child[]): HTMLElement {
  return h("div", { class: "notice", role: "alert" }, h("p", {}, text), actions.length > 0 && h("div", { class: "row wrap" }, actions));
}

const digits = new Intl.NumberFormat(language, { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
export const number = (value: number): string => digits.format(value);
export const percent = (value: number): string => `${Math.round(100 * value)} %`;
/** A name, kept apart from the writing direction of what stands around it. */
export const nameOf = (text: string): HTMLElement => h("bdi", {}, text);
export const words = (name: string): string => name.replaceAll("_", " ");

export function marked(text: string, quote: string | null): Child[] {
  const place = quote ? text.indexOf(quote) : -1;
  if (!quote || place < 0) return [text];
  return [text.slice(0, place), h("mark", { id: "quote" }, quote), text.slice(place + quote.length)];
}
