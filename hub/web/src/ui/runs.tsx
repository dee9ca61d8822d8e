// The list of runs.

import {useEffect, useRef, useState} from "preact/hooks";
import {headline, plain, plural, dollars, share, span, tokens} from "../model/text.ts";
import type {RunRow} from "../model/service.ts";
import {hrefOf, info, may, tell} from "../state/app.ts";
import {api} from "../net/api.ts";
import {agents, counts, everything, filter, follow, fits, followHub, more, outbox, runs, searched, setFilter, showAll, showMore, workflows} from "../state/runs.ts";
import {dropView, keepView, said, views} from "../state/views.ts";
import {Deed} from "./actions.tsx";
import {Line} from "./form.tsx";
import {Ago, Button, Empty, over, Status, wall} from "./widgets.tsx";
import {keyed, step} from "./keys.ts";
import {Start} from "./start.tsx";

const statuses = ["queued", "running", "waiting", "suspended", "done", "failed", "cancelled"];

const times: [string, string][] = [["1h", "the last hour"], ["24h", "the last day"], ["7d", "the last week"], ["30d", "the last month"]];

export function Runs() {
  const [starting, setStarting] = useState(false);
  const [naming, setNaming] = useState(false);
  const [picked, setPicked] = useState<ReadonlySet<string> | null>(null); // runs to do something to; null while none are chosen
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
  const stale = list !== null && fits.value !== f; // what is listed fits what was asked before
  const all = Object.values(counts.value).reduce((n, x) => n + x, 0);
  const kept = said({...f});
  const isFiltered = Object.keys(kept).length > 0;
  return (
    <>
      <div class="bar">
        <h1>Runs</h1>
        <input
          class="field search" type="search" aria-label="Search in runs" placeholder="Search: what was said, title, id …" ref={search} value={f.search}
          onInput={(e) => setFilter({search: e.currentTarget.value})}
          onKeyDown={(e) => {
            if (e.key === "Escape") e.currentTarget.blur();
            if (e.key === "ArrowDown") step(".list .name a", 1);
          }}
        />
        {names.length > 1 ? <Pick label="Workflow" value={f.workflow} set={(workflow) => setFilter({workflow})} none="every workflow" of={names.map((n) => [n, plain(n)])} /> : null}
        <Pick label="Time" value={f.since} set={(since) => setFilter({since})} none="any time" of={times} />
        {info.value?.kind === "hub" && (agents.value ?? []).length > 1 ? <Pick label="Worker" value={f.agent} set={(agent) => setFilter({agent})} none="every worker" of={agents.value!.map((a) => [a.id, plain(a.name || a.id)])} /> : null}
        <details class="more" open={f.person !== "" || f.tag !== "" || f.cost_min !== "" || f.tokens_min !== ""}>
          <summary>More filters</summary>
          <div class="in">
            {([["person", "Person"], ["tag", "Tag"], ["cost_min", "Cost from, $"], ["tokens_min", "Tokens from"]] as const).map(([k, label]) => (
              <label>{label}<input class="field" value={f[k]} inputMode={k.endsWith("_min") ? "decimal" : undefined} onChange={(e) => setFilter({[k]: e.currentTarget.value.trim()})} /></label>
            ))}
          </div>
        </details>
        <div class="push acts">
          <Button class="btn quiet" aria-pressed={picked !== null} onClick={() => setPicked(picked ? null : new Set())}>{picked ? "Stop selecting" : "Select"}</Button>
          {may("run") ? <Button class="btn primary" onClick={() => setStarting(true)}>New run</Button> : null}
        </div>
      </div>
      <div class="bar under">
        <div class="chips" role="group" aria-label="Status">
          {["", ...statuses].map((s) => {
            const n = s ? counts.value[s] : all;
            return <Button class="chip" aria-pressed={f.status === s} onClick={() => setFilter({status: s})}>{s || "all"}{n && !stale ? <> <span class="n">{n}</span></> : null}</Button>;
          })}
        </div>
        <div class="chips views" role="group" aria-label="Views">
          {views.value.map((v) => {
            const on = JSON.stringify(v.query) === JSON.stringify(kept);
            return <><Button class="chip" aria-pressed={on} onClick={() => setFilter(on ? everything : {...everything, ...v.query})}>{plain(v.name)}</Button>{on ? <Button class="chip" aria-label={`forget the view ${plain(v.name)}`} onClick={() => dropView(v.name)}>×</Button> : null}</>;
          })}
          {isFiltered && !views.value.some((v) => JSON.stringify(v.query) === JSON.stringify(kept)) ? <Button class="chip" onClick={() => setNaming(true)}>Keep this view…</Button> : null}
          {isFiltered ? <Button class="chip" onClick={() => showAll()}>Clear</Button> : null}
        </div>
      </div>
      {picked ? <Picked of={list?.filter((r) => picked.has(r.id)) ?? []} done={() => setPicked(null)} /> : null}
      {naming ? <NameView query={kept} onClose={() => setNaming(false)} /> : null}
      {searched.value?.behind ? <p class="panel notice" role="status">{searched.value.up_to ? <>What was said until <Ago at={searched.value.up_to} /> was searched; w</> : "W"}hat was said in {plural(searched.value.behind, "run")} since is not searched yet.</p> : null}
      {outbox.value.length ? <p class="panel notice">{plural(outbox.value.length, "start")} waiting for a worker: {outbox.value.map((r) => r.title || r.workflow).join(", ")}. <a href={hrefOf("queue")}>The queue</a></p> : null}
      <div class={stale ? "panel stale" : "panel"} aria-busy={stale}>
        {list === null ? <p class="empty">Reading…</p> : list.length === 0 ? <None /> : <Table rows={list} picked={picked} pick={(id) => setPicked(toggled(picked!, id))} />}
        <Away />
        {more.value ? <div class="foot"><Button class="btn" onClick={showMore}>Show older runs</Button></div> : null}
      </div>
      <p class="sr" role="status">{stale ? "Searching…" : list ? plural(list.length, "run") + " listed" : ""}</p>
      {starting ? <Start onClose={() => setStarting(false)} /> : null}
    </>
  );
}

