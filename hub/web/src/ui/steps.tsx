// The visits of a run, in the order of their start.

import {useEffect, useRef} from "preact/hooks";
import type {Step} from "../model/fold.ts";
import {headline, shown, span} from "../model/text.ts";
import type {Run} from "../state/run.ts";
import {Status} from "./bits.tsx";

export function Steps({run, chosen, choose}: {run: Run; chosen: string; choose: (id: string) => void}) {
  const state = run.state;
  const list = [...state.steps.values()];
  const box = useRef<HTMLOListElement>(null);
  useEffect(() => {
    const ol = box.current;
    const li = ol?.querySelector<HTMLElement>("[aria-current=true]");
    if (!ol || !li) return;
    // Only the list scrolls, not the page.
    if (li.offsetTop < ol.scrollTop) ol.scrollTop = li.offsetTop - 4;
    else if (li.offsetTop + li.offsetHeight > ol.scrollTop + ol.clientHeight) ol.scrollTop = li.offsetTop + li.offsetHeight - ol.clientHeight + 4;
  }, [chosen, list.length]);
  return (
    <section class="panel steps" aria-label="Steps">
      <header><h2>Steps</h2><span class="dim">{list.length}</span></header>
      <ol ref={box} style={{position: "relative"}}>
        {list.map((s) => <Item key={s.id} run={run} step={s} chosen={s.id === chosen} choose={choose} now={state.at} />)}
        {list.length === 0 ? <li class="empty">Nothing has begun yet.</li> : null}
      </ol>
    </section>
  );
}

function Item({run, step: s, chosen, choose, now}: {run: Run; step: Step; chosen: boolean; choose: (id: string) => void; now: number}) {
  const view = run.view.value?.steps.find((v) => v.id === s.id);
  const open = s.spans.at(-1);
  const took = s.ms || (open ? (open.to ?? now) - s.spans[0]!.from : 0);
  const said = s.record ? summary(view?.output, view?.text ?? shown(s.said)) : s.failures.length ? s.failures.at(-1)!.message : shown(s.said);
  return (
    <li>
      <button type="button" aria-current={chosen} onClick={() => choose(s.id)} data-step={s.id}>
        <Status of={s.status} bare />
        <span class="id">{s.id}{s.resumes ? <span class="dim" title="goes on with the conversation of its earlier visit" aria-label="resumes"> ↻</span> : null}</span>
        <span class="took">{s.attempt > 1 ? `try ${s.attempt} · ` : ""}{s.status === "waiting" ? "waits" : span(took)}</span>
        {said ? <span class="said">{headline(said, 140)}</span> : null}
      </button>
    </li>
  );
}

// What a step said, in a line: its summary or reason if it has one, else how its text begins.
function summary(output: unknown, text: string): string {
  if (output !== null && typeof output === "object" && !Array.isArray(output)) {
    const o = output as Record<string, unknown>;
    for (const k of ["summary", "reason", "choice", "title", "verdict", "status"]) if (typeof o[k] === "string" && o[k]) return o[k];
    if (typeof o["exit_code"] === "number" && o["exit_code"] !== 0) return `exit ${o["exit_code"]} · ${lastLine(text)}`;
  }
  return text.replace(/^\s*---[\s\S]*?\n---\s*/, "");
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
