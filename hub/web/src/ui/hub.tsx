// What the hub knows: its workers and its queue.

import {useEffect, useState} from "preact/hooks";
import {plain} from "../model/text.ts";
import {api} from "../net/api.ts";
import {hrefOf, info, may, tell} from "../state/app.ts";
import {agents, followHub, queue} from "../state/runs.ts";
import {Deed} from "./actions.tsx";
import {Ago, Button, Empty, Status} from "./widgets.tsx";

export function Hub({page}: {page: "agents" | "queue"}) {
  useEffect(() => {
    document.title = (page === "agents" ? "Workers" : "Queue") + " · wf";
    return followHub();
  }, [page]);
  if (info.value?.kind !== "hub") return <Empty title="This is no hub">A worker on its own has no queue. <a href={hrefOf("runs")}>Its runs</a></Empty>;
  return page === "agents" ? <Agents /> : <Queue />;
}

// Asked is what a button of a row does; it is asked for once more.
type Asked = {title: string; verb: string; text: string; danger?: boolean; deed: () => Promise<unknown>};

function Ask({of, onClose}: {of: Asked; onClose: () => void}) {
  return (
    <Deed title={of.title} verb={of.verb} danger={of.danger} onClose={onClose} deed={async () => {
      await of.deed();
      tell("done");
    }}>
      <p>{of.text}</p>
    </Deed>
  );
}

const rowsAtOnce = 200;

// why a job is where it is, in words.
const reasons: Record<string, string> = {
  no_worker: "no worker that has the workflow is connected", no_key: "the connected workers cannot open it yet", draining: "the workers drain",
  no_capacity: "the workers are busy", grace_period: "the hub has just started", no_recipient: "all workers that could open it were forgotten",
  expired: "it waited for a week", body_gone: "what it starts is no longer kept",
};

function Agents() {
  const list = agents.value;
  const [asked, ask] = useState<Asked | null>(null);
  return (
    <>
      <div class="bar"><h1>Workers</h1></div>
      {asked ? <Ask of={asked} onClose={() => ask(null)} /> : null}
      <div class="panel">
        {list === null ? <p class="empty">Reading…</p> : list.length === 0 ? (
          <Empty title="No worker is connected"><code>wf serve --hub URL</code> connects one.</Empty>
        ) : (
          <table class="list">
            <thead><tr><th scope="col">Worker</th><th scope="col">State</th><th scope="col">Seen</th><th scope="col">Since</th><th scope="col" class="num">Runs</th><th scope="col" class="num">Drives</th><th scope="col">Version</th>{may("admin") ? <th scope="col"><span class="sr">Actions</span></th> : null}</tr></thead>
            <tbody>
              {list.map((a) => (
                <tr key={a.id}>
                  <td class="name"><strong>{plain(a.name || a.id)}</strong>
                    <div class="sub"><span class="mono">{a.id}</span></div>
                    <div class="tags">{named(a.caps ?? []).map((c) => <span class="tag">{plain(c)}</span>)}</div>
                  </td>
                  <td class="state"><span class={a.connected ? "good" : "dim"}>{a.connected ? "connected" : "away"}{a.draining ? ", draining" : ""}</span></td>
                  <td data-label="Seen"><Ago at={a.last_seen} /></td>
                  <td data-label="Since"><Ago at={a.since} /></td>
                  <td class="num" data-label="Runs">{a.runs}</td>
                  <td class="num" data-label="Drives">{a.connected ? a.capacity ? `${a.busy} of ${a.capacity}` : "any" : "–"}</td>
                  <td data-label="Version">{a.version}</td>
                  {may("admin") ? <td>
                    <Button class="btn" onClick={() => ask(a.draining
                      ? {title: "Give it jobs again?", verb: "Undrain", text: "The worker gets jobs of the queue again.", deed: () => api.worker(a.id, "undrain")}
                      : {title: "Drain this worker?", verb: "Drain", text: "It gets no more jobs. The runs that it has go on.", deed: () => api.worker(a.id, "drain")})}>{a.draining ? "Undrain" : "Drain"}</Button>
                    {a.connected ? null : <Button class="btn" onClick={() => ask({title: "Forget this worker?", verb: "Forget", danger: true, text: "Jobs that it alone could open are given up.", deed: () => api.worker(a.id, "forget")})}>Forget</Button>}
                  </td> : null}
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </>
  );
}

// What a worker can start goes by its name and by its file; the names say enough.
function named(caps: string[]): string[] {
  const names = caps.filter((c) => !c.includes("/"));
  return names.length ? names : caps;
}

function Queue() {
  const list = queue.value;
  const [most, setMost] = useState(rowsAtOnce);
  const [asked, ask] = useState<Asked | null>(null);
  return (
    <>
      <div class="bar"><h1>Queue</h1></div>
      {asked ? <Ask of={asked} onClose={() => ask(null)} /> : null}
      <div class="panel">
        {list === null ? <p class="empty">Reading…</p> : list.length === 0 ? (
          <Empty title="Nothing waits">Jobs are listed here until a worker takes them.</Empty>
        ) : (
          <table class="list">
            <thead><tr><th scope="col">Job</th><th scope="col">State</th><th scope="col">Since</th><th scope="col" class="num">Attempts</th><th scope="col" class="num">Priority</th><th scope="col">Worker</th>{may("run") ? <th scope="col"><span class="sr">Actions</span></th> : null}</tr></thead>
            <tbody>
              {list.slice(0, most).map((j) => (
                <tr key={j.id}>
                  <td class="name">{j.run ? <a href={hrefOf("run", j.run)}>{plain(j.workflow)}</a> : <strong>{plain(j.workflow)}</strong>}
                    <div class="sub"><span class="mono">{j.id}</span>{j.run ? <span>run {j.run}</span> : null}{j.reason ? <span>{reasons[j.reason] ?? plain(j.reason)}</span> : j.why ? <span class="worse">{reasons[j.why] ?? plain(j.why)}</span> : null}</div></td>
                  <td class="state"><Status of={j.state} /></td>
                  <td data-label="Since"><Ago at={j.since} /></td>
                  <td class="num" data-label="Attempts">{j.attempts}</td>
                  <td class="num" data-label="Priority">{j.priority}</td>
                  <td data-label="Worker">{j.agent || "–"}</td>
                  {may("run") ? <td>
                    {j.state === "queued" ? <Button class="btn" onClick={() => ask({title: "Cancel this job?", verb: "Cancel the job", danger: true, text: "No worker has begun it, and none will.", deed: () => api.job(j.id, "cancel")})}>Cancel</Button> : null}
                    {j.state === "dead" ? <Button class="btn" onClick={() => ask({title: "Try it again?", verb: "Retry", text: "It waits at its place again, with all its attempts.", deed: () => api.job(j.id, "retry")})}>Retry</Button> : null}
                    {j.state === "dead" && may("admin") ? <Button class="btn" onClick={() => ask({title: "Forget this job?", verb: "Purge", danger: true, text: "The hub forgets it with all that it keeps of it.", deed: () => api.job(j.id, "purge")})}>Purge</Button> : null}
                  </td> : null}
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {list && list.length > most ? <div class="foot"><Button class="btn" onClick={() => setMost(most + rowsAtOnce)}>Show {Math.min(rowsAtOnce, list.length - most)} more of {list.length - most}</Button></div> : null}
      </div>
    </>
  );
}
