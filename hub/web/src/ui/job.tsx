// The job: what the run was started with, and where its time went.

import {day, plain, span, timingLine, value} from "../model/text.ts";
import {hrefOf} from "../state/app.ts";
import type {Run} from "../state/run.ts";
import {CID, Fields, over, Scroll, Status, Values, wall} from "./widgets.tsx";

export function Job({run}: {run: Run}) {
  const v = run.view.value;
  if (!v) return <p class="dim">Reading…</p>;
  const i = v.info;
  const t = v.timing;
  const inputs = (i.inputs ?? {}) as Record<string, unknown>;
  const outputs = v.outputs ?? {};
  return (
    <>
      {t ? (
        <section>
          <h2>Timing</h2>
          <p class="timing" data-timing>{timingLine(t)}</p>
          <div class="stack" aria-hidden="true">
            <i class="a" style={{width: `${t.ttfe_pct}%`}} /><i class="b" style={{width: `${t.thinking_pct}%`}} /><i class="c" style={{width: `${t.tools_pct}%`}} />
          </div>
          <ul class="legend">
            <li><i class="a" />until the first event <b>{span(t.ttfe_ms)}</b></li><li><i class="b" />thinking <b>{span(t.thinking_ms)}</b></li><li><i class="c" />tools <b>{span(t.tools_ms)}</b></li>
          </ul>
        </section>
      ) : null}
      <section>
        <h2>Details</h2>
        <Fields of={[
          ["Title", plain(i.title)],
          ["Description", plain(i.description)],
          ["Type", plain(i.type)],
          ["Status", <Status of={v.idle ?? v.status} />],
          ["Scope", plain(i.scope)],
          ["Tags", (i.tags ?? []).length ? <span class="chips">{i.tags!.map((x) => <span class="tag">{plain(x)}</span>)}</span> : ""],
          ["Created", day(Date.parse(v.started))],
          [over(v.status) ? "Ended" : "Updated", day(Date.parse(v.updated))],
          ["Time", `${wall(v)}, ${span(v.active_ms)} active`],
          ["Created by", plain(i.created_by)],
          ["Begun by", i.trigger ? plain(`${i.trigger.kind === "schedule" ? "the schedule" : `the webhook (${i.trigger.kind})`} of ${i.trigger.name}${i.trigger.delivery ? `, ${i.trigger.delivery}` : ""}`) : ""],
          ["For", plain(i.target_user)],
          ["Request", plain(i.request_id), true],
          ["Workflow", plain(v.workflow)],
          ["File", plain(i.file), true],
          ["Workspace", plain(i.workspace), true],
          ["Part of", i.parent ? <a href={hrefOf("run", i.parent.run, {step: i.parent.step})}>{i.parent.run}:{i.parent.step}</a> : ""],
          ["Forked from", i.forked_from ? <CID of={i.forked_from} label="event" /> : ""],
          ["Notifications", <a href={hrefOf("notifications", "", {run: run.id})}>about this run</a>],
          ["Definition", <CID of={v.definition} label="definition" />],
          ["Result", v.result ? <CID of={v.result} label="result" /> : ""],
          ["Head", <CID of={v.head} label="head" />],
        ]} />
      </section>
      {Object.keys(inputs).length ? <section><h2>Inputs</h2><Values of={inputs} /></section> : null}
      {Object.keys(outputs).length ? <section><h2>Outputs</h2><Values of={outputs} /></section> : null}
      <details class="box">
        <summary><b>Raw data</b></summary>
        <Scroll text={value(v)} label="raw data" />
      </details>
    </>
  );
}
