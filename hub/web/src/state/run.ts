// One run as the page sees it: its journal, the state at any seq of it, and what the server
// tells beyond that.

import {batch, computed, effect, signal} from "@preact/signals";
import {fansOf, linesOf, odd, statesOf, type Fan, type Line, type Opened, type Tally} from "../model/fans.ts";
import {fold, State, telling, type Step} from "../model/fold.ts";
import {before, Journal, newestAt, windowSpan} from "../model/journal.ts";
import {Drafts, type Draft} from "../model/live.ts";
import {compress, type Axis, type Hole, type Stretch} from "../model/timeline.ts";
import type {Entry} from "../model/wire.ts";
import {api, ApiError, skew} from "../net/api.ts";
import {fault, link, now, replay} from "./app.ts";
import {agree, stateOf, stepOf} from "./told.ts";
import type {Idle, Run as RunView, StepView} from "../model/service.ts";

// Events that change what GET /v1/runs/{id} tells beyond the fold.
const moving = new Set([
  "run_started", "step_completed", "step_started", "waiting", "answered", "escalated", "attempt_failed", "suspended", "resumed", "limit_changed",
  "closing", "closing_skipped", "cancelled", "done", "forked", "compacted", "usage", "files_laid",
]);

const stepsBefore = 200; // that are read at once: of the run as it was, and of what wants to be looked at
const again = 2000; // until a run that could not be read is asked for again
const lookEvery = 5000; // whether a process drives a run, which no event tells

const countEvery = 3000; // how often, at most, items are counted anew that were not read
const readEvery = 500; // how often, at most, a run is read in which much happens

/** What was asked for of steps that were not read. */
interface Picked {
  tally?: Tally;
  steps: readonly Step[];
  earlier: Readonly<Record<string, number>>; // by what was asked for: before, of the next part
  reading: string; // what is being asked for
  error: string;
}
const unasked: Picked = {steps: [], earlier: {}, reading: "", error: ""};

export class Run {
  // What is changed in place is read by what subscribes to its changes: nothing else of it is to be had.
  #kept = new Journal();
  #drafts = new Drafts();
  /** Grows with every change of the journal. */
  readonly version = signal(0);
  #draftVersion = signal(0);
  readonly noted = signal(0); // grows with what is known of how steps ended
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

  #picks = signal<ReadonlyMap<number | null, Picked>>(new Map()); // by the seq that is looked at
  #counted = ""; // what was counted last: a place in the past, or the newest event
  #ends = new Map<string, string>(); // how steps ended whose records were read, by record
  #actions = new Map<string, string>(); // of roles, as far as they were told
  #due: number | null = null; // the seq at which is counted next
  #counting: ReturnType<typeof setTimeout> | undefined;

  #live = new State();
  #stopping: (() => void)[] = [];
  #unfollow: (() => void) | null = null;
  #fresh: Entry[] = [];
  #frame = 0;
  #draftFrame = 0;
  #soon: ReturnType<typeof setTimeout> | undefined; // while the run is to be read, or is being read
  #behind = false; // something happened since, of which the run tells
  #reading: AbortController | null = null;

  #windows = new Map<string, Promise<void>>(); // that are being read
  #bases = new Map<number, RunView[]>(); // the run as it was before a window; pages of its steps, the newest first
  #older = signal<readonly StepView[]>([]); // that the view has no room for
  #early: Step[] = []; // that the parts of the journal tell of, and the live state does not have
  #fanned: {key: readonly unknown[]; fans: ReadonlyMap<string, Fan>} = {key: [], fans: new Map()};
  #past: {of: State; version: number; at: number; state: State} | null = null;

  /** What is held of the journal: its newest events, and what was asked for. */
  get journal(): Journal {
    this.version.value;
    return this.#kept;
  }

  /** What is being said in a step. */
  draftsOf(step: string): readonly Draft[] {
    this.#draftVersion.value;
    return this.#drafts.of(step);
  }

  /** The newest state. It is one object that grows; reading it subscribes to that. */
  get head(): State {
    this.version.value;
    return this.#live;
  }

