// One run as the page sees it: its journal, the state at any seq of it, and what the server
// tells beyond that.

import {batch, computed, effect, signal} from "@preact/signals";
import {fansOf, linesOf, odd, statesOf, type Fan, type Line, type Opened} from "../model/fans.ts";
import {fold, State, telling, type Step} from "../model/fold.ts";
import {before, Journal, windowSpan} from "../model/journal.ts";
import {Drafts} from "../model/live.ts";
import {compress, type Axis, type Hole, type Stretch} from "../model/timeline.ts";
import type {Entry} from "../model/wire.ts";
import {api, ApiError, skew} from "../net/api.ts";
import {fault, link, now, replay} from "./app.ts";
import {agree, stateOf, stepOf} from "./told.ts";
import type {FanTally, Idle, Run as RunView, StepView} from "../model/service.ts";

// Events that change what GET /v1/runs/{id} tells beyond the fold.
const moving = new Set([
  "run_started", "step_completed", "step_started", "waiting", "answered", "escalated", "attempt_failed", "suspended", "resumed", "limit_changed",
  "closing", "closing_skipped", "cancelled", "done", "forked", "compacted", "usage", "files_laid",
]);

const stepsBefore = 200; // that are read at once: of the run as it was, and of what wants to be looked at
const again = 2000; // until a run that could not be read is asked for again
const lookEvery = 5000; // whether a process drives a run, which no event tells

const countEvery = 3000; // how often, at most, items are counted anew that were not read

/** What was asked for of steps that were not read. */
interface Picked {
  fans: readonly FanTally[];
  steps: readonly Step[];
  earlier: Readonly<Record<string, number>>; // by what was asked for: before, of the next part
  reading: string; // what is being asked for
  error: string;
}
const unasked: Picked = {fans: [], steps: [], earlier: {}, reading: "", error: ""};

export class Run {
  /** What is held of the journal: its newest events, and what was asked for. */
  journal = new Journal();
  readonly drafts = new Drafts();
  /** Grows with every change of the journal. */
  readonly version = signal(0);
  /** Grows with every change of the drafts. */
  readonly draftVersion = signal(0);
  /** Whether the run was read: before that, nothing is known of it. */
  readonly ready = signal(false);
  /** The seq that is looked at; null is the newest, whatever comes. */
  readonly cursor = signal<number | null>(null);
  /** The seq that will be looked at as soon as what it needs was read. */
  readonly seeking = signal<number | null>(null);
  readonly view = signal<RunView | null>(null);
  /** Why no process drives the run, although it could go on; "" where one does, or may. */
  readonly idle = signal<Idle | "">("");
  readonly problem = signal<{code: string; message: string} | null>(null);
  readonly playing = signal(false);

  private picks = signal<ReadonlyMap<number | null, Picked>>(new Map()); // by the seq that is looked at
  private counted: number | string = ""; // what was counted last: the seq of the past, or that of the newest
  private due: number | null = null; // the seq at which is counted next
  private counting: ReturnType<typeof setTimeout> | undefined;

  private live = new State();
  private stopping: (() => void)[] = [];
  private unfollow: (() => void) | null = null;
  private fresh: Entry[] = [];
  private frame = 0;
  private draftFrame = 0;
  private soon: ReturnType<typeof setTimeout> | undefined;
  private reading: AbortController | null = null;

