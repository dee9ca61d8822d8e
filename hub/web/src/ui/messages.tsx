// The request of a step: what its model was sent, with the part that its earlier visit was sent too.

import type {Step} from "../model/fold.ts";
import {plural, shortCID, value} from "../model/text.ts";
import {api} from "../net/api.ts";
import type {Run} from "../state/run.ts";
import {Empty, Scroll, TextBox} from "./widgets.tsx";
import {useLoad} from "./load.ts";
import {StepHead} from "./step.tsx";
import type {Command, Message} from "../model/service.ts";

export function Messages({run, step: s}: {run: Run; step: Step}) {
  const view = run.told(s.id);
  const sent = view?.action === "prompt" || view?.action === "run";
  const got = useLoad(async (signal) => (sent ? api.messages(run.id, s.id, signal) : null), [run.id, s.id, s.attempt, sent]);
  if (view && !sent) return <><StepHead run={run} step={s} /><Empty title="No model was asked">{s.id} is a role of the kind “{view?.action}”.</Empty></>;
  const m = got.value;
  if (!m) return <><StepHead run={run} step={s} />{got.error ? <p class="worse" role="alert">{got.error}</p> : <p class="dim">Reading…</p>}</>;
  if (m.command) return <><StepHead run={run} step={s} /><Given of={m.command} /></>;
  const n = Math.min(m.messages.length, m.shared_prefix ?? 0);
  const tools = m.tools ?? [];
  const chars = m.messages.slice(0, n).reduce((sum, x) => sum + value(x.content).length, 0);
  return (
    <>
      <StepHead run={run} step={s} />
      <p class="dim">{plural(m.messages.length, "message")}, digest <span class="mono" title={m.digest}>{shortCID(m.digest)}</span>. Tool calls and results of the visit come after these.</p>
      {tools.length ? (
        <details class="box">
          <summary><b>{plural(tools.length, "tool")}</b> {tools.map(nameOf).join(", ")}</summary>
          <Scroll text={JSON.stringify(tools, null, 2)} label="tools" />
        </details>
      ) : null}
      <div class="msgs">
        {n ? (
          <div class="shared" data-shared={n}>
            <p>The first {plural(n, "message")} ({chars} characters) were sent to {m.resumes ?? "the visit before"} too, byte for byte: a cache serves them.</p>
            {m.messages.slice(0, n).map((x, i) => <One key={i} m={x} i={i} />)}
          </div>
        ) : null}
        {m.messages.slice(n).map((x, i) => <One key={n + i} m={x} i={n + i} tail={n > 0} />)}
      </div>
    </>
  );
}

/** What a command was given: no model was asked. */
function Given({of: c}: {of: Command}) {
  const given: [string, string | undefined][] = [
    ["item", value(c.item ?? "")], ["command", c.run], ["directory", c.dir], ["environment", c.env?.map((e) => `${e.name}=${e.value}`).join("\n")],
    ["input", c.edge_prompt], ["stdin", c.stdin?.file ?? c.stdin?.text],
  ];
  return (
    <>
      <p class="dim">No model was asked: this is what the command was given.</p>
      <div class="msgs">{given.map(([name, text]) => (text ? <TextBox key={name} caption={<b>{name}</b>} text={text} /> : null))}</div>
    </>
  );
}

function One({m, i, tail}: {m: Message; i: number; tail?: boolean}) {
  const {role, content, ...rest} = m;
  const more = Object.entries(rest).filter(([, v]) => v !== null && v !== undefined && v !== "");
  const text = [contentOf(content), ...more.map(([k, v]) => `${k}: ${value(v)}`)].filter(Boolean).join("\n");
  return <TextBox class={`msg${tail ? " tail" : ""}`} caption={<><b>{role}</b><span>message {i}</span></>} text={text} />;
}

function contentOf(c: unknown): string {
  if (typeof c === "string") return c;
  return c === null || c === undefined ? "" : value(c);
}

function nameOf(t: unknown): string {
  const o = t as {name?: unknown; function?: {name?: unknown}} | null;
  return String(o?.name ?? o?.function?.name ?? "?");
}
