// A graph one can take hold of, drawn on a canvas.

import type { NodeRef } from "./api";
import { placed, type Box } from "./labels";
import { Layout, type Line, type Point } from "./layout";

const COLORS = 8;
const CROWD = 600; // nodes from which on arrowheads and rims are left to those that matter: nobody could tell them apart
const HUGE = 2500; // nodes from which on there are two pictures a step, which leaves time to draw them
const NAMED = 60; // names that a crowd shows besides those of what is chosen
const BATCH = 100; // lines of a crowd that are one path: a path for each takes twice as long, and so does one for all
const around = ({ x, y }: Point, radius: number): Box => [x - radius, y - radius, x + radius, y + radius];
const shortened = (name: string, most: number) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

export class GraphCanvas {
  readonly layout = new Layout();
  readonly hidden = new Set<string>();
  readonly dismissed = new Set<Point>();
  selected: Point | null = null;
  onSelect: (point: Point | null) => void = () => {};
  onExpand: (point: Point) => void = () => {};
  onDismiss: (point: Point) => void = () => {};
  private scale = 1; private left = 0; private top = 0; private frame = 0; private touched = false; private isOdd = false;
  private hovered: Point | null = null;
  private traced = new Set<string>(); // keys of the lines of a path that is pointed at elsewhere
  private byDegree: Point[] = [];
  private still = matchMedia("(prefers-reduced-motion: reduce)").matches;

