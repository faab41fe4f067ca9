// Written by scripts/generate_types.py from clew.server.wire and wire_team; do not edit.

/** One ranked answer with its evidence. */
export interface Answer {
  key: string;
  name: string;
  type: string;
  rank: number;
  score: number;
  evidence: Evidence[];
  group: "match" | "near";
  attributes: Record<string, unknown>;
}

/** A finished run: the answers, the query behind them, the trace and the cost. */
export interface Ask {
  run: string;
  base: string;
  question: string;
  method: string;
  model: string;
  answers: Answer[];
  form: string | null;
  understood: string | null;
  matches: number | null;
  text: string | null;
  value: boolean | number | string | null;
  columns: string[];
  rows: ((NodeCell | boolean | number | string | null)[])[];
  state: "found" | "maybe" | "not_found";
  found: boolean;
  certainty: number | null;
  percent: number | null;
  evidence: Evidence[];
  query: Query;
  dropped: string[];
  unknown: Unknown[];
  notes: string[];
  fallbacks: Fallback[];
  seconds: number;
  trace: Span[];
  spending: Spending;
  request: AskRequest;
}

/** A question and how to answer it. */
export interface AskRequest {
  question: string;
  method?: string | null;
  model?: string;
  k?: number;
  offset?: number;
  options?: Record<string, string | number | boolean>;
  fixes?: Record<string, string[]>;
  relations?: Record<string, string>;
  type?: string | null;
  history?: string[];
}

/** A question that was asked. */
export interface Asked {
  at: number;
  base: string;
  question: string;
  run: string | null;
}

/** A line of the audit log. */
export interface Audit {
  id: number;
  at: number;
  actor: string;
  what: string;
  about: string;
  address: string;
}

/** What people read about a base; its name, which stands in addresses, stays. */
export interface BaseChange {
  title?: string | null;
  description?: string | null;
}

/** A base with its schema, its methods, the models and some questions to begin with. */
export interface BaseDetails {
  name: string;
  nodes: number;
  edges: number;
  documents: boolean;
  ready: boolean;
  title: string;
  description: string;
  managed: boolean;
  node_types: Type[];
  relations: Relation[];
  methods: Method[];
  default_method: string;
  models: string[];
  default_model: string;
  may_choose_model: boolean;
  examples: string[];
}

/** A base that this token may ask. */
export interface Base {
  name: string;
  nodes: number;
  edges: number;
  documents: boolean;
  ready: boolean;
  title: string;
  description: string;
  managed: boolean;
}

/** That only those with the most or the least are asked for: of an attribute, or of edges of a relation. */
export interface Best {
  most: boolean;
  attribute?: string | null;
  relation?: string | null;
}

/** How the build of a document base stands. */
export interface Build {
  state: "idle" | "waiting" | "running" | "failed";
  stage: string;
  done: number;
  total: number;
  error: string | null;
  skipped: Skipped[];
}

/** One model call: tokens, price, time and the beginning of the reply; never the key. */
export interface Call {
  prompt_tokens: number;
  completion_tokens: number;
  dollars: number;
  seconds: number;
  cached: boolean;
  error: string | null;
  reply: string;
}

/** How many edges of a relation there are in one direction. */
export interface Count {
  relation: string;
  direction: "out" | "in";
  count: number;
}

/** One file. */
export interface Document {
  name: string;
  title: string;
  bytes: number | null;
  indexed: boolean;
}

/** The files of a document base and how its build stands. */
export interface Documents {
  documents: Document[];
  deleted: string[];
  build: Build;
  accepts: string[];
  most_bytes: number;
}

/** A node of a drawing: whether it is an entity, the answer, or lies between. */
export interface DrawnNode {
  key: string;
  name: string;
  type: string;
  role?: string | null;
}

/** An edge between nodes, by their keys. */
export interface Edge {
  head: string;
  relation: string;
  tail: string;
}

/** What a question would cost. */
export interface Estimate {
  calls: number;
  cached: number;
  prompt_tokens: number;
  completion_tokens: number;
  dollars: number;
  words: string;
}

/** The runs over one set of questions. */
export interface Evaluation {
  title: string;
  runs: string[];
  tables: Table[];
}

/** A fact, a path, a passage or a judgement: `kind` tells which, `text` says it in words. */
export interface Evidence {
  kind: "fact" | "path" | "passage" | "judgement";
  text: string;
  head?: Node | null;
  relation?: string | null;
  tail?: Node | null;
  attributes?: Record<string, unknown>;
  facts?: Fact[];
  by?: string | null;
  node?: Node | null;
  file?: string | null;
  page?: number | null;
  start?: number | null;
  end?: number | null;
  section?: string | null;
  mark?: [number, number] | null;
  boxes?: [number, number, number, number][];
  score?: number | null;
}

/** A triple in its stored direction. */
export interface Fact {
  head: Node;
  relation: string;
  tail: Node;
  attributes?: Record<string, unknown>;
}

/** A question that was not answered well. */
export interface Failure {
  id: string;
  question: string;
  gold: string[];
  found: string[];
  metrics: Record<string, number>;
  error: string | null;
  fallbacks: string[];
  trace: string[];
}

/** A step that did something other than it was meant to. */
export interface Fallback {
  step: string;
  reason: string;
  instead: string;
}

/** Whether what a run found is right. */
export interface FeedbackRequest {
  right: boolean;
}

/** A node found by name or by text. */
export interface Found {
  key: string;
  name: string;
  type: string;
  how: string;
  score: number;
  alias: string;
}

