// The graph with everything around it: a list for those who do not point, relations to hide, a legend, downloads.

import * as api from "./api";
import { announce, button, fill, h, save, words } from "./dom";
import { onPath } from "./evidence";
import { GraphCanvas } from "./graph";
import { lineKey, MOST, type Point } from "./layout";
import { showNode } from "./node_dialog";
import { counted, t } from "./texts";

const FEW = 16, LARGEST = 200; // neighbours asked for at first, and at most
const KINDS = 8; // relations that can be expanded alone

export class GraphPanel {
  readonly element: HTMLElement;
  readonly graph: GraphCanvas;
  private about = h("div", { class: "about", "aria-live": "polite" });
  private relations = h("fieldset", { class: "relations" });
  private legend = h("ul", { class: "legend", "aria-label": t("graph.colours") });
  private list = h("select", { "aria-label": t("graph.choose") });
  private kinds = h("div", { class: "row wrap kinds" });
  private labels: Map<string, string>;

  constructor(private base: api.BaseDetails, caption: string) {
    const canvas = h("canvas", {
      tabindex: 0, role: "img",
      "aria-label": t("graph.keys", { caption }),
    });
    this.labels = new Map(base.relations.map((row) => [row.name, row.label]));
    this.graph = new GraphCanvas(canvas, base.node_types.map((row) => row.name), (name) => this.labels.get(name) ?? name);
    onPath(canvas, (facts) => this.graph.trace(facts.map(({ head, relation, tail }) => lineKey({ head: head.key, relation, tail: tail.key }))));
    this.graph.onSelect = (point) => this.tell(point);
    this.graph.onExpand = (point) => void this.expand(point);
    this.graph.onDismiss = (point) => { this.refresh(); announce(t("graph.dismissed", { name: point.name })); };
    this.list.addEventListener("change", () => this.graph.select(this.graph.layout.get(this.list.value) ?? null));
    this.element = h("section", { class: "graph", "aria-label": caption },
      h("div", { class: "stage" }, canvas,
        h("div", { class: "zoom", role: "group", "aria-label": t("zoom") },
          button("+", () => this.graph.zoom(1.25), { "aria-label": t("zoom.in") }),
          button("−", () => this.graph.zoom(0.8), { "aria-label": t("zoom.out") }),
          button("⤢", () => this.graph.fit(), { "aria-label": t("zoom.fit") }))),
      h("div", { class: "row wrap" }, this.legend),
      h("div", { class: "row wrap" }, this.list, this.about), this.kinds,
      this.relations,
      h("div", { class: "row wrap downloads" },
        button("SVG", () => save("clew-graph.svg", new Blob([this.graph.svg()], { type: "image/svg+xml" })), { class: "quiet", "aria-label": t("download.graph", { format: "SVG" }) }),
        button("PNG", async () => save("clew-graph.png", await this.graph.png()), { class: "quiet", "aria-label": t("download.graph", { format: "PNG" }) }),
        button("JSON", () => save("clew-graph.json", new Blob([JSON.stringify(this.json(), null, 1)], { type: "application/json" })), { class: "quiet", "aria-label": t("download.graph", { format: "JSON" }) })));
  }

  add(nodes: api.NodeRef[], edges: { head: string; relation: string; tail: string }[], around?: Point): number {
    const added = this.graph.add(nodes, edges, around);
    this.refresh();
    return added;
  }

  /** More neighbours, some of each relation or all of one. */
  async expand(point: Point, kind?: api.Count): Promise<void> {
    if (!kind) point.asked = point.asked ? Math.min(LARGEST, 3 * point.asked) : FEW;
    const found = await api.neighbors(this.base.name, point.key, kind ? Math.min(LARGEST, kind.count) : point.asked!, kind);
    if (!kind) point.counts = found.counts;
    const added = this.add(found.nodes, found.edges, point);
    point.more = this.left(point).reduce((sum, one) => sum + one.count, 0);
    const full = this.graph.layout.points.length >= MOST ? t("graph.full", { most: MOST }) : "";
    announce(`${counted("graph.added", added, { name: point.name })}${point.more ? t("graph.left", { count: point.more }) : ""}${full}`);
    if (this.graph.selected === point || !this.graph.selected) this.graph.select(point);
  }

