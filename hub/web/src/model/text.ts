// How figures and foreign text are written for people.

import type {Timing} from "./service.ts";
import type {Text} from "./wire.ts";

// CSI, OSC, other escape sequences, and control characters but tab and newline.
const escapes =
  /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[@-Z\\-_]|\x9b[0-?]*[ -/]*[@-~]|\x1b[ -/]+[0-~]|\r(?=\n)|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
// Characters that reorder or hide what stands around them.
const deceptive = /[\u202a-\u202e\u2066-\u2069\u200e\u200f\ufeff]/g;

/** A foreign text without terminal escapes, control and reordering characters. */
export function plain(s: string): string {
  return s.replace(escapes, "").replace(deceptive, "");
}

/** The first line of a text, cut at n characters. */
export function headline(s: string, n = 120): string {
  const line = plain(s.trimStart().slice(0, 4096)).trim().split("\n", 1)[0] ?? "";
  const points = Array.from(line.slice(0, 2 * n + 2));
  return points.length > n ? points.slice(0, n - 1).join("") + "…" : line;
}

/** The last line of a text that holds anything. */
export function lastLine(s: string): string {
  const text = s.trimEnd();
  return text.slice(text.lastIndexOf("\n") + 1).trimStart();
}

/** "820 ms", "4.6 s", "3 m 12 s", "2 h 5 m", "3 d 4 h". */
export function span(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const s = ms / 1000;
  if (s < 59.95) return `${s.toFixed(1)} s`;
  const whole = Math.round(s);
  if (whole < 3600) return pair(whole, 60, "m", "s");
  if (whole < 172_800) return pair(Math.round(whole / 60), 60, "h", "m");
  return pair(Math.round(whole / 3600), 24, "d", "h");
}

function pair(n: number, per: number, big: string, small: string): string {
  const rest = n % per;
  return `${Math.floor(n / per)} ${big}` + (rest ? ` ${rest} ${small}` : "");
}

/** How long ago: "now", "12s ago", "5m ago", "3h ago", "9d ago". */
export function ago(ms: number): string {
  const s = ms / 1000;
  if (!Number.isFinite(s)) return "–";
  if (s < 2) return "now";
  if (s < 60) return `${Math.floor(s)}s ago`;
  if (s < 3600) return `${Math.floor(s / 60)}m ago`;
  if (s < 172_800) return `${Math.floor(s / 3600)}h ago`;
  return `${Math.floor(s / 86_400)}d ago`;
}

/** A number of tokens: "812", "9.0k", "1.2M"; "–" for an unknown one. */
export function tokens(n: number | null | undefined): string {
  if (n === null || n === undefined) return "–";
  if (n < 1000) return String(n);
  if (n < 999_950) return `${(n / 1000).toFixed(1)}k`;
  return `${(n / 1_000_000).toFixed(1)}M`;
}

/** A number of bytes: "812 B", "9.0 kB", "1.2 MB". */
export function size(n: number): string {
  for (const [i, unit] of ["GB", "MB", "kB"].entries()) {
    const by = 2 ** (30 - 10 * i);
    if (n >= by) return `${(n / by).toFixed(1)} ${unit}`;
  }
  return `${n} B`;
}

/** Dollars with as many digits as tell something; an unknown cost is never 0. */
export function dollars(usd: number | string | null | undefined): string {
  if (usd === null || usd === undefined) return "unknown";
  const n = Number(usd);
  if (n === 0) return "$0";
  if (n < 0.0001) return "<$0.0001";
  if (n < 0.01) return `$${n.toFixed(4)}`;
  return `$${n.toFixed(n < 1 ? 3 : 2)}`;
}

/** The share of the prompts that came from the cache: "82%", "–" where nothing was sent or told. */
export function share(cached: number | null | undefined, input: number | null | undefined): string {
  if (cached === null || cached === undefined || !input) return "–";
  return `${Math.floor((100 * cached) / input)}%`;
}

/** The eight characters of a CID that screens show. */
export function shortCID(cid: string | null | undefined): string {
  if (!cid) return "–";
  const short = /^ba[fk]yrei|^bafkrei/.exec(cid);
  return short ? cid.slice(short[0].length, short[0].length + 8) : cid.slice(0, 8);
}

/** "14:05:09.120", local time. */
export function clock(at: number): string {
  const d = new Date(at);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${String(d.getMilliseconds()).padStart(3, "0")}`;
}

/** "5 Jan 2026, 15:43", local time. */
export function day(at: number): string {
  if (!Number.isFinite(at)) return "–";
  const d = new Date(at);
  const month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][d.getMonth()];
  return `${d.getDate()} ${month} ${d.getFullYear()}, ${clock(at).slice(0, 5)}`;
}

/** 12,500 */
export const count = (n: number): string => n.toLocaleString("en");

/** "1 step", "3 steps". */
export function plural(n: number, word: string): string {
  return `${count(n)} ${word}${n === 1 ? "" : "s"}`;
}

/** A value of a field in one line or more: strings as they are, the rest as JSON, in a line where that is short. */
export function value(v: unknown): string {
  if (typeof v === "string") return plain(v);
  const line = JSON.stringify(v) ?? "";
  return plain(line.length > 72 ? JSON.stringify(v, null, 2) : line);
}

/** A Text with what there is of it. */
export function shown(t: Text): string {
  if (typeof t === "string") return plain(t);
  return t ? `[${shortCID(t["/"])}]` : "";
}

/** "⏱ 106.8 s · 1 tools · TTFE 5% · Thinking 95% · Tools 0%" */
export function timingLine(t: Timing): string {
  const pct = (n: number) => `${Math.round(n)}%`;
  return `⏱ ${(t.total_ms / 1000).toFixed(1)} s · ${t.tool_calls} tools · TTFE ${pct(t.ttfe_pct)} · Thinking ${pct(t.thinking_pct)} · Tools ${pct(t.tools_pct)}`;
}
