// What a person asks first of a run: what came of it, what it does now, and what it was given.

import type {ComponentChildren} from "preact";
import {itemsOf} from "../model/fans.ts";
import {took, type Step} from "../model/fold.ts";
import {count, day, headline, plain, span} from "../model/text.ts";
import type {Run} from "../state/run.ts";
import {fieldsLine, said} from "./said.ts";
import {Button, Status, statusWord, useReach, Values} from "./widgets.tsx";

const most = 4; // steps that are named
const isBad = (status: string): boolean => ["failed", "nonzero", "interrupted", "parked"].includes(status);

export function Outcome({run, choose}: {run: Run; choose: (step: string) => void}) {
  const view = run.view.value;
  const head = run.head;
  const inputs = (view?.info.inputs ?? {}) as Record<string, unknown>;
  const given = fieldsLine(inputs);
  const came = Came({run, choose});
  const of = view && starter(view.info);
  return (
    <section class="panel outcome" aria-label="Outcome">
      {came}
      {given || of ? (
        <details class="given">
          <summary><b>{Object.keys(inputs).length ? "inputs" : "begun"}</b> {of ? <span>{of}</span> : null} <span class="line">{headline(given, 300)}</span></summary>
          <p class="dim">Begun {day(head.began)}{of ? ` ${of}` : ""}</p>
          {given ? <Values of={inputs} /> : null}
        </details>
      ) : null}
    </section>
  );
}

function starter(i: {created_by: string; target_user: string; trigger?: {kind: string; name: string}}): string {
  const by = i.trigger ? `by the ${i.trigger.kind === "schedule" ? "schedule" : "webhook"} of ${plain(i.trigger.name)}` : i.created_by ? `by ${plain(i.created_by)}` : "";
  return [by, i.target_user ? `for ${plain(i.target_user)}` : ""].filter(Boolean).join(" ");
}

function Box({children}: {children: ComponentChildren}) {
  return <div class="came" ref={useReach<HTMLDivElement>("what came of it", [children])}>{children}</div>;
}

function Came({run, choose}: {run: Run; choose: (step: string) => void}): ComponentChildren {
  const view = run.view.value;
  const head = run.head;
  const steps = [...head.steps.values()];
  const now = view?.seq === head.seq ? view : null;
  if (head.final && head.status === "done") {
    const outputs = (now?.outputs ?? {}) as Record<string, unknown>;
    // What went wrong and was treated as data is a part of what came of it.
    const red = <Bad run={run} choose={choose} />;
    if (Object.keys(outputs).length) return <Box><h2>Outputs</h2><Values of={outputs} />{red}</Box>;
    const last = steps.at(-1);
    const line = last ? headline(said(run, last), 300) : "";
    return <Box><h2>It ended with</h2>{red}{last ? <Named run={run} step={last} choose={choose} line={() => line || "nothing said"} /> : <p class="dim">no step at all</p>}</Box>;
  }
  if (head.status === "failed" || head.status === "suspended" || head.status === "cancelled" || run.idle.value) {
    return <Box><Bad run={run} choose={choose} /></Box>;
  }
  const busy = steps.filter((s) => s.status === "running" || s.status === "retrying");
  if (busy.length === 0) return null;
  return (
    <Box>
      <h2>At work</h2>
      {busy.slice(0, most).map((s) => <Named key={s.id} run={run} step={s} choose={choose} line={() => headline(run.draftsOf(s.id).at(-1)?.text.trim().split("\n").at(-1) || s.held || said(run, s), 160)} />)}
      {busy.length > most ? <p class="dim">and {head.earlier ? "at least " : ""}{busy.length - most} more</p> : null}
    </Box>
  );
}

// What did not go well: the fan-outs with their counts, and some of the steps by name.
function Bad({run, choose}: {run: Run; choose: (step: string) => void}) {
  const bad = run.stepsAt(null).filter((s) => isBad(run.statusOf(s)));
  const all = run.fansAt(null); // what came of it, wherever one looks
  const fans = [...all.values()].filter((f) => f.partial || f.counts.some(([status]) => isBad(status)));
  const shown = bad.slice(0, bad.length > most + 2 ? most : most + 2);
  return (
    <>
      {fans.slice(0, most).map((f) => <p class="folded"><b>{f.id}</b> {itemsOf(f)}: {f.counts.map(([status, n], i) => <>{i ? ", " : ""}<span class={`s-${status}`}>{count(n)} {statusWord(status)}</span></>)}</p>)}
      {fans.length > most ? <p class="dim">and {fans.length - most} more fan-outs</p> : null}
      {shown.map((s) => <Named key={s.id} run={run} step={s} choose={choose} line={() => headline(said(run, s), 200)} />)}
      {bad.length > shown.length ? <p><Button class="btn quiet tight" onClick={() => document.querySelector(".steps")?.scrollIntoView()}>and {run.more ? "at least " : ""}{bad.length - shown.length} more, in the list of steps</Button></p> : null}
    </>
  );
}

function Named({run, step: s, choose, line}: {run: Run; step: Step; choose: (step: string) => void; line: () => string}) {
  return (
    <p class="named">
      <Status of={run.statusOf(s)} bare />
      <Button class="btn quiet tight" data-named={s.id} onClick={() => choose(s.id)}>{s.id}</Button>
      <span class="dim">{span(took(s, run.end.value))}</span>
      <span class="line">{line()}</span>
    </p>
  );
}
