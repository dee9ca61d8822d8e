// Who was at work when, and a scrubber over the journal.

import {useEffect, useMemo, useRef} from "preact/hooks";
import type {Step} from "../model/fold.ts";
import {clock, plural, span} from "../model/text.ts";
import {rows, ticks, type Axis} from "../model/timeline.ts";
import {arrange, isClosed, layout, usual} from "../state/layout.ts";
import type {Run} from "../state/run.ts";
import {Edge, Panel} from "./panel.tsx";
import {Button} from "./widgets.tsx";

const pct = (n: number): string => `${(100 * n).toFixed(3)}%`;

export function Timeline({run, chosen, choose}: {run: Run; chosen: string; choose: (id: string) => void}) {
  const head = run.head;
  const axis = run.axis.value;
  const cursor = run.cursor.value;
  const end = run.end.value;
  const at = cursor === null ? end : (run.journal.at(cursor)?.at ?? head.at);
  const seq = cursor ?? head.seq;
  const entry = run.journal.at(seq);
  const closed = isClosed("time");
  const idle = axis.gaps.reduce((ms, g) => ms + g.to - g.from, 0);
  const lanes = useRef<HTMLDivElement>(null);
  const lane = run.step(chosen)?.role ?? "";
  useEffect(() => {
    const box = lanes.current;
    const of = box?.querySelector<HTMLElement>(`[data-lane="${CSS.escape(lane)}"]`);
    if (!box || !of) return;
    if (of.offsetTop < box.scrollTop) box.scrollTop = of.offsetTop - 4;
    else if (of.offsetTop + of.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = of.offsetTop + Math.min(of.offsetHeight, box.clientHeight) - box.clientHeight + 4;
  }, [lane, closed]);
  return (
    <Panel id="time" name="Timeline" beside={
      <>
        <div class="ctl">
          <Button class="btn quiet icon" aria-label={run.playing.value ? "pause" : "replay"} title={run.playing.value ? "Pause (Space)" : "Replay (Space)"} onClick={() => run.play()}>
            <svg viewBox="0 0 16 16" width={14} height={14} aria-hidden="true" fill="currentColor">
              <path d={run.playing.value ? "M4 2.500h3v11H4zM9.500 2.500h3v11h-3z" : "M4 2.200v11.600l9.500-5.800z"} />
            </svg>
          </Button>
          <Button class="btn quiet icon" aria-label="one event back" title="One event back (←)" disabled={seq <= 1} onClick={() => run.look(seq - 1)}>‹</Button>
          <Button class="btn quiet icon" aria-label="one event on" title="One event on (→)" disabled={cursor === null} onClick={() => run.look(seq + 1)}>›</Button>
        </div>
        <div class="place">
          <span data-seq={seq} class={cursor === null ? undefined : "past"}>event {seq} of {head.seq}</span>
          {entry ? <span class="long">{entry.type}{entry.step ? ` · ${entry.step}` : ""}</span> : null}
          {entry ? <span class="long">{clock(entry.at)} · {span(entry.at - head.began)} in</span> : null}
          {run.seeking.value === null ? null : <span role="status" class="seeking">reading event {run.seeking.value}…</span>}
          {axis.holes.length ? <span>{plural(axis.holes.reduce((n, {hole}) => n + hole!.last - hole!.first + 1, 0), "event")} not read yet</span> : null}
          {axis.gaps.length ? <span class="long">{plural(axis.gaps.length, "idle gap")}, {span(idle)}, shortened</span> : null}
        </div>
        {cursor === null ? null : <Button class="btn live" onClick={() => run.look(null)}>Back to {head.final ? "the end" : "live"}</Button>}
      </>
    }>
      <div class="lanes" aria-hidden="true" ref={lanes} style={{maxHeight: `${layout.value.lanes}px`}}>
        <div class="all">
          <Lanes run={run} end={end} axis={axis} at={at} past={cursor !== null} chosen={chosen} choose={choose} />
          <div class="over">
            {axis.gaps.map((g) => <div class="gap" style={{left: pct(g.begin), width: pct(g.end - g.begin)}} />)}
            {axis.holes.map((h) => <div class="hole" style={{left: pct(h.begin), width: pct(h.end - h.begin)}} />)}
            <div class="play" style={{left: pct(axis.place(at))}} />
          </div>
        </div>
      </div>
      <Edge
        label="height of the timeline" upright={false} value={layout.value.lanes} low={40} high={1000} step={24} usual={usual.lanes}
        move={(lanes) => arrange({lanes})} at={(e) => e.clientY - lanes.current!.getBoundingClientRect().top}
      />
      <div class="ruler" aria-hidden="true">
        {labels(axis).map((t) => <span key={t.after} style={{left: pct(t.place)}}>{t.text}</span>)}
      </div>
      <div class="scrub"><Slider run={run} axis={axis} seq={seq} at={at} text={entry ? `event ${seq} of ${head.seq}: ${entry.type} ${entry.step}` : ""} /></div>
    </Panel>
  );
}

// The ticks of the ruler; of neighbours that read the same, the first.
function labels(axis: Axis): {after: number; place: number; text: string}[] {
  const all = ticks(axis, 10).filter((t) => t.place < (innerWidth > 620 ? 0.97 : 0.86)).map((t) => ({...t, text: t.after === 0 ? "0" : span(t.after).replace(".0 ", " ")}));
  return all.filter((t, i) => t.text !== all[i - 1]?.text);
}

// So many marks can be told apart, and drawn quickly.
const crowd = 300;
const nearest = 0.0015; // of the width of the timeline

/** Joins marks of work that ended well and lie so near to each other that they look like one. */
function thin(marks: readonly Mark[], axis: Axis, chosen: string, statusOf: (s: Step) => string): Mark[] {
  const out: Mark[] = [];
  for (const m of marks) {
    const last = out.at(-1);
    const apart = !last || m.step.id === chosen || last.step.id === chosen || m.wait !== last.wait || m.open || statusOf(m.step) !== statusOf(last.step);
    if (!apart && m.from >= last.from && axis.place(m.from) - axis.place(last.to) < nearest) last.to = Math.max(last.to, m.to);
    else out.push({...m});
  }
  return out;
}

interface Mark {
  step: Step;
  from: number;
  to: number;
  wait: boolean;
  open: boolean;
}

function Lanes({run, end, axis, at, past, chosen, choose}: {run: Run; end: number; axis: Axis; at: number; past: boolean; chosen: string; choose: (id: string) => void}) {
  const steps = run.lanes;
  const lanes = useMemo(() => {
    const byRole = new Map<string, Mark[]>();
    for (const step of steps) {
      const list = byRole.get(step.role) ?? [];
      byRole.set(step.role, list);
      for (const s of step.spans) list.push({step, from: s.from, to: s.to ?? end, wait: s.kind === "wait", open: s.to === null});
    }
    return [...byRole].map(([role, all]) => {
      const marks = all.length > crowd ? thin(all, axis, chosen, (s) => run.statusOf(s)) : all;
      return {role, marks, row: rows(marks)};
    });
  }, [axis, end, run.view.value, run.noted.value, steps.length > crowd ? chosen : ""]);
  return (
    <>
      {lanes.map(({role, marks, row}) => {
        const deep = Math.max(0, ...row) + 1;
        const height = deep > 5 ? Math.max(4, Math.floor(96 / deep)) : 16;
        const step = height + (deep > 5 ? 1 : 3);
        return (
          <div class="lane" key={role} data-lane={role}>
            <div class="who" title={role}>{role}</div>
            <div class="track" style={{height: `${deep * step + 6}px`}}>
              {marks.map((m, i) => {
                const begin = axis.place(m.from);
                const last = m.step.spans.at(-1)!;
                const ended = m.to >= (last.to ?? end) && !m.wait;
                const kind = m.wait ? "wait" : m.open ? "running" : ended ? run.statusOf(m.step) : m.step.failures.length ? "failed" : "ok";
                return (
                  <div
                    class={`bar-span ${kind}${past && m.from > at ? " later" : ""}${m.step.id === chosen ? " chosen" : ""}`}
                    style={{left: pct(begin), width: pct(Math.max(0, axis.place(m.to) - begin)), top: `${row[i]! * step + 3}px`, height: `${height}px`}}
                    title={`${m.step.id}${m.wait ? " waits" : ""}, ${span(m.to - m.from)}`}
                    onClick={() => choose(m.step.id)}
                  >
                    {height > 12 && !m.wait ? <span>{m.step.id.slice(role.length)}</span> : null}
                  </div>
                );
              })}
            </div>
          </div>
        );
      })}
    </>
  );
}

const bins = 180;

function Slider({run, axis, seq, at, text}: {run: Run; axis: Axis; seq: number; at: number; text: string}) {
  const ref = useRef<HTMLDivElement>(null);
  const total = run.journal.seq;
  const shape = useMemo(() => density(run, axis), [axis]);
  const seek = (x: number) => {
    const box = ref.current!.getBoundingClientRect();
    const place = Math.min(1, Math.max(0, (x - box.left) / box.width));
    run.playing.value = false;
    run.look(place >= 0.999 ? null : axis.missing(place) || run.seqAt(axis.time(place)));
  };
  const key = (e: KeyboardEvent) => {
    const to = {
      ArrowLeft: seq - 1, ArrowDown: seq - 1, ArrowRight: seq + 1, ArrowUp: seq + 1, PageUp: seq + 10, PageDown: seq - 10, Home: 1, End: total,
    }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    run.playing.value = false;
    run.look(to);
  };
  return (
    <div
      class="slider" role="slider" tabIndex={0} ref={ref} aria-label="Place in the journal" aria-orientation="horizontal"
      aria-valuemin={1} aria-valuemax={total} aria-valuenow={seq} aria-valuetext={text} onKeyDown={key}
      onPointerDown={(e) => {
        if (e.button !== 0) return;
        e.currentTarget.setPointerCapture(e.pointerId);
        seek(e.clientX);
      }}
      onPointerMove={(e) => {
        if (e.currentTarget.hasPointerCapture(e.pointerId)) seek(e.clientX);
      }}
    >
      <svg viewBox={`0 0 ${bins} 26`} preserveAspectRatio="none" aria-hidden="true"><path class="pulse" d={shape} /></svg>
      {axis.holes.map((h) => <div class="hole" aria-hidden="true" title={`events ${h.hole!.first} to ${h.hole!.last} are read where you look at them`} style={{left: pct(h.begin), width: pct(h.end - h.begin)}} />)}
      {axis.gaps.map((g) => <div class="gap" aria-hidden="true" style={{left: pct(g.begin), width: pct(g.end - g.begin)}}><span>{span(g.to - g.from)}</span></div>)}
      <div class="knob" aria-hidden="true" style={{left: pct(axis.place(at))}} />
    </div>
  );
}

// How many events there were when, as a row of thin bars.
function density(run: Run, axis: Axis): string {
  const counts = new Array<number>(bins).fill(0);
  for (const e of run.journal.entries) {
    if (!e) continue;
    const i = Math.min(bins - 1, Math.floor(axis.place(e.at) * bins));
    counts[i] = counts[i]! + 1;
  }
  const most = Math.max(1, ...counts);
  let d = "";
  counts.forEach((n, i) => {
    if (n > 0) {
      const h = 3 + 19 * Math.sqrt(n / most);
      d += `M${i + 0.15} 24v${(-h).toFixed(1)}h.7v${h.toFixed(1)}z`;
    }
  });
  return d;
}
