// The live connection: one WebSocket that carries many runs, and comes back by itself.
//
// A subscription is a journal and its cursor. Whatever happens to the socket, the journal says
// where to go on: seq and CID of the newest event held. So nothing is lost and nothing comes
// twice, and there is no other state to repair. Changes of lists arrive the same way; a list has no cursor: after a
// disconnect all of it is read again.

import {Journal} from "../model/journal.ts";
import {entryOf, type Delta, type Entry} from "../model/wire.ts";

export const protocol = "wf.replay.v1";

/** Where the connection stands. */
export type Link = "connecting" | "open" | "lost";

/** What a subscriber is told. */
export interface Watcher {
  /** Events that continue the journal, already in it. */
  events?(entries: readonly Entry[]): void;
  /** It is asked for: what is being said comes from its beginning, and then what is said. */
  asked?(): void;
  /** Live output. */
  delta?(d: Delta): void;
  /** The journal was cut behind its new end: what follows is another history. */
  reset?(): void;
  /** All that was stored when the server looked is here. */
  complete?(seq: number): void;
  /** The server cannot serve it; final tells whether asking again is of use. */
  error?(code: string, message: string, final: boolean): void;
}

/** A list of the HTTP interface. */
export type ListName = "runs" | "workflows" | "tables" | "notifications" | "deletions" | "agents" | "queue";

/** What has changed in a list since the last message about it. */
export interface ListChange {
  list: ListName;
  /** The runs that moved, came or went; null: anything may be another. */
  runs: readonly string[] | null;
}

interface Listing {
  id: string;
  lists: readonly ListName[];
  changed: (c: ListChange) => void;
  told: Set<ListName>; // lists whose changes the server pushes on this connection
  refused: number; // in a row
  retry: () => void;
  poll: () => void;
}

/** What the connection needs of its surroundings; tests bring their own. */
export interface Surroundings {
  open(): WebSocket;
  random(): number; // 0 ≤ r < 1
  later(f: () => void, ms: number): () => void;
  now(): number; // milliseconds
}

interface Subscription {
  id: string;
  run: string;
  journal: Journal | null; // null: only what comes
  watcher: Watcher;
  asked: number; // how often in a row the server was asked again without an event in between
  retry: () => void;
}

const longestWait = 15_000;
const firstWait = 250;
const pingEvery = 20_000;
const silentFor = 50_000;
const pollEvery = 60_000; // for lists whose changes the server does not push
// Errors after which the same request may work a little later.
const passing = new Set(["agent_unavailable", "agent_moved", "too_slow", "rate_limited", "shutting_down", "internal"]);

/** The wait before try n (from 0) to connect: full jitter, 250 ms · 2ⁿ up to 15 s. */
export function backoff(n: number, random: number): number {
  return random * Math.min(longestWait, firstWait * 2 ** Math.min(n, 16));
}

export class Replay {
  link: Link = "connecting";
  /** When the next try comes, in the time of now(). */
  nextTry = 0;
  onLink: (l: Link) => void = () => {};

  #socket: WebSocket | null = null;
  #subs = new Map<string, Subscription>();
  #listings = new Map<string, Listing>();
  #count = 0;
  #tries = 0;
  #heard = 0;
  #pings = 0;
  #cancelTimer = () => {};
  #closed = true;

  readonly #around: Surroundings;

  constructor(around: Surroundings) {
    this.#around = around;
  }