/** Nodes and edges to draw. */
export interface Graph {
  nodes: DrawnNode[];
  edges: Edge[];
  text: string;
  counts: Count[];
  left_out: number;
  paths: Record<string, unknown>[];
  disconnected: boolean;
  complete: boolean;
  features: Record<string, number>;
}

/** What the words of a question were taken for, and what else they could mean. */
export interface Grounding {
  text: string;
  type: string | null;
  nodes: Found[];
  alternatives: Found[];
}

/** What the client may do with bases. */
export interface Managed {
  may_make: boolean;
  deleted: string[];
  sources: string[];
}

/** Who has signed in, and what this user may do. */
export interface Me {
  name: string;
  roles: Record<string, "reader" | "editor" | "admin">;
  csrf: string | null;
  must_change_password: boolean;
  has_password: boolean;
  asks_today: number;
  asks_per_day: number | null;
}

/** A span of a text that names nodes. */
export interface Mention {
  start: number;
  end: number;
  text: string;
  nodes: Found[];
}

/** A method with its options and their defaults. */
export interface Method {
  name: string;
  summary: string;
  options: Record<string, string>;
}

/** The model that answers by default. */
export interface ModelChoice {
  model: string;
}

/** Neighbours by one relation in one direction: how many, and the first of them. */
export interface Neighbors {
  relation: string;
  direction: "out" | "in";
  count: number;
  nodes: Node[];
}

/** A base to be made. */
export interface NewBase {
  title?: string | null;
  description?: string | null;
  name: string;
  source?: string;
}

/** A token, told this once. */
export interface NewToken {
  token: string;
}

/** A user to be made. */
export interface NewUser {
  roles?: Record<string, "reader" | "editor" | "admin"> | null;
  groups?: string[] | null;
  asks_per_day?: number | null;
  active?: boolean | null;
  name: string;
}

/** A node in a row. */
export interface NodeCell {
  key: string;
  name: string;
  type: string;
}

/** Everything about one node. */
export interface NodePage {
  key: string;
  name: string;
  type: string;
  aliases: string[];
  document: string;
  attributes: Record<string, unknown>;
  neighbors: Neighbors[];
}

/** A node by key, name and type. */
export interface Node {
  key: string;
  name: string;
  type: string;
}

/** Another password. */
export interface PasswordChange {
  old: string;
  new: string;
}

/** A password to begin with, told this once. */
export interface Password {
  name: string;
  password: string;
}

/** What went wrong, and what to do about it. */
export interface Problem {
  error: string;
}

/** The query behind an answer: as understood, as grounded, and as formal text that reproduces it. */
export interface Query {
  text?: string | null;
  target?: Target | null;
  best?: Best | null;
  triplets?: Triplet[];
  constants?: Grounding[];
  relaxed?: string[];
  unexplained?: string[];
  matches?: number | null;
  direct?: number | null;
  kinds?: string | null;
  path?: string | null;
  sparql?: string | null;
  cypher?: string | null;
  [more: string]: unknown;
}

/** A relation between two node types. */
export interface Relation {
  name: string;
  label: string;
  head: string;
  tail: string;
  count: number;
  description: string;
}

/** A role on a base; null takes it. */
export interface RoleRequest {
  role: "reader" | "editor" | "admin" | null;
}

/** A name and a password. */
export interface SignIn {
  name: string;
  password: string;
}

/** A file that could not be used, and why. */
export interface Skipped {
  file: string;
  reason: string;
}

/** One step of the trace; `start` counts seconds from the first. */
export interface Span {
  id: number;
  parent: number | null;
  name: string;
  start: number;
  seconds: number | null;
  details: Record<string, unknown>;
  error: string | null;
  calls: Call[];
}

/** What the model calls came to. */
export interface Spending {
  calls: number;
  cached: number;
  failed: number;
  prompt_tokens: number;
  completion_tokens: number;
  dollars: number;
}

/** A table of cells that are ready to be shown. */
export interface Table {
  title: string;
  columns: string[];
  rows: string[][];
  note: string;
}

/** What is asked for. */
export interface Target {
  name: string;
  type?: string | null;
}

/** One end of a triplet: a variable or the words for a constant. */
export interface Term {
  variable?: string | null;
  constant?: string | null;
  type?: string | null;
}

/** A token, without its secret; times in seconds since 1970. */
export interface Token {
  id: number;
  name: string;
  write: boolean;
  made: number;
  used: number | null;
  ends: number;
}

/** A token for a program. */
export interface TokenRequest {
  name: string;
  write?: boolean;
  days?: number;
}

/** One requirement of a query. */
export interface Triplet {
  head: Term;
  relation: string | null;
  tail: Term;
  negated: boolean;
}

/** A node type. */
export interface Type {
  name: string;
  label: string;
  count: number;
  answer: boolean;
  attributes: string[];
  description: string;
}

/** What a model has written so far of an answer; the run takes its place, and may say something else. */
export interface Unchecked {
  text: string;
}

/** A name in the question that the base does not have, and names of like spelling that it has. */
export interface Unknown {
  text: string;
  close: string[];
}

/** What an admin changes of a user; what is left out stays. */
export interface UserChange {
  roles?: Record<string, "reader" | "editor" | "admin"> | null;
  groups?: string[] | null;
  asks_per_day?: number | null;
  active?: boolean | null;
}

/** A user, as an admin sees one. */
export interface User {
  name: string;
  roles: Record<string, "reader" | "editor" | "admin">;
  groups: string[];
  asks_per_day: number | null;
  active: boolean;
  signed_in: number | null;
}
