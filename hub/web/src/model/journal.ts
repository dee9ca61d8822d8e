// A journal as the client holds it: a chain that grows at its end, or is cut. What is early may be
// left out, and filled in later in windows.

import type {Entry} from "./wire.ts";

/**
 * What an offered event is to the journal.
 *
 *   next     it continues the chain and was taken
 *   known    it is held already, under the same CID; dropped
 *   ahead    events between are missing: ask again from the cursor
 *   other    it belongs to another history: ask again with the CID, the server tells where they part
 */
export type Verdict = "next" | "known" | "ahead" | "other";

/** Windows have so many events: window n holds the seqs from n·500+1 to (n+1)·500. */
export const windowSpan = 500;

/** The seq before the window of a seq. */
export function before(seq: number): number {
  return Math.floor((Math.max(1, seq) - 1) / windowSpan) * windowSpan;
}

export class Journal {
  /** By seq−1; what is not held is undefined. */
  readonly entries: (Entry | undefined)[] = [];

  /** A journal of what comes behind the event from. */
  constructor(from = 0) {
    this.entries.length = from;
  }

  /** The seq of the newest event, 0 for none. */
  get seq(): number {
    return this.entries.length;
  }

  /** The CID of the newest event, "" where it is not held. */
  get cid(): string {
    return this.entries.at(-1)?.cid ?? "";
  }

  /** The event of a seq, from 1, where it is held. */
  at(seq: number): Entry | undefined {
    return this.entries[seq - 1];
  }

  offer(e: Entry): Verdict {
    if (e.seq > this.seq + 1) return "ahead";
    if (e.seq <= this.seq) return this.at(e.seq)?.cid === e.cid ? "known" : "other";
    if (!follows(this.entries.at(-1), e) || (this.seq === 0 && e.prev !== null)) return "other";
    this.entries.push(e);
    return "next";
  }

  /** Puts in a window of early events, one after another. false: it is of another history, and was not taken. */
  fill(part: readonly Entry[]): boolean {
    const first = part[0];
    const last = part.at(-1);
    if (!first || !last || last.seq > this.seq) return false;
    for (const [i, e] of part.entries()) if (e.seq !== first.seq + i || (i > 0 && e.prev !== part[i - 1]!.cid)) return false;
    const next = this.at(last.seq + 1);
    if (!follows(this.at(first.seq - 1), first) || (next && !follows(last, next))) return false;
    for (const e of part) this.entries[e.seq - 1] = e;
    return true;
  }

  /** The first seq from which on all events up to seq are held; seq+1 where it is not held itself. */
  start(seq: number): number {
    while (seq > 0 && this.at(seq)) seq--;
    return seq + 1;
  }

  /** The parts that are held, in order. */
  parts(): [first: number, last: number][] {
    const out: [number, number][] = [];
    for (let seq = this.seq; seq > 0; seq--) {
      if (!this.at(seq)) continue;
      out.unshift([this.start(seq), seq]);
      seq = out[0]![0];
    }
    return out;
  }

  /** The newest seq of [first, last] that is not held, 0 for none. */
  missing(first: number, last: number): number {
    const from = this.start(last) - 1;
    return from >= first ? from : 0;
  }

  /**
   * Cuts the journal behind seq. Where cid is given and the event there has another, the two
   * sides have nothing in common that can be trusted: then all is dropped.
   */
  truncate(seq: number, cid = ""): void {
    if (cid !== "" && seq > 0 && this.at(seq)?.cid !== cid) seq = 0;
    this.entries.length = Math.max(0, Math.min(seq, this.entries.length));
  }
}

// Whether an event continues the one before; of one that is not held nothing is known.
function follows(e: Entry | undefined, next: Entry): boolean {
  return !e || e.cid === next.prev;
}

/** The seq of the newest event at a time, among those from first to last, which are held. */
export function newestAt(entries: readonly (Entry | undefined)[], at: number, first: number, last: number): number {
  let low = first;
  let high = last;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (entries[mid - 1]!.at <= at) low = mid;
    else high = mid - 1;
  }
  return low;
}
