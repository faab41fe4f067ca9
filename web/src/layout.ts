// A small force layout: edges pull, nodes push each other apart, and what was asked stands to the left of what answers it.

import type { Count, NodeRef } from "./api";
import { repel } from "./repulsion";

export interface Point extends NodeRef {
  x: number; y: number; vx: number; vy: number; pinned: boolean; degree: number;
  more?: number; // neighbours that the base knows and the graph does not show
  asked?: number; // how many were asked for last
  counts?: Count[]; // edges that the base knows
}
export interface Line { head: Point; tail: Point; relation: string; key: string }
export const lineKey = ({ head, relation, tail }: { head: string; relation: string; tail: string }): string => `${head}\n${relation}\n${tail}`;
export const MOST = 5000;
const SIDE = 200;
const FARTHEST = 40; // that a node moves in a step: forces that add up never fling it away
const HUB = 8; // from this degree on each edge pulls less, so that all of them together stay bounded

export class Layout {
  points: Point[] = [];
  lines: Line[] = [];
  heat = 0;
  private byKey = new Map<string, Point>();
  private seen = new Set<string>();

  get(key: string): Point | undefined { return this.byKey.get(key); }

  add(nodes: NodeRef[], edges: { head: string; relation: string; tail: string }[], around?: Point): number {
    let added = 0;
    for (const node of nodes) {
      const known = this.byKey.get(node.key);
      if (known) { if (node.role && !known.role) known.role = node.role; continue; }
      if (this.points.length >= MOST) continue;
      const angle = this.points.length * 2.399963; // the golden angle spreads newcomers evenly
      const radius = around ? 40 + 20 * Math.sqrt(added) : 18 * Math.sqrt(this.points.length + 0.5);
      const point = {
        ...node, x: (around?.x ?? 0) + radius * Math.cos(angle), y: (around?.y ?? 0) + radius * Math.sin(angle),
        vx: 0, vy: 0, pinned: false, degree: 0,
      };
      this.points.push(point);
      this.byKey.set(node.key, point);
      added++;
    }
    for (const edge of edges) {
      const head = this.byKey.get(edge.head), tail = this.byKey.get(edge.tail);
      const name = lineKey(edge);
      if (!head || !tail || head === tail || this.seen.has(name)) continue;
      this.seen.add(name);
      this.lines.push({ head, tail, relation: edge.relation, key: name });
      head.degree++; tail.degree++;
    }
    this.heat = 1;
    return added;
  }

  step(): void {
    const points = this.points, heat = this.heat, count = points.length;
    const x = new Float64Array(count), y = new Float64Array(count), fx = new Float64Array(count), fy = new Float64Array(count);
    for (let i = 0; i < count; i++) { x[i] = points[i]!.x; y[i] = points[i]!.y; }
    const strength = 9000 * heat, weight = Float64Array.from(points, (point) => Math.sqrt(1 + Math.min(point.degree, 60) / 6)); // hubs need room
    repel(x, y, weight, strength, fx, fy);
    for (let i = 0; i < count; i++) { points[i]!.vx += fx[i]!; points[i]!.vy += fy[i]!; }
    for (const { head, tail } of this.lines) {
      const dx = tail.x - head.x, dy = tail.y - head.y;
      const length = Math.sqrt(dx * dx + dy * dy) || 1;
      const rest = 110 + 4 * Math.min(20, Math.min(head.degree, tail.degree));
      const least = Math.min(head.degree, tail.degree), share = head.degree / (head.degree + tail.degree); // the hub moves least
      const pull = ((length - rest) / length) * 0.16 * Math.min(1, HUB / least) * heat;
      head.vx += dx * pull * (1 - share); head.vy += dy * pull * (1 - share); tail.vx -= dx * pull * share; tail.vy -= dy * pull * share;
    }
    const asked = points.some((point) => point.role === "question entity");
    const split = asked && points.some((point) => point.role && point.role !== "question entity");
    for (const point of points) { // what was asked goes to the left and what answers it to the right, all else between
      if (split && point.role) point.vx += ((point.role === "question entity" ? -SIDE : SIDE) - point.x) * 0.12 * heat;
      point.vx = (point.vx - point.x * 0.004 * heat) * 0.6;
      point.vy = (point.vy - point.y * 0.006 * heat) * 0.6;
      const speed = Math.sqrt(point.vx * point.vx + point.vy * point.vy);
      if (speed > FARTHEST) { point.vx *= FARTHEST / speed; point.vy *= FARTHEST / speed; }
      if (point.pinned) point.vx = point.vy = 0; // else it would leap when it is let go
      else { point.x += point.vx; point.y += point.vy; }
    }
    this.heat *= 0.985;
  }

  settle(steps: number): void { for (let i = 0; i < steps && this.heat > 0.02; i++) this.step(); }
}
