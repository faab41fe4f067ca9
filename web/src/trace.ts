// The trace as a timeline: one bar a step, the steps inside it below it, with tokens and cost where a model was asked.

import type { Run, Span } from "./api";
import { fill, h } from "./dom";
import { t } from "./texts";

export class Timeline {
  private list = h("ol", { class: "timeline", "aria-label": t("trace.label") });
  readonly element = h("div", {}, this.list); // as a tab's panel the list itself would be no list
  private spans = new Map<number, Span>();

  show(span: Span): void { this.spans.set(span.id, span); this.draw(); }
  all(spans: Span[]): void { this.spans = new Map(spans.map((span) => [span.id, span])); this.draw(); }
  end(): void { this.draw(); }

  private draw(): void {
    const spans = [...this.spans.values()];
    if (!spans.length) { fill(this.list, h("li", { class: "muted" }, t("trace.none"))); return; }
    const end = Math.max(...spans.map((span) => span.start + (span.seconds ?? 0)), 1e-6);
    const inside = new Map<number | null, Span[]>();
    for (const span of spans) {
      const parent = span.parent !== null && this.spans.has(span.parent) ? span.parent : null;
      inside.set(parent, [...(inside.get(parent) ?? []), span]);
    }
    const shown = (span: Span): HTMLElement => {
      const below = inside.get(span.id) ?? [];
      return h("li", {}, step(span, end), below.length > 0 && h("ol", {}, below.map(shown)));
    };
    fill(this.list, (inside.get(null) ?? []).map(shown));
  }
}

function step(span: Span, end: number): HTMLElement {
  const bar = h("span", { class: span.error ? "bar failed" : span.seconds === null ? "bar running" : "bar" });
  bar.style.insetInlineStart = `${(100 * span.start) / end}%`;
  bar.style.width = `${Math.max(0.6, (100 * (span.seconds ?? 0)) / end)}%`;
  const details = Object.entries(span.details);
  const tokens = span.calls.reduce((sum, call) => sum + call.prompt_tokens + call.completion_tokens, 0);
  const dollars = span.calls.reduce((sum, call) => sum + call.dollars, 0);
  const row = h("div", { class: "step" },
    h("span", { class: "name" }, span.name.replaceAll("_", " ")),
    h("span", { class: "track", "aria-hidden": "true" }, bar),
    h("span", { class: "time" }, span.seconds === null ? "…" : seconds(span.seconds)));
  if (!details.length && !span.calls.length && !span.error) return row;
  return h("details", {}, h("summary", {}, row),
    h("dl", {},
      details.map(([key, value]) => [h("dt", {}, key), h("dd", {}, typeof value === "string" ? value : JSON.stringify(value))]),
      span.calls.length > 0 && [h("dt", {}, t("model")), h("dd", {}, t("trace.calls", { calls: span.calls.length, tokens, dollars: `$${dollars.toFixed(4)}` }))],
      span.calls.map((call) => [h("dt", {}, t(call.cached ? "trace.known" : "trace.reply")), h("dd", { class: "reply" }, call.error ?? call.reply)]),
      span.error && [h("dt", {}, t("trace.error")), h("dd", { class: "error" }, span.error)]));
}

export function seconds(value: number): string {
  return value < 1 ? `${Math.max(1, Math.round(value * 1000))} ms` : `${value.toFixed(1)} s`;
}

export function cost(run: Run): string {
  const { calls, prompt_tokens, completion_tokens, dollars } = run.spending;
  if (!calls) return t("trace.free", { time: seconds(run.seconds) });
  return t("trace.cost", { time: seconds(run.seconds), calls, tokens: prompt_tokens + completion_tokens, dollars: `$${dollars.toFixed(4)}` });
}
