// The HTTP interface, as the page uses it.

import {entryOf, type Choice} from "../model/wire.ts";
import type {RunStatus, StepStatus} from "../model/fold.ts";
import type {Timing} from "../model/text.ts";
import {keep, session} from "./session.ts";

/** A refusal or a failure: what the server said, or that it was not reached (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly fix = "",
  ) {
    super(message);
  }
}

export interface Info {
  kind: "agent" | "hub";
  name: string;
  version: string;
  scopes: string[];
}

export interface Waiting {
  step: string;
  kind: string;
  question: string;
  choices: Choice[] | null;
  form?: unknown;
  due?: string | null;
  shown?: string; // digest of the tool call that question shows
}

export interface Usage {
  calls: number;
  input: number | null;
  cached: number | null;
  output: number | null;
}

/** Why no process drives a run whose status is running. */
export type Idle = "interrupted" | "not_started" | "answered";

export interface RunRow {
  id: string;
  workflow: string;
  title: string;
  status: RunStatus;
  idle?: Idle;
  reason?: string;
  steps: number;
  started: string;
  updated: string;
  active_ms: number;
  usage: Usage;
  cost_usd: number | null;
  seq: number;
  tags: string[] | null;
  parent: string | null;
  waiting: Waiting[] | null;
  agent?: string;
}

export interface StepView {
  id: string;
  role: string;
  action: string;
  visit: number;
  item?: number;
  edge: number;
  via: string;
  began: number; // seq of its first event
  ended?: number; // of its last one
  cid: string | null;
  status: StepStatus;
  parents: string[];
  resumes: string | null;
  edge_prompt: string;
  output: Record<string, unknown> | unknown[] | null;
  text: string;
  error: {code: string; phase: string; message: string} | null;
  attempts: {attempt: number; started: string; error: {code: string; message: string} | null}[];
  tool_calls: number;
  usage: Usage;
  ms: number;
  workspace: {git_head: string; dirty?: boolean} | null;
  child?: string; // the run of a sub-workflow
}

export interface RunView {
  id: string;
  workflow: string;
  definition: string;
  status: RunStatus;
  idle?: Idle;
  reason: string;
  suspended_by?: string;
  head: string;
  seq: number;
  result: string | null;
  steps: StepView[];
  // Where steps is not all of them:
  steps_total?: number;
  earlier?: number; // the event before which the others began
  roles?: {role: string; visits: number; status: StepStatus}[];
  ways?: {edge: number; to: string; limit?: boolean; times: number}[];
  outputs: Record<string, unknown>;
  usage: Usage;
  cost_usd: number | null;
  started: string;
  updated: string;
  active_ms: number;
  scripted_calls: number;
  waiting?: Waiting[] | null;
  timing?: Timing | null;
  agent?: string;
  info: {
    title: string; description: string; type: string; scope: string; tags: string[] | null;
    created_by: string; target_user: string; request_id: string; workspace: string; file: string;
    parent: {run: string; step: string} | null; forked_from: string | null; inputs: unknown;
  };
}

export interface WorkflowRow {
  name: string;
  description: string;
  file: string;
  inputs: unknown; // JSON Schema
  schedule: string | null;
  problem?: string; // why it cannot be started
  waits_for_trust?: boolean; // nothing starts it before a person trusts it on its machine: problem has the command
}

export interface Message {
  role: string;
  content: unknown;
  [key: string]: unknown;
}

export interface Messages {
  digest: string;
  messages: Message[];
  tools: unknown[] | null;
  resumes?: string | null; // the visit whose conversation goes on
  shared_prefix?: number;
}

/** The output of a visit against that of the role's visit before. */
export interface VisitDiff {
  previous: string | null;
  equal: boolean;
  added: number;
  removed: number;
  changed: string[] | null; // what differs, in words
  unified: string;
}

export interface CostRow {
  name?: string;
  calls: number;
  unreported?: number;
  input: number;
  cached: number;
  output: number;
  cost_usd: number | string | null;
  known_usd: number | string;
}

export interface Cost {
  by: string;
  prices: string;
  items: CostRow[];
  total: CostRow;
}

export interface Verification {
  ok: boolean;
  checked: Record<string, number>;
  findings: {kind: string; where: string; expected: string; actual: string; fix: string}[];
  not_proven: string[];
}

export interface Agent {
  id: string;
  name: string;
  version: string;
  since: string;
  last_seen: string;
  caps: string[] | null;
  runs: number;
  connected: boolean;
}

export interface Job {
  id: string;
  workflow: string;
  state: "queued" | "leased" | "done" | "dead";
  agent: string | null;
  attempts: number;
  since: string;
  run?: string; // what it became
  why?: string; // what ended its last lease
}

/** What became of a start: a run, or a job that no agent has taken yet. */
export interface Started {
  schema: string; // wf.started/v1 or wf.queued/v1
  id: string; // of the run, or of the job
}

export interface StartRequest {
  workflow: string;
  inputs: Record<string, unknown>;
  request_id: string;
  title?: string;
  description?: string;
  type?: string;
  scope?: string;
  tags?: string[];
  target_user?: string;
  models?: Record<string, string[]>;
  context?: string;
}

export interface AnswerRequest {
  step?: string;
  text?: string;
  choice?: string;
  fields?: Record<string, unknown>;
  shown?: string;
}

/** The clock of the server less that of this machine, in milliseconds; a second or so is not noticed. */
export let skew = 0;

