// The visits of a run, in the order of their start.

import {useEffect, useLayoutEffect, useRef, useState} from "preact/hooks";
import {itemsOf, openedAtFirst, type Fan} from "../model/fans.ts";
import {took, type Step} from "../model/fold.ts";
import {headline, span} from "../model/text.ts";
import type {Run} from "../state/run.ts";
import {Panel} from "./panel.tsx";
import {said} from "./said.ts";
import {Button, Status, statusWord, StepName} from "./widgets.tsx";

// Longer lists are drawn as far as they are in sight.
const crowd = 200;
const rowHeight = 48;
const spare = 12;
const mostPages = 11; // of a thousand steps: 10,000 items, and what stands between them

export function Steps({run, chosen, choose}: {run: Run; chosen: string; choose: (id: string) => void}) {
  const state = run.state;
  const list = run.lines(chosen);
  const many = list.length > crowd;
  const box = useRef<HTMLOListElement>(null);
  const [top, setTop] = useState(0);
  const at = list.findIndex((l) => l.step?.id === chosen);
  const keyOf = (l: (typeof list)[number] | undefined) => l?.step?.id ?? l?.fan?.id;
  // Steps that come in front leave what is in sight in its place.
  // Items of which the first were not read are read to the first, as far as they are not very many: their counts are then those of all.
  const pages = useRef(0);
  const partial = [...run.fans.values()].some((f) => f.partial);
  useEffect(() => {
    if (partial && pages.current++ < mostPages) void run.showEarlier();
  }, [partial, state.earlier]);
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
  }, [chosen, list.length, run.view.value === null]);
  const from = many ? Math.max(0, Math.floor(top / rowHeight) - spare) : 0;
  const to = many ? from + Math.ceil(innerHeight / rowHeight) + 2 * spare : list.length;
  const held = state.steps.size;
  return (
    <Panel id="steps" name="Steps" class={many ? " many" : ""} beside={
      <><span class="dim">{held < state.count ? `${held} of ${state.count}` : held}</span>
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
  const open = (what: string) => (run.opened.value = new Map(run.opened.value).set(fan.id, what));
  return (
    <li class="fan" data-fan={fan.id}>
      <Button class="fold" aria-expanded={show !== ""} onClick={() => open(show === "" ? "all" : "")}><span aria-hidden="true">{show === "" ? "▸" : "▾"}</span><b>{fan.id}</b> {itemsOf(fan)}</Button>
      <Rest run={run} fan={fan} />
      <span class="counts" role="group" aria-label={`items of ${fan.id} by status`}>
        {fan.counts.map(([status, n]) => (
          <Button class={`chip s-${status}`} aria-pressed={show === status} onClick={() => open(show === status ? "" : status)}>{n} {statusWord(status)}</Button>
        ))}
      </span>
    </li>
  );
}

/** Reads all items of a fan-out of which the first were not read: only then are its counts those of all. */
export function Rest({run, fan}: {run: Run; fan: Fan}) {
  if (!fan.partial) return null;
  return run.readingAll.value
    ? <Button class="btn quiet tight" onClick={() => (run.readingAll.value = false)}>Stop reading</Button>
    : <Button class="btn quiet tight" onClick={() => void run.showAll()}>Read the rest</Button>;
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
