// What can be started here: by a person, a clock or an event; how it went lately, and what is wrong with it.

import {useEffect, useRef, useState} from "preact/hooks";
import {day, headline, plain} from "../model/text.ts";
import type {RunRow, Workflow} from "../model/service.ts";
import {api} from "../net/api.ts";
import {hrefOf, may} from "../state/app.ts";
import {keepFresh} from "../state/lists.ts";
import {readWorkflows, workflows} from "../state/runs.ts";
import {useLoad} from "./load.ts";
import {Start} from "./start.tsx";
import {Ago, Button, Empty, Status} from "./widgets.tsx";

const lately = 20; // runs of each workflow that are looked at
const newest = 500; // runs that are read for all of them at once

// The newest runs of each workflow: those among the newest of all, and behind them those that were read for it alone, once, where there were not enough. A run
// that moves is among the newest again.
async function newestRuns(names: readonly string[], kept: Map<string, RunRow[]>, signal: AbortSignal): Promise<Map<string, RunRow[]>> {
  const page = await api.runs({limit: newest}, signal);
  const out = new Map<string, RunRow[]>();
  for (const name of names) {
    const own = (page.items ?? []).filter((r) => r.workflow === name).slice(0, lately);
    if (own.length < lately && page.next && !kept.has(name)) kept.set(name, (await api.runs({workflow: name, limit: lately}, signal)).items ?? []);
    out.set(name, [...own, ...(kept.get(name) ?? []).filter((k) => !own.some((r) => r.id === k.id))].slice(0, lately));
  }
  return out;
}

export function Workflows() {
  const [starting, setStarting] = useState("");
  useEffect(() => {
    document.title = "Workflows · wf";
    return keepFresh(["workflows"], readWorkflows);
  }, []);
  const names = (workflows.value ?? []).map((w) => w.name);
  const kept = useRef(new Map<string, RunRow[]>());
  const got = useLoad((signal) => newestRuns(names, kept.current, signal), [names.join("\n")], "runs");
  const all = workflows.value;
  const broken = (all ?? []).filter((w) => w.problem && !w.waits_for_trust).length;
  return (
    <>
      <div class="bar"><h1>Workflows</h1>{broken ? <span class="worse">{broken} cannot be started</span> : null}</div>
      {got.error ? <p class="panel notice bad" role="alert">{plain(got.error)}</p> : null}
      <div class="panel">
        {all === null ? <p class="empty">Reading…</p> : all.length === 0 ? <Empty title="No workflows">The server looks where it was started; <code>wf init</code> writes a first one.</Empty> : (
          <table class="list flows">
            <thead><tr><th scope="col">Workflow</th><th scope="col">Begun by</th><th scope="col">Next</th><th scope="col">Lately</th>{may("run") ? <th scope="col"><span class="sr">Actions</span></th> : null}</tr></thead>
            <tbody>{all.map((w) => <Row key={w.file + w.name} w={w} runs={got.value?.get(w.name) ?? null} start={() => setStarting(w.name)} />)}</tbody>
          </table>
        )}
      </div>
      {starting ? <Start workflow={starting} onClose={() => setStarting("")} /> : null}
    </>
  );
}

function Row({w, runs, start}: {w: Workflow; runs: readonly RunRow[] | null; start: () => void}) {
  return (
    <tr data-workflow={w.name}>
      <td class="name">
        <a href={hrefOf("runs", "", {workflow: w.name})}>{plain(w.name)}</a>
        <div class="sub">{w.description ? <span>{headline(w.description, 160)}</span> : null}<span class="mono">{plain(w.file)}</span></div>
        {[w.problem, w.schedule_problem, w.webhook_problem].map((x, i) => x && <div class={i || w.waits_for_trust ? "ask" : "worse"}>{headline(x, 300)}</div>)}
      </td>
      <td data-label="Begun by" class={w.schedule || w.webhook ? "" : "none"}>{[
        w.schedule ? <div><code>{plain(w.schedule)}</code> <span class="dim">{w.timezone || "UTC"}{w.overlap ? `, overlap ${w.overlap}` : ""}{w.catch_up ? `, catch up ${w.catch_up}` : ""}</span></div> : null,
        w.webhook ? <div><code>{plain(w.webhook)}</code></div> : null,
        w.schedule || w.webhook ? null : <span class="dim">a person</span>,
      ]}</td>
      <td data-label="Next" class={`nowrap${w.next ? "" : " none"}`}>{w.next ? <time dateTime={w.next} title={w.next}>{day(Date.parse(w.next))}</time> : "–"}</td>
      <td data-label="Lately">{runs === null ? "…" : <Lately runs={runs} />}</td>
      {may("run") ? <td class="act"><Button class="btn" disabled={!!w.problem} onClick={start}>Start…</Button></td> : null}
    </tr>
  );
}

// The newest runs, the newest last, and how many of those that ended went well.
function Lately({runs}: {runs: readonly RunRow[]}) {
  if (runs.length === 0) return <span class="dim">not run yet</span>;
  const over = runs.filter((r) => r.status === "done" || r.status === "failed" || r.status === "cancelled");
  const well = over.filter((r) => r.status === "done").length;
  const newest = runs[0]!;
  return (
    <>
      <div class="lately">{[...runs].reverse().map((r) => <a class={`dot s-${r.idle ?? r.status}`} href={hrefOf("run", r.id)} title={`${r.id}, ${r.status}`}><span class="sr">{r.id}, {r.status}</span></a>)}</div>
      <div class="sub"><span><Status of={newest.idle ?? newest.status} /> <Ago at={newest.updated} /></span>{over.length ? <span>{Math.round((100 * well) / over.length)}% of {over.length} went well</span> : null}</div>
    </>
  );
}
