// What there is to know about the chosen step, and about the run.

import {useEffect} from "preact/hooks";
import {refine, route} from "../state/app.ts";
import type {Run} from "../state/run.ts";
import {Activity} from "./activity.tsx";
import {Button, Empty, Tabs, type Tab} from "./widgets.tsx";
import {Cost} from "./cost.tsx";
import {Events} from "./events.tsx";
import {Job} from "./job.tsx";
import {Messages} from "./messages.tsx";
import {Diff, Output} from "./output.tsx";
import {Verify} from "./verify.tsx";

export const tabs: Tab[] = [
  {id: "activity", name: "Activity"},
  {id: "output", name: "Output"},
  {id: "messages", name: "Messages"},
  {id: "diff", name: "Diff"},
  {id: "events", name: "Events", ruled: true},
  {id: "cost", name: "Cost"},
  {id: "job", name: "Job"},
  {id: "verify", name: "Verify"},
];

export function Detail({run, step}: {run: Run; step: string}) {
  const wanted = route.value.query["tab"] ?? "";
  const tab = tabs.some((t) => t.id === wanted) ? wanted : "activity";
  return (
    <section class="panel detail" aria-label="Details">
      <Tabs tabs={tabs} chosen={tab} choose={(id) => refine({tab: id === "activity" ? "" : id})} label="Details" panel="detail" />
      <div class="pane" id="detail" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        <Pane run={run} step={step} tab={tab} />
      </div>
    </section>
  );
}

function Pane({run, step, tab}: {run: Run; step: string; tab: string}) {
  const state = run.state;
  const s = run.step(step);
  const untold = s && !run.told(step);
  useEffect(() => {
    if (s && untold) void run.ask(s);
  }, [step, untold]);
  switch (tab) {
    case "events": return <Events run={run} />;
    case "cost": return <Cost run={run} step={step} />;
    case "job": return <Job run={run} />;
    case "verify": return <Verify run={run} />;
  }
  if (!s && state.earlier > 0) {
    return <Empty title={`${step || "The step"} is not among the steps that were read`}><Button class="btn" onClick={() => void run.showEarlier()}>Show earlier steps</Button></Empty>;
  }
  if (!s) return <Empty title={step ? `${step} has not begun here` : "Nothing has begun yet"}>{step ? "Move on in the timeline." : ""}</Empty>;
  switch (tab) {
    case "output": return <Output key={step} run={run} step={s} />;
    case "messages": return <Messages key={step} run={run} step={s} />;
    case "diff": return <Diff key={step} run={run} step={s} />;
  }
  return <Activity key={step} run={run} step={s} />;
}
