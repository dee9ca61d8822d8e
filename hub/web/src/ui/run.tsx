// One run.

import {useEffect, useLayoutEffect, useMemo, useRef, useState} from "preact/hooks";
import {dollars, headline, plain, share, span, tokens} from "../model/text.ts";
import {fanOf} from "../model/fans.ts";
import type {Step} from "../model/fold.ts";
import type {Choice} from "../model/service.ts";
import {api} from "../net/api.ts";
import {followAddress} from "../state/address.ts";
import {fault, hrefOf, may, refine, route, tell} from "../state/app.ts";
import {arrange, layout, usual} from "../state/layout.ts";
import {Run} from "../state/run.ts";
import {back} from "../state/runs.ts";
import {Ask} from "./ask.tsx";
import {Ago, Button, copy, Status, statusWord, wall} from "./widgets.tsx";
import {CancelDialog, CompareDialog, DeleteDialog, ForkDialog, MessageDialog, ResumeDialog} from "./actions.tsx";
import {Detail, tabs} from "./detail.tsx";
import {Graph} from "./graph.tsx";
import {Outcome} from "./outcome.tsx";
import {Edge} from "./panel.tsx";
import {keyed} from "./keys.ts";
import {Steps} from "./steps.tsx";
import {Timeline} from "./timeline.tsx";

type Deed = "" | "cancel" | "resume" | "fork" | "message" | "compare" | "delete";

export function RunPage({id}: {id: string}) {
  const run = useMemo(() => new Run(id), [id]);
  const [deed, setDeed] = useState<Deed>("");
  const questions = useRef<HTMLDivElement>(null);
  const work = useRef<HTMLDivElement>(null);
  useEffect(() => {
    run.start();
    const leave = followAddress(run);
    return () => {
      leave();
      run.stop();
    };
  }, [run]);

  const query = route.value.query;
  const ready = run.ready.value;
  const state = run.state;
  const asked = query["step"] ?? "";
  const chosen = asked === "" ? latest(run) : state.steps.has(asked) || state.earlier > 0 ? asked : "";
  const choose = (step: string) => refine({step});

  useEffect(() => {
    const by = (n: number) => () => {
      const ids = run.lines(chosen).flatMap((l) => l.step?.id ?? []);
      const i = ids.indexOf(chosen);
      const next = ids[i < 0 ? (n > 0 ? 0 : ids.length - 1) : Math.min(ids.length - 1, Math.max(0, i + n))];
      if (next) choose(next);
    };
    const seek = (n: number) => () => run.look((run.cursor.value ?? run.journal.seq) + n);
    const keys: Record<string, () => void> = {
      j: by(1), k: by(-1), ArrowLeft: seek(-1), ArrowRight: seek(1), " ": () => run.play(), l: () => run.look(null),
      a: () => questions.current?.querySelector<HTMLElement>("button, input, textarea")?.focus(),
    };
    tabs.forEach((t, i) => (keys[String(i + 1)] = () => refine({tab: t.id})));
    return keyed(keys);
  });

  // Answered by keyboard, a question takes the focus away with it: reading goes on at the top.
  const open = run.head.waiting.size;
  const opened = useRef(open);
  useLayoutEffect(() => {
    if (open < opened.current && document.activeElement === document.body) document.getElementById("main")?.focus({preventScroll: true});
    opened.current = open;
  }, [open]);

  const problem = run.problem.value;
  const view = run.view.value;
  const head = run.head;
  const title = plain(view?.info.title || head.title || view?.workflow || id);
  useEffect(() => {
    document.title = `${head.status === "waiting" ? "⏸ " : ""}${title} · wf`;
  }, [title, head.status]);

  if (problem && !ready) {
    const what = ({unknown_session: `There is no run ${id}`, run_deleted: "The run was deleted"} as Record<string, string>)[problem.code];
    return <div class="empty"><h1>{what ?? "The run cannot be shown"}</h1><p>{plain(problem.message)} <a href={hrefOf("runs")}>All runs</a></p></div>;
  }
  if (!ready) return <p class="empty" role="status">Reading the run…</p>;
  return (
    <>
      <Head run={run} title={title} act={setDeed} />
      {problem ? <p class="panel notice bad" role="alert"><strong>{problem.code}</strong>: {plain(problem.message)}</p> : null}
      <div ref={questions}>
        {[...head.waiting.values()].map((q) => (
          <Ask key={`${q.step}@${q.since}`} run={id} question={q} told={view?.waiting?.find((w) => w.step === q.step)} choose={choose} />
        ))}
      </div>
      <Outcome run={run} choose={choose} />
      <div class="work" ref={work}>
        <Timeline run={run} chosen={chosen} choose={choose} />
        <div class="cols" style={{"--left": `${layout.value.left}%`}}>
          <div class="side">
            <Graph run={run} chosen={chosen} choose={choose} />
            <Steps run={run} chosen={chosen} choose={choose} />
          </div>
          <Edge
            label="width of graph and steps" upright value={layout.value.left} low={15} high={80} step={2} usual={usual.left} move={(left) => arrange({left})}
            at={(e) => {
              const r = work.current!.getBoundingClientRect();
              return (100 * (e.clientX - r.left)) / r.width;
            }}
          />
          <Detail run={run} step={chosen} />
        </div>
      </div>
      {deed === "cancel" ? <CancelDialog run={id} onClose={() => setDeed("")} /> : null}
      {deed === "resume" ? <ResumeDialog run={run} onClose={() => setDeed("")} /> : null}
      {deed === "fork" ? <ForkDialog run={id} steps={[...head.steps.keys()]} step={chosen} stopped={head.status === "suspended"} onClose={() => setDeed("")} /> : null}
      {deed === "compare" ? <CompareDialog run={id} workflow={view?.workflow ?? ""} onClose={() => setDeed("")} /> : null}
      {deed === "delete" ? <DeleteDialog run={id} onClose={() => setDeed("")} /> : null}
      {deed === "message" ? <MessageDialog run={id} onClose={() => setDeed("")} /> : null}
    </>
  );
}