  /** The state that is looked at. */
  get state(): State {
    const head = this.head;
    const at = this.cursor.value;
    if (at === null || at >= this.journal.seq) return head;
    const version = this.version.value;
    if (this.#past?.of !== head || this.#past.at !== at || this.#past.version !== version) this.#past = {of: head, version, at, state: this.#stateAt(at)};
    return this.#past.state;
  }

  #stateAt(seq: number): State {
    const entries = this.journal.entries;
    if (this.journal.start(seq) === 1) return fold(entries, seq);
    const [base, ...earlier] = this.#bases.get(before(seq))!;
    const s = stateOf(base!);
    for (const page of earlier) s.prepend(page.steps.map((x) => stepOf(x, base!.seq)), page.earlier ?? 0);
    return fold(entries, seq, s);
  }

  readonly #steps = computed(() => new Map([...this.#older.value, ...(this.view.value?.steps ?? [])].map((s) => [s.id, s])));

  /** What the server tells of a step. */
  told(step: string): StepView | undefined {
    return this.#steps.value.get(step);
  }

  /** Where the timeline ends: at the newest event, or now while something goes on. */
  readonly end = computed<number>(() => {
    this.version.value;
    const s = this.#live;
    return s.final || s.status === "suspended" || this.idle.value ? s.at : Math.max(s.at, now.value + skew);
  });

  /**
   * The status of a step: one that was cut off where no process drives the run, and that of a command which failed and was treated
   * as data. No event says the latter: where the record was not read it is unread.
   */
  statusOf(s: Step): string {
    this.noted.value;
    if (s.record && (s.status === "ok" || s.status === "unread")) return this.#ends.get(s.record) ?? ((this.#actions.get(s.role) ?? "run") === "run" ? "unread" : s.status);
    return s.status === "running" && this.cursor.value === null && this.idle.value ? "interrupted" : s.status;
  }

