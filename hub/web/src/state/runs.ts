// The list of runs, and who else there is.

import {effect, signal} from "@preact/signals";
import {api, ApiError} from "../net/api.ts";
import {fault, hrefOf, info, locked, refine, route, tell} from "./app.ts";
import {keepFresh} from "./lists.ts";
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

/** Keeps the list and the workflows fresh until the returned function is called. */
export function follow(): () => void {
  const stopLists = keepFresh(["runs", "workflows"], async (changed) => {
    if (locked.peek() !== null) return;
    await Promise.all([changed.has("runs") ? refresh() : null, changed.has("workflows") ? readWorkflows() : null]);
  });
  let first = true; // keepFresh has begun to read
  const stopFilter = effect(() => {
    filter.value;
    wanted = page;
    if (first) {
      first = false;
      return;
    }
    asking?.abort();
    again = asking !== null;
    if (!asking) void refresh();
  });
  return () => {
    stopLists();
    stopFilter();
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
  let stopLists = () => {};
  const stop = effect(() => {
    stopLists();
    stopLists = () => {};
    if (info.value?.kind !== "hub") return;
    stopLists = keepFresh(["agents", "queue"], async (changed) => {
      try {
        const [a, q] = await Promise.all([changed.has("agents") ? api.agents() : null, changed.has("queue") ? api.queue() : null]);
        if (a) agents.value = a.items ?? [];
        if (q) queue.value = q.items ?? [];
      } catch (e) {
        if (!absent(e)) fault(e);
      }
    });
  });
  return () => {
    stop();
    stopLists();
  };
}
