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
  rows: ((Node | boolean | number | string | null)[])[];
  state: "found" | "maybe" | "not_found";
  found: boolean;
  certainty: number | null;
  percent: number | null;
  evidence: Evidence[];
  query: Query;
  dropped: string[];
  unknown: UnknownName[];
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

/** A question of a user. */
export interface Asked {
  at: number;
  base: string;
  question: string;
  run: string | null;
}

/** An entry of the audit log. */
export interface Audit {
  id: number;
  at: number;
  actor: string;
  what: string;
  about: string;
  address: string;
}

/** Title and description of a base. Its name is part of URLs and cannot be changed. */
export interface BaseChange {
  title?: string | null;
  description?: string | null;
}

/** A base with its schema, methods, models and example questions. */
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

/** Restriction to the highest or lowest value of an attribute, or number of edges of a relation. */
export interface Best {
  most: boolean;
  attribute?: string | null;
  relation?: string | null;
}

/** State of the build of a document base. */
export interface Build {
  state: "idle" | "waiting" | "running" | "failed";
  stage: string;
  done: number;
  total: number;
  error: string | null;
  skipped: Skipped[];
}

/** A model call: tokens, price, time and the start of the reply, without the key. */
export interface Call {
  prompt_tokens: number;
  completion_tokens: number;
  dollars: number;
  seconds: number;
  cached: boolean;
  error: string | null;
  reply: string;
}

/** Number of edges of a relation in one direction. */
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

/** The files of a document base and the state of its build. */
export interface Documents {
  documents: Document[];
  deleted: string[];
  build: Build;
  accepts: string[];
  most_bytes: number;
}

/** A node of a drawing: an entity, the answer, or a node between them. */
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

/** Estimated cost of a question. */
export interface Estimate {
  calls: number;
  cached: number;
  prompt_tokens: number;
  completion_tokens: number;
  dollars: number;
  words: string;
}

/** The runs over one question set. */
export interface Evaluation {
  title: string;
  runs: string[];
  tables: Table[];
}

/** A fact, a path, a passage or a judgement, given by `kind`, with `text` as a description. */
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

/** A question with a poor answer. */
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

/** Whether the result of a run is correct. */
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

/** Interpretation of words in a question, with alternatives. */
export interface Grounding {
  text: string;
  type: string | null;
  nodes: Found[];
  alternatives: Found[];
}

/** Permissions of the client to manage bases. */
export interface Managed {
  may_make: boolean;
  deleted: string[];
  sources: string[];
}

/** The signed-in user and permissions. */
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

/** The default model of a base. */
export interface ModelChoice {
  model: string;
}

/** Neighbours by one relation in one direction: the total number, and the first nodes. */
export interface Neighbors {
  relation: string;
  direction: "out" | "in";
  count: number;
  nodes: Node[];
}

/** A base to create. */
export interface NewBase {
  title?: string | null;
  description?: string | null;
  name: string;
  source?: string;
}

/** A token, shown once. */
export interface NewToken {
  token: string;
}

/** A user to create. */
export interface NewUser {
  roles?: Record<string, "reader" | "editor" | "admin"> | null;
  groups?: string[] | null;
  asks_per_day?: number | null;
  active?: boolean | null;
  name: string;
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

/** A password change. */
export interface PasswordChange {
  old: string;
  new: string;
}

/** An initial password, shown once. */
export interface Password {
  name: string;
  password: string;
}

/** An error message with a remedy. */
export interface Problem {
  error: string;
}

/** The query of an answer: as understood, as grounded, and as formal text that reproduces it. */
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
  sql?: string | null;
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

/** A role on a base. Null removes it. */
export interface RoleRequest {
  role: "reader" | "editor" | "admin" | null;
}

/** A name and a password. */
export interface SignIn {
  name: string;
  password: string;
}

/** A file that could not be used, with the reason. */
export interface Skipped {
  file: string;
  reason: string;
}

/** A step of the trace. `start` counts seconds from the first step. */
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

/** A table of formatted cells. */
export interface Table {
  title: string;
  columns: string[];
  rows: string[][];
  note: string;
}

/** The requested result. */
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

/** A token without its secret. Times are in seconds since 1970. */
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

/** Text a model has written so far. The run replaces it and may differ. */
export interface Unchecked {
  text: string;
}

/** Changes of a user by an admin. Omitted fields stay unchanged. */
export interface UserChange {
  roles?: Record<string, "reader" | "editor" | "admin"> | null;
  groups?: string[] | null;
  asks_per_day?: number | null;
  active?: boolean | null;
}

/** A user, as shown to an admin. */
export interface User {
  name: string;
  roles: Record<string, "reader" | "editor" | "admin">;
  groups: string[];
  asks_per_day: number | null;
  active: boolean;
  signed_in: number | null;
}
