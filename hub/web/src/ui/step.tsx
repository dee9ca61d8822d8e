// The head of a step, the same on all of its tabs.

import {took, type Step} from "../model/fold.ts";
import {plural, share, shown, span, tokens} from "../model/text.ts";
import type {Run} from "../state/run.ts";
import {Status, TextBox} from "./widgets.tsx";

export function StepHead({run, step: s, prompt}: {run: Run; step: Step; prompt?: boolean}) {
  const u = s.usage;
  const handed = prompt ? shown(s.prompt) : "";
  return (
    <>
      <div class="stephead">
        <h3>{s.id}</h3>
        <Status of={run.statusOf(s)} />
        <span class="dim">{span(took(s, run.at))}</span>
        {s.held ? <span class="dim">{s.held}</span> : null}
        {s.attempt > 1 ? <span class="dim">try {s.attempt}</span> : null}
        {s.toolCalls ? <span class="dim">{plural(s.toolCalls, "tool call")}</span> : null}
        {u.calls ? <span class="dim">{tokens(u.input)} in · {share(u.cached, u.input)} cached · {tokens(u.output)} out</span> : null}
      </div>
      {handed ? <TextBox caption={<><b>input</b>{s.via === "limit" ? <span>since a limit was reached</span> : null}</>} text={handed} /> : null}
    </>
  );
}

/** Why a step failed. */
export function Fault({of: e}: {of: {code: string; phase?: string; message: string}}) {
  return <TextBox caption={<><b>error</b><span>{[e.phase, e.code].filter(Boolean).join(", ")}</span></>} text={e.message} class="bad" />;
}