  /** Connects, and stays connected until stop. */
  start(): void {
    if (!this.#closed) return;
    this.#closed = false;
    this.#connect();
  }

  stop(): void {
    this.#closed = true;
    this.#cancelTimer();
    this.#drop();
  }

  /** Tries at once, for example when the network is back. */
  hurry(): void {
    if (this.#closed || this.link !== "lost") return;
    this.#tries = 0;
    this.#cancelTimer();
    this.#connect();
  }

  /** Follows a run. With a journal: from its cursor; without: only what comes from now on. */
  watch(run: string, journal: Journal | null, watcher: Watcher): () => void {
    const s: Subscription = {id: String(++this.#count), run, journal, watcher, asked: 0, retry: () => {}};
    this.#subs.set(s.id, s);
    if (this.link === "open") this.#ask(s);
    return () => {
      s.retry();
      if (this.#subs.delete(s.id) && this.link === "open") this.#send({type: "cancel", id: s.id});
    };
  }

  /**
   * Calls changed for each change of the lists, until the returned function is called. After each connection every list counts as
   * changed once, so that nothing is missed between a reading and the first change. A list whose changes the server does not push counts as changed once a minute.
   */
  list(lists: readonly ListName[], changed: (c: ListChange) => void): () => void {
    const l: Listing = {id: String(++this.#count), lists, changed, told: new Set(), refused: 0, retry: () => {}, poll: () => {}};
    this.#listings.set(l.id, l);
    if (this.link === "open") this.#askLists(l);
    this.#pollLists(l);
    return () => {
      l.retry();
      l.poll();
      if (this.#listings.delete(l.id) && this.link === "open") this.#send({type: "cancel", id: l.id});
    };
  }

  #askLists(l: Listing): void {
    l.retry();
    l.told.clear();
    this.#send({type: "list_request", id: l.id, lists: l.lists});
  }

  #pollLists(l: Listing): void {
    l.poll = this.#around.later(() => {
      this.#pollLists(l);
      for (const list of l.lists) if (!l.told.has(list)) l.changed({list, runs: null});
    }, pollEvery);
  }

  #listFrame(l: Listing, f: Record<string, unknown>): void {
    if (f["type"] === "list_changed") {
      const list = f["list"] as ListName;
      if (!l.lists.includes(list)) return;
      l.refused = 0;
      l.told.add(list);
      l.changed({list, runs: Array.isArray(f["runs"]) && f["all"] !== true ? f["runs"].map(String) : null});
    } else if (f["type"] === "replay_error") {
      l.told.clear();
      l.retry();
      if (passing.has(String(f["code"]))) l.retry = this.#around.later(() => this.#askLists(l), backoff(++l.refused, this.#around.random()));
    }
  }

  #connect(): void {
    this.#set("connecting");
    let ws: WebSocket;
    try {
      ws = this.#around.open();
    } catch {
      this.#lost();
      return;
    }
    this.#socket = ws;
    this.#cancelTimer = this.#around.later(() => this.#lose(ws), silentFor); // a handshake that hangs
    ws.onopen = () => {
      if (ws !== this.#socket) return;
      this.#heard = this.#around.now();
      this.#set("open");
      this.#beat();
      for (const s of this.#subs.values()) this.#ask(s);
      for (const l of this.#listings.values()) this.#askLists(l);
    };
    ws.onmessage = (m) => {
      if (ws !== this.#socket) return;
      this.#heard = this.#around.now();
      this.#tries = 0;
      if (typeof m.data === "string") this.#frame(m.data);
    };
    ws.onclose = () => this.#lose(ws);
    ws.onerror = () => this.#lose(ws);
  }

  #lose(ws: WebSocket): void {
    if (ws !== this.#socket) return;
    this.#drop();
    if (!this.#closed) this.#lost();
  }

  #drop(): void {
    const ws = this.#socket;
    this.#socket = null;
    this.#cancelTimer();
    if (!ws) return;
    ws.onopen = ws.onmessage = ws.onclose = ws.onerror = null;
    ws.close();
  }

  #lost(): void {
    const wait = backoff(this.#tries++, this.#around.random());
    this.nextTry = this.#around.now() + wait;
    for (const s of this.#subs.values()) s.retry();
    for (const l of this.#listings.values()) {
      l.retry();
      l.told.clear();
    }
    this.#set("lost");
    this.#cancelTimer = this.#around.later(() => this.#connect(), wait);
  }

  // A browser cannot see the pings of the server: it asks for an answer of its own.
  #beat(): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#around.later(() => {
      const ws = this.#socket;
      if (!ws) return;
      if (this.#around.now() - this.#heard > silentFor) {
        this.#lose(ws);
        return;
      }
      this.#send({type: "ping", n: ++this.#pings});
      this.#beat();
    }, pingEvery);
  }

  #set(l: Link): void {
    this.link = l;
    this.onLink(l);
  }

  #send(frame: Record<string, unknown>): void {
    if (this.link === "open") this.#socket?.send(JSON.stringify(frame));
  }

  #ask(s: Subscription): void {
    s.retry();
    s.watcher.asked?.();
    const cursor = s.journal ? {fromSeq: s.journal.seq, ...(s.journal.cid ? {lastCid: s.journal.cid} : {})} : {};
    this.#send({type: "replay_request", id: s.id, sessionId: s.run, ...cursor, live: true, batch: true});
  }

  // Asks again from the cursor; the wait grows as long as that brings nothing.
  #askAgain(s: Subscription): void {
    if (!this.#subs.has(s.id)) return;
    this.#send({type: "cancel", id: s.id});
    this.#subs.delete(s.id);
    s.id = String(++this.#count); // frames of the old request that are on their way are not its own any more
    this.#subs.set(s.id, s);
    const wait = s.asked === 0 ? 0 : backoff(s.asked, this.#around.random());
    s.asked++;
    s.retry();
    s.retry = this.#around.later(() => this.#ask(s), wait);
  }

  #frame(data: string): void {
    let f: Record<string, unknown>;
    try {
      f = JSON.parse(data) as Record<string, unknown>;
    } catch {
      return; // not of this protocol; what matters comes again from the cursor
    }
    const id = String(f["id"] ?? "");
    const l = this.#listings.get(id);
    if (l) {
      this.#listFrame(l, f);
      return;
    }
    const s = this.#subs.get(id);
    if (!s) return;
    switch (f["type"]) {
      case "replay_event":
      case "event":
        this.#take(s, [f]);
        break;
      case "replay_batch":
        if (Array.isArray(f["events"])) this.#take(s, f["events"] as Record<string, unknown>[]);
        break;
      case "replay_complete":
        this.#tip(s, f["lastSeq"]);
        s.watcher.complete?.(Number(f["lastSeq"]));
        break;
      case "heartbeat":
        this.#tip(s, f["lastSeq"]);
        break;
      case "delta":
        s.watcher.delta?.({after: Number(f["afterSeq"]), step: String(f["step"] ?? ""), n: Number(f["n"]), kind: String(f["kind"] ?? "text"), text: String(f["text"] ?? "")});
        break;
      case "reset":
        s.journal?.truncate(Number(f["commonSeq"]) || 0, String(f["commonCid"] ?? ""));
        s.watcher.reset?.();
        if (s.journal && s.journal.seq !== (Number(f["commonSeq"]) || 0)) this.#askAgain(s); // nothing in common after all
        break;
      case "replay_error":
        this.#refused(s, String(f["code"] ?? "internal"), String(f["message"] ?? ""));
        break;
    }
  }

  #take(s: Subscription, frames: readonly Record<string, unknown>[]): void {
    const taken: Entry[] = [];
    for (const f of frames) {
      const e = entryOf(f);
      if (!e) continue;
      const verdict = s.journal ? s.journal.offer(e) : "next";
      if (verdict === "next") taken.push(e);
      if (verdict === "ahead" || verdict === "other") {
        if (taken.length > 0) s.watcher.events?.(taken);
        this.#askAgain(s);
        return;
      }
    }
    if (taken.length > 0) {
      s.asked = 0;
      s.watcher.events?.(taken);
    }
  }

  // The server told how far it has sent: if that is not how far we are, something is missing.
  #tip(s: Subscription, seq: unknown): void {
    if (s.journal && typeof seq === "number" && seq !== s.journal.seq) this.#askAgain(s);
  }

  #refused(s: Subscription, code: string, message: string): void {
    if (code === "future_cursor" && s.journal && s.journal.seq > 0) {
      // The server went back behind what we hold: from the start, its history is the truth.
      s.journal.truncate(0);
      s.watcher.reset?.();
      this.#askAgain(s);
      return;
    }
    const final = !passing.has(code);
    s.watcher.error?.(code, message, final);
    if (final) return;
    s.asked = Math.max(1, s.asked);
    this.#askAgain(s);
  }
}
