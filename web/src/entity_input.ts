// A name with suggestions as one types (the combobox pattern of WAI-ARIA).

import * as api from "./api";
import { fill, h, nameOf, words } from "./dom";
import { t } from "./texts";

let numbers = 0;

export function entityInput(base: api.BaseDetails, label: string, take: (node: api.Found) => void): HTMLElement {
  let found: api.Found[] = [], active = -1, timer = 0, asked = 0, known = "", isWanted = false;
  const id = `suggestions-${++numbers}`;
  const list = h("ul", { role: "listbox", id, class: "suggestions", hidden: true, "aria-label": label });
  const said = h("p", { class: "muted", role: "status" });
  const input = h("input", {
    type: "text", role: "combobox", "aria-label": label, placeholder: `${label} …`, autocomplete: "off",
    "aria-expanded": "false", "aria-controls": id, "aria-autocomplete": "list", maxlength: 300,
  });
  const draw = () => {
    list.hidden = !found.length;
    input.setAttribute("aria-expanded", String(found.length > 0));
    if (active >= 0) input.setAttribute("aria-activedescendant", `${id}-${active}`);
    else input.removeAttribute("aria-activedescendant");
    fill(list, found.map((node, place) => h("li", {
      role: "option", id: `${id}-${place}`, "aria-selected": String(place === active),
      onmousedown: (event: Event) => { event.preventDefault(); take(node); },
    }, nameOf(node.name), h("small", { class: "muted" }, `${words(node.type)} · ${node.key}`))));
  };
  const search = async () => {
    clearTimeout(timer);
    const number = ++asked, text = input.value.trim();
    let next: api.Found[] = [];
    try { if (text) next = await api.find(base.name, text); }
    catch (failure) { said.textContent = (failure as Error).message; }
    if (number !== asked) return;
    found = next; known = text; active = found.length ? 0 : -1;
    said.textContent = text && !found.length ? t("nothing.called", { name: text }) : "";
    if (isWanted && found[0]) { isWanted = false; take(found[0]); } else draw();
    isWanted = false;
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    isWanted = false;
    timer = window.setTimeout(() => void search(), 150);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && found.length) { active = (active + 1) % found.length; event.preventDefault(); draw(); }
    else if (event.key === "ArrowUp" && found.length) { active = (active - 1 + found.length) % found.length; event.preventDefault(); draw(); }
    else if (event.key === "Escape") { found = []; active = -1; draw(); }
    else if (event.key === "Enter" && input.value.trim()) {
      event.preventDefault();
      if (known === input.value.trim() && found[active]) take(found[active]!);
      else { isWanted = true; void search(); } // what has not been suggested yet is taken as soon as it is
    }
  });
  input.addEventListener("blur", () => setTimeout(() => { list.hidden = true; }, 150));
  setTimeout(() => input.focus({ preventScroll: true }));
  return h("div", { class: "combobox" }, input, list, said);
}
