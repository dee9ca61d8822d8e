// One run as the page sees it: its journal, the state at any seq of it, and what the server
// tells beyond that.

import {batch, computed, effect, signal} from "@preact/signals";
import {fold, State} from "../model/fold.ts";
import {Journal} from "../model/journal.ts";
import {Drafts} from "../model/live.ts";
import {compress, type Axis, type Stretch} from "../model/timeline.ts";
import type {Entry} from "../model/wire.ts";
import {api, ApiError, skew, type RunView, type StepView} from "../net/api.ts";
import {fault, link, now, replay} from "./app.ts";

// Events that change what GET /v1/runs/{id} tells beyond the fold.
const telling = new Set([
  "run_started", "step_completed", "step_started", "waiting", "answered", "attempt_failed", "suspended", "resumed", "limit_changed",
  "cancelled", "done", "forked", "compacted", "usage",
]);

// How often history is drawn while it is read, in milliseconds.
const drawHistory = 500;

export class Run {
  readonly journal = new Journal();
  readonly drafts = new Drafts();
  /** Grows with every change of the journal. */
  readonly version = signal(0);
  /** Grows with every change of the drafts. */
  readonly draftVersion = signal(0);
  /** The seq that is looked at; null is the newest, whatever comes. */
  readonly cursor = signal<number | null>(null);
  readonly view = signal<RunView | null>(null);
  readonly complete = signal(false);
  readonly problem = signal<{code: string; message: string} | null>(null);
  readonly playing = signal(false);

  private live = new State();
  private stopping: (() => void)[] = [];
  private fresh: Entry[] = [];
  private frame = 0;
  private drawn = 0; // when the state was drawn last
  private draftFrame = 0;
  private soon: ReturnType<typeof setTimeout> | undefined;
  private reading: AbortController | null = null;

  private past: {of: State; at: number; state: State} | null = null;

  /** The newest state. It is one object that grows; reading it subscribes to that. */
  get head(): State {
    this.version.value;
    return this.live;
  }

  /** The state that is looked at. */
  get state(): State {
    const head = this.head;
    const at = this.cursor.value;
    if (at === null || at >= this.journal.seq) return head;
    if (this.past?.of !== head || this.past.at !== at) this.past = {of: head, at, state: fold(this.journal.entries, at)};
    return this.past.state;
  }

  private readonly steps = computed(() => new Map((this.view.value?.steps ?? []).map((s) => [s.id, s])));

  /** What the server tells of a step. */
  told(step: string): StepView | undefined {
    return this.steps.value.get(step);
  }

  /** Where the timeline ends: at the newest event, or now while something goes on. */
  readonly end = computed<number>(() => {
    this.version.value;
    const s = this.live;
    return s.final || s.status === "suspended" ? s.at : Math.max(s.at, now.value + skew);
  });

  /** The time that is looked at: that of an event, or now. */
  get at(): number {
    return this.cursor.value === null ? this.end.value : this.state.at;
  }

  readonly axis = computed<Axis>(() => {
    this.version.value;
    const s = this.live;
    const end = this.end.value;
    const busy: Stretch[] = [];
    for (const step of s.steps.values()) {
      for (const x of step.spans) if (x.kind === "work") busy.push({from: x.from, to: x.to ?? end});
    }
    return compress(s.began, Math.max(end, s.began + 1), busy);
  });

  constructor(readonly id: string) {}

  start(): void {
    this.stopping.push(
      replay.watch(this.id, this.journal, {
        events: (entries) => this.take(entries),
        delta: (d) => {
          this.drafts.add(d);
          this.draftFrame ||= requestAnimationFrame(() => {
            this.draftFrame = 0;
            this.draftVersion.value++;
          });
        },
        reset: () => this.rebuild(),
        complete: () => {
          this.flush();
          this.complete.value = true;
          this.problem.value = null;
        },
        error: (code, message, final) => {
          if (final || code === "agent_unavailable") this.problem.value = {code, message};
        },
      }),
      effect(() => {
        if (link.value === "open") this.readSoon(0);
      }),
    );
  }

  stop(): void {
    for (const s of this.stopping) s();
    cancelAnimationFrame(this.frame);
    cancelAnimationFrame(this.draftFrame);
    clearTimeout(this.soon);
    this.reading?.abort();
  }

  /** Moves to a seq; beyond the newest is the newest, and follows it. */
  look(seq: number | null): void {
    this.cursor.value = seq === null || seq >= this.journal.seq ? null : Math.max(1, seq);
  }

  /** The events up to the seq that is looked at. */
  upTo(): number {
    this.version.value;
    return this.cursor.value ?? this.journal.seq;
  }

  async read(): Promise<void> {
    this.reading?.abort();
    const mine = (this.reading = new AbortController());
    try {
      this.view.value = await api.run(this.id, mine.signal);
    } catch (e) {
      if (mine.signal.aborted || (e instanceof ApiError && (e.status === 0 || e.status === 401))) return;
      if (e instanceof ApiError && (e.status === 404 || e.status === 503)) this.problem.value = {code: e.code, message: e.message};
      else fault(e);
    }
  }

  private take(entries: readonly Entry[]): void {
    for (const e of entries) this.fresh.push(e);
    if (this.problem.value) this.problem.value = null;
    // Live events show with the next frame; history is not drawn again for each of its batches.
    // A page in the background gets no frames.
    if (document.hidden) this.flush();
    else if (this.complete.value) this.frame ||= requestAnimationFrame(() => this.flush());
    else if (performance.now() - this.drawn > drawHistory) this.flush();
  }

  private flush(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.drawn = performance.now();
    if (this.fresh.length === 0) return;
    let tells = false;
    for (const e of this.fresh) {
      this.live.apply(e);
      this.drafts.settle(e);
      tells ||= telling.has(e.type);
    }
    this.fresh = [];
    batch(() => {
      this.version.value++;
      this.draftVersion.value++;
    });
    if (tells && this.complete.value) this.readSoon(120);
  }

  private rebuild(): void {
    this.fresh = [];
    this.live = fold(this.journal.entries);
    this.drafts.clear();
    batch(() => {
      if (this.cursor.value !== null && this.cursor.value > this.journal.seq) this.cursor.value = null;
      this.version.value++;
      this.draftVersion.value++;
    });
    this.readSoon(0);
  }

  private readSoon(ms: number): void {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => void this.read(), ms);
  }

  // Replays from where we are to the end, in about as many seconds as there is to see.
  play(): void {
    if (this.playing.value) {
      this.playing.value = false;
      return;
    }
    const axis = this.axis.value;
    const entries = this.journal.entries;
    if (entries.length < 2) return;
    if (this.cursor.value === null) this.cursor.value = 1;
    this.playing.value = true;
    const whole = Math.min(30_000, Math.max(6_000, entries.length * 120));
    const begin = performance.now() - axis.place(entries[this.cursor.value - 1]!.at) * whole;
    const tick = (t: number) => {
      if (!this.playing.value) return;
      const place = (t - begin) / whole;
      if (place >= 1 || this.cursor.value === null) {
        this.playing.value = false;
        this.look(null);
        return;
      }
      this.cursor.value = Math.max(this.cursor.value, seqAt(entries, axis.time(place)));
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }
}

/** The seq of the newest event at a time, at least 1. */
export function seqAt(entries: readonly Entry[], at: number): number {
  let low = 0;
  let high = entries.length - 1;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (entries[mid]!.at <= at) low = mid;
    else high = mid - 1;
  }
  return low + 1;
}
