// The list of runs.

import {useEffect, useRef, useState} from "preact/hooks";
import {headline, plain, plural, dollars, share, span, tokens} from "../model/text.ts";
import type {RunRow} from "../model/service.ts";
import {hrefOf, info, may} from "../state/app.ts";
import {agents, filter, follow, followHub, more, outbox, runs, setFilter, showAll, showMore, workflows} from "../state/runs.ts";
import {Ago, Empty, Status} from "./widgets.tsx";
import {keyed, step} from "./keys.ts";
import {Start} from "./start.tsx";

const statuses = ["queued", "running", "waiting", "suspended", "done", "failed", "cancelled"];

export function Runs() {
  const [starting, setStarting] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Runs · wf";
    const stop = follow();
    const stopHub = followHub();
    const unkey = keyed({
      "/": () => search.current?.focus(),
      n: () => may("run") && setStarting(true),
      j: () => step(".list .name a", 1),
      k: () => step(".list .name a", -1),
    });
    return () => {
      stop();
      stopHub();
      unkey();
    };
  }, []);
  const f = filter.value;
  const list = runs.value;
  const names = [...new Set((workflows.value ?? []).map((w) => w.name).concat((list ?? []).map((r) => r.workflow)))].sort();
  return (
    <>
      <div class="bar">
        <h1>Runs</h1>
        <div class="chips" role="group" aria-label="Status">
          {["", ...statuses].map((s) => (
            <button type="button" class="chip" aria-pressed={f.status === s} onClick={() => setFilter({status: s})}>{s || "all"}</button>
          ))}
        </div>
        <input
          class="field search" type="search" aria-label="Search in runs" placeholder="Search: title, id, workflow …" ref={search} value={f.q}
          onInput={(e) => setFilter({q: e.currentTarget.value})}
          onKeyDown={(e) => {
            if (e.key === "Escape") e.currentTarget.blur();
            if (e.key === "ArrowDown") step(".list .name a", 1);
          }}
        />
        {names.length > 1 ? (
          <select class="field pick" aria-label="Workflow" value={f.workflow} onInput={(e) => setFilter({workflow: e.currentTarget.value})}>
            <option value="">every workflow</option>
            {names.map((n) => <option value={n}>{n}</option>)}
          </select>
        ) : null}
        {info.value?.kind === "hub" && (agents.value ?? []).length > 1 ? (
          <select class="field pick" aria-label="Agent" value={f.agent} onInput={(e) => setFilter({agent: e.currentTarget.value})}>
            <option value="">every agent</option>
            {agents.value!.map((a) => <option value={a.id}>{plain(a.name || a.id)}</option>)}
          </select>
        ) : null}
        {f.tag ? <button type="button" class="chip" aria-pressed="true" aria-label={`remove the filter: tag ${f.tag}`} onClick={() => setFilter({tag: ""})}>#{f.tag} ×</button> : null}
        {may("run") ? <button type="button" class="btn primary push" onClick={() => setStarting(true)}>New run</button> : null}
      </div>
      {outbox.value.length ? <p class="panel notice">{plural(outbox.value.length, "start")} waiting for an agent: {outbox.value.map((r) => r.title || r.workflow).join(", ")}. <a href={hrefOf("queue")}>The queue</a></p> : null}
      <div class="panel">
        {list === null ? <p class="empty">Reading…</p> : list.length === 0 ? <None /> : <Table rows={list} />}
        <Away />
        {more.value ? <div class="foot"><button type="button" class="btn" onClick={showMore}>Show older runs</button></div> : null}
      </div>
      <p class="sr" role="status">{list ? plural(list.length, "run") + " listed" : ""}</p>
      {starting ? <Start onClose={() => setStarting(false)} /> : null}
    </>
  );
}

// At a hub: whose runs are not in the list, since their agent is not there.
function Away() {
  const away = (agents.value ?? []).filter((a) => !a.connected && a.runs > 0);
  if (info.value?.kind !== "hub" || away.length === 0) return null;
  return <p class="foot dim" data-away>Not listed, since their agent is away: {away.map((a) => `${plural(a.runs, "run")} of ${plain(a.name || a.id)}`).join(", ")}. <a href={hrefOf("agents")}>Agents</a></p>;
}