  constructor(
    readonly canvas: HTMLCanvasElement,
    private types: string[],
    private label: (relation: string) => string,
  ) {
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("dblclick", (event) => { const hit = this.at(event); if (hit) this.onExpand(hit); });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * 0.0015), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("pointermove", (event) => { if (!event.buttons) this.hover(this.at(event)); });
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    canvas.addEventListener("themechange", () => this.draw());
  }

  color(type: string): string { return this.colorIn(getComputedStyle(document.documentElement), type); }

  private colorIn(style: CSSStyleDeclaration, type: string): string {
    const place = Math.max(0, this.types.indexOf(type)) % COLORS;
    return style.getPropertyValue(`--type-${place}`).trim();
  }

  add(nodes: NodeRef[], edges: { head: string; relation: string; tail: string }[], around?: Point): number {
    const first = !this.layout.points.length;
    const added = this.layout.add(nodes, edges, around);
    this.byDegree = [...this.layout.points].sort((a, b) => b.degree - a.degree);
    for (const { key } of nodes) this.dismissed.delete(this.layout.get(key)!); // what is asked for again is shown again
    if (first) { this.layout.settle(120); this.fit(); }
    if (this.still) { // where motion is unwelcome the layout is computed at once, more briefly for many nodes
      this.layout.settle(Math.max(40, Math.min(300, 12000 / this.layout.points.length)));
      if (this.touched) this.draw(); else this.fit();
    } else this.wake();
    return added;
  }

  wake(): void {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.tick());
  }

  select(point: Point | null): void { this.selected = point; this.onSelect(point); this.draw(); }

  /** Show the lines of a path as one. */
  trace(lines: Iterable<string>): void { this.traced = new Set(lines); this.draw(); }

  dismiss(point: Point): void { this.dismissed.add(point); this.hovered = null; this.select(null); this.onDismiss(point); }

  private hover(point: Point | null): void {
    if (point === this.hovered) return;
    this.hovered = point;
    this.canvas.style.cursor = point ? "pointer" : "";
    this.draw();
  }

  relations(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const line of this.layout.lines) counts.set(line.relation, (counts.get(line.relation) ?? 0) + 1);
    return counts;
  }

  zoom(by: number, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2): void {
    const scale = Math.min(4, Math.max(0.02, this.scale * by));
    this.left = x - ((x - this.left) * scale) / this.scale;
    this.top = y - ((y - this.top) * scale) / this.scale;
    this.scale = scale; this.touched = true;
    this.draw();
  }

  fit(): void {
    const points = this.visible(), width = this.canvas.clientWidth || 600, height = this.canvas.clientHeight || 400;
    if (!points.length) return;
    let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
    for (const { x, y } of points) { x0 = Math.min(x0, x); x1 = Math.max(x1, x); y0 = Math.min(y0, y); y1 = Math.max(y1, y); }
    const across = Math.max(80, width - 2 * Math.min(90, width / 5)), down = Math.max(80, height - 80); // room for the names
    this.scale = Math.min(1.6, across / Math.max(1, x1 - x0), down / Math.max(1, y1 - y0));
    this.left = width / 2 - ((x0 + x1) / 2) * this.scale;
    this.top = height / 2 - ((y0 + y1) / 2) * this.scale;
    this.draw();
  }

  private tick(): void {
    this.frame = 0;
    this.isOdd = !this.isOdd;
    if (this.isOdd || this.layout.points.length < HUGE) this.layout.step();
    if (!this.touched) this.fit(); else this.draw();
    if (this.layout.heat > 0.03) this.wake();
  }

  private at(event: MouseEvent): Point | null {
    const x = (event.offsetX - this.left) / this.scale, y = (event.offsetY - this.top) / this.scale;
    let best: Point | null = null, nearest = 18 / this.scale;
    for (const point of this.visible()) {
      const away = Math.hypot(point.x - x, point.y - y) * (this.isFront(point) ? 0.5 : 1); // what lies on top is taken first
      if (away < nearest) { best = point; nearest = away; }
    }
    return best;
  }

  private isFront(point: Point): boolean { return point === this.selected || point === this.hovered || Boolean(point.role); }

  private press(event: PointerEvent): void {
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    const hit = this.at(event), from = { x: event.clientX, y: event.clientY, left: this.left, top: this.top };
    const start = hit && { x: hit.x, y: hit.y };
    let moved = false;
    const was = hit?.pinned ?? false;
    const move = (next: PointerEvent) => {
      const dx = next.clientX - from.x, dy = next.clientY - from.y;
      if (!moved && Math.hypot(dx, dy) < 4) return;
      moved = true; this.touched = true;
      if (hit && start) {
        hit.pinned = true; hit.x = start.x + dx / this.scale; hit.y = start.y + dy / this.scale;
        this.layout.heat = Math.max(this.layout.heat, 0.3);
        if (this.still) this.draw(); else this.wake();
      } else { this.left = from.left + dx; this.top = from.top + dy; this.draw(); }
    };
    const up = () => {
      this.canvas.removeEventListener("pointermove", move);
      if (hit && moved) { hit.pinned = was; this.layout.heat = 0; } // it stays where it was put until the graph grows
      if (!moved) this.select(hit);
    };
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", up, { once: true });
    this.canvas.addEventListener("pointercancel", up, { once: true });
  }

  private key(event: KeyboardEvent): void {
    const points = this.visible();
    const place = this.selected ? points.indexOf(this.selected) : -1;
    const acts: Record<string, () => void> = {
      ArrowRight: () => this.select(points[(place + 1) % points.length] ?? null),
      ArrowLeft: () => this.select(points[(place - 1 + points.length) % points.length] ?? null),
      Enter: () => this.selected && this.onExpand(this.selected),
      Delete: () => this.selected && this.dismiss(this.selected),
      p: () => { if (this.selected) { this.selected.pinned = !this.selected.pinned; this.select(this.selected); } },
      "+": () => this.zoom(1.25), "-": () => this.zoom(0.8), "0": () => { this.touched = false; this.fit(); },
    };
    const act = acts[event.key];
    if (act) { event.preventDefault(); act(); }
  }

  visible(): Point[] {
    if (!this.hidden.size && !this.dismissed.size) return this.layout.points;
    const kept = new Set<Point>();
    for (const line of this.layout.lines) if (!this.hidden.has(line.relation)) { kept.add(line.head); kept.add(line.tail); }
    return this.layout.points.filter((point) => !this.dismissed.has(point) && (kept.has(point) || point.role || !point.degree || point === this.selected));
  }

  private shownLines(points: Point[]): Line[] {
    if (points === this.layout.points) return this.layout.lines;
    const shown = new Set(points);
    return this.layout.lines.filter((line) => !this.hidden.has(line.relation) && shown.has(line.head) && shown.has(line.tail));
  }

  draw(): void {
    const canvas = this.canvas, ratio = devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d")!;
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim(), faint = style.getPropertyValue("--line-strong").trim();
    const paper = style.getPropertyValue("--paper").trim(), accent = style.getPropertyValue("--accent").trim();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.setTransform(ratio * this.scale, 0, 0, ratio * this.scale, ratio * this.left, ratio * this.top);
    const points = this.visible(), lines = this.shownLines(points), isCrowd = points.length >= CROWD;
    const near = new Set<Point>(), middle = this.hovered ?? this.selected;
    const isMarked = (line: Line) => line.head === middle || line.tail === middle || this.traced.has(line.key);
    const marked = new Set(middle || this.traced.size ? lines.filter(isMarked) : []);
    for (const line of marked) { near.add(line.head); near.add(line.tail); }
    const kinds = isCrowd ? 0 : new Set(lines.map((line) => line.relation)).size; // one alone stands in the list below
    const unit = 1 / this.scale; // labels and dots keep their size on the screen
    pen.font = `${12 * unit}px system-ui, sans-serif`;
    pen.textAlign = "center"; pen.textBaseline = "middle";
    const written: Box[] = []; // names of relations
    const colors = new Map(this.types.map((type) => [type, this.colorIn(style, type)]));
    if (isCrowd) {
      pen.strokeStyle = faint; pen.lineWidth = 0.6 * unit;
      for (let first = 0; first < lines.length; first += BATCH) {
        pen.beginPath();
        for (let place = first; place < Math.min(lines.length, first + BATCH); place++) {
          const { head, tail } = lines[place]!;
          pen.moveTo(head.x, head.y); pen.lineTo(tail.x, tail.y);
        }
        pen.stroke();
      }
    }
    for (const line of isCrowd ? marked : lines) {
      const mine = marked.has(line);
      pen.strokeStyle = mine ? accent : faint; pen.lineWidth = (mine ? 1.8 : 1) * unit;
      pen.beginPath(); pen.moveTo(line.head.x, line.head.y); pen.lineTo(line.tail.x, line.tail.y); pen.stroke();
      const angle = Math.atan2(line.tail.y - line.head.y, line.tail.x - line.head.x);
      const back = 11 * unit, long = 7 * unit;
      const x = line.tail.x - back * Math.cos(angle), y = line.tail.y - back * Math.sin(angle);
      pen.fillStyle = pen.strokeStyle;
      pen.beginPath(); pen.moveTo(x, y);
      pen.lineTo(x - long * Math.cos(angle - 0.45), y - long * Math.sin(angle - 0.45));
      pen.lineTo(x - long * Math.cos(angle + 0.45), y - long * Math.sin(angle + 0.45)); pen.fill();
      if ((lines.length <= 8 && (kinds > 1 || lines.length <= 3)) || (mine && near.size <= 14)) {
        const text = this.label(line.relation), mx = (line.head.x + line.tail.x) / 2, my = (line.head.y + line.tail.y) / 2;
        pen.globalAlpha = 0.85; pen.fillStyle = paper;
        const across = pen.measureText(text).width; written.push([mx - across / 2, my - 8 * unit, mx + across / 2, my + 8 * unit]); pen.fillRect(mx - across / 2 - 3 * unit, my - 8 * unit, across + 6 * unit, 16 * unit);
        pen.globalAlpha = 1; pen.fillStyle = mine ? accent : ink; pen.fillText(text, mx, my);
      }
    }
    const longest = width > 500 ? 28 : 18;
    const size = points.length > 150 ? 4.5 : 6.5, front = points.filter((point) => this.isFront(point));
    const radiusOf = (point: Point) => (point.role ? 9 : point === this.selected || point === this.hovered ? 7 : size) * unit;
    if (isCrowd) for (const [type, color] of colors) {
      pen.fillStyle = color;
      for (const point of points) if (point.type === type) pen.fillRect(point.x - 2 * unit, point.y - 2 * unit, 4 * unit, 4 * unit); // so small, a square is a dot
    }
    for (const point of isCrowd ? front : [...points.filter((one) => !this.isFront(one)), ...front]) {
      const radius = radiusOf(point);
      pen.beginPath(); pen.arc(point.x, point.y, radius, 0, 7);
      pen.fillStyle = colors.get(point.type) ?? this.colorIn(style, point.type); pen.fill();
      pen.lineWidth = (point === this.selected ? 3 : point.role ? 2 : 1) * unit;
      pen.strokeStyle = point === this.selected || point.role ? accent : paper; pen.stroke();
      if (point.pinned) { pen.beginPath(); pen.arc(point.x, point.y, 2.4 * unit, 0, 7); pen.fillStyle = paper; pen.fill(); }
    }
    const rank = (point: Point) => (point === middle ? 1e6 : point.role ? 1e5 : near.has(point) ? 1e4 : 0) + point.degree;
    const isSeen = ({ x, y }: Point) => x * this.scale + this.left > 0 && x * this.scale + this.left < width && y * this.scale + this.top > 0 && y * this.scale + this.top < height;
    const named = [...new Set([...front, ...(near.size <= 40 ? near : []), ...this.mostConnected(isSeen)])].filter(isSeen).sort((a, b) => rank(b) - rank(a));
    const texts = named.map((point) => `${shortened(point.name, longest)}${point.more ? ` +${point.more}` : ""}`);
    const places = placed(named.map((point, place) => ({ x: point.x, y: point.y, radius: radiusOf(point), must: this.isFront(point), width: pen.measureText(texts[place]!).width, height: 15 * unit })),
      [...written, ...(isCrowd ? named : points).map((point): Box => around(point, 0.8 * radiusOf(point)))],
      [-this.left * unit, -this.top * unit, (width - this.left) * unit, (height - this.top) * unit]);
    named.forEach((_, place) => { // names after all dots, which would cover them
      const at = places[place];
      if (!at) return;
      pen.lineWidth = 3.5 * unit; pen.strokeStyle = paper; pen.lineJoin = "round";
      pen.strokeText(texts[place]!, at.x, at.y);
      pen.fillStyle = ink; pen.fillText(texts[place]!, at.x, at.y);
    });
  }

  /** Those in view with the most edges. */
  private mostConnected(isSeen: (point: Point) => boolean): Point[] {
    const found: Point[] = [], shown = this.dismissed.size || this.hidden.size ? new Set(this.visible()) : null;
    for (const point of this.byDegree) {
      if (found.length >= NAMED && this.byDegree.length >= CROWD) break;
      if (isSeen(point) && (!shown || shown.has(point))) found.push(point);
    }
    return found;
  }

  png(): Promise<Blob> {
    return new Promise((done) => {
      const copy = document.createElement("canvas");
      copy.width = this.canvas.width; copy.height = this.canvas.height;
      const pen = copy.getContext("2d")!;
      pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--paper").trim();
      pen.fillRect(0, 0, copy.width, copy.height);
      pen.drawImage(this.canvas, 0, 0);
      copy.toBlob((blob) => done(blob!), "image/png");
    });
  }

  svg(): string {
    const escaped = (text: string) => text.replace(/[&<>"]/g, (mark) => `&#${mark.charCodeAt(0)};`);
    const points = this.visible();
    const xs = points.map((p) => p.x), ys = points.map((p) => p.y);
    const [x, y] = [Math.min(...xs) - 90, Math.min(...ys) - 40];
    const [width, height] = [Math.max(...xs) - x + 90, Math.max(...ys) - y + 40];
    const round = (value: number) => Math.round(value * 10) / 10;
    const ends = (head: Point, tail: Point) => { // up to the rim of the dot, where the arrow's tip is seen
      const length = Math.hypot(tail.x - head.x, tail.y - head.y) || 1, back = 8 / length;
      return `x1="${round(head.x)}" y1="${round(head.y)}" x2="${round(tail.x - (tail.x - head.x) * back)}" y2="${round(tail.y - (tail.y - head.y) * back)}"`;
    };
    const arrow = `<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0.6 8 4 0 7.4z" fill="#999"/></marker></defs>`;
    const drawn = this.shownLines(points).map(({ head, tail, relation }) =>
        `<line ${ends(head, tail)} stroke="#999" marker-end="url(#arrow)"/>` +
        `<text x="${round((head.x + tail.x) / 2)}" y="${round((head.y + tail.y) / 2)}" fill="#666" font-size="10">${escaped(this.label(relation))}</text>`);
    const dots = points.map((p) =>
      `<circle cx="${round(p.x)}" cy="${round(p.y)}" r="7" fill="${this.color(p.type)}"/>` +
      `<text x="${round(p.x)}" y="${round(p.y + 19)}" font-size="11">${escaped(p.name)}</text>`);
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${round(x)} ${round(y)} ${round(width)} ${round(height)}" ` +
      `font-family="system-ui, sans-serif" text-anchor="middle">${arrow}${drawn.join("")}${dots.join("")}</svg>`;
  }
}
