// The server's REST interface.

import type {
  Asked as Past, Audit, Evaluation, Failure, Managed, Me, NewToken, Password, Token, User, UserChange,
  Ask as Run, AskRequest as Asked, Base as BaseSummary, BaseDetails, Documents, Found, Graph, Mention, NodePage,
} from "./types";
import { t } from "./texts";

export type {
  Evaluation,
  Ask as Run, AskRequest as Asked, Answer, Base as BaseSummary, BaseDetails, Build, Call, Count, Documents, DrawnNode as NodeRef,
  Audit, Evidence, Fact, Found, Graph, Me, Mention, NodePage, Query, Span, Term, Unchecked, User, UserChange,
} from "./types";

/** A document as it was read. */
export interface Reading {
  name: string;
  title: string;
  pieces: { key: string; type: string; name: string; text: string; page: number | null }[];
}

export class Refused extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

// The token lives as long as the tab, and only in it.
let token = sessionStorage.getItem("clew-token") ?? "";
export const hasToken = (): boolean => token !== "";
export function setToken(text: string): void { token = text; sessionStorage.setItem("clew-token", text); }

// Where people sign in, a cookie says who they are, and this word that the page itself sends: another site cannot know it.
let word = "";

/** What the server replies, refusals too; `other` is a token that is sent in the place of who one is. */
export async function reply(path: string, options: RequestInit = {}, other = ""): Promise<Response> {
  const headers = new Headers(options.headers), bearer = other || token;
  if (bearer) headers.set("authorization", `Bearer ${bearer}`);
  if (word && !other && (options.method ?? "GET") !== "GET") headers.set("x-csrf-token", word);
  let found: Response;
  try {
    found = await fetch(path, { ...options, headers, credentials: other ? "omit" : "same-origin" });
  } catch (failure) {
    if (failure instanceof DOMException) throw failure;
    throw new Refused(0, t("server.silent"));
  }
  if (found.status !== 403 || (options as Again).again || !String((await found.clone().json().catch(() => ({}))).error).startsWith("x-csrf-token") || !(await me())) return found;
  return reply(path, { ...options, again: true } as Again, other);
}

export async function send(path: string, options: RequestInit = {}): Promise<Response> {
  const found = await reply(path, options);
  if (!found.ok) throw new Refused(found.status, (await found.json().catch(() => ({}))).error ?? t("server.says", { status: found.status }));
  return found;
}

interface Again extends RequestInit { again?: boolean } // another tab has signed in meanwhile

const get = async (path: string) => (await send(path)).json();
const at = (base: string, rest = "") => `/v1/bases/${encodeURIComponent(base)}${rest}`;
const json = (body: unknown): RequestInit => ({
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
});

export const bases = (): Promise<BaseSummary[]> => get("/v1/bases");
/** One base; how passages of documents are connected is said in everyday words. */
export async function details(base: string): Promise<BaseDetails> {
  const found: BaseDetails = await get(at(base));
  const said: Record<string, string> = found.node_types.some((one) => one.name === "passage") ? { tfidf: t("relation.tfidf"), entity: t("relation.entity"), next: t("relation.next") } : {};
  return { ...found, relations: found.relations.map((row) => ({ ...row, label: said[row.name] ?? row.label })) };
}
export const run = (base: string, id: string): Promise<Run> => get(at(base, `/runs/${encodeURIComponent(id)}`));
export const ask = async (base: string, asked: Asked): Promise<Run> => (await send(at(base, "/ask"), json(asked))).json();
export const judge = (base: string, id: string, right: boolean) => send(at(base, `/runs/${encodeURIComponent(id)}/feedback`), json({ right }));
export const estimate = async (base: string, asked: Asked): Promise<{ words: string }> =>
  (await send(at(base, "/estimate"), json(asked))).json();
export const node = (base: string, key: string): Promise<NodePage> => get(at(base, `/nodes/${encodeURIComponent(key)}`));
export const find = (base: string, text: string): Promise<Found[]> =>
  get(at(base, `/find?k=8&text=${encodeURIComponent(text.slice(0, 500))}`));
export const mentions = (base: string, text: string): Promise<Mention[]> =>
  get(at(base, `/mentions?text=${encodeURIComponent(text)}`));
export const neighbors = (base: string, key: string, k: number, kind?: { relation: string; direction: string }): Promise<Graph> =>
  get(at(base, `/neighbors?k=${k}&key=${encodeURIComponent(key)}${kind ? `&relation=${encodeURIComponent(kind.relation)}&direction=${kind.direction}` : ""}`));
