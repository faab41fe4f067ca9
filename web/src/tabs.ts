// Tabs with the keys and roles that screen readers expect.

import { h } from "./dom";

export interface Tabs { element: HTMLElement; choose(name: string): void }
let numbers = 0;

export function tabs(panels: [string, HTMLElement][]): Tabs {
  const group = ++numbers;
  const heads = panels.map(([name], place) => h("button", {
    type: "button", role: "tab", id: `tab-${group}-${place}`, "aria-controls": `panel-${group}-${place}`,
    onclick: () => choose(name),
    onkeydown: (event: KeyboardEvent) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!step) return;
      const next = (place + step + panels.length) % panels.length;
      choose(panels[next]![0]);
      heads[next]!.focus();
    },
  }, name));
  panels.forEach(([, panel], place) => {
    panel.setAttribute("role", "tabpanel");
    panel.id = `panel-${group}-${place}`;
    panel.setAttribute("aria-labelledby", `tab-${group}-${place}`);
  });
  function choose(name: string): void {
    panels.forEach(([own, panel], place) => {
      panel.hidden = own !== name;
      heads[place]!.setAttribute("aria-selected", String(own === name));
      heads[place]!.tabIndex = own === name ? 0 : -1;
    });
  }
  choose(panels[0]![0]);
  return { element: h("div", { class: "tabs" }, h("div", { role: "tablist" }, heads), panels.map(([, panel]) => panel)), choose };
}