// At a hub: whose runs are not in the list, since their worker is not there.
function Away() {
  const away = (agents.value ?? []).filter((a) => !a.connected && a.runs > 0);
  if (info.value?.kind !== "hub" || away.length === 0) return null;
  return <p class="foot dim" data-away>Not listed, since their worker is away: {away.map((a) => `${plural(a.runs, "run")} of ${plain(a.name || a.id)}`).join(", ")}. <a href={hrefOf("agents")}>Workers</a></p>;
}

function None() {
  const f = filter.value;
  if (Object.keys(said({...f})).length) {
    return (
      <Empty title="No run matches these filters">
        <Button class="btn" onClick={() => showAll()}>Show all runs</Button>
      </Empty>
    );
  }
  if (info.value?.kind === "hub" && !agents.value?.some((a) => a.connected)) {
    return <Empty title="No worker is connected">Runs are kept by workers. <code>wf serve --hub URL</code> connects one.</Empty>;
  }
  return <Empty title="No runs yet">Start one here, or with <code>wf run FILE</code> in a terminal.</Empty>;
}

function Pick({label, value, set, none, of}: {label: string; value: string; set: (v: string) => void; none: string; of: [string, string][]}) {
  return (
    <select class="field pick" aria-label={label} value={value} onInput={(e) => set(e.currentTarget.value)}>
      <option value="">{none}</option>
      {value && !of.some(([v]) => v === value) ? <option value={value}>{plain(value)}</option> : null}
      {of.map(([v, name]) => <option value={v}>{name}</option>)}
    </select>
  );
}

function toggled(of: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(of);
  if (!next.delete(id)) next.add(id);
  return next;
}

function NameView({query, onClose}: {query: Record<string, string>; onClose: () => void}) {
  const [name, setName] = useState("");
  return (
    <Deed title="Keep this view" verb="Keep" ready={name.trim() !== ""} onClose={onClose} deed={async () => keepView(name.trim(), query)}>
      <p>The filter is kept in this browser, under a name.</p>
      <Line label="Name" value={name} set={setName} first />
    </Deed>
  );
}

// What can be done to several runs at once. Each refusal is shown; the other runs are changed all the same.
function Picked({of, done}: {of: RunRow[]; done: () => void}) {
  const [deed, setDeed] = useState<"" | "cancel" | "resume">("");
  const fit = {cancel: of.filter((r) => !over(r.status)), resume: of.filter((r) => r.status === "suspended" || r.idle)};
  const act = async (what: "cancel" | "resume") => {
    const refused: string[] = [];
    for (const r of fit[what]) await (what === "cancel" ? api.cancel(r.id, "") : api.resume(r.id, {})).catch((e: unknown) => refused.push(`${r.id}: ${e instanceof Error ? e.message : String(e)}`));
    const n = fit[what].length - refused.length;
    if (n) tell(`${plural(n, "run")} ${what === "cancel" ? "cancelled" : "resumed"}`);
    if (refused.length) throw new Error(refused.join("; "));
    done();
  };
  return (
    <div class="panel notice picked" role="group" aria-label="What to do with the chosen runs">
      <span role="status">{plural(of.length, "run")} chosen</span>
      {of.length === 2 ? <a class="btn" href={hrefOf("compare", "", {a: of[1]!.id, b: of[0]!.id})}>Compare</a> : null}
      {may("run") ? <>
        <Button class="btn" disabled={fit.resume.length === 0} onClick={() => setDeed("resume")}>Resume{fit.resume.length ? ` ${fit.resume.length}` : ""}…</Button>
        <Button class="btn danger" disabled={fit.cancel.length === 0} onClick={() => setDeed("cancel")}>Cancel{fit.cancel.length ? ` ${fit.cancel.length}` : ""}…</Button>
      </> : null}
      {deed ? (
        <Deed title={`${deed === "cancel" ? "Cancel" : "Resume"} ${plural(fit[deed].length, "run")}?`} verb={deed === "cancel" ? "Cancel them" : "Resume them"} danger={deed === "cancel"} onClose={() => setDeed("")} deed={() => act(deed)}>
          <ul>{fit[deed].slice(0, 20).map((r) => <li><span class="mono">{r.id}</span> {plain(r.title || r.workflow)}</li>)}</ul>
          {fit[deed].length > 20 ? <p class="dim">and {fit[deed].length - 20} more</p> : null}
        </Deed>
      ) : null}
    </div>
  );
}

