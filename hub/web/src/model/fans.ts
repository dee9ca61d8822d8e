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
  of: number; // items that are known to have begun
  counts: [status: string, n: number][]; // those that want to be looked at first
}

/** A line of the list: a step, or the head of a fan-out. */
export type Line = {step: Step; fan?: undefined} | {fan: Fan; step?: undefined};

/** Which items of a fan-out are shown: "" none, "all", or those of a status. */
export type Opened = ReadonlyMap<string, string>;

const few = 12; // items that are shown without being asked for

const order = ["failed", "nonzero", "interrupted", "waiting", "running", "retrying", "queued", "parked", "skipped", "ok"];
const rank = (status: string): number => (order.indexOf(status) + order.length + 1) % (order.length + 1);

/** The visit that an item belongs to, "" for a step that is none. */
export function fanOf(s: Step): string {
  return s.item === null ? "" : s.id.slice(0, s.id.lastIndexOf("["));
}

/** States that want to be looked at, as the server names them. */
export const odd = "failed,nonzero,waiting,retrying,parked";

/** The states of the server that are a status here. */
export const statesOf = (status: string): string => ({all: "", ok: "ok,cut_off", running: "running,held", interrupted: "running,held"})[status] ?? status;

/**
 * The fan-outs among steps, by visit. Where earlier steps were not read, the first of them may be one of many; told are the
 * counts of all items, where the server was asked for them.
 */
export function fansOf(steps: Iterable<Step>, statusOf: (s: Step) => string, earlier: boolean, told: readonly FanTally[] = [], idle = false): Map<string, Fan> {
  const fans = new Map<string, Fan & {by: Map<string, number>}>();
  let before = earlier; // only items that lie between others are known to be all
  for (const s of steps) {
    const id = fanOf(s);
    if (id === "") {
      before = false;
      continue;
    }
    let f = fans.get(id);
    if (!f) fans.set(id, f = {id, role: s.role, steps: [], partial: before, of: 0, counts: [], by: new Map()});
    f.steps.push(s);
    const status = statusOf(s);
    f.by.set(status, (f.by.get(status) ?? 0) + 1);
  }
  for (const {id, states} of told) {
    const by = new Map<string, number>();
    for (const [state, n] of Object.entries(states)) {
      const status = state === "cut_off" ? "ok" : state === "held" || state === "running" ? (idle ? "interrupted" : "running") : state;
      by.set(status, (by.get(status) ?? 0) + n);
    }
    const f: Fan & {by: Map<string, number>} = fans.get(id) ?? {id, role: id.slice(0, id.lastIndexOf("#")), steps: [], partial: false, of: 0, counts: [], by};
    fans.set(id, f);
    f.of = [...by.values()].reduce((a, b) => a + b, 0);
    Object.assign(f, {partial: false, by: f.steps.length < f.of ? by : f.by});
  }
  for (const f of fans.values()) {
    f.of = Math.max(f.of, f.steps.length);
    f.counts = [...f.by].sort(([a], [b]) => rank(a) - rank(b));
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
