// A time axis on which idle gaps are short: a run that waited a weekend for an answer still
// shows its minutes of work.

/** A stretch of time in unix milliseconds, from < to or from = to. */
export interface Stretch {
  from: number;
  to: number;
}

/** A stretch whose events are not held. */
export interface Hole extends Stretch {
  first: number; // seq
  last: number;
}

/** A piece of the axis: time [from, to) lies on [begin, end) of 0…1. */
export interface Piece extends Stretch {
  begin: number;
  end: number;
  gap: boolean; // idle, and drawn shorter than it was
  hole: Hole | null;
}

export class Axis {
  constructor(readonly pieces: readonly Piece[]) {}

  /** The place of a time on 0…1; times outside lie on the ends. */
  place(at: number): number {
    const p = this.pieces;
    const first = p[0];
    if (!first || at <= first.from) return 0;
    let low = 0;
    let high = p.length - 1;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (p[mid]!.to < at) low = mid + 1;
      else high = mid;
    }
    const piece = p[low]!;
    if (at >= piece.to) return piece.end;
    return piece.begin + ((at - piece.from) / (piece.to - piece.from)) * (piece.end - piece.begin);
  }

  /** The time of a place: the inverse of place. */
  time(place: number): number {
    const p = this.pieces.find((x) => place <= x.end);
    return p ? p.from + part(p, place) * (p.to - p.from) : (this.pieces.at(-1)?.to ?? 0);
  }

  /** Where events are not held, the seq of about a place; else 0. */
  missing(place: number): number {
    const p = this.pieces.find((x) => place <= x.end);
    return p?.hole ? p.hole.first + Math.floor(part(p, place) * (p.hole.last - p.hole.first + 0.999)) : 0;
  }

  get holes(): Piece[] {
    return this.pieces.filter((p) => p.hole);
  }

  get gaps(): Piece[] {
    return this.pieces.filter((p) => p.gap);
  }
}

// How far a place is in a piece, 0…1.
function part(p: Piece, place: number): number {
  const width = p.end - p.begin;
  return width > 0 ? Math.min(1, Math.max(0, place - p.begin) / width) : 0;
}

// A gap is drawn at most as long as this share of all busy time, and all gaps together take at
// most half as much room as the work.
const gapShare = 0.05;
const gapsShare = 0.5;
const holesShare = 0.25; // of the whole
const noticed = 1000; // a shorter gap is not worth a mark

/**
 * The axis from one time to another. What lies in a busy stretch keeps its length; idle time
 * between them is shortened where it is longer than a small share of the work. How much was done
 * where events are not held is not known: these holes share a part of the axis, each as its events.
 */
export function compress(from: number, to: number, busy: readonly Stretch[], holes: readonly Hole[] = []): Axis {
  const merged = merge(busy.flatMap((s) => outside(s, holes)), from, to);
  let work = 0;
  for (const s of merged) work += s.to - s.from;
  const longest = Math.max(1, work * Math.min(gapShare, gapsShare / (merged.length + 1)));

  const raw: {s: Stretch; length: number; gap: boolean; hole: Hole | null}[] = [];
  const put = (a: number, b: number, idle: boolean) => {
    if (b > a) raw.push({s: {from: a, to: b}, length: idle ? Math.min(b - a, longest) : b - a, gap: idle && b - a > Math.max(longest, noticed), hole: null});
  };
  let at = from;
  for (const s of [...merged, ...holes].sort((a, b) => a.from - b.from)) {
    put(at, s.from, true);
    at = Math.max(at, s.to);
    if ("first" in s) raw.push({s, length: 0, gap: false, hole: s as Hole});
    else put(s.from, s.to, false);
  }
  put(at, to, true);

  let total = 0;
  for (const r of raw) total += r.length;
  const missing = holes.reduce((n, h) => n + h.last - h.first + 1, 0);
  const room = Math.max(1, total) * (holesShare / (1 - holesShare));
  for (const r of raw) if (r.hole) r.length = (room * (r.hole.last - r.hole.first + 1)) / missing;
  if (missing > 0) total += room;
  let begin = 0;
  return new Axis(
    raw.map((r, i) => {
      const end = i === raw.length - 1 ? 1 : begin + r.length / total;
      const piece = {from: r.s.from, to: r.s.to, begin, end, gap: r.gap, hole: r.hole};
      begin = end;
      return piece;
    }),
  );
}

// What of a stretch lies outside of all holes.
function outside(s: Stretch, holes: readonly Hole[]): Stretch[] {
  let out = [s];
  for (const h of holes) out = out.flatMap((x) => [{from: x.from, to: Math.min(x.to, h.from)}, {from: Math.max(x.from, h.to), to: x.to}]).filter((x) => x.to > x.from);
  return out;
}

/** The union of stretches within [from, to], in order. */
export function merge(stretches: readonly Stretch[], from: number, to: number): Stretch[] {
  const sorted = stretches
    .map((s) => ({from: Math.max(from, s.from), to: Math.min(to, s.to)}))
    .filter((s) => s.to > s.from)
    .sort((a, b) => a.from - b.from);
  const out: Stretch[] = [];
  for (const s of sorted) {
    const last = out.at(-1);
    if (last && s.from <= last.to) last.to = Math.max(last.to, s.to);
    else out.push({...s});
  }
  return out;
}

/** A mark on the axis: so long after its begin. */
export interface Tick {
  place: number;
  after: number; // milliseconds
}

const nice = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5];

/**
 * Marks at round times, about so many on the whole axis. Within a gap there are none: time does
 * not run evenly there.
 */
export function ticks(axis: Axis, about: number): Tick[] {
  const begin = axis.pieces[0]?.from ?? 0;
  const out: Tick[] = [];
  for (const p of axis.pieces) {
    if (p.gap || p.hole || p.end <= p.begin) continue;
    const fit = ((p.to - p.from) / (p.end - p.begin)) / about;
    const by = nice.find((n) => n >= fit) ?? 864e5;
    for (let after = Math.ceil((p.from - begin) / by) * by; begin + after < p.to; after += by) {
      const place = axis.place(begin + after);
      if (place - (out.at(-1)?.place ?? -1) > 0.6 / about) out.push({place, after});
    }
  }
  return out;
}

/** Gives each stretch the first row in which nothing overlaps it. The order of rows is that of from. */
export function rows(stretches: readonly Stretch[]): number[] {
  const order = stretches.map((_, i) => i).sort((a, b) => stretches[a]!.from - stretches[b]!.from || a - b);
  const ends: number[] = [];
  const out = new Array<number>(stretches.length).fill(0);
  for (const i of order) {
    const s = stretches[i]!;
    let row = ends.findIndex((end) => end <= s.from);
    if (row < 0) row = ends.length;
    ends[row] = s.to;
    out[i] = row;
  }
  return out;
}