/** Called when the server no longer knows who we are. */
export let whenUnauthorized: () => void = () => {};
export function onUnauthorized(f: () => void): void {
  whenUnauthorized = f;
}

const loginPath = "/v1/login";

async function call(method: string, path: string, body?: unknown, signal?: AbortSignal, accept = ""): Promise<Response> {
  const headers: Record<string, string> = {};
  const init: RequestInit = {method, credentials: "omit", cache: "no-cache", headers};
  const token = path === loginPath ? "" : session();
  if (token) headers["Authorization"] = `Bearer ${token}`;
  if (signal) init.signal = signal;
  if (accept) headers["Accept"] = accept;
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  let r: Response;
  try {
    r = await fetch(path, init);
  } catch (e) {
    if (signal?.aborted) throw e;
    throw new ApiError(0, "unreachable", "the server does not answer", method === "GET" ? "it may be restarting; the page tries again" : "try again when the page is live again");
  }
  const date = Date.parse(r.headers.get("Date") ?? "");
  if (Number.isFinite(date)) skew = Math.abs(date - Date.now()) < 3000 ? 0 : date - Date.now();
  if (r.ok) return r;
  const said = await r.json().catch(() => ({})) as Record<string, unknown>;
  if (r.status === 401 && path !== loginPath && token === session()) { // and not before another was got
    keep("");
    whenUnauthorized();
  }
  throw new ApiError(r.status, String(said["code"] ?? "http"), String(said["message"] ?? `the server answered ${r.status}`), String(said["fix"] ?? ""));
}

const get = async <T>(path: string, signal?: AbortSignal): Promise<T> => (await call("GET", path, undefined, signal)).json() as Promise<T>;
const post = async <T>(path: string, body: unknown = {}): Promise<T> => {
  const text = await (await call("POST", path, body)).text();
  return (text === "" ? {} : JSON.parse(text)) as T;
};
const at = (run: string, rest = ""): string => `/v1/runs/${encodeURIComponent(run)}${rest}`;
const step = (run: string, id: string, what: string): string => at(run, `/steps/${encodeURIComponent(id)}/${what}`);

export interface RunQuery {
  status?: string;
  workflow?: string;
  agent?: string;
  tag?: string;
  q?: string;
  limit?: number;
  before?: string;
}

/** Which steps of a run, and at which of its events. */
export interface StepQuery {
  limit?: number;
  before?: number;
  at?: number;
}

function search(q: object): string {
  const p = new URLSearchParams();
  for (const [k, v] of Object.entries(q)) if (v) p.set(k, String(v));
  return p.size ? `?${p}` : "";
}

export const api = {
  info: () => get<Info>("/v1/info"),
  login: async (code: string) => keep((await post<{token: string}>(loginPath, {code})).token),
  workflows: () => get<{items: WorkflowRow[] | null}>("/v1/workflows"),
  runs: (q: RunQuery, signal?: AbortSignal) => get<{items: RunRow[] | null; next?: string | null}>(`/v1/runs${search(q)}`, signal),
  start: (r: StartRequest) => post<Started>("/v1/runs", r),
  run: (id: string, q: StepQuery = {}, signal?: AbortSignal) => get<RunView>(at(id, search(q)), signal),
  events: async (id: string, from: number, to: number, signal?: AbortSignal) => {
    const lines = await (await call("GET", `/v1/sessions/${encodeURIComponent(id)}/events?fromSeq=${from}&toSeq=${to}`, undefined, signal, "application/x-ndjson")).text();
    const frames = lines.split("\n").filter((l) => l !== "").map((l) => JSON.parse(l) as Record<string, unknown>);
    const refused = frames.find((f) => f["type"] === "replay_error");
    if (refused) throw new ApiError(503, String(refused["code"]), String(refused["message"]));
    return frames.map(entryOf).filter((e) => e !== null);
  },
  graph: async (id: string) => (await call("GET", at(id, "/graph"))).text(),
  messages: (id: string, s: string, signal?: AbortSignal) => get<Messages>(step(id, s, "messages"), signal),
  diff: (id: string, s: string, signal?: AbortSignal) => get<VisitDiff>(step(id, s, "diff"), signal),
  verify: (id: string) => get<Verification>(at(id, "/verify")),
  cost: (id: string, by: string, signal?: AbortSignal) => get<Cost>(at(id, `/cost?by=${by}`), signal),
  answer: (id: string, a: AnswerRequest) => post<unknown>(at(id, "/answer"), a),
  cancel: (id: string, reason: string) => post<unknown>(at(id, "/cancel"), reason ? {reason} : {}),
  suspend: (id: string) => post<unknown>(at(id, "/suspend")),
  resume: (id: string, limits: Record<string, unknown>) => post<unknown>(at(id, "/resume"), Object.keys(limits).length ? {limits} : {}),
  fork: (id: string, s: string, after: boolean, note: string) => post<{id: string}>(at(id, "/fork"), {step: s, after, ...(note ? {note} : {})}),
  message: (id: string, text: string) => post<unknown>(at(id, "/messages"), {source: "page", text}),
  payload: async (cid: string) => (await call("GET", `/v1/blocks/${encodeURIComponent(cid)}?payload=true`)).text(),
  agents: () => get<{items: Agent[] | null}>("/v1/agents"),
  queue: () => get<{items: Job[] | null}>("/v1/queue"),
};