function None() {
  const f = filter.value;
  if (f.status || f.q || f.tag || f.workflow || f.agent) {
    return (
      <Empty title="No run fits">
        <button type="button" class="btn" onClick={() => showAll()}>Show all runs</button>
      </Empty>
    );
  }
  if (info.value?.kind === "hub" && !agents.value?.some((a) => a.connected)) {
    return <Empty title="No agent is connected">Runs are kept by agents. <code>wf serve --hub URL</code> connects one.</Empty>;
  }
  return <Empty title="No runs yet">Start one here, or with <code>wf run FILE</code> in a terminal.</Empty>;
}

function Table({rows}: {rows: RunRow[]}) {
  const hub = info.value?.kind === "hub";
  return (
    <table class="list">
      <thead>
        <tr>
          <th scope="col">Run</th><th scope="col">Status</th><th scope="col">Updated</th><th scope="col">Active</th>
          <th scope="col" class="num">Steps</th><th scope="col" class="num">Tokens</th><th scope="col" class="num">Cached</th><th scope="col" class="num">Cost</th>
          {hub ? <th scope="col">Agent</th> : null}
        </tr>
      </thead>
      <tbody>{rows.map((r) => <Row key={r.id} r={r} hub={hub} />)}</tbody>
    </table>
  );
}

function Row({r, hub}: {r: RunRow; hub: boolean}) {
  const over = r.status === "done" || r.status === "failed" || r.status === "cancelled";
  const w = over ? undefined : r.waiting?.[0];
  const line = r.queue && `waits for the group ${r.queue.group}${r.queue.behind.length ? `, held by ${r.queue.behind.join(", ")}` : ""}${r.idle ? "; no process waits for its turn" : ""}`;
  const ask = line ? headline(plain(line), 200) : w ? (w.question ? `asks: “${headline(w.question, 90)}”` : `waits for a ${w.kind}`) : "";
  const tags = r.tags ?? [];
  const none = r.usage.calls ? "" : " none"; // no model was asked
  return (
    <tr data-run={r.id}>
      <td class="name">
        <a href={hrefOf("run", r.id)}>{plain(r.title || r.workflow)}</a>
        <div class="sub">
          {r.title && r.title !== r.workflow ? <span>{plain(r.workflow)}</span> : null}
          <span class="mono">{r.id}</span>
          <span>started <Ago at={r.started} /> ago</span>
          {r.parent ? <span>part of {r.parent}</span> : null}
          {tags.length ? <span class="tags">{tags.map((t) => <button type="button" class="tag" aria-label={`only runs tagged ${t}`} onClick={() => setFilter({tag: t})}>{plain(t)}</button>)}</span> : null}
        </div>
        {ask ? <div class="ask">{ask}</div> : r.reason ? <div class={r.status === "failed" ? "worse" : "ask"}>{headline(r.reason, 120)}</div> : null}
      </td>
      <td class="state"><Status of={r.idle && r.idle !== "unattended" ? r.idle : r.status} /></td>
      <td data-label="Updated"><Ago at={r.updated} /></td>
      <td class="nowrap" data-label="Active">{span(r.active_ms)}</td>
      <td class="num" data-label="Steps">{r.steps}</td>
      <td class={`num${none}`} data-label="Tokens">{r.usage.calls ? tokens((r.usage.input ?? 0) + (r.usage.output ?? 0)) : "–"}</td>
      <td class={`num${none}`} data-label="Cached">{share(r.usage.cached, r.usage.input)}</td>
      <td class={`num${none}`} data-label="Cost">{r.usage.calls ? dollars(r.cost_usd) : "–"}</td>
      {hub ? <td data-label="Agent">{agents.value?.find((a) => a.id === r.agent)?.name || r.agent || "–"}</td> : null}
    </tr>
  );
}
