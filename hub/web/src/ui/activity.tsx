// What a step does, as it happens: what is said, which tools are called, what they answer.

import type {ComponentChildren} from "preact";
import {useEffect, useLayoutEffect, useRef, useState} from "preact/hooks";
import {appeared} from "../model/appeared.ts";
import {heldBy, type Step} from "../model/fold.ts";
import {clock, day, headline, plain, shown, span, tokens, value} from "../model/text.ts";
import {textOf, type Entry, type Text} from "../model/wire.ts";
import {api} from "../net/api.ts";
import {fault, hrefOf} from "../state/app.ts";
import type {Run} from "../state/run.ts";
import {Button, Scroll, TextBox, Values} from "./widgets.tsx";
import {Markdown} from "./markdown.tsx";
import {Fault, StepHead} from "./step.tsx";

interface Turn {
  e: Entry;
  answer?: Entry; // of a tool call
}

const shownTypes = new Set([
  "thinking", "text", "tool_call", "tool_result", "attempt_failed", "waiting", "answered", "approval", "message", "model_fallback", "correction", "compacted",
  "timer_fired", "reminded", "escalated", "limit_reached", "held", "task_started", "task_state_updated", "task_waiting", "task_completed", "memory_changed", "sandbox", "step_started",
]);
const pageSize = 100;

export function Activity({run, step: s}: {run: Run; step: Step}) {
  const [before, setBefore] = useState(pageSize);
  const past = run.cursor.value !== null;
  const missing = run.journal.missing(s.first, Math.min(s.last, run.upTo()));
  const turns = turnsOf(run, s);
  // The newest of what it did is read at once, the rest when it is asked for.
  useEffect(() => {
    if (missing > 0 && turns.length === 0) void run.load(missing);
  }, [missing]);
  const hidden = Math.max(0, turns.length - before);
  const drafts = past ? [] : run.draftsOf(s.id);
  const told = run.told(s.id);
  const view = s.record ? told : undefined;
  const quiet = turns.length === 0 && drafts.length === 0;
  // What agents and people say is in their events; the output of others is only in their record.
  const output = view && (quiet || (view.action !== "prompt" && view.action !== "ask")) ? view : undefined;
  const fields = output && !output.text && output.output !== null && Object.keys(output.output).length > 0 ? output.output : null;

  // At its end it stays at its end, also when more comes; what stands before stays in its place.
  const box = useRef<HTMLDivElement>(null);
  const stick = useRef(true);
  const below = useRef(0); // how far the end was away
  useLayoutEffect(() => {
    const b = box.current!;
    if (stick.current) b.scrollTop = b.scrollHeight;
  });
  useLayoutEffect(() => {
    if (!stick.current) box.current!.scrollTop = box.current!.scrollHeight - below.current;
  }, [before]);
  return (
    <>
      <StepHead run={run} step={s} prompt />
      <div
        class="talk" ref={box} tabIndex={0} role="region" aria-label={`what ${s.id} did`}
        onScroll={(e) => {
          const b = e.currentTarget;
          below.current = b.scrollHeight - b.scrollTop;
          stick.current = below.current <= b.clientHeight + 4;
        }}
      >
        {missing > 0 && hidden === 0 ? <Button class="btn" onClick={() => void run.load(missing)}>Show what it did before</Button> : null}
        {hidden ? <Button class="btn" onClick={() => setBefore(before + pageSize)}>Show {Math.min(hidden, pageSize)} earlier of {hidden}</Button> : null}
        {turns.slice(hidden).map((t) => <TurnOf key={t.e.seq} t={t} />)}
        {drafts.map((d, i) => (
          <div class="turn said" key={`draft${i}`} data-draft={d.kind}>
            <div class="t">now</div>
            <div class={`box ${d === drafts.at(-1) ? "draft" : ""}`}><div class="cap"><b>{d.kind === "text" ? "says" : d.kind}</b></div><Scroll text={d.text} label="what comes in" /></div>
          </div>
        ))}
        {output?.text ? <TextBox caption={<b>output</b>} text={output.text} /> : null}
        {fields ? <Values of={fields} /> : null}
        {view?.error ? <Fault of={view.error} /> : null}
        {told?.child ? <p><a href={hrefOf("run", told.child)}>Its own run: {told.child}</a></p> : null}
        {quiet && missing > 0 && !output ? <p class="dim">Reading…</p> : null}
        {quiet && !view && missing === 0 ? <p class="dim">{s.status === "running" ? "At work…" : s.status === "waiting" ? "It waits for an answer." : s.status === "parked" && run.head.status === "suspended" ? "It goes on when the run is resumed." : "It said nothing."}</p> : null}
      </div>
    </>
  );
}