// The step to look at when none was chosen: what goes on, else what came last; of the items of a fan-out one that failed.
function latest(run: Run): string {
  let last: Step | undefined;
  let bad: Step | undefined;
  for (const s of run.state.steps.values()) {
    if (s.status === "running" || s.status === "waiting") return s.id;
    if (s.status === "failed") bad = s;
    last = s;
  }
  return (bad && last?.item != null && fanOf(bad) === fanOf(last) ? bad : last)?.id ?? "";
}

function Head({run, title, act}: {run: Run; title: string; act: (d: Deed) => void}) {
  const view = run.view.value;
  const head = run.head;
  const now = view?.seq === head.seq ? view : null;
  const status = run.idle.value || (now?.status ?? head.status);
  const reason = now?.reason || head.reason;
  const u = head.usage;
  const active = view ? view.active_ms + (status === "running" ? Math.max(0, run.end.value - Date.parse(view.updated)) : 0) : NaN;
  const [started, updated] = [head.began, head.at].map((at) => new Date(at).toISOString()) as [string, string];
  return (
    <div class="head">
      <div class="what">
        <div class="crumbs">
          <a href={back.value}>Runs</a><span aria-hidden="true">/</span>
          {view ? <><a href={hrefOf("runs", "", {workflow: view.workflow})} title="all runs of this workflow">{plain(view.workflow)}</a><span aria-hidden="true">/</span></> : null}
          <Button class="mono btn quiet tight" onClick={() => void copy(run.id)} aria-label={`copy the id ${run.id}`} title="Copy the id">{run.id}</Button>
          {view?.info.fork_of ? <span>fork of <a href={hrefOf("run", view.info.fork_of.run)}>{view.info.fork_of.run}</a> after event {view.info.fork_of.seq}</span> : null}
          {view?.forks?.length ? <Forks of={view.forks.map((f) => f.run)} /> : null}
          {view?.info.parent ? <a href={hrefOf("run", view.info.parent.run, {step: view.info.parent.step})}>part of {view.info.parent.run}</a> : null}
        </div>
        <h1><span title={title}>{title}</span> <Status of={status} /></h1>
        <p class="sr" role="status">{`the run is ${statusWord(status)}`}</p>
        <div class="figures">
          <span>started <Ago at={started} /></span>
          {head.final ? <span>ended <Ago at={updated} /></span> : null}
          <span><b>{wall({status: head.status, started, updated})}</b> {head.final ? "in all" : "so far"}</span>
          <span><b>{span(active)}</b> active</span>
          <span><b>{head.count}</b> {head.count === 1 ? "step" : "steps"}</span>
          {u.calls ? <span><b>{tokens(u.input + u.output)}</b> tokens</span> : null}
          {u.calls ? <span title="tokens of the prompts that came from the provider's cache"><b>{share(u.cached, u.input)}</b> cached</span> : null}
          {u.calls ? view ? <span><b>{dollars(view.cost_usd)}</b> cost</span> : null : <span>no model calls</span>}
        </div>
        {head.closing ? <p class="reason">Closing: its always roles run, then it ends as {statusWord(head.closing)}.</p> : null}
        {reason ? <p class={status === "failed" ? "reason bad" : "reason"}>{headline(reason, 400)}</p> : null}
        {(now?.cleanup_failed ?? []).map((c) => <p class="reason bad">Cleanup: {c.step ? `${c.step} failed` : `${c.role} did not run`}: {headline(c.message, 200)}</p>)}
      </div>
      {may("run") ? (
        <div class="acts" role="group" aria-label="What to do with the run">
          {status === "suspended" || run.idle.value ? <Button class="btn primary" onClick={() => act("resume")}>Resume…</Button> : null}
          {status === "running" || status === "queued" ? <Button class="btn" title="Stop what runs; the run can be resumed" onClick={() => api.suspend(run.id).then(() => tell("suspended"), fault)}>Suspend</Button> : null}
          {head.final ? null : <Button class="btn" onClick={() => act("message")}>Message…</Button>}
          <Button class={`btn${status === "failed" ? " primary" : ""}`} title="Try again from any of its steps, with another model if you like: in a new run" onClick={() => act("fork")} disabled={head.count === 0}>Fork…</Button>
          <Beside run={run} act={act} />
          {head.final ? null : <Button class="btn danger" onClick={() => act("cancel")}>Cancel…</Button>}
          {head.final && may("admin") ? <Button class="btn danger" onClick={() => act("delete")}>Delete…</Button> : null}
        </div>
      ) : null}
    </div>
  );
}

