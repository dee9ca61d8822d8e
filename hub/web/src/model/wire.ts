// The words of the wire: what /v1/replay and the HTTP interface speak.

/** A block by its name, where the server did not put the text itself. */
export interface Link {
  "/": string;
}

/** A text, or the link to one that is too long for a frame. */
export type Text = string | Link | null | undefined;

/** One entry of a run's journal. */
export interface Entry {
  seq: number;
  cid: string;
  prev: string | null; // of seq 1
  at: number; // unix milliseconds
  type: string;
  step: string; // "coder#2", "" for an event of the run
  data: Record<string, unknown>;
}

/** A piece of live output: lossy, never a cursor. */
export interface Delta {
  after: number;
  step: string;
  n: number;
  kind: string; // text, thinking, stdout, stderr
  text: string;
}

/** The text, or "" where only its link came. */
export function textOf(t: unknown): string {
  return typeof t === "string" ? t : "";
}

/** The CID of a link in either of its forms, or null. */
export function cidOf(l: unknown): string | null {
  if (typeof l === "string") return l || null;
  if (l !== null && typeof l === "object" && "/" in l) return String((l as Link)["/"]);
  return null;
}

/** An event frame as an Entry, or null where it is none. */
export function entryOf(frame: Record<string, unknown>): Entry | null {
  const event = frame["event"];
  if (typeof frame["seq"] !== "number" || typeof frame["cid"] !== "string") return null;
  if (event === null || typeof event !== "object") return null;
  const e = event as Record<string, unknown>;
  const data = e["data"];
  return {
    seq: frame["seq"],
    cid: frame["cid"],
    prev: cidOf(frame["prev"]),
    at: Date.parse(String(frame["ts"])),
    type: String(e["type"]),
    step: textOf(e["step"]),
    data: data !== null && typeof data === "object" ? (data as Record<string, unknown>) : {},
  };
}
