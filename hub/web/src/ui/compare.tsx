// Two runs side by side.

import {useEffect, useMemo, useState} from "preact/hooks";
import {pairs, tokensOf, values, type Pair} from "../model/beside.ts";
import type {Run, StepView} from "../model/service.ts";
import {dollars, headline, plain, plural, share, span, tokens, value} from "../model/text.ts";
import {api} from "../net/api.ts";
import {hrefOf, route} from "../state/app.ts";
import {useLoad} from "./load.ts";
import {failure, summary} from "./said.ts";
import {Ago, Button, Empty, Status, TextBox, Values, wall} from "./widgets.tsx";
import {Fault} from "./step.tsx";

const mostPages = 20; // of steps of a run that are read
const rowsAtOnce = 200;

export function Compare() {
  const {a = "", b = ""} = route.value.query;
  useEffect(() => {
    document.title = `${a} and ${b} · wf`;
  }, [a, b]);
  const got = useLoad((signal) => Promise.all([whole(a, signal), whole(b, signal)]), [a, b]);
  if (a === "" || b === "") return <Empty title="Which runs?">Two are compared from the page of either: <b>Compare</b>. <a href={hrefOf("runs")}>All runs</a></Empty>;
  return (
    <>
      <div class="bar"><h1>Two runs</h1><a class="btn" href={hrefOf("compare", "", {a: b, b: a})}>Swap</a></div>
      {got.error ? <p class="panel notice bad" role="alert">{plain(got.error)}</p> : null}
      {got.value ? <Both left={got.value[0]} right={got.value[1]} /> : got.error ? null : <p class="empty" role="status">Reading both runs…</p>}
    </>
  );
}

// A run with all its steps, as far as they are read.
async function whole(id: string, signal: AbortSignal): Promise<Run> {
  const run = await api.run(id, {}, signal);
  for (let n = 1; run.earlier && n < mostPages; n++) {
    const page = await api.run(id, {before: run.earlier}, signal);
    run.steps = [...page.steps, ...run.steps];
    if (page.earlier) run.earlier = page.earlier;
    else delete run.earlier;
  }
  return run;
}

