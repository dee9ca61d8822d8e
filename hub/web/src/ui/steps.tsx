// The visits of a run, in the order of their start.

import {useEffect, useLayoutEffect, useRef, useState} from "preact/hooks";
import {took, type Step} from "../model/fold.ts";
import {headline, shown, span} from "../model/text.ts";
import type {Run} from "../state/run.ts";
import {Status, StepName} from "./widgets.tsx";

// Longer lists are drawn as far as they are in sight.
const crowd = 200;
const rowHeight = 48;
const spare = 12;

export function Steps({run, chosen, choose}: {run: Run; chosen: string; choose: (id: string) => void}) {
  const state = run.state;
  const list = [...state.steps.values()];
  const many = list.length > crowd;
  const box = useRef<HTMLOListElement>(null);
  const [top, setTop] = useState(0);
  const at = list.findIndex((s) => s.id === chosen);
  // Steps that come in front leave what is in sight in its place.
  const front = useRef({id: list[0]?.id, height: 0});
  const grown = front.current.id !== list[0]?.id;
  useLayoutEffect(() => {
    const ol = box.current!;
    if (grown && front.current.id !== undefined && list.some((s) => s.id === front.current.id)) ol.scrollTop += ol.scrollHeight - front.current.height;
    front.current = {id: list[0]?.id, height: ol.scrollHeight};
  });
  useEffect(() => {
    if (grown) return;
    const ol = box.current!;
    const li = ol.querySelector<HTMLElement>("[aria-current=true]")?.parentElement;
    const from = many ? at * rowHeight : (li?.offsetTop ?? 0);
    const to = from + (many ? rowHeight : (li?.offsetHeight ?? 0));
    // Only the list scrolls, not the page.
    if (at < 0 || (from >= ol.scrollTop && to <= ol.scrollTop + ol.clientHeight)) return;
    ol.scrollTop = from < ol.scrollTop ? from - 4 : to - ol.clientHeight + 4;
  }, [chosen, list.length, run.view.value === null]);
  const from = many ? Math.max(0, Math.floor(top / rowHeight) - spare) : 0;
  const to = many ? from + Math.ceil(innerHeight / rowHeight) + 2 * spare : list.length;
  return (
    <section class={`panel steps${many ? " many" : ""}`} aria-label="Steps">
      <header><h2>Steps</h2><span class="dim">{list.length < state.count ? `${list.length} of ${state.count}` : list.length}</span>
        {state.earlier > 0 ? <button type="button" class="btn quiet tight end" onClick={() => void run.showEarlier()}>Show earlier</button> : null}
      </header>
      <ol ref={box} onScroll={(e) => many && setTop(e.currentTarget.scrollTop)}>
        {from > 0 ? <li role="presentation" style={{height: `${from * rowHeight}px`}} /> : null}
        {list.slice(from, to).map((s) => <Item key={s.id} run={run} step={s} chosen={s.id === chosen} choose={choose} now={run.at} />)}
        {to < list.length ? <li role="presentation" style={{height: `${(list.length - to) * rowHeight}px`}} /> : null}
        {list.length === 0 ? <li class="empty">Nothing has begun yet.</li> : null}
      </ol>
    </section>
  );
}

function Item({run, step: s, chosen, choose, now}: {run: Run; step: Step; chosen: boolean; choose: (id: string) => void; now: number}) {
  const view = run.told(s.id);
  const said = s.record ? summary(view?.output, view?.text ?? shown(s.said)) : s.failures.length ? s.failures.at(-1)!.message : shown(s.said);
  return (
    <li>
      <button type="button" aria-current={chosen} onClick={() => choose(s.id)} data-step={s.id}>
        <Status of={run.statusOf(s)} bare />
        <span class="id"><StepName id={s.id} role={s.role} />{s.resumes ? <span class="dim" title="goes on with the conversation of its earlier visit" aria-label="resumes"> ↻</span> : null}</span>
        <span class="took">{s.attempt > 1 ? `try ${s.attempt} · ` : ""}{s.status === "waiting" ? "waits" : span(took(s, now))}</span>
        {said ? <span class="said">{headline(said, 140)}</span> : null}
      </button>
    </li>
  );
}

// What a step said, in a line: its summary or reason if it has one, else how its text begins.
function summary(output: unknown, text: string): string {
  if (output !== null && typeof output === "object" && !Array.isArray(output)) {
    const o = output as Record<string, unknown>;
    for (const k of ["summary", "reason", "choice", "title", "verdict", "status"]) if (typeof o[k] === "string" && o[k]) return o[k];
    if (typeof o["exit_code"] === "number" && o["exit_code"] !== 0) return `exit ${o["exit_code"]} · ${lastLine(text)}`;
  }
  return text.replace(/^\s*---[\s\S]*?\n---\s*/, "");
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