// The events of a step up to the seq that is looked at; a call and its result are one.
function turnsOf(run: Run, s: Step): Turn[] {
  const out: Turn[] = [];
  const calls = new Map<string, Turn>();
  for (let seq = s.first; seq <= s.last; seq++) {
    const e = run.journal.at(seq);
    if (!e || e.step !== s.id || !shownTypes.has(e.type)) continue;
    if (e.type === "step_started" && (e.seq === s.first || Number(e.data["attempt"]) < 2)) continue;
    const call = textOf(e.data["call"]);
    const asked = e.type === "tool_result" ? calls.get(call) : undefined;
    if (asked) {
      asked.answer = e;
      calls.delete(call);
      continue;
    }
    const turn = {e};
    if (e.type === "tool_call") calls.set(call, turn);
    out.push(turn);
  }
  return out;
}

function TurnOf({t: {e, answer}}: {t: Turn}) {
  const d = e.data;
  const when = <div class="t" title={day(e.at)}>{clock(e.at).slice(0, 8)}</div>;
  const note = (text: string, bad = false) => <div class={`turn note${bad ? " bad" : ""}`}>{when}<div>{plain(text)}</div></div>;
  const left = (of?: Entry) => {
    const text = of ? appeared(of.data) : "";
    return text ? note(text, true) : null;
  };
  switch (e.type) {
    case "text":
      return <div class="turn said">{when}<div class="box"><div class="cap"><b>says</b></div><Long text={d["content"] as Text} drawn /></div></div>;
    case "thinking":
      return <div class="turn">{when}<Fold summary={<><b>thinks</b> {headline(textOf(d["content"]), 100)}</>}><Long text={d["content"] as Text} /></Fold></div>;
    case "tool_call":
      return (
        <><div class="turn">
          {when}
          <Fold bad={!!answer?.data["is_error"]} summary={<><b>{textOf(d["name"])}</b> <code>{argsLine(d["args"])}</code>{answer ? ` → ${headline(textOf(answer.data["content"]), 60)}` : " …"}</>}>
            <Long text={pretty(d["args"])} />
            {answer ? <><div class="cap"><b>{answer.data["is_error"] ? "error" : "result"}</b><span>{span(answer.at - e.at)}</span></div><Long text={answer.data["content"] as Text} /></> : null}
          </Fold>
        </div>{left(answer)}</>
      );
    case "tool_result":
      return <><div class="turn">{when}<Fold summary={<><b>result</b> {headline(textOf(d["content"]), 80)}</>}><Long text={d["content"] as Text} /></Fold></div>{left(e)}</>;
    case "attempt_failed": {
      const err = (d["error"] ?? {}) as Record<string, unknown>;
      return note(`try ${String(d["attempt"])} failed: ${textOf(err["message"]) || textOf(err["code"])}`, true);
    }
    case "step_started":
      return note(`try ${String(d["attempt"])}`);
    case "waiting":
      return <div class="turn">{when}<div class="box"><div class="cap"><b>waits</b><span>{textOf(d["kind"])}</span></div><Long text={d["question"] as Text} drawn={textOf(d["kind"]) !== "approval"} /></div></div>;
    case "answered":
      return (
        <div class="turn">
          {when}
          <div class="box">
            <div class="cap"><b>answer</b><span>of {textOf(d["by"]) || textOf(d["source"]) || "someone"}</span></div>
            <pre>{plain([textOf(d["choice"]) && `choice: ${textOf(d["choice"])}`, shown(d["text"] as Text), pretty(d["fields"])].filter(Boolean).join("\n"))}</pre>
          </div>
        </div>
      );
    case "message":
      return <div class="turn">{when}<div class="box"><div class="cap"><b>message</b><span>from {textOf(d["source"])}</span></div><Long text={d["text"] as Text} /></div></div>;
    case "correction":
      return <div class="turn">{when}<Fold bad summary={<><b>does not fit the declared output</b> {headline(textOf(d["reasons"]), 80)}</>}><Long text={d["reasons"] as Text} /></Fold></div>;
    case "reminded":
      return note("it still waits: a reminder");
    case "escalated":
      return note(`not answered in time: asked of ${(d["assignees"] as string[] | null)?.join(", ") || "everyone again"}`);
    case "held":
      return note(heldBy(d));
    case "approval":
      return note(`${textOf(d["tool"])}: ${textOf(d["decision"])} by ${textOf(d["by"])}`);
    case "model_fallback":
      return note(`${textOf(d["from"])} did not answer (${textOf(d["reason"])}), ${textOf(d["to"])} took over`, true);
    case "compacted":
      return note(`compacted the ${textOf(d["scope"])}: ${tokens(Number(d["tokens_before"]))} → about ${tokens(Number(d["tokens_after"]))} tokens`);
    case "sandbox":
      return left(e) ?? note(`commands run in ${textOf(d["tier"])}`);
    default:
      return note(`${e.type.replaceAll("_", " ")} ${headline(value(d), 160)}`);
  }
}

