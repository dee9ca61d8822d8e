// What the hub knows: its agents and its queue.

import {useEffect} from "preact/hooks";
import {plain} from "../model/text.ts";
import {hrefOf, info} from "../state/app.ts";
import {agents, followHub, queue} from "../state/runs.ts";
import {Ago, Empty, Status} from "./widgets.tsx";

export function Hub({page}: {page: "agents" | "queue"}) {
  useEffect(() => {
    document.title = (page === "agents" ? "Agents" : "Queue") + " · wf";
    return followHub();
  }, [page]);
  if (info.value?.kind !== "hub") return <Empty title="This is no hub">An agent on its own has no queue. <a href={hrefOf("runs")}>Its runs</a></Empty>;
  return page === "agents" ? <Agents /> : <Queue />;
}

function Agents() {
  const list = agents.value;
  return (
    <>
      <div class="bar"><h1>Agents</h1></div>
      <div class="panel">
        {list === null ? <p class="empty">Reading…</p> : list.length === 0 ? (
          <Empty title="No agent is connected"><code>wf serve --hub URL</code> connects one.</Empty>
        ) : (
          <table class="list">
            <thead><tr><th scope="col">Agent</th><th scope="col">State</th><th scope="col">Seen</th><th scope="col">Since</th><th scope="col" class="num">Runs</th><th scope="col">Version</th></tr></thead>
            <tbody>
              {list.map((a) => (
                <tr key={a.id}>
                  <td class="name"><strong>{plain(a.name || a.id)}</strong>
                    <div class="sub"><span class="mono">{a.id}</span></div>
                    <div class="tags">{named(a.caps ?? []).map((c) => <span class="tag">{plain(c)}</span>)}</div>
                  </td>
                  <td class="state"><span class={a.connected ? "good" : "dim"}>{a.connected ? "connected" : "away"}</span></td>
                  <td data-label="Seen"><Ago at={a.last_seen} /></td>
                  <td data-label="Since"><Ago at={a.since} /></td>
                  <td class="num" data-label="Runs">{a.runs}</td>
                  <td data-label="Version">{a.version}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </>
  );
}

// What an agent can start goes by its name and by its file; the names say enough.
function named(caps: string[]): string[] {
  const names = caps.filter((c) => !c.includes("/"));
  return names.length ? names : caps;
}

function Queue() {
  const list = queue.value;
  return (
    <>
      <div class="bar"><h1>Queue</h1></div>
      <div class="panel">
        {list === null ? <p class="empty">Reading…</p> : list.length === 0 ? (
          <Empty title="Nothing waits">Jobs stand here until an agent takes them.</Empty>
        ) : (
          <table class="list">
            <thead><tr><th scope="col">Job</th><th scope="col">State</th><th scope="col">Since</th><th scope="col" class="num">Attempts</th><th scope="col">Agent</th></tr></thead>
            <tbody>
              {list.map((j) => (
                <tr key={j.id}>
                  <td class="name">{j.run ? <a href={hrefOf("run", j.run)}>{plain(j.workflow)}</a> : <strong>{plain(j.workflow)}</strong>}
                    <div class="sub"><span class="mono">{j.id}</span>{j.run ? <span>run {j.run}</span> : null}{j.why ? <span class="worse">{plain(j.why)}</span> : null}</div></td>
                  <td class="state"><Status of={j.state} /></td>
                  <td data-label="Since"><Ago at={j.since} /></td>
                  <td class="num" data-label="Attempts">{j.attempts}</td>
                  <td data-label="Agent">{j.agent || "–"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </>
  );
}
