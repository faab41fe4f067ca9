// A name with suggestions as one types (the combobox pattern of WAI-ARIA).

import * as api from "./api";
import { fill, h } from "./dom";

export function entityInput(base: api.BaseDetails, label: string, take: (node: api.Found) => void): HTMLElement {
  let found: api.Found[] = [], active = -1, timer = 0, asked = 0;
  const list = h("ul", { role: "listbox", id: "suggestions", class: "suggestions", hidden: true });
  const input = h("input", {
    type: "text", role: "combobox", "aria-label": label, placeholder: `${label} …`, autocomplete: "off",
    "aria-expanded": "false", "aria-controls": "suggestions", "aria-autocomplete": "list", maxlength: 300,
  });
  const draw = () => {
    list.hidden = !found.length;
    input.setAttribute("aria-expanded", String(found.length > 0));
    if (active >= 0) input.setAttribute("aria-activedescendant", `suggestion-${active}`);
    else input.removeAttribute("aria-activedescendant");
    fill(list, found.map((node, place) => h("li", {
      role: "option", id: `suggestion-${place}`, "aria-selected": String(place === active),
      onmousedown: (event: Event) => { event.preventDefault(); take(node); },
    }, node.name, h("small", { class: "muted" }, `${node.type.replaceAll("_", " ")} · ${node.key}`))));
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(async () => {
      const number = ++asked;
      const next = input.value.trim() ? await api.find(base.name, input.value.trim()) : [];
      if (number === asked) { found = next; active = found.length ? 0 : -1; draw(); }
    }, 150);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && found.length) { active = (active + 1) % found.length; event.preventDefault(); draw(); }
    else if (event.key === "ArrowUp" && found.length) { active = (active - 1 + found.length) % found.length; event.preventDefault(); draw(); }
    else if (event.key === "Enter" && found[active]) { event.preventDefault(); take(found[active]!); }
    else if (event.key === "Escape") { found = []; draw(); }
  });
  input.addEventListener("blur", () => setTimeout(() => { list.hidden = true; }, 150));
  setTimeout(() => input.focus({ preventScroll: true }));
  return h("div", { class: "combobox" }, input, list);
}