function Both({left, right}: {left: Run; right: Run}) {
  const all = useMemo(() => pairs(left.steps, right.steps), [left, right]);
  const unread = (p: Pair) => (!p.left && left.earlier) || (!p.right && right.earlier); // it may be the same
  const differ = all.filter((p) => !p.same && !unread(p));
  const [every, setEvery] = useState(false);
  const [most, setMost] = useState(rowsAtOnce);
  const rows = every ? all : differ;
  const info = (r: Run) => r.info.inputs as Record<string, unknown>;
  const given = values(info(left) ?? {}, info(right) ?? {}).filter((v) => !v.same);
  const came = values((left.outputs ?? {}) as Record<string, unknown>, (right.outputs ?? {}) as Record<string, unknown>);
  const line = (name: string, f: (r: Run) => preact.ComponentChildren, same = false) => <tr class={same ? "same" : undefined}><th scope="row">{name}</th><td>{f(left)}</td><td>{f(right)}</td></tr>;
  const kin = left.info.fork_of?.run === right.id ? [left, right] as const : right.info.fork_of?.run === left.id ? [right, left] as const : null;
  return (
    <>
      {kin ? <p class="facts">{kin[0].id} is a fork of {kin[1].id}: {plural(kin[0].info.fork_of!.seq, "event")} of both and {plural(all.filter((p) => p.same).length, "step")} are the same.</p> : null}
      <div class="panel scroll" tabIndex={0} role="region" aria-label="what came of them">
        <table class="plain beside">
          <thead><tr><th scope="col"><span class="sr">what</span></th>{[left, right].map((r) => <th scope="col"><a href={hrefOf("run", r.id)}>{plain(r.info.title || r.workflow)}</a> <span class="mono">{r.id}</span></th>)}</tr></thead>
          <tbody>
            {line("status", (r) => <><Status of={r.idle ?? r.status} />{r.reason ? <div class="dim">{headline(r.reason, 200)}</div> : null}</>, left.status === right.status)}
            {came.map((v) => line(`output ${plain(v.name)}`, (r) => <pre>{value((r === left ? v.left : v.right) ?? "–")}</pre>, v.same))}
            {given.map((v) => line(`input ${plain(v.name)}`, (r) => <pre>{value((r === left ? v.left : v.right) ?? "–")}</pre>))}
            {left.definition === right.definition ? null : line("definition", (r) => <span class="mono">{r.definition}</span>)}
            {line("cost", (r) => (r.usage.calls ? dollars(r.cost_usd) : "–"), left.cost_usd === right.cost_usd)}
            {line("tokens", (r) => (r.usage.calls ? <>{tokens(tokensOf(r))}, {share(r.usage.cached, r.usage.input)} cached</> : "–"), tokensOf(left) === tokensOf(right))}
            {line("time", (r) => `${wall(r)}, ${span(r.active_ms)} active`)}
            {line("steps", (r) => r.steps_total ?? r.steps.length, left.steps.length === right.steps.length)}
            {line("begun", (r) => <Ago at={r.started} />)}
          </tbody>
        </table>
      </div>
      <div class="bar">
        <h2>Steps</h2>
        <div class="chips" role="group" aria-label="Which steps">
          <Button class="chip" aria-pressed={!every} onClick={() => setEvery(false)}>that differ <span class="n">{differ.length}</span></Button>
          <Button class="chip" aria-pressed={every} onClick={() => setEvery(true)}>all <span class="n">{all.length}</span></Button>
        </div>
        {left.earlier || right.earlier ? <span class="dim">Compared are the newest {plural(Math.max(left.steps.length, right.steps.length), "step")} of each.</span> : null}
      </div>
      <div class="panel">
        {rows.length === 0 ? <Empty title="No step differs">All of them have the same records.</Empty> : rows.slice(0, most).map((p) => <PairOf key={p.id} of={p} left={left} right={right} />)}
        {rows.length > most ? <div class="foot"><Button class="btn" onClick={() => setMost(most + rowsAtOnce)}>Show {Math.min(rowsAtOnce, rows.length - most)} more of {rows.length - most}</Button></div> : null}
      </div>
    </>
  );
}

function PairOf({of: p, left, right}: {of: Pair; left: Run; right: Run}) {
  const [open, setOpen] = useState(false);
  const half = (s: StepView | undefined, run: Run) => (
    <div class="half">
      {s ? <>
        <p class="named"><Status of={s.status} /><span class="dim">{span(s.ms)}</span>{s.usage.calls ? <span class="dim">{tokens((s.usage.input ?? 0) + (s.usage.output ?? 0))} tokens</span> : null}<a href={hrefOf("run", run.id, {step: s.id})}>open</a></p>
        {open ? <>
          {s.edge_prompt ? <TextBox caption={<b>input</b>} text={s.edge_prompt} /> : null}
          {s.output && Object.keys(s.output).length ? <Values of={s.output} /> : null}
          {s.text ? <TextBox caption={<b>text</b>} text={s.text} /> : null}
          {s.error ? <Fault of={s.error} /> : null}
        </> : <p class="line">{headline(s.error ? failure(s.error.message, s.text) : summary(s.output, s.text), 160)}</p>}
      </> : <p class="dim">{run.earlier ? "not among the steps of this run that were read" : "not in this run"}</p>}
    </div>
  );
  return (
    <div class="pair" data-pair={p.id}>
      <Button class="fold" aria-expanded={open} onClick={() => setOpen(!open)}><span aria-hidden="true">{open ? "▾" : "▸"}</span><b>{p.id}</b>{p.same ? <span class="dim"> the same record</span> : null}</Button>
      {p.same && !open ? null : <div class="halves">{half(p.left, left)}{half(p.right, right)}</div>}
    </div>
  );
}
