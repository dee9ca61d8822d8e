// The HTTP interface, as the page uses it.

import type {
  Accepted, Agents, AnswerRequest, Artifacts, Cost, Deleted, Deletions, Diff, ForkRequest, Info, Login, MessageRequest, Messages, NotificationList, NotificationsRetried, Queue, Queued,
  RetryNotificationsRequest, Run, Runs, StartRequest, Started, StepFiles, Table, TableList, Verify, Workflows,
} from "../model/service.ts";
import {entryOf} from "../model/wire.ts";
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
/** A file of a step; a browser shows nothing of this type, whatever it holds. */
const blob = async (path: string): Promise<Blob> => new Blob([await (await call("GET", path)).blob()], {type: "application/octet-stream"});
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
  search?: string;
  person?: string;
  since?: string;
  cost_min?: string;
  tokens_min?: string;
  counts?: boolean;
  limit?: number;
  before?: string;
}

/** Which steps of a run, and at which of its events. */
export interface StepQuery {
  limit?: number;
  before?: number;
  at?: number;
  status?: string;
  role?: string;
}

function search(q: object): string {
  const p = new URLSearchParams();
  for (const [k, v] of Object.entries(q)) if (v) p.set(k, String(v));
  return p.size ? `?${p}` : "";
}

export const api = {
  info: () => get<Info>("/v1/info"),
  /** Whether the server reaches its store; true too where the server itself is not reached, which the state of the connection shows. */
  ready: () => get<unknown>("/readyz").then(() => true, (e: unknown) => !(e instanceof ApiError) || e.status !== 503),
  login: async (code: string) => keep((await post<Login>(loginPath, {code})).token),
  workflows: () => get<Workflows>("/v1/workflows"),
  runs: (q: RunQuery, signal?: AbortSignal) => get<Runs>(`/v1/runs${search(q)}`, signal),
  start: (r: StartRequest) => post<Started | Queued>("/v1/runs", r),
  run: (id: string, q: StepQuery = {}, signal?: AbortSignal) => get<Run>(at(id, search(q)), signal),
  events: async (id: string, from: number, to: number, signal?: AbortSignal) => {
    const lines = await (await call("GET", `/v1/sessions/${encodeURIComponent(id)}/events?fromSeq=${from}&toSeq=${to}`, undefined, signal, "application/x-ndjson")).text();
    const frames = lines.split("\n").filter((l) => l !== "").map((l) => JSON.parse(l) as Record<string, unknown>);
    const refused = frames.find((f) => f["type"] === "replay_error");
    if (refused) throw new ApiError(503, String(refused["code"]), String(refused["message"]));
    return frames.map(entryOf).filter((e) => e !== null);
  },
  graph: async (id: string) => (await call("GET", at(id, "/graph"))).text(),
  messages: (id: string, s: string, signal?: AbortSignal) => get<Messages>(step(id, s, "messages"), signal),
  diff: (id: string, s: string, signal?: AbortSignal) => get<Diff>(step(id, s, "diff"), signal),
  artifacts: (id: string, s: string, after: string, limit: number, signal?: AbortSignal) => get<Artifacts>(step(id, s, `artifacts${search({after, limit})}`), signal),
  changed: (id: string, s: string, after: string, limit: number, signal?: AbortSignal) => get<StepFiles>(step(id, s, `files${search({changed: true, after, limit})}`), signal),
  artifact: (id: string, s: string, path: string) => blob(step(id, s, `artifact${search({path})}`)),
  file: (id: string, s: string, path: string, before: boolean) => blob(step(id, s, `file${search({path, before})}`)),
  verify: (id: string) => get<Verify>(at(id, "/verify")),
  cost: (id: string, by: string, signal?: AbortSignal) => get<Cost>(at(id, `/cost?by=${by}`), signal),
  answer: (id: string, a: AnswerRequest) => post<Accepted>(at(id, "/answer"), a),
  cancel: (id: string, reason: string) => post<Accepted>(at(id, "/cancel"), reason ? {reason} : {}),
  suspend: (id: string) => post<Accepted>(at(id, "/suspend")),
  resume: (id: string, limits: Record<string, unknown>) => post<Accepted>(at(id, "/resume"), Object.keys(limits).length ? {limits} : {}),
  remove: async (id: string, q: {why?: string; dry_run?: boolean}, signal?: AbortSignal) => (await call("DELETE", at(id, search(q)), undefined, signal)).json() as Promise<Deleted>,
  fork: (id: string, f: ForkRequest) => post<Accepted>(at(id, "/fork"), f),
  message: (id: string, text: string) => post<Accepted>(at(id, "/messages"), {source: "page", text} satisfies MessageRequest),
  payload: async (cid: string) => (await call("GET", `/v1/blocks/${encodeURIComponent(cid)}?payload=true`)).text(),
  notifications: (q: {run: string; agent: string; limit: number}, signal?: AbortSignal) => get<NotificationList>(`/v1/notifications${search(q)}`, signal),
  retryNotifications: (r: RetryNotificationsRequest, at: {agent: string; run?: string}) => post<NotificationsRetried>(`/v1/notifications/retry${search(at)}`, r),
  tables: (q: {agent: string; limit: number}, signal?: AbortSignal) => get<TableList>(`/v1/tables${search(q)}`, signal),
  table: (id: string, q: {agent: string}, signal?: AbortSignal) => get<Table>(`/v1/tables/${encodeURIComponent(id)}${search(q)}`, signal),
  deletions: (q: {agent: string; limit: number}, signal?: AbortSignal) => get<Deletions>(`/v1/deletions${search(q)}`, signal),
  agents: () => get<Agents>("/v1/agents"),
  queue: () => get<Queue>("/v1/queue"),
  job: (id: string, deed: "cancel" | "retry" | "purge") => post<Queued>(`/v1/queue/${encodeURIComponent(id)}/${deed}`),
  worker: (id: string, deed: "drain" | "undrain" | "forget") => post<Agents>(`/v1/agents/${encodeURIComponent(id)}/${deed}`),
};
