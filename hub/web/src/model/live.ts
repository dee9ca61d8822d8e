// Live output on its way: shown until the journal has the text itself.

import type {Delta, Entry} from "./wire.ts";

/** What is being said in a step, of one kind. */
export interface Draft {
  kind: string;
  text: string;
}

// A journaled event of this type has the whole text of these kinds.
const settles: Record<string, readonly string[]> = {
  text: ["text"],
  thinking: ["thinking"],
  tool_result: ["stdout", "stderr"],
  attempt_failed: ["text", "thinking", "stdout", "stderr"],
  step_started: ["text", "thinking", "stdout", "stderr"],
  step_completed: ["text", "thinking", "stdout", "stderr"],
};

/** At most this much of a draft is kept: its newest part. */
export const draftMax = 64 * 1024;

export class Drafts {
  #drafts = new Map<string, Draft[]>(); // by step
  #counts = new Map<string, number>(); // n of the newest delta of a step
  #joined = new Set<string>(); // steps of which the text so far came at once, in one piece of each kind
  #settled = new Map<string, number>(); // step + kind → seq of the event with the text

  of(step: string): readonly Draft[] {
    return this.#drafts.get(step) ?? [];
  }

  /** Takes a delta in; one that is late, since its text is in the journal already, is dropped. */
  add(d: Delta): void {
    if (d.after < (this.#settled.get(key(d.step, d.kind)) ?? 0)) return;
    const before = this.#counts.get(d.step) ?? 0;
    if (d.n <= before) this.#drafts.delete(d.step); // the count began anew: another process speaks
    if (before === 0 || d.n <= before) this.#joined.add(d.step);
    this.#counts.set(d.step, d.n);
    const list = this.#drafts.get(d.step) ?? [];
    this.#drafts.set(d.step, list);
    let draft = list.at(-1);
    const missed = d.n > before + 1 && before > 0 && (draft?.kind === d.kind || !this.#joined.has(d.step));
    if (draft?.kind !== d.kind) {
      draft = {kind: d.kind, text: ""};
      list.push(draft);
    }
    draft.text += (missed ? " … " : "") + d.text;
    if (draft.text.length > draftMax) draft.text = "…" + draft.text.slice(-draftMax / 2);
  }

  /** Lets go of what the journal has now. */
  settle(e: Entry): void {
    const kinds = settles[e.type];
    if (!kinds) return;
    this.#joined.delete(e.step);
    for (const k of kinds) this.#settled.set(key(e.step, k), e.seq);
    const list = this.#drafts.get(e.step)?.filter((d) => !kinds.includes(d.kind));
    if (list?.length) this.#drafts.set(e.step, list);
    else this.#drafts.delete(e.step);
  }

  /** What is being said comes again from its beginning. */
  again(): void {
    this.#drafts.clear();
    this.#counts.clear();
    this.#joined.clear();
  }

  clear(): void {
    this.again();
    this.#settled.clear();
  }
}

function key(step: string, kind: string): string {
  return step + "\n" + kind;
}
