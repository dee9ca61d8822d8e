// What belongs to a store and to no run: where notifications went, what sweeps and evals came to, and which runs were deleted. At a hub each worker
// has a store of its own.

import {useEffect, useState} from "preact/hooks";
import {day, plain, plural} from "../model/text.ts";
import type {Notification, NotificationList} from "../model/service.ts";
import {api} from "../net/api.ts";
import {fault, hrefOf, info, may, refine, route, tell} from "../state/app.ts";
import {agents, followHub} from "../state/runs.ts";
import {useLoad} from "./load.ts";
import {Tables} from "./tables.tsx";
import {Ago, Button, Empty, Status} from "./widgets.tsx";

const part = 100; // items of a list that are read at once
const most = 5000;
const titles = {notifications: "Notifications", deletions: "Deleted runs", tables: "Sweeps and evals"};

export function OfStore({page}: {page: "notifications" | "deletions" | "tables"}) {
  const [limit, setLimit] = useState(part);
  useEffect(() => {
    document.title = titles[page] + " · wf";
    return followHub();
  }, [page]);
  const hub = info.value?.kind === "hub";
  const workers = (agents.value ?? []).filter((a) => a.connected);
  const asked = route.value.query["agent"] ?? "";
  const about = page === "notifications" ? route.value.query["run"] ?? "" : ""; // a hub asks the worker that has it
  const agent = hub ? asked || (about ? "" : workers[0]?.id ?? "") : "";
  if (hub && !about && agents.value !== null && !agent) return <Empty title="No worker is connected">Each worker has a store of its own.</Empty>;
  if (hub && !about && !agent) return <p class="empty">Reading…</p>;
  const pick = hub && !about ? (
    <select class="field pick" aria-label="Worker" value={agent} onChange={(e) => refine({agent: e.currentTarget.value})}>
      {workers.some((w) => w.id === agent) ? null : <option value={agent}>{plain(agent)}</option>}
      {workers.map((w) => <option key={w.id} value={w.id}>{plain(w.name || w.id)}</option>)}
    </select>
  ) : null;
  const of = {agent, pick, limit, more: limit < most ? () => setLimit(Math.min(most, limit + part)) : null};
  return page === "notifications" ? <Notifications key={agent} {...of} /> : page === "tables" ? <Tables key={agent} {...of} /> : <Deletions key={agent} {...of} />;
}

export interface Of {
  agent: string; // "" where there is one store
  pick: preact.ComponentChildren;
  limit: number;
  more: (() => void) | null;
}

export function More({next, more}: {next: string | undefined; more: Of["more"]}) {
  return next && more ? <p class="more"><Button class="btn" onClick={more}>Show more</Button></p> : null;
}

