// Steps as a list shows them: the items of a fan-out are one line, which opens.

import type {Step} from "./fold.ts";
import type {FanTally} from "./service.ts";
import {plural} from "./text.ts";

/** The items of one visit of a role. */
export interface Fan {
  id: string; // of the visit: check#1 of check#1[7]
  role: string;
  steps: Step[];
  partial: boolean; // it may have more items, which were not read and not counted
  seq: number; // the event after which it is as it is counted
  of: number; // items that are known to have begun
  counts: [status: string, n: number][]; // those that want to be looked at first
}

/** A line of the list: a step, or the head of a fan-out. */
export type Line = {step: Step; fan?: undefined} | {fan: Fan; step?: undefined};

/** Which items of a fan-out are shown: "" none, "all", or those of a status. */
export type Opened = ReadonlyMap<string, string>;

const few = 12; // items that are shown without being asked for

const order = ["failed", "nonzero", "interrupted", "waiting", "running", "retrying", "queued", "parked", "skipped", "unread", "ok"];
const rank = (status: string): number => (order.indexOf(status) + order.length + 1) % (order.length + 1);

/** The visit that an item belongs to, "" for a step that is none. */
export function fanOf(s: Step): string {
  return s.item === null ? "" : s.id.slice(0, s.id.lastIndexOf("["));
}

/** States that want to be looked at, as the server names them. */
export const odd = "failed,nonzero,waiting,retrying,parked";

/** The states of the server that are a status here. */
export const statesOf = (status: string): string => ({all: "", unread: "", ok: "ok,cut_off", running: "running,held", interrupted: "running,held"})[status] ?? status;

/** The counts of all items of the fan-outs of a run after an event, as the server has them. */
export interface Tally {
  seq: number;
  fans: readonly FanTally[];
}

type Counts = Map<string, number>;

const add = (to: Counts, status: string, n: number): unknown => to.set(status, (to.get(status) ?? 0) + n);

// What the server counted, in statuses of the page.
function countsOf(states: FanTally["states"], idle: boolean): Counts {
  const by: Counts = new Map();
  for (const [state, n] of Object.entries(states)) add(by, state === "cut_off" ? "ok" : state === "held" || state === "running" ? (idle ? "interrupted" : "running") : state, n);
  return by;
}

/**
 * The fan-outs among steps, by visit, after the event seq. Where earlier steps were not read, the first of them may be one of
 * many. What the steps do not say the tally does: it counts the items that lack, and those that ended unread before it was made.
 * Items that ended unread since stay unread.
 */
export function fansOf(steps: Iterable<Step>, statusOf: (s: Step) => string, earlier: boolean, seq: number, tally: Tally = {seq: 0, fans: []}, idle = false): Map<string, Fan> {
  const fans = new Map<string, Fan>();
  const items = new Map<string, {by: Counts; then: Counts}>(); // then: of those that had ended when the tally was made
  let before = earlier; // only items that lie between others are known to be all
  const fanNamed = (id: string, role: string): Fan => {
    let f = fans.get(id);
    if (!f) {
      fans.set(id, f = {id, role, steps: [], partial: before, seq, of: 0, counts: []});
      items.set(id, {by: new Map(), then: new Map()});
    }
    return f;
  };
  for (const s of steps) {
    const id = fanOf(s);
    if (id === "") {
      before = false;
      continue;
    }
    fanNamed(id, s.role).steps.push(s);
    const {by, then} = items.get(id)!;
    const status = statusOf(s);
    add(by, status, 1);
    if (s.record && s.last <= tally.seq) add(then, status, 1);
  }
  for (const {id, states} of tally.fans) {
    const f = fanNamed(id, id.slice(0, id.lastIndexOf("#")));
    const told = countsOf(states, idle);
    const {by, then} = items.get(id)!;
    f.partial = false;
    const all = [...told.values()].reduce((a, b) => a + b, 0);
    if (f.steps.filter((s) => s.first <= tally.seq).length < all) {
      Object.assign(f, {of: all, seq: tally.seq});
      items.get(id)!.by = told;
      continue;
    }
    const unread = then.get("unread") ?? 0;
    const rest = ["failed", "nonzero", "skipped", "ok"].map((status) => [status, (told.get(status) ?? 0) - (then.get(status) ?? 0)] as const);
    // An item that began again meanwhile is none of these.
    if (unread === 0 || rest.some(([, n]) => n < 0) || rest.reduce((sum, [, n]) => sum + n, 0) !== unread) continue;
    for (const [status, n] of [...rest, ["unread", -unread] as const]) add(by, status, n);
  }
  for (const f of fans.values()) {
    f.counts = [...items.get(f.id)!.by].filter(([, n]) => n > 0).sort(([a], [b]) => rank(a) - rank(b));
    f.of ||= f.steps.length;
    f.steps.sort((a, b) => a.item! - b.item!);
  }
  return fans;
}

/** What is shown of a fan-out that was not opened or closed by hand: few items, or what went wrong. */
export function openedAtFirst(f: Fan): string {
  if (f.of <= few) return "all";
  const [worst] = f.counts[0] ?? [""];
  return worst === "failed" || worst === "nonzero" ? worst : "";
}

/** The lines of a list of steps; a chosen item is among them, whatever is opened. */
export function linesOf(steps: Iterable<Step>, fans: ReadonlyMap<string, Fan>, opened: Opened, chosen: string, statusOf: (s: Step) => string): Line[] {
  const out: Line[] = [...fans.values()].filter((f) => f.steps.length === 0).map((fan) => ({fan})); // they began before all that was read
  const seen = new Set<string>();
  for (const s of steps) {
    const id = fanOf(s);
    const fan = fans.get(id);
    if (!fan) out.push({step: s});
    if (!fan || seen.has(id)) continue;
    seen.add(id);
    out.push({fan});
    const show = opened.get(id) ?? openedAtFirst(fan);
    for (const x of fan.steps) if (show === "all" || x.id === chosen || (show !== "" && statusOf(x) === show)) out.push({step: x});
  }
  return out;
}

/** How many items there are, in words. */
export function itemsOf(f: Fan): string {
  return plural(f.of, "item") + (f.partial ? " read" : "");
}
