// Two runs beside each other: which of their steps are the same, and what differs.

import type {Run, StepView} from "./service.ts";

/** A step of either run or of both. */
export interface Pair {
  id: string;
  left: StepView | undefined;
  right: StepView | undefined;
  same: boolean; // one record is that of both
}

/** The steps of two runs by their ids: in the order of the first, each that the other alone has behind the one before it. */
export function pairs(left: readonly StepView[], right: readonly StepView[]): Pair[] {
  const ours = new Map(left.map((s) => [s.id, s]));
  const theirs = new Map(right.map((s) => [s.id, s]));
  const behind = new Map<string, StepView[]>(); // steps of the right alone, by the one before them
  let before = "";
  for (const s of right) {
    if (ours.has(s.id)) before = s.id;
    else if (behind.get(before)?.push(s) === undefined) behind.set(before, [s]);
  }
  const out: Pair[] = [];
  const alone = (id: string) => {
    for (const s of behind.get(id) ?? []) out.push({id: s.id, left: undefined, right: s, same: false});
  };
  alone("");
  for (const s of left) {
    const other = theirs.get(s.id);
    out.push({id: s.id, left: s, right: other, same: s.cid !== null && s.cid === other?.cid});
    alone(s.id);
  }
  return out;
}

/** A value that two runs have under a name. */
export interface Value {
  name: string;
  left: unknown;
  right: unknown;
  same: boolean;
}

/** The values of two objects by name. */
export function values(left: Record<string, unknown>, right: Record<string, unknown>): Value[] {
  return [...new Set([...Object.keys(left), ...Object.keys(right)])].map((name) => ({name, left: left[name], right: right[name], same: JSON.stringify(left[name]) === JSON.stringify(right[name])}));
}

/** The tokens that the model calls of a run used, prompts and answers together. */
export const tokensOf = (r: Run): number => (r.usage.input ?? 0) + (r.usage.output ?? 0);
