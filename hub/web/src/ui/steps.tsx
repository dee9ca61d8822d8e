// The visits of a run, in the order of their start.

import {useEffect, useLayoutEffect, useRef, useState} from "preact/hooks";
import {itemsOf, openedAtFirst, type Fan} from "../model/fans.ts";
import {took, type Step} from "../model/fold.ts";
import {count, headline, span} from "../model/text.ts";
import type {Run} from "../state/run.ts";
import {Panel} from "./panel.tsx";
import {said} from "./said.ts";
import {Button, Status, statusWord, StepName} from "./widgets.tsx";

// Longer lists are drawn as far as they are in sight.
const crowd = 200;
const rowHeight = 48;
const spare = 12;

export function Steps({run, chosen, choose}: {run: Run; chosen: string; choose: (id: string) => void}) {
  const state = run.state;
  const list = run.lines(chosen);
  const many = list.length > crowd;
  const box = useRef<HTMLOListElement>(null);
  const [top, setTop] = useState(0);
  const at = list.findIndex((l) => l.step?.id === chosen);
  const keyOf = (l: (typeof list)[number] | undefined) => l?.step?.id ?? l?.fan?.id;
  // Steps that come in front leave what is in sight in its place.
  const front = useRef({id: keyOf(list[0]), height: 0});
  const grown = front.current.id !== keyOf(list[0]);
  useLayoutEffect(() => {
    const ol = box.current;
    if (!ol) return; // it is folded away
    if (grown && front.current.id !== undefined && list.some((l) => keyOf(l) === front.current.id)) ol.scrollTop += ol.scrollHeight - front.current.height;
    front.current = {id: keyOf(list[0]), height: ol.scrollHeight};
  });
  useEffect(() => {
    const ol = box.current;
    if (grown || !ol) return;
    const li = ol.querySelector<HTMLElement>("[aria-current=true]")?.parentElement;
    const from = many ? at * rowHeight : (li?.offsetTop ?? 0);
    const to = from + (many ? rowHeight : (li?.offsetHeight ?? 0));
    // Only the list scrolls, not the page.
    if (at < 0 || (from >= ol.scrollTop && to <= ol.scrollTop + ol.clientHeight)) return;
    ol.scrollTop = from < ol.scrollTop ? from - 4 : to - ol.clientHeight + 4;
  }, [chosen, at < 0, run.view.value === null]);
  const from = many ? Math.max(0, Math.floor(top / rowHeight) - spare) : 0;
  const to = many ? from + Math.ceil(innerHeight / rowHeight) + 2 * spare : list.length;
  const held = state.steps.size;
  return (
    <Panel id="steps" name="Steps" class={many ? " many" : ""} beside={
      <><Picking run={run} /><span class="dim">{held < state.count ? `${count(held)} of ${count(state.count)}` : count(held)}</span>
        {state.earlier > 0 ? <Button class="btn quiet tight" onClick={() => void run.showEarlier()}>Show earlier</Button> : null}</>
    }>
      <ol ref={box} onScroll={(e) => many && setTop(e.currentTarget.scrollTop)}>
        {from > 0 ? <li aria-hidden="true" style={{height: `${from * rowHeight}px`}} /> : null}
        {list.slice(from, to).map((l) => l.fan ? <Head key={l.fan.id} run={run} fan={l.fan} /> : <Item key={l.step.id} run={run} step={l.step} chosen={l.step.id === chosen} choose={choose} now={run.at} />)}
        {to < list.length ? <li aria-hidden="true" style={{height: `${(list.length - to) * rowHeight}px`}} /> : null}
        {list.length === 0 ? <li class="empty">Nothing has begun yet.</li> : null}
      </ol>
    </Panel>
  );
}

// The head of a fan-out counts its items by status, and shows all of them, none, or those of one status.
function Head({run, fan}: {run: Run; fan: Fan}) {
  const show = run.opened.value.get(fan.id) ?? openedAtFirst(fan);
  const lacks = (status: string, n: number) => n > fan.steps.filter((s) => run.statusOf(s) === status).length;
  const open = (what: string) => (run.opened.value = new Map(run.opened.value).set(fan.id, what));
  const left = show === "all" ? fan.steps.length < fan.of : fan.counts.some(([status, n]) => status === show && lacks(status, n));
  return (
    <li class="fan" data-fan={fan.id}>
      <Button class="fold" aria-expanded={show !== ""} onClick={() => open(show === "" ? "all" : "")}><span aria-hidden="true">{show === "" ? "▸" : "▾"}</span><b>{fan.id}</b> {itemsOf(fan)}</Button>
      <span class="counts" role="group" aria-label={`items of ${fan.id} by status`}>
        {fan.counts.map(([status, n]) => (
          <Button class={`chip s-${status}`} aria-pressed={show === status} onClick={() => {
            open(show === status ? "" : status);
            if (show !== status && lacks(status, n)) void run.pick(fan.role, status);
          }}>{count(n)} {statusWord(status)}</Button>
        ))}
      </span>
      {left && !run.picked.reading ? <Button class="btn quiet tight" onClick={() => void run.pick(fan.role, show)}>Read more{show === "all" ? "" : ` that are ${statusWord(show)}`}</Button> : null}
    </li>
  );
}

// Says that steps are looked for among those that were not read, or why not.
function Picking({run}: {run: Run}) {
  const {reading, error} = run.picked;
  if (error) return <span class="worse" role="alert">{error} <Button class="btn quiet tight" onClick={() => void run.pick()}>Try again</Button></span>;
  return reading ? <span class="dim" role="status">reading…</span> : null;
}

function Item({run, step: s, chosen, choose, now}: {run: Run; step: Step; chosen: boolean; choose: (id: string) => void; now: number}) {
  const line = said(run, s);
  return (
    <li class={s.item === null ? undefined : "item"}>
      <Button class="one" aria-current={chosen} onClick={() => choose(s.id)} data-step={s.id}>
        <Status of={run.statusOf(s)} bare />
        <span class="id"><StepName id={s.id} role={s.role} />{s.resumes ? <span class="dim" title="goes on with the conversation of its earlier visit" aria-label="resumes"> ↻</span> : null}</span>
        <span class="took">{s.attempt > 1 ? `try ${s.attempt} · ` : ""}{s.status === "waiting" ? "waits" : span(took(s, now))}</span>
        {line ? <span class="said">{headline(line, 140)}</span> : null}
      </Button>
    </li>
  );
}