const entities = (keys: string[]) => keys.map((key) => `entity=${encodeURIComponent(key)}`).join("&");
export const subgraph = (base: string, keys: string[]): Promise<Graph> => get(at(base, `/subgraph?${entities(keys)}`));
export const picture = async (base: string, keys: string[]): Promise<Blob> =>
  (await send(at(base, `/subgraph?format=svg&${entities(keys)}`))).blob();
export const page = async (base: string, key: string, boxes: string[]): Promise<Blob> =>
  (await send(at(base, `/page?key=${encodeURIComponent(key)}${boxes.map((box) => `&box=${encodeURIComponent(box)}`).join("")}`))).blob();
export const documents = (base: string): Promise<Documents> => get(at(base, "/documents"));
export const reading = (base: string, name: string): Promise<Reading> => get(at(base, `/documents/${encodeURIComponent(name)}`));
export const upload = (base: string, file: File, signal: AbortSignal) =>
  send(at(base, `/documents/${encodeURIComponent(file.name)}`), { method: "PUT", body: file, signal });
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

export const health = (): Promise<{ users: boolean; provider: string | null }> => get("/health");
const known = (found: Me): Me => { word = found.csrf ?? ""; return found; };
const change = (method: string, body?: unknown): RequestInit => ({ ...(body === undefined ? {} : json(body)), method });
/** Who has signed in; null where nobody has. */
export async function me(): Promise<Me | null> {
  try { return known(await get("/v1/me")); }
  catch (failure) { if (failure instanceof Refused && failure.status === 401) return null; throw failure; }
}
export const signIn = async (name: string, password: string): Promise<Me> => known(await (await send("/v1/sign-in", json({ name, password }))).json());
export const signOut = async (): Promise<void> => { await send("/v1/sign-out", change("POST")); word = ""; };
export const changePassword = async (old: string, next: string): Promise<Me> => known(await (await send("/v1/me/password", json({ old, new: next }))).json());
export const tokens = (): Promise<Token[]> => get("/v1/me/tokens");
export const makeToken = async (name: string, write: boolean): Promise<NewToken> => (await send("/v1/me/tokens", json({ name, write }))).json();
export const removeToken = (id: number) => send(`/v1/me/tokens/${id}`, change("DELETE"));
export const history = (): Promise<Past[]> => get("/v1/me/history");
export const forgetHistory = () => send("/v1/me/history", change("DELETE"));
const user = (name: string, rest = "") => `/v1/users/${encodeURIComponent(name)}${rest}`;
export const users = (): Promise<User[]> => get("/v1/users");
export const makeUser = async (name: string): Promise<Password> => (await send("/v1/users", json({ name }))).json();
export const changeUser = (name: string, changed: UserChange) => send(user(name), change("PATCH", changed));
export const removeUser = async (name: string): Promise<void> => { await send(user(name), change("DELETE")); };
export const resetPassword = async (name: string): Promise<Password> => (await send(user(name, "/password"), change("POST"))).json();
export const members = (base: string): Promise<Record<string, "reader" | "editor" | "admin">> => get(at(base, "/members"));
export const setMember = (base: string, name: string, role: string | null) => send(at(base, `/members/${encodeURIComponent(name)}`), change("PUT", { role }));
export const auditLog = (before?: number): Promise<Audit[]> => get(`/v1/audit${before === undefined ? "" : `?before=${before}`}`);
export const evaluations = (): Promise<Evaluation[]> => get("/v1/evaluations");
export const failures = (set: string, run: string, k: number): Promise<Failure[]> =>
  get(`/v1/evaluations/failures?set=${encodeURIComponent(set)}&run=${encodeURIComponent(run)}&k=${k}`);
export const managed = (): Promise<Managed> => get("/v1/managed");
export const makeBase = (name: string, title: string, source: string) => send("/v1/bases", json({ name, title, source }));
export const chooseModel = (base: string, model: string) => send(at(base, "/model"), change("PUT", { model }));
export const changeBase = (name: string, title: string, description: string) => send(at(name), change("PATCH", { title, description }));
export const deleteBase = (name: string) => send(at(name), change("DELETE"));
export const restoreBase = (name: string) => send(`/v1/managed/${encodeURIComponent(name)}/restore`, change("POST"));