  // Takes over how steps ended.
  #note(steps: readonly StepView[]): void {
    for (const x of steps) {
      const code = (x.output as Record<string, unknown> | null)?.["exit_code"];
      this.#actions.set(x.role, x.action);
      if (x.cid) this.#ends.set(x.cid, x.status === "ok" && x.action === "run" && typeof code === "number" && code !== 0 ? "nonzero" : x.status);
    }
    this.noted.value = this.#ends.size;
  }

  /** The fan-outs among the steps that are looked at, by visit. */
  get fans(): ReadonlyMap<string, Fan> {
    const key = [this.state, this.state.earlier, this.version.value, this.#steps.value, this.idle.value, this.picked, this.noted.value];
    if (this.#fanned.key.length === 0 || key.some((k, i) => k !== this.#fanned.key[i])) this.#fanned = {key, fans: this.fansAt(this.cursor.value)};
    return this.#fanned.fans;
  }

  /** The fan-outs after an event, null for the newest. */
  fansAt(at: number | null): ReadonlyMap<string, Fan> {
    const {earlier, seq} = at === null ? this.head : this.state;
    return fansOf(this.stepsAt(at), (s) => this.statusOf(s), earlier > 0, seq, this.#pickedAt(at).tally, at === null && this.idle.value !== "");
  }

  /** The steps that were read, and before them those of earlier ones that were asked for. */
  stepsAt(at: number | null): Step[] {
    const {steps, earlier} = at === null ? this.head : this.state;
    const early = earlier > 0 ? this.#pickedAt(at).steps.filter((s) => !steps.has(s.id)) : [];
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

  #pickedAt(at: number | null): Picked {
    return this.#picks.value.get(at) ?? unasked;
  }

  /** Whether there is more in the whole run that wants to be looked at than was read. */
  get more(): boolean {
    return (this.#pickedAt(null).earlier[` ${odd}`] ?? 0) > 0;
  }

  get picked(): Picked {
    return this.#pickedAt(this.cursor.value);
  }

  /** Reads steps of a role with a status, or all of its steps, or without one what wants to be looked at: the newest, then those before them. */
  async pick(role = "", status = ""): Promise<void> {
    const at = this.cursor.value;
    const states = status ? statesOf(status) : odd;
    const what = `${role} ${states}`;
    const {journal} = this;
    const keep = (p: Partial<Picked>): void => void (this.#picks.value = new Map([[null, this.#pickedAt(null)], [at, {...this.#pickedAt(at), reading: "", error: "", ...p}]]));
    keep({reading: what});
    try {
      const v = await api.run(this.id, {status: states, role, before: status ? this.#pickedAt(at).earlier[what] ?? (status === "all" ? this.state.earlier : 0) : 0, at: at ?? 0, ...(status ? {} : {limit: stepsBefore})});
      if (journal !== this.journal) return;
      this.#note(v.steps);
      const from = (v.earlier && v.steps[0]?.began) || 0; // of what wants to be looked at, all since then are in the answer
      if (!status && at === this.cursor.value) {
        for (const s of this.stepsAt(at)) if (s.record && s.status === "ok" && s.first >= from && s.last <= v.seq && !this.#ends.has(s.record)) this.#ends.set(s.record, "ok");
        this.noted.value = this.#ends.size;
      }
      const known = new Map(this.#pickedAt(at).steps.filter((s) => status || s.first < from || !odd.includes(this.statusOf(s))).map((s) => [s.id, s]));
      for (const x of v.steps) known.set(x.id, stepOf(x, v.seq));
      batch(() => {
        this.#older.value = [...this.#older.value, ...v.steps.filter((x) => x.ended && !this.told(x.id))];
        keep({tally: {seq: v.seq, fans: v.fans ?? []}, steps: [...known.values()].sort((a, b) => a.first - b.first), earlier: {...this.#pickedAt(at).earlier, [what]: v.earlier ?? 0}});
      });
    } catch (e) {
      if (journal === this.journal) keep({error: e instanceof Error ? e.message : String(e)});
    }
  }

  // Has counted what was not read: as the run goes on, and at a place in its past where one stays.
  #count(): void {
    const at = this.cursor.value;
    const now = () => `${at} ${this.upTo()}`;
    if (!this.ready.value || now() === this.#counted || (this.#counting && this.#due === at)) return;
    clearTimeout(this.#counting);
    this.#due = at;
    const counting = this.#counting = setTimeout(async () => {
      this.#counted = now();
      if (this.state.earlier > 0 || this.stepsAt(at).some((s) => this.statusOf(s) === "unread")) await this.pick();
      if (counting !== this.#counting) return;
      this.#counting = undefined;
      this.#count();
    }, at !== null ? 1000 : this.#counted ? countEvery : 0);
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
    return [...this.#early, ...this.#live.steps.values()];
  }

  readonly axis = computed<Axis>(() => {
    const s = this.#live;
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
    this.#stopping.push(
      effect(() => {
        if (link.value === "open") this.#readSoon(0);
      }),
    );
    this.#stopping.push(effect(() => this.#count()));
    const looking = setInterval(() => void this.#lookForDriver(), lookEvery);
    this.#stopping.push(() => clearInterval(looking));
  }

  stop(): void {
    for (const s of this.#stopping) s();
    this.#unfollow?.();
    cancelAnimationFrame(this.#frame);
    cancelAnimationFrame(this.#draftFrame);
    clearTimeout(this.#soon);
    clearTimeout(this.#counting);
    this.#reading?.abort();
  }

  /** Moves to a seq, once what it needs was read; beyond the newest is the newest, and follows it. */
  look(seq: number | null): void {
    const reading = this.seeking.value !== null;
    if (seq === null || seq >= this.journal.seq) seq = null;
    else seq = Math.max(1, seq);
    const known = seq === null || this.#knows(seq);
    this.seeking.value = known ? null : seq;
    if (known) this.cursor.value = seq;
    else if (!reading) void this.#seek();
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
    await this.#once(`events ${from}`, async (journal) => {
      const part = await api.events(this.id, from, to);
      if (journal !== this.journal) return;
      if (part.at(-1)?.seq !== to || !journal.fill(part)) this.#restart(); // it is another history by now
      else this.#learn();
    });
  }

  /** Reads the steps before the earliest of those that are looked at. */
  async showEarlier(): Promise<void> {
    const {earlier} = this.state;
    if (earlier === 0) return;
    const base = this.state === this.#live ? undefined : this.#bases.get(before(this.cursor.value!))!;
    await this.#once(`steps ${base?.[0]!.seq} ${earlier}`, async (journal) => {
      const page = await api.run(this.id, {before: earlier, ...(base ? {at: base[0]!.seq} : {})});
      if (journal !== this.journal) return;
      this.#note(page.steps);
      if (base) base.push(page);
      else {
        this.#older.value = [...page.steps, ...this.#older.value];
        this.#live.prepend(page.steps.map((x) => stepOf(x, page.seq)), page.earlier ?? 0);
      }
      this.#learn();
    });
  }

  /** Has the server tell of a step that it has not told of yet. */
  async ask(s: Step): Promise<void> {
    if (this.told(s.id) || !this.view.value) return;
    await this.#once(`step ${s.id}`, async () => {
      const {steps} = await api.run(this.id, {before: s.first + 1, limit: 1});
      this.#note(steps);
      this.#older.value = [...steps.filter((x) => x.id === s.id), ...this.#older.value];
    });
  }

  // Takes over when steps were at work, as far as events tell that are held. A step that is at work
  // where a part ends may have ended at any time.
  #learn(): void {
    const {entries} = this.journal;
    this.#early = [];
    if (this.journal.start(this.journal.seq) === 1) {
      const asked = this.#live.waiting;
      this.#live = fold(entries, this.#live.seq);
      for (const [step, q] of asked) this.#live.waiting.set(step, q); // the same to those who are answering
    } else {
      for (const [first, last] of this.journal.parts()) {
        const part = fold(entries, Math.min(last, this.#live.seq), new State(first - 1));
        if (last < this.journal.seq) for (const s of part.steps.values()) if (s.spans.at(-1)?.to === null) part.steps.delete(s.id);
        this.#live.adopt(part);
        for (const s of part.steps.values()) if (!this.#live.steps.has(s.id)) this.#early.push(s);
      }
    }
    this.version.value++;
  }

  // Reads something, unless that is under way. What fails is said.
  #once(what: string, read: (journal: Journal) => Promise<void>): Promise<void> {
    const under = this.#windows.get(what) ?? read(this.journal).catch(fault).finally(() => this.#windows.delete(what));
    this.#windows.set(what, under);
    return under;
  }

  // Whether the state at seq can be folded.
  #knows(seq: number): boolean {
    const start = this.journal.start(seq);
    return start === 1 || (start <= before(seq) + 1 && this.#bases.has(before(seq)));
  }

  // One place after another, so that a hand on the slider asks for few of them.
  async #seek(): Promise<void> {
    for (let seq = this.seeking.value; seq !== null; seq = this.seeking.value) {
      const from = before(seq);
      await Promise.all([this.load(seq), from === 0 || this.#bases.has(from) ? null : this.#once(`base ${from}`, async (journal) => {
        const base = await api.run(this.id, {at: from, limit: stepsBefore});
        this.#note(base.steps);
        if (journal === this.journal) this.#bases.set(from, [base]);
      })]);
      if (this.seeking.value !== seq) continue;
      this.seeking.value = null;
      if (this.#knows(seq)) this.cursor.value = seq;
    }
  }

  async read(): Promise<void> {
    this.#reading?.abort();
    const mine = (this.#reading = new AbortController());
    try {
      const v = await api.run(this.id, {}, mine.signal);
      this.#note(v.steps);
      batch(() => {
        this.view.value = v;
        this.#drives(v);
        if (!this.#unfollow) this.#follow(v);
        else if (v.steps_total && v.seq === this.#live.seq) {
          agree(this.#live, v);
          this.version.value++;
        }
      });
    } catch (e) {
      if (mine.signal.aborted || (e instanceof ApiError && e.status === 401)) return;
      if (e instanceof ApiError && e.status === 0) return this.#readSoon(again);
      if (e instanceof ApiError && [404, 410, 503].includes(e.status)) this.problem.value = {code: e.code, message: e.message};
      else fault(e);
      if (!this.#unfollow && !(e instanceof ApiError && (e.status === 404 || e.status === 410))) this.#readSoon(again);
    }
  }

  // A process that was killed writes nothing: a run without events is asked for anew.
  async #lookForDriver(): Promise<void> {
    if (!this.ready.value || this.#live.status !== "running" || document.hidden || link.value !== "open") return;
    const seq = this.#live.seq;
    try {
      const v = await api.run(this.id, {limit: 1});
      if (this.#live.seq === seq) this.#drives(v);
    } catch (e) {
      if (!(e instanceof ApiError)) fault(e); // else what is followed tells of the connection
    }
  }

  #drives(v: RunView): void {
    if (v.seq >= this.#live.seq) this.idle.value = v.idle ?? "";
  }

  // Follows the journal from its newest events on. What is known of the run changes when all that
  // the server told of is here.
  #follow(v: RunView): void {
    const from = Math.max(0, before(v.seq) - windowSpan);
    const journal = new Journal(from);
    let complete = false;
    const open = () => {
      if (!complete || journal.seq < v.seq || journal === this.journal) return;
      const live = from === 0 ? new State() : stateOf(v);
      if (from > 0) live.adopt(fold(journal.entries, v.seq));
      this.#begin(journal, fold(journal.entries, journal.seq, live));
      if (journal.seq > v.seq) this.#readSoon(0); // what it tells is of before the newest of them
    };
    this.#unfollow = replay.watch(this.id, journal, {
      events: (entries) => {
        if (journal === this.journal) this.#take(entries);
        else open();
      },
      asked: () => this.#drafts.again(),
      delta: (d) => {
        this.#drafts.add(d);
        this.#draftFrame ||= requestAnimationFrame(() => {
          this.#draftFrame = 0;
          this.#draftVersion.value++;
        });
      },
      reset: () => this.#restart(),
      complete: () => {
        complete = true;
        open();
        this.#flush();
        this.problem.value = null;
      },
      error: (code, message, final) => {
        if (final || code === "agent_unavailable") this.problem.value = {code, message};
      },
    });
  }

  #begin(journal: Journal, live: State): void {
    const at = this.cursor.value;
    this.#kept = journal;
    this.#live = live;
    this.#fresh = [];
    this.#early = [];
    this.#bases.clear();
    this.#windows.clear();
    for (const e of journal.entries) if (e) this.#drafts.settle(e);
    batch(() => {
      this.#older.value = [];
      this.#picks.value = new Map();
      this.#counted = "";
      this.seeking.value = null;
      this.cursor.value = null;
      this.ready.value = true;
      this.version.value++;
      this.#draftVersion.value++;
      if (at !== null) this.look(at);
    });
  }

  // The history is another one than was thought: reads it anew, and shows what there is meanwhile.
  #restart(): void {
    this.#unfollow?.();
    this.#unfollow = null;
    this.#drafts.clear();
    this.#readSoon(0);
  }

  #take(entries: readonly Entry[]): void {
    for (const e of entries) this.#fresh.push(e);
    if (this.problem.value) this.problem.value = null;
    // A page in the background gets no frames.
    if (document.hidden) this.#flush();
    else this.#frame ||= requestAnimationFrame(() => this.#flush());
  }

  #flush(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (this.#fresh.length === 0) return;
    let tells = false;
    this.idle.value = ""; // until it is read again: a process wrote
    for (const e of this.#fresh) {
      this.#live.apply(e);
      this.#drafts.settle(e);
      tells ||= moving.has(e.type);
    }
    this.#fresh = [];
    batch(() => {
      this.version.value++;
      this.#draftVersion.value++;
    });
    if (!tells) return;
    if (this.#soon) this.#behind = true;
    else this.#readSoon(120);
  }

  // Reads the run. What happens while it is read has it read again, and not from the beginning: else it would never end.
  #readSoon(ms: number): void {
    clearTimeout(this.#soon);
    this.#behind = false;
    const soon = this.#soon = setTimeout(async () => {
      await this.read();
      if (this.#soon !== soon) return;
      this.#soon = undefined;
      if (this.#behind) this.#readSoon(readEvery);
    }, ms);
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
