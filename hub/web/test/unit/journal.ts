// Journals for tests.

import type {Entry} from "../../src/model/wire.ts";

export type Said = [type: string, step?: string, data?: Record<string, unknown>, after?: number];

/** A chain of events; each is after ms later than the one before, 100 where nothing is said. */
export function journal(said: readonly Said[], branch = ""): Entry[] {
  let at = 1_000_000;
  let prev: string | null = null;
  return said.map(([type, step = "", data = {}, after = 100], i) => {
    at += i === 0 ? 0 : after;
    const cid = `cid${branch}${i + 1}`;
    const e = {seq: i + 1, cid, prev, at, type, step, data};
    prev = cid;
    return e;
  });
}

/** A frame as the server sends it. */
export function frameOf(e: Entry, type = "event", id = "1"): Record<string, unknown> {
  return {type, id, seq: e.seq, cid: e.cid, prev: e.prev, ts: new Date(e.at).toISOString(), event: {type: e.type, step: e.step || null, data: e.data}};
}

export const start = (role: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({role, visit: 1, edge: 0, via: "edge", attempt: 1, ...more});
