// The list of runs, and who else there is.

import {batch, effect, signal} from "@preact/signals";
import {api, ApiError} from "../net/api.ts";
import {fault, hrefOf, info, locked, refine, route, tell} from "./app.ts";
import {keepFresh} from "./lists.ts";
import type {Agent, Job, RunRow, Runs, StartRequest, Workflow} from "../model/service.ts";

export interface Filter {
  status: string;
  search: string; // words of what was said, or the id of a run
  tag: string;
  workflow: string;
  person: string;
  since: string; // how long ago at most, as in 7d
  cost_min: string;
  tokens_min: string;
  agent: string; // at a hub
}

export const everything: Filter = {status: "", search: "", tag: "", workflow: "", person: "", since: "", cost_min: "", tokens_min: "", agent: ""};

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
/** The filter that runs and counts fit: another one than filter while that is being read. */
export const fits = signal<Filter | null>(null);
export const more = signal(false); // whether there are older ones
/** How many runs of each status fit the rest of the filter. */
export const counts = signal<Record<string, number>>({});
/** How far what was said is searched; null where nothing is looked for in it. */
export const searched = signal<Runs["searched"] | null>(null);
export const workflows = signal<Workflow[] | null>(null);
export const agents = signal<Agent[] | null>(null);
export const queue = signal<Job[] | null>(null);

const isID = /^[0-9A-Z]{10}([0-9A-Z]{6})?$/; // of a run
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
    const by = filter.peek();
    const {search, ...rest} = by;
    const asked = {...rest, ...(isID.test(search.trim()) ? {q: search.trim()} : {search})};
    const got: RunRow[] = [];
    let next: string | undefined = "";
    let found: Runs | null = null;
    while (got.length < wanted && next !== undefined) {
      const part = await api.runs({...asked, counts: next === "", limit: Math.min(most, wanted - got.length), before: next}, signal);
      if (next === "") found = part;
      got.push(...(part.items ?? []));
      next = part.next || undefined;
    }
    batch(() => {
      more.value = next !== undefined;
      runs.value = got;
      fits.value = by;
      counts.value = found?.counts ?? {};
      searched.value = found?.searched ?? null;
    });
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

const indexAgain = 2000; // ms, doubled after each reading that found as much behind
const indexTries = 5; // what hinders the index may last

// Reads the list again while not all that was said is searched: no list changes when the index catches up.
function followIndex(): () => void {
  let behind = 0;
  let tries = 0;
  return effect(() => {
    const n = searched.value?.behind ?? 0;
    if (n !== behind) tries = 0;
    behind = n;
    if (n === 0 || tries === indexTries) return;
    const timer = setTimeout(() => {
      tries++;
      void refresh();
    }, indexAgain * 2 ** tries);
    return () => clearTimeout(timer);
  });
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
  const stopIndex = followIndex();
  return () => {
    stopLists();
    stopFilter();
    stopIndex();
  };
}

/** Starts that no worker of the hub has taken yet. The hub keeps them in memory, so we say them again until a run is there. */
export const outbox = signal<StartRequest[]>([]);
const sayAgain = 4000;

/** Starts a run and gives its id, or "" where it was queued: then it is told when it has begun. */
export async function startRun(r: StartRequest): Promise<string> {
  const got = await api.start(r);
  void refresh();
  if (got.schema !== "wf.queued/v1") return got.id;
  outbox.value = [...outbox.value, r];
  tell(`queued: no worker has taken ${r.title || r.workflow} yet`);
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

/** Keeps workers and queue of a hub fresh until the returned function is called. */
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