  /** How many edges of each relation are not shown around a node. */
  private left(point: Point): api.Count[] {
    const shown = new Map<string, number>();
    for (const { head, tail, relation } of this.graph.layout.lines) {
      const name = head === point ? `out ${relation}` : tail === point ? `in ${relation}` : "";
      shown.set(name, (shown.get(name) ?? 0) + 1);
    }
    return (point.counts ?? []).map((one) => ({ ...one, count: one.count - (shown.get(`${one.direction} ${one.relation}`) ?? 0) })).filter((one) => one.count > 0);
  }

  private json() {
    const { points, lines } = this.graph.layout;
    return {
      nodes: points.map(({ key, name, type, x, y }) => ({ key, name, type, x: Math.round(x), y: Math.round(y) })),
      edges: lines.map((line) => ({ head: line.head.key, relation: line.relation, tail: line.tail.key })),
    };
  }

  private refresh(): void {
    const points = this.graph.layout.points.filter((point) => !this.graph.dismissed.has(point));
    this.element.dataset.nodes = String(points.length);
    const types = [...new Set(points.map((point) => point.type))];
    fill(this.legend, types.map((type) => {
      const dot = h("span", { class: "dot" });
      dot.style.background = this.graph.color(type);
      return h("li", {}, dot, words(type));
    }));
    const chosen = this.list.value;
    fill(this.list, h("option", { value: "" }, points.length === 1 ? counted("nodes", 1) : t("graph.pick", { nodes: counted("nodes", points.length) })),
      points.map((point) => h("option", { value: point.key }, `${point.name} (${words(point.type)})`)));
    this.list.value = points.some((point) => point.key === chosen) ? chosen : "";
    fill(this.relations, h("legend", {}, t("relations")), [...this.graph.relations()].map(([name, count]) => {
      const box = h("input", { type: "checkbox", checked: !this.graph.hidden.has(name) });
      box.addEventListener("change", () => {
        if (box.checked) this.graph.hidden.delete(name); else this.graph.hidden.add(name);
        this.graph.draw();
      });
      return h("label", {}, box, ` ${this.labels.get(name) ?? words(name)} `, h("small", {}, count));
    }));
  }

  private tell(point: Point | null): void {
    this.list.value = point?.key ?? "";
    const gone = this.graph.dismissed, back = gone.size > 0 && button(t("graph.back", { count: gone.size }), () => { gone.clear(); this.graph.select(point); this.refresh(); }, { class: "quiet" });
    if (!point) { fill(this.about, back); fill(this.kinds); return; }
    const left = this.left(point).sort((a, b) => b.count - a.count);
    fill(this.kinds, left.length > 1 && left.slice(0, KINDS).map((one) => {
      const label = `${this.labels.get(one.relation) ?? words(one.relation)}${one.direction === "in" ? " ←" : ""}`;
      return button(`${label} +${one.count}`, () => void this.expand(point, { ...one, count: point.counts!.find((all) => all.relation === one.relation && all.direction === one.direction)!.count }), { class: "quiet", "aria-label": t("expand.kind", { count: one.count, relation: label, name: point.name }) });
    }));
    const held = [...this.about.children].indexOf(document.activeElement as Element); // the button pressed last keeps the focus
    fill(this.about,
      button(point.more ? t("expand.more", { count: point.more }) : t("expand"), () => void this.expand(point), { class: "quiet", "aria-label": point.more ? t("expand.around", { count: point.more, name: point.name }) : t("expand.named", { name: point.name }), disabled: point.more === 0 }),
      button(point.pinned ? t("unpin") : t("pin"), () => { point.pinned = !point.pinned; this.graph.select(point); }, { class: "quiet", "aria-pressed": String(point.pinned) }),
      button(t("read"), () => void showNode(this.base, point.key), { class: "quiet", "aria-label": t("read.node", { name: point.name }) }),
      button(t("dismiss"), () => { this.graph.dismiss(point); this.graph.canvas.focus({ preventScroll: true }); }, { class: "quiet", "aria-label": t("dismiss.named", { name: point.name }) }), back);
    if (held >= 0) (this.about.children[held] as HTMLElement | undefined)?.focus();
  }
}