function Table({rows, picked, pick}: {rows: RunRow[]; picked: ReadonlySet<string> | null; pick: (id: string) => void}) {
  const hub = info.value?.kind === "hub";
  return (
    <table class="list">
      <thead>
        <tr>
          {picked ? <th scope="col"><span class="sr">Chosen</span></th> : null}
          <th scope="col">Run</th><th scope="col">Status</th><th scope="col">Updated</th><th scope="col">Time</th>
          <th scope="col" class="num">Steps</th><th scope="col" class="num">Tokens</th><th scope="col" class="num">Cached</th><th scope="col" class="num">Cost</th>
          {hub ? <th scope="col">Worker</th> : null}
        </tr>
      </thead>
      <tbody>{rows.map((r) => <Row key={r.id} r={r} hub={hub} picked={picked} pick={pick} />)}</tbody>
    </table>
  );
}

function Row({r, hub, picked, pick}: {r: RunRow; hub: boolean; picked: ReadonlySet<string> | null; pick: (id: string) => void}) {
  const w = over(r.status) ? undefined : r.waiting?.[0];
  const line = r.queue && `waits for the group ${r.queue.group}${r.queue.behind.length ? `, held by ${r.queue.behind.join(", ")}` : ""}${r.idle ? "; no process waits for its turn" : ""}`;
  const ask = line ? headline(plain(line), 200) : w ? (w.question ? `asks: “${headline(w.question, 90)}”` : `waits for a ${w.kind}`) : "";
  const tags = r.tags ?? [];
  const none = r.usage.calls ? "" : " none"; // no model was asked
  return (
    <tr data-run={r.id}>
      {picked ? <td class="pickone"><input type="checkbox" aria-label={`choose ${r.id}`} checked={picked.has(r.id)} onInput={() => pick(r.id)} /></td> : null}
      <td class="name">
        <a href={hrefOf("run", r.id)}>{plain(r.title || r.workflow)}</a>
        <div class="sub">
          {r.title && r.title !== r.workflow ? <span>{plain(r.workflow)}</span> : null}
          <span class="mono">{r.id}</span>
          <span>started <Ago at={r.started} /></span>
          {r.parent ? <span>part of {r.parent}</span> : null}
          {tags.length ? <span class="tags">{tags.map((t) => <Button class="tag" aria-label={`only runs tagged ${t}`} onClick={() => setFilter({tag: t})}>{plain(t)}</Button>)}</span> : null}
        </div>
        {ask ? <div class="ask">{ask}</div> : r.reason ? <div class={r.status === "failed" ? "worse" : "ask"}>{headline(r.reason, 120)}</div> : null}
        {(r.hits ?? []).map((h) => <div class="hit"><a href={hrefOf("run", h.run ?? r.id, h.step.includes("#") ? {step: h.step} : {})}>{h.step || h.kind}</a> {headline(h.text, 200)}</div>)}
      </td>
      <td class="state"><Status of={r.idle && r.idle !== "unattended" ? r.idle : r.status} /></td>
      <td data-label="Updated"><Ago at={r.updated} /></td>
      <td class="nowrap" data-label="Time">{wall(r)}<div class="sub">{span(r.active_ms)} active</div></td>
      <td class="num" data-label="Steps">{r.steps}</td>
      <td class={`num${none}`} data-label="Tokens">{r.usage.calls ? tokens((r.usage.input ?? 0) + (r.usage.output ?? 0)) : "–"}</td>
      <td class={`num${none}`} data-label="Cached">{share(r.usage.cached, r.usage.input)}</td>
      <td class={`num${none}`} data-label="Cost">{r.usage.calls ? dollars(r.cost_usd) : "–"}</td>
      {hub ? <td data-label="Worker">{agents.value?.find((a) => a.id === r.agent)?.name || r.agent || "–"}</td> : null}
    </tr>
  );
}
