// The server's REST interface.

export interface NodeRef { key: string; name: string; type: string; role?: string }
export interface Fact { head: NodeRef; relation: string; tail: NodeRef; attributes?: Record<string, unknown> }
export interface Evidence {
  kind: "fact" | "path" | "passage" | "judgement";
  text: string; facts?: Fact[]; head?: NodeRef; relation?: string; tail?: NodeRef;
  node?: NodeRef; file?: string; page?: number; score?: number | null; by?: string;
}
export interface Answer extends NodeRef { rank: number; score: number; evidence: Evidence[] }
export interface Call {
  prompt_tokens: number; completion_tokens: number; dollars: number; seconds: number;
  cached: boolean; error: string | null; reply: string;
}
export interface Span {
  id: number; parent: number | null; name: string; start: number; seconds: number | null;
  details: Record<string, unknown>; error: string | null; calls: Call[];
}
export interface Found extends NodeRef { how: string; score: number; alias: string }
export interface Term { variable?: string; constant?: string; type: string | null }
export interface Query {
  text?: string;
  triplets?: { head: Term; relation: string | null; tail: Term; negated: boolean }[];
  constants?: { text: string; type: string | null; nodes: Found[]; alternatives: Found[] }[];
  relaxed?: string[]; unexplained?: string[]; matches?: number | null;
  sparql?: string; cypher?: string; [more: string]: unknown;
}
export interface Asked {
  question: string; method: string | null; model: string; k?: number; fixes: Record<string, string[]>;
}
export interface Run {
  run: string; base: string; question: string; method: string; model: string; answers: Answer[];
  text?: string; evidence?: Evidence[]; query?: Query; notes?: string[];
  fallbacks: { step: string; reason: string; instead: string }[];
  seconds: number; trace: Span[]; request: Asked;
  spending: { calls: number; prompt_tokens: number; completion_tokens: number; dollars: number };
}
export interface BaseSummary { name: string; nodes: number; edges: number; documents: boolean; ready: boolean }
export interface BaseDetails extends BaseSummary {
  node_types: { name: string; label: string; count: number; answer: boolean }[];
  relations: { name: string; label: string; head: string; tail: string; count: number }[];
  methods: { name: string; summary: string; options: Record<string, string> }[];
  default_method: string; models: string[]; examples: string[];
}
export interface Graph { nodes: NodeRef[]; edges: { head: string; relation: string; tail: string }[]; text: string }
export interface NodePage extends NodeRef {
  aliases: string[]; document: string; attributes: Record<string, unknown>;
  neighbors: { relation: string; direction: string; count: number; nodes: NodeRef[] }[];
}
export interface Mention { start: number; end: number; text: string; nodes: Found[] }
export interface Build { state: string; stage: string; done: number; total: number; error: string | null; skipped: { file: string; reason: string }[] }
export interface Documents { documents: { name: string; bytes: number; indexed: boolean }[]; build: Build; accepts: string[]; most_bytes: number }
export interface Reading { name: string; title: string; pieces: { key: string; type: string; name: string; text: string; page: number | null }[] }

export class Refused extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

// The token lives as long as the tab, and only in it.
let token = sessionStorage.getItem("clew-token") ?? "";
export function setToken(text: string): void { token = text; sessionStorage.setItem("clew-token", text); }

export async function send(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  if (token) headers.set("authorization", `Bearer ${token}`);
  let reply: Response;
  try {
    reply = await fetch(path, { ...options, headers });
  } catch (failure) {
    if (failure instanceof DOMException) throw failure;
    throw new Refused(0, "the server does not answer");
  }
  if (!reply.ok) {
    const body = await reply.json().catch(() => ({}));
    throw new Refused(reply.status, body.error ?? `the server says ${reply.status}`);
  }
  return reply;
}

const get = async (path: string) => (await send(path)).json();
const at = (base: string, rest = "") => `/v1/bases/${encodeURIComponent(base)}${rest}`;
const json = (body: unknown): RequestInit => ({
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
});

export const bases = (): Promise<BaseSummary[]> => get("/v1/bases");
export const details = (base: string): Promise<BaseDetails> => get(at(base));
export const run = (base: string, id: string): Promise<Run> => get(at(base, `/runs/${encodeURIComponent(id)}`));
export const ask = async (base: string, asked: Asked): Promise<Run> => (await send(at(base, "/ask"), json(asked))).json();
export const estimate = async (base: string, asked: Asked): Promise<{ words: string }> =>
  (await send(at(base, "/estimate"), json(asked))).json();
export const node = (base: string, key: string): Promise<NodePage> => get(at(base, `/nodes/${encodeURIComponent(key)}`));
export const find = (base: string, text: string): Promise<Found[]> =>
  get(at(base, `/find?k=8&text=${encodeURIComponent(text.slice(0, 500))}`));
export const mentions = (base: string, text: string): Promise<Mention[]> =>
  get(at(base, `/mentions?text=${encodeURIComponent(text)}`));
export const neighbors = (base: string, key: string, k = 16): Promise<Graph> =>
  get(at(base, `/neighbors?k=${k}&key=${encodeURIComponent(key)}`));
const entities = (keys: string[]) => keys.map((key) => `entity=${encodeURIComponent(key)}`).join("&");
export const subgraph = (base: string, keys: string[]): Promise<Graph> => get(at(base, `/subgraph?${entities(keys)}`));
export const picture = async (base: string, keys: string[]): Promise<Blob> =>
  (await send(at(base, `/subgraph?format=svg&${entities(keys)}`))).blob();
export const documents = (base: string): Promise<Documents> => get(at(base, "/documents"));
export const reading = (base: string, name: string): Promise<Reading> => get(at(base, `/documents/${encodeURIComponent(name)}`));
export const upload = (base: string, file: File) =>
  send(at(base, `/documents/${encodeURIComponent(file.name)}`), { method: "PUT", body: file });
export const remove = (base: string, name: string) =>
  send(at(base, `/documents/${encodeURIComponent(name)}`), { method: "DELETE" });

export async function stream(
  base: string, asked: Asked, signal: AbortSignal, on: (kind: string, content: any) => void,
): Promise<void> {
  const reply = await send(at(base, "/ask?stream=true"), { ...json(asked), signal });
  const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    pending += value;
    const events = pending.split("\n\n");
    pending = events.pop()!;
    for (const event of events) {
      const kind = /^event: (.*)$/m.exec(event)?.[1];
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (kind && data) on(kind, JSON.parse(data));
    }
  }
}
