// What the whole page shares: who we are, where we are, how the connection stands.

import {effect, signal} from "@preact/signals";
import {api, ApiError, onUnauthorized} from "../net/api.ts";
import {protocol, Replay, type Link} from "../net/replay.ts";
import {protocols} from "../net/session.ts";
import type {Info} from "../model/service.ts";

/** null while unknown. */
export const info = signal<Info | null>(null);
/** Why we are not let in, "" while we are. */
export const locked = signal<string | null>(null);
export const link = signal<Link>("connecting");
/** Whether the server answered when it was asked who it is. */
export const reached = signal(true);
export const help = signal(false);
/** Whether the server is there, and does not reach its store: what is shown is as it was. */
export const away = signal(false);

export const replay = new Replay({
  open: () => new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/v1/replay`, protocols(protocol)),
  random: Math.random,
  later: (f, ms) => {
    const t = setTimeout(f, ms);
    return () => clearTimeout(t);
  },
  now: () => Date.now(),
});
replay.onLink = (l) => {
  const before = link.value;
  link.value = l;
  if (l !== "open") away.value = false; // the state of the connection is shown instead
  // A refused handshake tells the browser nothing; the HTTP interface does.
  if (l === "lost" && before === "connecting") void meet();
};

const lookAtStore = 5000;
setInterval(() => {
  if (link.value !== "open" || document.hidden) return;
  void api.ready().then((ready) => { away.value = !ready && link.value === "open"; });
}, lookAtStore);

addEventListener("online", () => replay.hurry());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) replay.hurry();
});
onUnauthorized(() => {
  if (locked.value === null) locked.value = "";
  replay.stop();
});

export const may = (scope: string): boolean => info.value?.scopes?.some((s) => s === scope || scope === "answer" && s === "run") ?? false;

/** Says hello to the server and connects. */
export async function meet(): Promise<void> {
  try {
    info.value = await api.info();
    reached.value = true;
    locked.value = null;
    replay.start();
  } catch (e) {
    if (e instanceof ApiError && e.status === 0) {
      reached.value = false;
      if (info.value === null) setTimeout(() => void meet(), 1000);
    }
  }
}

/** Exchanges the one-time code for a session. */
export async function login(code: string): Promise<void> {
  try {
    await api.login(code.trim());
    await meet();
  } catch (e) {
    locked.value = e instanceof Error ? e.message : String(e);
  }
}

function codeIn(hash: string): string | undefined {
  return /[#&]code=([^&]+)/.exec(hash)?.[1];
}

/** Starts: a code in the address is used and taken out of it. */
export async function begin(): Promise<void> {
  const code = codeIn(location.hash);
  if (code) {
    history.replaceState(null, "", location.pathname + location.search + "#/");
    read = location.hash;
    route.value = parse();
    await login(decodeURIComponent(code));
    if (locked.value === null) return;
    const refused = locked.value;
    await meet(); // the session of before may still be good
    if (info.value === null) locked.value = refused;
    return;
  }
  await meet();
}

// Where we are: #/, #/run/ID?step=coder%232&tab=messages&seq=12, #/agents, #/queue,
// #/notifications?run=ID, #/tables?id=ID, #/deletions, #/workflows, #/compare?a=ID&b=ID.

const pages = ["agents", "queue", "notifications", "tables", "deletions", "workflows", "compare"] as const;

export interface Route {
  page: "runs" | "run" | (typeof pages)[number];
  run: string;
  query: Record<string, string>;
}

function parse(): Route {
  const [path = "", search = ""] = location.hash.replace(/^#/, "").split("?", 2);
  const [, page = "", id = ""] = path.split("/");
  const query = Object.fromEntries(new URLSearchParams(search));
  if (page === "run" && id) return {page: "run", run: decodeURIComponent(id), query};
  const named = pages.find((p) => p === page);
  if (named) return {page: named, run: "", query};
  return {page: "runs", run: "", query};
}

export const route = signal<Route>(parse());
let read = location.hash; // the address that route tells
addEventListener("hashchange", () => {
  read = location.hash;
  if (codeIn(location.hash)) void begin(); // an address with a code, opened where the page was
  else route.value = parse();
});

export function hrefOf(page: Route["page"], run = "", query: Record<string, string> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== "")).toString();
  const path = page === "runs" ? "/" : page === "run" ? `/run/${encodeURIComponent(run)}` : `/${page}`;
  return "#" + path + (search ? "?" + search : "");
}

/** Changes the query in place: no entry in the history. A link that is being followed comes first. */
export function refine(query: Record<string, string>): void {
  if (location.hash !== read) return;
  const r = route.value;
  const next = {...r, query: {...r.query, ...query}};
  history.replaceState(null, "", hrefOf(next.page, next.run, next.query));
  read = location.hash;
  route.value = next;
}

export function go(page: Route["page"], run = "", query: Record<string, string> = {}): void {
  location.hash = hrefOf(page, run, query);
}

// Light and dark.

export type Theme = "auto" | "light" | "dark";

function storedTheme(): Theme {
  try {
    const t = localStorage.getItem("wf-theme");
    return t === "light" || t === "dark" ? t : "auto";
  } catch {
    return "auto"; // storage is off: the theme is that of the system
  }
}

export const theme = signal<Theme>(storedTheme());
effect(() => {
  const t = theme.value;
  if (t === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = t;
  try {
    if (t === "auto") localStorage.removeItem("wf-theme");
    else localStorage.setItem("wf-theme", t);
  } catch {
    // not kept; it holds for this page
  }
});

export function nextTheme(): void {
  theme.value = {auto: "light", light: "dark", dark: "auto"}[theme.value] as Theme;
}

// Short remarks, read aloud.

export interface Note {
  text: string;
  fault: boolean;
  id: number;
}

export const notes = signal<Note[]>([]);
let noteCount = 0;

export function tell(text: string, fault = false): void {
  const note = {text, fault, id: ++noteCount};
  notes.value = [...notes.value.slice(-2), note];
  setTimeout(() => dismiss(note.id), fault ? 12_000 : 5_000);
}

export function dismiss(id: number): void {
  notes.value = notes.value.filter((n) => n.id !== id);
}

export function fault(e: unknown): void {
  if (e instanceof ApiError) tell(e.message + (e.fix ? ` — ${e.fix}` : ""), true);
  else tell(e instanceof Error ? e.message : String(e), true);
}

/** The time, once a second, for ages. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);
