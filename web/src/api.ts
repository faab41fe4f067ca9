// The server's REST interface.

import type {
  Ask as Run, AskRequest as Asked, Base as BaseSummary, BaseDetails, Documents, Found, Graph, Mention, NodePage,
  Reading,
} from "./types";

export type {
  Ask as Run, AskRequest as Asked, Answer, Base as BaseSummary, BaseDetails, Build, Call, Documents, DrawnNode as NodeRef,
  Evidence, Fact, Found, Graph, Mention, NodePage, Query, Reading, Span, Term, Unchecked,
} from "./types";

export class Refused extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

// The token lives as long as the tab, and only in it.
let token = sessionStorage.getItem("clew-token") ?? "";
export const hasToken = (): boolean => token !== "";
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
export const page = async (base: string, key: string, boxes: string[]): Promise<Blob> =>
  (await send(at(base, `/page?key=${encodeURIComponent(key)}${boxes.map((box) => `&box=${encodeURIComponent(box)}`).join("")}`))).blob();
export const documents = (base: string): Promise<Documents> => get(at(base, "/documents"));
export const reading = (base: string, name: string): Promise<Reading> => get(at(base, `/documents/${encodeURIComponent(name)}`));
export const upload = (base: string, file: File) =>
  send(at(base, `/documents/${encodeURIComponent(file.name)}`), { method: "PUT", body: file });
export const remove = (base: string, name: string) =>
  send(at(base, `/documents/${encodeURIComponent(name)}`), { method: "DELETE" });

export const restore = (base: string, name: string) =>
  send(at(base, `/documents/${encodeURIComponent(name)}/restore`), { method: "POST" });

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
