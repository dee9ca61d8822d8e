// What sweeps and evals have come to: a row for each variant or case, while a process is at work on them too.

import {useState} from "preact/hooks";
import {plain, plural} from "../model/text.ts";
import type {Table, TableHead, TableRow} from "../model/service.ts";
import {api} from "../net/api.ts";
import {hrefOf, refine, route} from "../state/app.ts";
import {useLoad} from "./load.ts";
import type {Of} from "./store.tsx";
import {More} from "./store.tsx";
import {Ago, Button, Empty, Status} from "./widgets.tsx";

export function Tables(of: Of) {
  const id = route.value.query["id"] ?? "";
  return id ? <One key={id} id={id} agent={of.agent} /> : <List {...of} />;
}

/** How a sweep or an eval stands. */
const stands = (t: TableHead): string => t.complete ? "done" : t.live ? "running" : "interrupted";
const trials = (t: TableHead): string => t.done === t.trials ? plural(t.trials, "trial") : `${t.done} of ${plural(t.trials, "trial")}`;

function List({agent, pick, limit, more}: Of) {
  const got = useLoad((signal) => api.tables({agent, limit}, signal), [agent, limit], "tables");
  const list = got.value;
  return (
    <>
      <div class="bar"><h1>Sweeps and evals</h1>{pick}</div>
      {got.error ? <p class="panel notice bad" role="alert">{got.error}</p> : null}
      <div class="panel">
        {list === null ? (got.error ? null : <p class="empty">Reading…</p>) : list.items.length === 0 ? (
          <Empty title="Nothing was compared"><code>wf sweep</code> tries models, definitions and inputs side by side, <code>wf eval</code> the cases of a suite.</Empty>
        ) : (
          <table class="list">
            <thead><tr><th scope="col">What</th><th scope="col">State</th><th scope="col">Trials</th><th scope="col" class="num">Not passed</th><th scope="col">Changed</th></tr></thead>
            <tbody>
              {list.items.map((t) => (
                <tr key={t.id} data-table={t.id}>
                  <td class="name"><a href={hrefOf("tables", "", {id: t.id})}><strong>{plain(t.title)}</strong></a><div class="sub"><span>{t.kind}</span><span class="mono">{t.id}</span></div></td>
                  <td class="state"><Status of={stands(t)} /></td>
                  <td data-label="Trials">{trials(t)}</td>
                  <td class="num" data-label="Not passed">{t.failed ? <span class="worse">{t.failed}</span> : 0}</td>
                  <td data-label="Changed"><Ago at={t.changed} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
      <More next={list?.next} more={more} />
    </>
  );
}

function One({id, agent}: {id: string; agent: string}) {
  const got = useLoad((signal) => api.table(id, {agent}, signal), [id, agent], "tables");
  const t = got.value;
  return (
    <>
      <div class="bar">
        <h1>{t ? plain(t.title) : "Sweep or eval"}</h1>
        <Button class="btn" onClick={() => refine({id: ""})}>All sweeps and evals</Button>
      </div>
      {got.error ? <p class="panel notice bad" role="alert">{got.error}</p> : null}
      {t === null ? (got.error ? null : <p class="empty">Reading…</p>) : <Body of={t} />}
    </>
  );
}

function Body({of}: {of: Table}) {
  const [missed, setMissed] = useState(false);
  const rows = missed ? of.body.filter((r) => r.state === "failed" || r.state === "mixed" || r.state === "error") : of.body;
  return (
    <>
      <p class="facts"><Status of={stands(of)} /> <span>{trials(of)}</span> {of.failed ? <Button class="chip" aria-pressed={missed} onClick={() => setMissed(!missed)}>{plural(of.failed, "trial")} not passed</Button> : null} <span class="dim">begun <Ago at={of.began} />, changed <Ago at={of.changed} /></span></p>
      <div class="panel scroll" tabIndex={0} role="region" aria-label="trials">
        <table class="plain">
          <thead><tr><th scope="col">State</th>{of.columns.map((c) => <th key={c.name} scope="col" class={c.number ? "num" : undefined}>{plain(c.name)}</th>)}<th scope="col">Runs</th></tr></thead>
          <tbody>{rows.map((r, i) => <Row key={i} of={r} table={of} />)}</tbody>
        </table>
      </div>
      {of.notes.map((n) => <p key={n} class="dim">{plain(n)}</p>)}
    </>
  );
}

const shown = 3; // runs that a row links to before it is opened

function Row({of, table}: {of: TableRow; table: Table}) {
  const [open, setOpen] = useState(false);
  const runs = open ? of.runs : of.runs.slice(0, shown);
  const more = of.runs.length - runs.length;
  return (
    <tr data-state={of.state}>
      <td class="state"><Status of={of.state} /></td>
      {table.columns.map((c, i) => <td key={c.name} class={c.number ? "num" : undefined}>{plain(of.cells[i] ?? "")}{i === 0 && of.why ? <div class="worse">{plain(of.why)}</div> : null}</td>)}
      <td>
        {runs.map((r) => <><a key={r} class="mono" href={hrefOf("run", r)}>{plain(r)}</a>{" "}</>)}
        {more > 0 ? <Button class="btn quiet" onClick={() => setOpen(true)}>{more} more</Button> : of.others ? <span class="dim">and {of.others} more</span> : null}
      </td>
    </tr>
  );
}
