// A journal as the client holds it: a chain that only grows at its end, or is cut.

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

export class Journal {
  readonly entries: Entry[] = [];

  /** The seq of the newest event held, 0 for none. */
  get seq(): number {
    return this.entries.length;
  }

  /** The CID of the newest event held, "" for none. */
  get cid(): string {
    return this.entries.at(-1)?.cid ?? "";
  }

  /** The event of a seq, from 1. */
  at(seq: number): Entry | undefined {
    return this.entries[seq - 1];
  }

  offer(e: Entry): Verdict {
    if (e.seq > this.seq + 1) return "ahead";
    if (e.seq <= this.seq) return this.at(e.seq)?.cid === e.cid ? "known" : "other";
    if ((e.prev ?? "") !== this.cid) return "other";
    this.entries.push(e);
    return "next";
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
