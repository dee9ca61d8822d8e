// A question that waits: choices as buttons, a form, or free text.

import {useMemo, useState} from "preact/hooks";
import type {Question} from "../model/fold.ts";
import {fieldsOf, valuesOf} from "../model/schema.ts";
import {day, plain, shown} from "../model/text.ts";
import type {AnswerRequest, Choice, Waiting} from "../model/service.ts";
import {api} from "../net/api.ts";
import {fault, may, tell} from "../state/app.ts";
import {Button, Scroll, Status} from "./widgets.tsx";
import {FormFields, Line} from "./form.tsx";
import {Markdown} from "./markdown.tsx";
import {Choices} from "./run.tsx";

const asks: Record<string, string> = {
  question: "asks", choice: "asks", approval: "wants to do this", signal: "waits for a signal", timer: "waits for its time", task: "asks about its task",
};

// What happens without an answer, where it is no choice.
const after: Record<string, string> = {fail: "it fails", escalate: "it is escalated"};

export function Ask({run, question: q, told, choose}: {run: string; question: Question; told: Waiting | undefined; choose: (step: string) => void}) {
  const [text, setText] = useState("");
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [faults, setFaults] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState(false);
  const fields = useMemo(() => fieldsOf(formOf(q.form)), [q.form]);
  const choices = q.choices.length ? q.choices : (told?.choices ?? []);
  // A tool call is allowed only when all of it is on the screen, and the answer is for what is.
  const whole = q.kind !== "approval" || (told !== undefined && (told.shown ?? "") === q.shown);

  const send = async (c?: Choice) => {
    if (busy || !whole) return;
    const a: AnswerRequest = {step: q.step};
    if (c) a.choice = c.value;
    if (text.trim()) a.text = text;
    if (q.shown) a.shown = q.shown;
    if (fields.length) {
      const read = valuesOf(fields, typed);
      setFaults(read.faults);
      if (Object.keys(read.faults).length) return;
      a.fields = read.values;
    }
    setBusy(true);
    try {
      await api.answer(run, a);
      tell(c ? `answered: ${c.label}` : "answered");
    } catch (e) {
      fault(e);
      setBusy(false); // answered, the question goes away by itself
    }
  };
  const asked = told?.question || shown(q.question);
  return (
    <section class="panel ask-panel" aria-label={`${q.step} ${asks[q.kind] ?? "waits"}`} data-waiting={q.step}>
      <div class="who">
        <Status of="waiting" bare />
        <Button class="btn quiet tight" title="Show this step" onClick={() => choose(q.step)}><strong>{q.step}</strong></Button>
        <span>{asks[q.kind] ?? "waits"}</span>
        {q.due ? <span class="dim">until {day(q.due)}{told?.on_timeout ? `, then ${after[told.on_timeout] ?? told.on_timeout}` : ""}</span> : null}
        {q.assignees.length ? <span class="dim">asked of {plain(q.assignees.join(", "))}</span> : null}
      </div>
      {asked ? q.kind === "approval" || q.kind === "signal" ? <Scroll text={asked} label="the question" /> : <div class="asked"><Markdown text={asked} label="the question" /></div> : null}
      {q.kind === "timer" || !may("answer") ? null : (
        <form noValidate onSubmit={(e) => {
          e.preventDefault();
          if (choices.length === 0) void send();
        }}>
          <FormFields fields={fields} typed={typed} faults={faults} set={(k, v) => setTyped({...typed, [k]: v})} />
          {choices.length ? (
            <>
              {q.kind === "approval" ? null : <Line label="Remark" value={text} set={setText} hint="goes with the choice: what is to change, or why" />}
              <Choices of={choices} pick={(c) => void send(c)} disabled={busy || !whole} />
              {q.kind === "approval" ? <Line label="Why, if you deny it" value={text} set={setText} lines={2} hint="the agent reads it" /> : null}
            </>
          ) : (
            <>
              {fields.length ? null : <Line label={q.kind === "signal" ? `What to say with the signal ${plain(asked)}` : "Answer"} value={text} set={setText} lines={3} />}
              <div class="choices"><button class="btn primary" aria-disabled={busy} disabled={fields.length === 0 && q.kind !== "signal" && text.trim() === ""}>Answer</button></div>
            </>
          )}
        </form>
      )}
    </section>
  );
}

function formOf(form: Question["form"]): unknown {
  if (typeof form !== "string" || form === "") return null;
  try {
    return JSON.parse(form);
  } catch {
    return null; // not a schema: free text is asked for
  }
}