  private windows = new Map<string, Promise<void>>(); // that are being read
  private bases = new Map<number, RunView[]>(); // the run as it was before a window; pages of its steps, the newest first
  private older = signal<readonly StepView[]>([]); // that the view has no room for
  private early: Step[] = []; // that the parts of the journal tell of, and the live state does not have
  private fanned: {key: readonly unknown[]; fans: ReadonlyMap<string, Fan>} = {key: [], fans: new Map()};
  private past: {of: State; version: number; at: number; state: State} | null = null;

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
    const version = this.version.value;
    if (this.past?.of !== head || this.past.at !== at || this.past.version !== version) this.past = {of: head, version, at, state: this.stateAt(at)};
    return this.past.state;
  }

  private stateAt(seq: number): State {
    const entries = this.journal.entries;
    if (this.journal.start(seq) === 1) return fold(entries, seq);
    const [base, ...earlier] = this.bases.get(before(seq))!;
    const s = stateOf(base!);
    for (const page of earlier) s.prepend(page.steps.map((x) => stepOf(x, base!.seq)), page.earlier ?? 0);
    return fold(entries, seq, s);
  }

  private readonly steps = computed(() => new Map([...this.older.value, ...(this.view.value?.steps ?? [])].map((s) => [s.id, s])));

  /** What the server tells of a step. */
  told(step: string): StepView | undefined {
    return this.steps.value.get(step);
  }

  /** Where the timeline ends: at the newest event, or now while something goes on. */
  readonly end = computed<number>(() => {
    this.version.value;
    const s = this.live;
    return s.final || s.status === "suspended" || this.idle.value ? s.at : Math.max(s.at, now.value + skew);
  });

  /** The status of a step: one that was cut off where no process drives the run, and that of a command which failed and was treated as data. */
  statusOf(s: Step): string {
    if (s.status === "ok" && s.record) {
      const code = (this.told(s.id)?.output as Record<string, unknown> | null | undefined)?.["exit_code"];
      if (typeof code === "number" && code !== 0) return "nonzero";
    }
    return s.status === "running" && this.cursor.value === null && this.idle.value ? "interrupted" : s.status;
  }

  /** The fan-outs among the steps that are looked at, by visit. */
  get fans(): ReadonlyMap<string, Fan> {
    const key = [this.state, this.state.earlier, this.version.value, this.steps.value, this.idle.value, this.picked];
    if (this.fanned.key.length === 0 || key.some((k, i) => k !== this.fanned.key[i])) this.fanned = {key, fans: this.fansAt(this.cursor.value)};
    return this.fanned.fans;
  }

  /** The fan-outs after an event, null for the newest. */
  fansAt(at: number | null): ReadonlyMap<string, Fan> {
    const {earlier} = at === null ? this.head : this.state;
    return fansOf(this.stepsAt(at), (s) => this.statusOf(s), earlier > 0, earlier > 0 ? this.pickedAt(at).fans : [], at === null && this.idle.value !== "");
  }

  /** The steps that were read, and before them those of earlier ones that were asked for. */
  stepsAt(at: number | null): Step[] {
    const {steps, earlier} = at === null ? this.head : this.state;
    const early = earlier > 0 ? this.pickedAt(at).steps.filter((s) => !steps.has(s.id)) : [];
    return [...early, ...steps.values()];
  }

  /** A step that is looked at. */
  step(id: string): Step | undefined {
    return this.state.steps.get(id) ?? this.picked.steps.find((s) => s.id === id);
  }

  /** The status of the newest visit of a role, as State.newest; of a fan-out all items count, where they were counted. */
  newest(role: string): string | undefined {
    const f = this.state.earlier > 0 ? this.fans.get(`${role}#${this.state.visits(role)}`) : undefined;
    return f && !f.partial ? telling.findLast((t) => f.counts.some(([s]) => (s === "interrupted" ? "running" : s) === t)) ?? "ok" : this.state.newest(role);
  }

  private pickedAt(at: number | null): Picked {
    return this.picks.value.get(at) ?? unasked;
  }

  get picked(): Picked {
    return this.pickedAt(this.cursor.value);
  }

  /** Reads steps of a role with a status, or all of its steps, or without one what wants to be looked at: the newest, then those before them. */
  async pick(role = "", status = ""): Promise<void> {
    const at = this.cursor.value;
    const states = status ? statesOf(status) : odd;
    const what = `${role} ${states}`;
    const {journal} = this;
    const keep = (p: Partial<Picked>): void => void (this.picks.value = new Map([[null, this.pickedAt(null)], [at, {...this.pickedAt(at), reading: "", error: "", ...p}]]));
    keep({reading: what});
    try {
      const v = await api.run(this.id, {status: states, role, before: status ? this.pickedAt(at).earlier[what] ?? (status === "all" ? this.state.earlier : 0) : 0, at: at ?? 0, ...(status ? {} : {limit: stepsBefore})});
      if (journal !== this.journal) return;
      const from = (v.earlier && v.steps[0]?.began) || 0; // of what wants to be looked at, all since then are in the answer
      const known = new Map(this.pickedAt(at).steps.filter((s) => status || s.first < from || !odd.includes(this.statusOf(s))).map((s) => [s.id, s]));
      for (const x of v.steps) known.set(x.id, stepOf(x, v.seq));
      batch(() => {
        this.older.value = [...this.older.value, ...v.steps.filter((x) => x.ended && !this.told(x.id))];
        keep({fans: v.fans ?? [], steps: [...known.values()].sort((a, b) => a.first - b.first), earlier: {...this.pickedAt(at).earlier, [what]: v.earlier ?? 0}});
      });
    } catch (e) {
      if (journal === this.journal) keep({error: e instanceof Error ? e.message : String(e)});
    }
  }

  // Has items counted that were not read: as the run goes on, and at a place in its past where one stays.
  private count(): void {
    const at = this.cursor.value;
    const now = at ?? `${this.view.value?.seq}`;
    if (!this.ready.value || this.state.earlier === 0 || now === this.counted || (this.counting && this.due === at)) return;
    clearTimeout(this.counting);
    this.due = at;
    this.counting = setTimeout(() => {
      this.counting = undefined;
      this.counted = now;
      void this.pick();
    }, at !== null ? 1000 : this.picks.peek().size ? countEvery : 0);
  }

  /** Which items of fan-outs are shown, where a person has said so. */
  readonly opened = signal<Opened>(new Map());

  /** The lines of the list of steps. */
  lines(chosen: string): Line[] {
    return linesOf(this.stepsAt(this.cursor.value), this.fans, this.opened.value, chosen, (s) => this.statusOf(s));
  }

  /** The time that is looked at: that of an event, or now. */
  get at(): number {
    return this.cursor.value === null ? this.end.value : this.state.at;
  }

  /** Steps with the times at which they are known to have been at work. */
  get lanes(): Step[] {
    this.version.value;
    return [...this.early, ...this.live.steps.values()];
  }

  readonly axis = computed<Axis>(() => {
    const s = this.live;
    const end = this.end.value;
    const busy: Stretch[] = [];
    for (const step of this.lanes) {
      for (const x of step.spans) if (x.kind === "work") busy.push({from: x.from, to: x.to ?? end});
    }
    const holes: Hole[] = [];
    let at = 0;
    for (const [first, last] of this.journal.parts()) {
      if (first > at + 1) holes.push({from: this.journal.at(at)?.at ?? s.began, to: this.journal.at(first)!.at, first: at + 1, last: first - 1});
      at = last;
    }
    return compress(s.began, Math.max(end, s.began + 1), busy, holes);
  });

  constructor(readonly id: string) {}

  start(): void {
    this.stopping.push(
      effect(() => {
        if (link.value === "open") this.readSoon(0);
      }),
    );
    this.stopping.push(effect(() => this.count()));
    const looking = setInterval(() => void this.lookForDriver(), lookEvery);
    this.stopping.push(() => clearInterval(looking));
  }

  stop(): void {
    for (const s of this.stopping) s();
    this.unfollow?.();
    cancelAnimationFrame(this.frame);
    cancelAnimationFrame(this.draftFrame);
    clearTimeout(this.soon);
    clearTimeout(this.counting);
    this.reading?.abort();
  }

  /** Moves to a seq, once what it needs was read; beyond the newest is the newest, and follows it. */
  look(seq: number | null): void {
    const reading = this.seeking.value !== null;
    if (seq === null || seq >= this.journal.seq) seq = null;
    else seq = Math.max(1, seq);
    const known = seq === null || this.knows(seq);
    this.seeking.value = known ? null : seq;
    if (known) this.cursor.value = seq;
    else if (!reading) void this.seek();
  }

  /** The events up to the seq that is looked at. */
  upTo(): number {
    this.version.value;
    return this.cursor.value ?? this.journal.seq;
  }

  /** Reads events that are not held. */
  async load(seq: number): Promise<void> {
    const from = before(seq);
    const to = Math.min(from + windowSpan, this.journal.seq);
    if (this.journal.missing(from + 1, to) === 0) return;
    await this.once(`events ${from}`, async (journal) => {
      const part = await api.events(this.id, from, to);
      if (journal !== this.journal) return;
      if (part.at(-1)?.seq !== to || !journal.fill(part)) this.restart(); // it is another history by now
      else this.learn();
    });
  }

  /** Reads the steps before the earliest of those that are looked at. */
  async showEarlier(): Promise<void> {
    const {earlier} = this.state;
    if (earlier === 0) return;
    const base = this.state === this.live ? undefined : this.bases.get(before(this.cursor.value!))!;
    await this.once(`steps ${base?.[0]!.seq} ${earlier}`, async (journal) => {
      const page = await api.run(this.id, {before: earlier, ...(base ? {at: base[0]!.seq} : {})});
      if (journal !== this.journal) return;
      if (base) base.push(page);
      else {
        this.older.value = [...page.steps, ...this.older.value];
        this.live.prepend(page.steps.map((x) => stepOf(x, page.seq)), page.earlier ?? 0);
      }
      this.learn();
    });
  }

  /** Has the server tell of a step that it has not told of yet. */
  async ask(s: Step): Promise<void> {
    if (this.told(s.id) || !this.view.value) return;
    await this.once(`step ${s.id}`, async () => {
      const {steps} = await api.run(this.id, {before: s.first + 1, limit: 1});
      this.older.value = [...steps.filter((x) => x.id === s.id), ...this.older.value];
    });
  }

  // Takes over when steps were at work, as far as events tell that are held. A step that is at work
  // where a part ends may have ended at any time.
  private learn(): void {
    const {entries} = this.journal;
    this.early = [];
    if (this.journal.start(this.journal.seq) === 1) {
      const asked = this.live.waiting;
      this.live = fold(entries, this.live.seq);
      for (const [step, q] of asked) this.live.waiting.set(step, q); // the same to those who are answering
    } else {
      for (const [first, last] of this.journal.parts()) {
        const part = fold(entries, Math.min(last, this.live.seq), new State(first - 1));
        if (last < this.journal.seq) for (const s of part.steps.values()) if (s.spans.at(-1)?.to === null) part.steps.delete(s.id);
        this.live.adopt(part);
        for (const s of part.steps.values()) if (!this.live.steps.has(s.id)) this.early.push(s);
      }
    }
    this.version.value++;
  }

  // Reads something, unless that is under way. What fails is said.
  private once(what: string, read: (journal: Journal) => Promise<void>): Promise<void> {
    const under = this.windows.get(what) ?? read(this.journal).catch(fault).finally(() => this.windows.delete(what));
    this.windows.set(what, under);
    return under;
  }

  // Whether the state at seq can be folded.
  private knows(seq: number): boolean {
    const start = this.journal.start(seq);
    return start === 1 || (start <= before(seq) + 1 && this.bases.has(before(seq)));
  }

  // One place after another, so that a hand on the slider asks for few of them.
  private async seek(): Promise<void> {
    for (let seq = this.seeking.value; seq !== null; seq = this.seeking.value) {
      const from = before(seq);
      await Promise.all([this.load(seq), from === 0 || this.bases.has(from) ? null : this.once(`base ${from}`, async (journal) => {
        const base = await api.run(this.id, {at: from, limit: stepsBefore});
        if (journal === this.journal) this.bases.set(from, [base]);
      })]);
      if (this.seeking.value !== seq) continue;
      this.seeking.value = null;
      if (this.knows(seq)) this.cursor.value = seq;
    }
  }

  async read(): Promise<void> {
    this.reading?.abort();
    const mine = (this.reading = new AbortController());
    try {
      const v = await api.run(this.id, {}, mine.signal);
      batch(() => {
        this.view.value = v;
        this.drives(v);
        if (!this.unfollow) this.follow(v);
        else if (v.steps_total && v.seq === this.live.seq) {
          agree(this.live, v);
          this.version.value++;
        }
      });
    } catch (e) {
      if (mine.signal.aborted || (e instanceof ApiError && e.status === 401)) return;
      if (e instanceof ApiError && e.status === 0) return this.readSoon(again);
      if (e instanceof ApiError && [404, 410, 503].includes(e.status)) this.problem.value = {code: e.code, message: e.message};
      else fault(e);
      if (!this.unfollow && !(e instanceof ApiError && (e.status === 404 || e.status === 410))) this.readSoon(again);
    }
  }

  // A process that was killed writes nothing: a run without events is asked for anew.
  private async lookForDriver(): Promise<void> {
    if (!this.ready.value || this.live.status !== "running" || document.hidden || link.value !== "open") return;
    const seq = this.live.seq;
    try {
      const v = await api.run(this.id, {limit: 1});
      if (this.live.seq === seq) this.drives(v);
    } catch (e) {
      if (!(e instanceof ApiError)) fault(e); // else what is followed tells of the connection
    }
  }

  private drives(v: RunView): void {
    if (v.seq >= this.live.seq) this.idle.value = v.idle ?? "";
  }

  // Follows the journal from its newest events on. What is known of the run changes when all that
  // the server told of is here.
  private follow(v: RunView): void {
    const from = Math.max(0, before(v.seq) - windowSpan);
    const journal = new Journal(from);
    let complete = false;
    const open = () => {
      if (!complete || journal.seq < v.seq || journal === this.journal) return;
      const live = from === 0 ? new State() : stateOf(v);
      if (from > 0) live.adopt(fold(journal.entries, v.seq));
      this.begin(journal, fold(journal.entries, journal.seq, live));
      if (journal.seq > v.seq) this.readSoon(0); // what it tells is of before the newest of them
    };
    this.unfollow = replay.watch(this.id, journal, {
      events: (entries) => {
        if (journal === this.journal) this.take(entries);
        else open();
      },
      asked: () => this.drafts.again(),
      delta: (d) => {
        this.drafts.add(d);
        this.draftFrame ||= requestAnimationFrame(() => {
          this.draftFrame = 0;
          this.draftVersion.value++;
        });
      },
      reset: () => this.restart(),
      complete: () => {
        complete = true;
        open();
        this.flush();
        this.problem.value = null;
      },
      error: (code, message, final) => {
        if (final || code === "agent_unavailable") this.problem.value = {code, message};
      },
    });
  }

  private begin(journal: Journal, live: State): void {
    const at = this.cursor.value;
    this.journal = journal;
    this.live = live;
    this.fresh = [];
    this.early = [];
    this.bases.clear();
    this.windows.clear();
    for (const e of journal.entries) if (e) this.drafts.settle(e);
    batch(() => {
      this.older.value = [];
      this.picks.value = new Map();
      this.counted = "";
      this.seeking.value = null;
      this.cursor.value = null;
      this.ready.value = true;
      this.version.value++;
      this.draftVersion.value++;
      if (at !== null) this.look(at);
    });
  }

  // The history is another one than was thought: reads it anew, and shows what there is meanwhile.
  private restart(): void {
    this.unfollow?.();
    this.unfollow = null;
    this.drafts.clear();
    this.readSoon(0);
  }

  private take(entries: readonly Entry[]): void {
    for (const e of entries) this.fresh.push(e);
    if (this.problem.value) this.problem.value = null;
    // A page in the background gets no frames.
    if (document.hidden) this.flush();
    else this.frame ||= requestAnimationFrame(() => this.flush());
  }

  private flush(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (this.fresh.length === 0) return;
    let tells = false;
    this.idle.value = ""; // until it is read again: a process wrote
    for (const e of this.fresh) {
      this.live.apply(e);
      this.drafts.settle(e);
      tells ||= moving.has(e.type);
    }
    this.fresh = [];
    batch(() => {
      this.version.value++;
      this.draftVersion.value++;
    });
    if (tells) this.readSoon(120);
  }

  private readSoon(ms: number): void {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => void this.read(), ms);
  }

  /** The seq of the newest event at a time, among those that are held. */
  seqAt(at: number): number {
    const parts = this.journal.parts();
    const [first, last] = parts.findLast(([from]) => this.journal.at(from)!.at <= at) ?? parts[0]!;
    return newestAt(this.journal.entries, at, first, last);
  }

  // Replays from where we are to the end, in about as many seconds as there is to see; where the
  // beginning was not read, the part that was.
  play(): void {
    if (this.playing.value) {
      this.playing.value = false;
      return;
    }
    const axis = this.axis.value;
    const {entries} = this.journal;
    const [first, last] = this.journal.parts().find(([, to]) => to >= (this.cursor.value ?? this.journal.seq)) ?? [1, 0];
    if (last - first < 1) return;
    this.playing.value = true;
    const tail = last === this.journal.seq;
    const whole = Math.min(30_000, Math.max(6_000, (last - first) * 120));
    let begin: number | null = null;
    if (this.cursor.value === null) this.look(first);
    const tick = (t: number) => {
      if (!this.playing.value) return;
      const at = this.cursor.value;
      if (this.seeking.value !== null) { // what was before the first event is being read
        requestAnimationFrame(tick);
        return;
      }
      begin ??= at === null ? t : t - axis.place(entries[at - 1]!.at) * whole;
      const place = (t - begin) / whole;
      if (place >= 1 || at === null || at >= last) {
        this.playing.value = false;
        if (at !== null && tail) this.look(null);
        return;
      }
      this.look(Math.max(at, newestAt(entries, axis.time(place), first, last)));
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }
}

/** The seq of the newest event at a time, among those from first to last, which are held. */
function newestAt(entries: readonly (Entry | undefined)[], at: number, first: number, last: number): number {
  let low = first;
  let high = last;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (entries[mid - 1]!.at <= at) low = mid;
    else high = mid - 1;
  }
  return low;
}