function Notifications({agent, pick, limit, more}: Of) {
  const run = route.value.query["run"] ?? "";
  const [done, setDone] = useState(0);
  const got = useLoad((signal) => api.notifications({run, agent, limit}, signal), [run, agent, limit, done], "notifications");
  const list = got.value;
  const retry = (what: {ids: string[]} | {all: true}) => api.retryNotifications(what, info.value?.kind === "hub" && !agent ? {agent, run} : {agent}).then((r) => {
    tell(`${plural(r.retried.length, "notification")} will be attempted again`);
    setDone(done + 1);
  }, fault);
  const failed = list?.sinks.some((s) => s.dead > 0) ?? false;
  return (
    <>
      <div class="bar">
        <h1>Notifications</h1>{pick}
        {run ? <Button class="chip" aria-pressed="true" onClick={() => refine({run: ""})}>about run {plain(run)} ×</Button> : null}
        {failed && may("admin") ? <Button class="btn push" onClick={() => void retry({all: true})}>Retry all that failed</Button> : null}
      </div>
      {got.error ? <p class="panel notice bad" role="alert">{got.error}</p> : null}
      {list ? <Sinks of={list} /> : null}
      <div class="panel">
        {list === null ? (got.error ? null : <p class="empty">Reading…</p>) : list.items.length === 0 ? (
          <Empty title="No notifications">{list.sinks.length ? null : <><code>notify:</code> in the config or in a workflow says where they go.</>}</Empty>
        ) : (
          <table class="list">
            <thead><tr><th scope="col">About</th><th scope="col">State</th><th scope="col">To</th><th scope="col">Due</th><th scope="col" class="num">Failed tries</th><th scope="col">Next try</th>{may("admin") ? <th scope="col"><span class="sr">Actions</span></th> : null}</tr></thead>
            <tbody>
              {list.items.map((n) => (
                <tr key={n.sink + n.id} data-notification={n.id}>
                  <td class="name"><strong>{what(n)}</strong>
                    <div class="sub"><a href={n.run ? hrefOf("run", n.run, {step: n.step ?? ""}) : hrefOf("workflows")}>{plain(n.trigger ? `${n.trigger.kind} ${n.trigger.workflow} ${n.trigger.state}` : `run ${n.run} ${n.step ?? ""}`)}</a><span class="mono">{n.id}</span></div>
                    {n.error ? <div class="worse">{plain(n.error)}</div> : null}
                  </td>
                  <td class="state"><Status of={n.status} /></td>
                  <td data-label="To">{plain(n.sink)}</td>
                  <td data-label="Due"><Ago at={n.due} /></td>
                  <td class="num" data-label="Failed tries">{n.attempts}</td>
                  <td data-label="Next try">{n.status !== "waiting" ? "–" : n.next ? day(Date.parse(n.next)) : "at once"}</td>
                  {may("admin") ? <td>{n.status === "delivered" ? null : <Button class="btn" aria-label={`retry ${n.id}`} onClick={() => void retry({ids: [n.id]})}>Retry</Button>}</td> : null}
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

const what = (n: Notification): string => n.on + (n.reminder ? `, reminder ${n.reminder}` : n.escalated ? ", escalated" : "");

function Sinks({of}: {of: NotificationList}) {
  if (of.sinks.length === 0) return null;
  return (
    <div class="box scroll" tabIndex={0} role="region" aria-label="where notifications go">
      <table class="plain">
        <thead><tr><th scope="col">Sink</th><th scope="col">Goes to</th><th scope="col">On</th><th scope="col" class="num">Delivered</th><th scope="col" class="num">Waiting</th><th scope="col" class="num">Dead</th></tr></thead>
        <tbody>
          {of.sinks.map((s) => (
            <tr key={s.name}>
              <td>{plain(s.name)}</td><td class="path">{plain(s.to ?? "") || "what its workflow says"}</td><td>{(s.on ?? []).join(", ") || "everything"}</td>
              <td class="num">{s.delivered}</td><td class="num">{s.waiting}</td><td class="num">{s.dead ? <span class="worse">{s.dead}</span> : 0}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Deletions({agent, pick, limit, more}: Of) {
  const got = useLoad((signal) => api.deletions({agent, limit}, signal), [agent, limit], "deletions");
  const list = got.value;
  return (
    <>
      <div class="bar"><h1>Deleted runs</h1>{pick}</div>
      {got.error ? <p class="panel notice bad" role="alert">{got.error}</p> : null}
      <div class="panel">
        {list === null ? (got.error ? null : <p class="empty">Reading…</p>) : list.items.length === 0 ? (
          <Empty title="No run was deleted"><code>wf rm</code> deletes one.</Empty>
        ) : (
          <table class="list">
            <thead><tr><th scope="col">Run</th><th scope="col">Deleted</th><th scope="col">By</th><th scope="col">Why</th></tr></thead>
            <tbody>
              {list.items.map((d) => (
                <tr key={d.run} data-deleted={d.run}>
                  <td class="name"><strong class="mono">{plain(d.run)}</strong><div class="sub"><span>{plural(d.seq, "event")}</span></div></td>
                  <td data-label="Deleted"><Ago at={d.at} /></td>
                  <td data-label="By">{plain(d.by) || "–"}</td>
                  <td data-label="Why">{plain(d.why) || "–"}</td>
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