const named = 3; // forks that are named

function Forks({of}: {of: string[]}) {
  return <span>{of.length === 1 ? "its fork " : `${of.length} forks: `}{of.slice(-named).map((f, i) => <>{i ? ", " : ""}<a href={hrefOf("run", f)}>{f}</a></>)}{of.length > named ? ", …" : ""}</span>;
}

// A fork is compared with what it was forked from; another run with the one that is named.
function Beside({run, act}: {run: Run; act: (d: Deed) => void}) {
  const view = run.view.value;
  const other = view?.info.fork_of?.run ?? view?.forks?.at(-1)?.run;
  return other
    ? <a class="btn" href={hrefOf("compare", "", view!.info.fork_of ? {a: other, b: run.id} : {a: run.id, b: other})}>Compare</a>
    : <Button class="btn" onClick={() => act("compare")}>Compare…</Button>;
}

/** Choices as buttons, the primary one first. */
export function Choices({of, pick, disabled}: {of: readonly Choice[]; pick: (c: Choice) => void; disabled?: boolean}) {
  const sorted = [...of.filter((c) => c.primary), ...of.filter((c) => !c.primary)];
  return (
    <div class="choices">
      {sorted.map((c) => (
        <Button class={c.primary ? "btn primary" : "btn"} data-choice={c.value} aria-disabled={disabled} onClick={() => disabled || pick(c)}>{plain(c.label || c.value)}</Button>
      ))}
    </div>
  );
}