// A box that opens; what is in it is drawn when it does.
function Fold({summary, bad, children}: {summary: ComponentChildren; bad?: boolean; children: ComponentChildren}) {
  const [open, setOpen] = useState(false);
  return (
    <details class={bad ? "box bad" : "box"} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>{summary}</summary>
      {open ? children : null}
    </details>
  );
}

// A text, or the button that fetches one that was too long for a frame.
function Long({text, drawn}: {text: Text; drawn?: boolean}) {
  const [got, setGot] = useState<string | null>(null);
  const all = text === null || text === undefined ? "" : typeof text === "string" ? text : got;
  if (all !== null) return drawn ? <Markdown text={all} /> : <Scroll text={all} />;
  if (typeof text !== "object" || text === null) return null;
  const cid = text["/"];
  return <p class="empty"><Button class="btn" onClick={() => api.payload(cid).then(setGot, fault)}>Read the whole text</Button></p>;
}

function pretty(json: unknown): string {
  if (json === null || json === undefined || json === "") return "";
  if (typeof json !== "string") return value(json);
  try {
    const v: unknown = JSON.parse(json);
    if (v === null || typeof v !== "object") return json;
    // Strings with lines of their own are read better as they are.
    return Object.entries(v).map(([k, x]) => (typeof x === "string" && x.includes("\n") ? `${k}:\n${x.replace(/^/gm, "  ")}` : `${k}: ${value(x)}`)).join("\n");
  } catch {
    return json;
  }
}

// The arguments of a call in a line, what tells most first.
const telling = ["command", "path", "query", "pattern"];

function argsLine(json: unknown): string {
  if (typeof json !== "string") return "";
  try {
    const v = JSON.parse(json) as Record<string, unknown>;
    const keys = [...telling.filter((k) => k in v), ...Object.keys(v).filter((k) => !telling.includes(k))];
    return headline(keys.map((k) => (typeof v[k] === "string" ? v[k] : JSON.stringify(v[k]))).join(" "), 80);
  } catch {
    return headline(json, 80);
  }
}
