// The list of runs, and who else there is.

import {effect, signal} from "@preact/signals";
import {api, ApiError} from "../net/api.ts";
import {fault, hrefOf, info, link, locked, refine, replay, route, tell} from "./app.ts";
import type {Agent, Job, RunRow, StartRequest, Workflow} from "../model/service.ts";

export interface Filter {
  status: string;
  q: string;
  tag: string;
  workflow: string;
  agent: string; // at a hub
}

const everything: Filter = {status: "", q: "", tag: "", workflow: "", agent: ""};

/** The filter is part of the address: it survives a reload, and can be handed on. */
export const filter = signal<Filter>(everything);
/** The address of the list as it was seen last. */
export const back = signal(hrefOf("runs"));
effect(() => {
  const {page, query} = route.value;
  if (page !== "runs") return;
  filter.value = {...everything, ...query};
  back.value = hrefOf("runs", "", query);
});
export const runs = signal<RunRow[] | null>(null);
export const more = signal(false); // whether there are older ones
export const workflows = signal<Workflow[] | null>(null);
export const agents = signal<Agent[] | null>(null);
export const queue = signal<Job[] | null>(null);

const page = 100;
const most = 500; // that one request may ask for
const pollEvery = 3000;
const watched = 32;
let wanted = page;
let asking: AbortController | null = null;
let again = false;

// A server that does not answer, or knows us no longer, shows at the top of the page already.
const absent = (e: unknown): boolean => e instanceof ApiError && (e.status === 0 || e.status === 401);

/** Reads the list once more; calls while one is under way become one. */
export async function refresh(): Promise<void> {
  if (asking) {
    again = true;
    return;
  }
  asking = new AbortController();
  const signal = asking.signal;
  try {
    const {status, q, tag, workflow, agent} = filter.peek();
    const got: RunRow[] = [];
    let next: string | undefined = "";
    while (got.length < wanted && next !== undefined) {
      const part = await api.runs({status, q, tag, workflow, agent, limit: Math.min(most, wanted - got.length), before: next}, signal);
      got.push(...(part.items ?? []));
      next = part.next || undefined;
    }
    more.value = next !== undefined;
    runs.value = got;
  } catch (e) {
    if (!signal.aborted && !absent(e)) fault(e);
  } finally {
    asking = null;
    if (again) {
      again = false;
      void refresh();
    }
  }
}

export function showMore(): void {
  wanted += page;
  void refresh();
}

export function setFilter(f: Partial<Filter>): void {
  refine({...f});
}

export function showAll(): void {
  setFilter(everything);
}

/** Keeps the list fresh until the returned function is called. */
export function follow(): () => void {
  let soon: ReturnType<typeof setTimeout> | undefined;
  const dirty = () => {
    soon ??= setTimeout(() => {
      soon = undefined;
      void refresh();
    }, 150);
  };
  // Runs that can move tell so at once; new ones are found by asking.
  const following = new Map<string, () => void>();
  const stopFollowing = effect(() => {
    const open = (runs.value ?? []).filter((r) => !["done", "failed", "cancelled"].includes(r.status)).slice(0, watched);
    const ids = new Set(open.map((r) => r.id));
    for (const [id, stop] of following) {
      if (!ids.has(id)) {
        stop();
        following.delete(id);
      }
    }
    for (const id of ids) {
      if (!following.has(id)) following.set(id, replay.watch(id, null, {events: dirty, reset: dirty}));
    }
  });
  const stopLink = effect(() => {
    if (link.value !== "open") return;
    dirty();
    void readWorkflows();
  });
  const stopFilter = effect(() => {
    filter.value;
    wanted = page;
    asking?.abort();
    again = asking !== null;
    if (!asking) void refresh();
  });
  const timer = setInterval(() => {
    if (!document.hidden && locked.value === null) void refresh();
  }, pollEvery);
  return () => {
    stopFollowing();
    stopLink();
    stopFilter();
    clearInterval(timer);
    clearTimeout(soon);
    for (const stop of following.values()) stop();
  };
}

/** Starts that no agent of the hub has taken yet. The hub keeps them in memory, so we say them again until a run is there. */
export const outbox = signal<StartRequest[]>([]);
const sayAgain = 4000;

/** Starts a run and gives its id, or "" where it was queued: then it is told when it has begun. */
export async function startRun(r: StartRequest): Promise<string> {
  const got = await api.start(r);
  void refresh();
  if (got.schema !== "wf.queued/v1") return got.id;
  outbox.value = [...outbox.value, r];
  tell(`queued: no agent has taken ${r.title || r.workflow} yet`);
  const done = (note: string, bad = false) => {
    outbox.value = outbox.value.filter((x) => x !== r);
    tell(note, bad);
    void refresh();
  };
  const again = async () => {
    try {
      const later = await api.start(r);
      if (later.schema !== "wf.queued/v1") return done(`${r.title || r.workflow} has begun: run ${later.id}`);
    } catch (e) {
      if (!(e instanceof ApiError) || (e.status !== 0 && e.status < 500)) return done(`${r.title || r.workflow} was not started: ${e instanceof Error ? e.message : String(e)}`, true);
    }
    setTimeout(() => void again(), sayAgain);
  };
  setTimeout(() => void again(), sayAgain);
  return "";
}

export async function readWorkflows(): Promise<void> {
  try {
    workflows.value = (await api.workflows()).items ?? [];
  } catch (e) {
    if (!absent(e)) fault(e);
  }
}

/** Keeps agents and queue of a hub fresh until the returned function is called. */
export function followHub(): () => void {
  const read = async () => {
    if (info.value?.kind !== "hub" || document.hidden) return;
    try {
      const [a, q] = await Promise.all([api.agents(), api.queue()]);
      agents.value = a.items ?? [];
      queue.value = q.items ?? [];
    } catch (e) {
      if (!absent(e)) fault(e);
    }
  };
  const stop = effect(() => {
    if (info.value) void read();
  });
  const timer = setInterval(() => void read(), pollEvery);
  return () => {
    stop();
    clearInterval(timer);
  };
}
