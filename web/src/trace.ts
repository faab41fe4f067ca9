// The trace as a timeline: one bar a step, with tokens and cost where a model was asked.

import type { Run, Span } from "./api";
import { fill, h } from "./dom";

export class Timeline {
  readonly element = h("ol", { class: "timeline", "aria-label": "Steps of the answer" });
  private spans = new Map<number, Span>();

  show(span: Span): void { this.spans.set(span.id, span); this.draw(); }
  all(spans: Span[]): void { this.spans = new Map(spans.map((span) => [span.id, span])); this.draw(); }

  end(): void { this.draw(); }

  private draw(): void {
    const spans = [...this.spans.values()];
    if (!spans.length) { fill(this.element, h("li", { class: "muted" }, "No steps were recorded.")); return; }
    const end = Math.max(...spans.map((span) => span.start + (span.seconds ?? 0)), 1e-6);
    fill(this.element, spans.map((span) => {
      const bar = h("span", { class: span.error ? "bar failed" : span.seconds === null ? "bar running" : "bar" });
      bar.style.left = `${(100 * span.start) / end}%`;
      bar.style.width = `${Math.max(0.6, (100 * (span.seconds ?? 0)) / end)}%`;
      const details = Object.entries(span.details);
      const tokens = span.calls.reduce((sum, call) => sum + call.prompt_tokens + call.completion_tokens, 0);
      const dollars = span.calls.reduce((sum, call) => sum + call.dollars, 0);
      const row = h("div", { class: "step" },
        name(span, this.depth(span)),
        h("span", { class: "track", "aria-hidden": "true" }, bar),
        h("span", { class: "time" }, span.seconds === null ? "…" : seconds(span.seconds)));
      if (!details.length && !span.calls.length && !span.error) return h("li", {}, row);
      return h("li", {}, h("details", {},
        h("summary", {}, row),
        h("dl", {},
          details.map(([key, value]) => [h("dt", {}, key), h("dd", {}, typeof value === "string" ? value : JSON.stringify(value))]),
          span.calls.length > 0 && [h("dt", {}, "model"), h("dd", {}, `${span.calls.length} calls, ${tokens} tokens, $${dollars.toFixed(4)}`)],
          span.calls.map((call) => [h("dt", {}, call.cached ? "reply (known)" : "reply"), h("dd", { class: "reply" }, call.error ?? call.reply)]),
          span.error && [h("dt", {}, "error"), h("dd", { class: "error" }, span.error)])));
    }));
  }

  private depth(span: Span): number {
    let depth = 0;
    for (let up = span.parent; up !== null && depth < 8; up = this.spans.get(up)?.parent ?? null) depth++;
    return depth;
  }
}

function name(span: Span, depth: number): HTMLElement {
  const element = h("span", { class: "name" }, span.name.replaceAll("_", " "));
  element.style.paddingInlineStart = `${depth * 0.9}em`;
  return element;
}

export function seconds(value: number): string {
  return value < 1 ? `${Math.max(1, Math.round(value * 1000))} ms` : `${value.toFixed(1)} s`;
}

export function cost(run: Run): string {
  const { calls, prompt_tokens, completion_tokens, dollars } = run.spending;
  if (!calls) return `${seconds(run.seconds)}, no model was asked`;
  return `${seconds(run.seconds)}, ${calls} model calls, ${prompt_tokens + completion_tokens} tokens, $${dollars.toFixed(4)}`;
}
