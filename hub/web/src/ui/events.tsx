// The journal, as it is. Only the rows in sight are drawn.

import {useEffect, useMemo, useRef, useState} from "preact/hooks";
import {heldBy} from "../model/fold.ts";
import {clock, count, headline, plain, plural, tokens} from "../model/text.ts";
import {textOf, type Entry} from "../model/wire.ts";
import type {Run} from "../state/run.ts";
import {Button, CID, copy, Scroll} from "./widgets.tsx";

const rowHeight = 28;
const spare = 10;

export function Events({run}: {run: Run}) {
  const [types, setTypes] = useState<ReadonlySet<string>>(new Set());
  const [q, setQ] = useState("");
  const [picked, setPicked] = useState(0);
  const [top, setTop] = useState(run.upTo() * rowHeight); // it begins at the end
  const [height, setHeight] = useState(420);
  const box = useRef<HTMLDivElement>(null);
  const upTo = run.upTo();
  const version = run.version.value;
  const counts = useMemo(() => {
    const m = new Map<string, number>();
    for (const e of run.journal.entries.slice(0, upTo)) if (e) m.set(e.type, (m.get(e.type) ?? 0) + 1);
    return m;
  }, [upTo, version]);
  const all = types.size === 0 && q.trim() === "";
  // The seqs that are listed: all of them, or what is sought in the events that were read.
  const found = useMemo(() => {
    const needle = q.trim().toLowerCase();
    if (all) return [];
    const fits = (e: Entry) => (types.size === 0 || types.has(e.type)) && (needle === "" || `${e.type} ${e.step} ${JSON.stringify(e.data)}`.toLowerCase().includes(needle));
    return run.journal.entries.slice(0, upTo).flatMap((e) => (e && fits(e) ? [e.seq] : []));
  }, [upTo, version, types, q]);
  const length = all ? upTo : found.length;
  const seqOf = (i: number) => (all ? i + 1 : found[i]!);
  const read = [...counts.values()].reduce((sum, n) => sum + n, 0);

  // At the end it stays at the end; a place in the middle stays too.
  const stick = useRef(true);
  useEffect(() => {
    const b = box.current!;
    if (stick.current) b.scrollTop = b.scrollHeight;
  }, [length]);
  useEffect(() => {
    const o = new ResizeObserver(() => setHeight(box.current?.clientHeight ?? 420));
    o.observe(box.current!);
    return () => o.disconnect();
  }, []);

  const sight = Math.ceil(height / rowHeight);
  const from = Math.max(0, Math.min(Math.floor(top / rowHeight), length - sight) - spare);
  const to = Math.min(length, from + sight + 2 * spare);
  const index = all ? (picked <= upTo ? picked - 1 : -1) : found.indexOf(picked);
  const rows = Array.from({length: Math.max(0, to - from)}, (_, i) => ({seq: seqOf(from + i), e: run.journal.at(seqOf(from + i))}));
  // What is in sight is read.
  const missing = rows.findLast((r) => !r.e)?.seq ?? 0;
  useEffect(() => {
    if (missing > 0) void run.load(missing);
  }, [missing]);
  const before = all ? 0 : run.journal.missing(1, upTo);
  const toggle = (t: string) => {
    const next = new Set(types);
    if (!next.delete(t)) next.add(t);
    setTypes(next);
  };
  const pick = (i: number) => {
    if (length === 0) return;
    const at = Math.min(length - 1, Math.max(0, i));
    setPicked(seqOf(at));
    const y = at * rowHeight;
    const b = box.current!;
    if (y < b.scrollTop) b.scrollTop = y;
    else if (y + rowHeight > b.scrollTop + b.clientHeight) b.scrollTop = y + rowHeight - b.clientHeight;
  };
  const key = (e: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(height / rowHeight) - 1);
    const at = index < 0 ? (e.key === "ArrowUp" || e.key === "End" ? length : -1) : index;
    const next = {ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: length - 1}[e.key];
    if (next !== undefined) {
      e.preventDefault();
      pick(next);
    } else if (e.key === "Enter" && index >= 0) {
      run.look(picked);
    }
  };
  const entry = picked > 0 && picked <= upTo ? run.journal.at(picked) : undefined;
  return (
    <>
      <div class="evbar">
        <input class="field" type="search" aria-label="Search in events" placeholder="Search in events …" value={q} onInput={(e) => setQ(e.currentTarget.value)} />
        <span class="dim" role="status">{all ? plural(upTo, "event") : `${count(length)} of ${plural(read, "event")}${read < upTo ? ` that were read; there are ${count(upTo)}` : ""}`}</span>
        {before > 0 ? <Button class="btn quiet" onClick={() => void run.load(before)}>Read earlier ones</Button> : null}
        {types.size ? <Button class="btn quiet" onClick={() => setTypes(new Set())}>all types</Button> : null}
      </div>
      <div class="chips" role="group" aria-label="Types of events">
        {[...counts].map(([t, n]) => (
          <Button key={t} class="chip" aria-pressed={types.has(t)} onClick={() => toggle(t)}>{t} <span class="n">{n}</span></Button>
        ))}
      </div>
      <div
        class="evlist" role="listbox" aria-label="Events" tabIndex={0} ref={box} onKeyDown={key} aria-activedescendant={index >= from && index < to ? `ev${picked}` : undefined}
        onScroll={(e) => {
          const b = e.currentTarget;
          stick.current = b.scrollTop + b.clientHeight >= b.scrollHeight - 4;
          setTop(b.scrollTop);
        }}
      >
        <div class="inner" role="presentation" style={{height: `${length * rowHeight}px`}}>
          {rows.map(({seq, e}, i) => (
            <div
              key={seq} id={`ev${seq}`} class="ev" role="option" aria-selected={seq === picked} aria-setsize={length} aria-posinset={from + i + 1}
              style={{top: `${(from + i) * rowHeight}px`}} onClick={() => setPicked(seq)} data-event={seq}
            >
              <span class="seq">{seq}</span>
              {e ? (
                <>
                  <span class="ts">{clock(e.at)}</span>
                  <span class={`ty ty-${e.type}`}>{e.type}</span>
                  <span class="st">{e.step}</span>
                  <span class="dim">{gist(e)}</span>
                </>
              ) : <span class="dim">reading…</span>}
            </div>
          ))}
        </div>
      </div>
      {entry ? (
        <div class="box">
          <div class="cap">
            <b>event {entry.seq}</b><span>{entry.type}</span><CID of={entry.cid} label="event" />
            <span class="end">
              <Button class="btn quiet" onClick={() => run.look(entry.seq)}>Replay to here</Button>
              <Button class="btn quiet" onClick={() => void copy(JSON.stringify(entry.data))}>Copy</Button>
            </span>
          </div>
          <Scroll text={JSON.stringify({prev: entry.prev, ts: new Date(entry.at).toISOString(), step: entry.step || null, data: entry.data}, null, 2)} label="the event" />
        </div>
      ) : <p class="dim">Choose an event to read it whole; Enter replays the run to it.</p>}
    </>
  );
}

// What an event says, in a line.
function gist(e: Entry): string {
  const d = e.data;
  const t = (k: string) => textOf(d[k]);
  switch (e.type) {
    case "tool_call": return headline(`${t("name")} ${t("args")}`);
    case "usage": return plain(`${t("model")} · ${tokens(Number(d["input"] ?? 0))} in, ${tokens(Number(d["output"] ?? 0))} out`);
    case "step_completed": return `${t("status") || "ok"}, ${String(d["ms"] ?? 0)} ms`;
    case "attempt_failed": return headline(textOf((d["error"] as Record<string, unknown> | null)?.["message"]));
    case "prompt": return plain(t("model"));
    case "held": return plain(heldBy(d));
    case "released": return `after ${String(d["ms"] ?? 0)} ms`;
    case "limit_reached": return `${t("limit")} ${String(d["value"])} of ${String(d["max"])}`;
  }
  if (e.type === "text") return headline(t("content").replace(/^\s*---\s*\n/, ""));
  return headline(["content", "reasons", "question", "edgePrompt", "text", "choice", "reason", "detail", "title", "status", "note", "tier"].map(t).find((x) => x !== "") ?? "");
}
