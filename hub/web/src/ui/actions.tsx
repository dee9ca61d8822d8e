// What a person can do to a run; each is asked for once more before it happens.

import {useState} from "preact/hooks";
import {api, ApiError} from "../net/api.ts";
import {go, tell} from "../state/app.ts";
import type {Run} from "../state/run.ts";
import {plain, plural, size} from "../model/text.ts";
import {useLoad} from "./load.ts";
import {Ago, Button, Dialog, Status} from "./widgets.tsx";
import {Line} from "./form.tsx";

export function Deed({title, verb, danger, ready = true, onClose, deed, children}: {
  title: string;
  verb: string;
  danger?: boolean;
  ready?: boolean;
  onClose: () => void;
  deed: () => Promise<void>;
  children: preact.ComponentChildren;
}) {
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState("");
  const submit = async () => {
    if (busy || !ready) return;
    setBusy(true);
    setRefused("");
    try {
      await deed();
      onClose();
    } catch (e) {
      setBusy(false);
      setRefused(e instanceof ApiError ? e.message + (e.fix ? ` — ${e.fix}` : "") : String(e));
    }
  };
  return (
    <Dialog
      title={title} onClose={onClose} onSubmit={() => void submit()}
      actions={<><Button class="btn" onClick={onClose}>Back</Button><button class={danger ? "btn danger primary" : "btn primary"} disabled={busy || !ready}>{verb}</button></>}
    >
      {children}
      {refused ? <p class="worse" role="alert">{refused}</p> : null}
    </Dialog>
  );
}

export function CancelDialog({run, onClose}: {run: string; onClose: () => void}) {
  const [reason, setReason] = useState("");
  return (
    <Deed title="Cancel this run?" verb="Cancel the run" danger onClose={onClose} deed={async () => {
      await api.cancel(run, reason.trim());
      tell("cancelled");
    }}>
      <p>What runs is ended, and the run cannot go on. Its always roles run first, if it has any; to cancel it again skips them. Its history stays; a fork can go on from any of its steps.</p>
      <Line label="Reason" value={reason} set={setReason} first />
    </Deed>
  );
}

/** Deletes a run. What a dry run says of it is shown first: what goes, what has parts of it, or why it stays. */
export function DeleteDialog({run, onClose}: {run: string; onClose: () => void}) {
  const [why, setWhy] = useState("");
  const {value, error} = useLoad((signal) => api.remove(run, {dry_run: true}, signal), [run]);
  return (
    <Deed title="Delete this run?" verb="Delete the run" danger ready={value !== null} onClose={onClose} deed={async () => {
      await api.remove(run, {why: why.trim()});
      tell("deleted");
      go("runs");
    }}>
      {error ? <p class="worse" role="alert">{plain(error)}</p> : value === null ? <p role="status">Reading…</p> : <>
        <p>This cannot be undone. Its history goes{value.runs.length > 1 ? `, with ${plural(value.runs.length - 1, "run")} of its sub-workflows` : ""}; kept is who deleted it, when and why.</p>
        {value.held.length ? <><p>These have parts of it, and keep them:</p><ul>{value.held.map((h) => <li>{plain(h.what)} <span class="mono">{plain(h.name)}</span>, {size(h.bytes)}</li>)}</ul></> : null}
      </>}
      <Line label="Reason" value={why} set={setWhy} first />
    </Deed>
  );
}

const limitNames: Record<string, [string, string]> = {
  steps: ["Steps", "a whole number"], tokens: ["Tokens", "a whole number"], cost_usd: ["Cost", "dollars"], duration: ["Duration", "as in 30m or 1h30m"],
};

export function ResumeDialog({run, onClose}: {run: Run; onClose: () => void}) {
  const reached = [...run.head.limits];
  const [raised, setRaised] = useState<Record<string, string>>({});
  return (
    <Deed title="Go on with this run?" verb="Resume" onClose={onClose} deed={async () => {
      const limits: Record<string, unknown> = {};
      for (const [name, v] of Object.entries(raised)) {
        if (v.trim()) limits[name] = name === "duration" ? v.trim() : Number(v);
      }
      await api.resume(run.id, limits);
      tell("resumed");
    }}>
      {run.head.reason ? <p>It was suspended: {run.head.reason}</p> : <p>Visits that were cut off are performed again from their last durable event.</p>}
      {reached.map(([name, max]) => (
        <Line
          key={name} label={`New limit: ${limitNames[name]?.[0] ?? name}`} value={raised[name] ?? ""} set={(v) => setRaised({...raised, [name]: v})}
          hint={`${limitNames[name]?.[1] ?? ""}; it was ${shownLimit(name, max)}`}
        />
      ))}
    </Deed>
  );
}

// Limits are journaled in micro-dollars and microseconds.
function shownLimit(name: string, max: number): string {
  if (name === "cost_usd") return `$${(max / 1e6).toFixed(2)}`;
  if (name === "duration") return `${Math.round(max / 1e6)} s`;
  return String(max);
}

export function ForkDialog({run, steps, step, stopped, onClose}: {run: string; steps: string[]; step: string; stopped: boolean; onClose: () => void}) {
  const [at, setAt] = useState(stopped ? "" : step || steps.at(-1) || ""); // "" is where the run is
  const [after, setAfter] = useState(false);
  const [note, setNote] = useState("");
  const [model, setModel] = useState("");
  const role = model.trim() === "" ? "" : (at || step).split("#", 1)[0]!;
  const [every, setEvery] = useState(false);
  return (
    <Deed title="Fork this run" verb="Fork" onClose={onClose} deed={async () => {
      const models = model.split(",").map((m) => m.trim()).filter(Boolean);
      const got = await api.fork(run, {...(at ? {step: at, after} : {}), ...(note.trim() ? {note: note.trim()} : {}), ...(models.length ? {models: {[every ? "" : role]: models}} : {})});
      tell(`forked: ${got.id}`);
      go("run", got.id);
    }}>
      <p>A fork is a new run that shares the history up to a step; what came after that is performed again. This run stays as it is.</p>
      <div class="lab">
        <label for="fork-step"><span>Step</span></label>
        <select id="fork-step" class="field" value={at} data-first onInput={(e) => setAt(e.currentTarget.value)}>
          <option value="">where the run is</option>
          {steps.map((s) => <option value={s}>{s}</option>)}
        </select>
        {at ? null : <small>All that ended well is kept: only what failed or was cut off is performed again.</small>}
      </div>
      {at ? <fieldset class="lab">
        <legend class="sr">What happens with the step</legend>
        <div class="lab flag"><input type="radio" id="fork-redo" name="fork-how" checked={!after} onInput={() => setAfter(false)} /><label for="fork-redo">perform it again</label></div>
        <div class="lab flag"><input type="radio" id="fork-after" name="fork-how" checked={after} onInput={() => setAfter(true)} /><label for="fork-after">keep its result, and go on after it</label></div>
      </fieldset> : null}
      <Line label="Another model" value={model} set={setModel} hint="as provider/model; several, separated by commas, are tried in order. Empty: as in this run" />
      {role ? <div class="lab flag"><input type="checkbox" id="fork-every" checked={every} onInput={(e) => setEvery(e.currentTarget.checked)} /><label for="fork-every">for every role, not {role} alone</label></div> : null}
      <Line label="Note" value={note} set={setNote} />
    </Deed>
  );
}

/** Which run to compare this one with: the newest of its workflow, or one that is named. */
export function CompareDialog({run, workflow, onClose}: {run: string; workflow: string; onClose: () => void}) {
  const [other, setOther] = useState("");
  const got = useLoad((signal) => api.runs({workflow, limit: 20}, signal), [workflow]);
  const runs = (got.value?.items ?? []).filter((r) => r.id !== run);
  return (
    <Deed title="Compare this run" verb="Compare" ready={other.trim() !== ""} onClose={onClose} deed={async () => go("compare", "", {a: run, b: other.trim()})}>
      <Line label="With run" value={other} set={setOther} first hint="its id" />
      {got.error ? <p class="worse" role="alert">{got.error}</p> : null}
      {runs.length ? (
        <ul class="picks" aria-label="the newest runs of this workflow">
          {runs.map((r) => <li><Button class="btn quiet" aria-pressed={other === r.id} onClick={() => setOther(r.id)}><Status of={r.status} bare /><span class="mono">{r.id}</span> {plain(r.title || r.workflow)} <span class="dim"><Ago at={r.started} /></span></Button></li>)}
        </ul>
      ) : null}
    </Deed>
  );
}

export function MessageDialog({run, onClose}: {run: string; onClose: () => void}) {
  const [text, setText] = useState("");
  return (
    <Deed title="Send a message to the run" verb="Send" ready={text.trim() !== ""} onClose={onClose} deed={async () => {
      await api.message(run, text);
      tell("sent; the next agent reads it");
    }}>
      <p>It is kept in the journal, and the next agent that begins reads it.</p>
      <Line label="Message" value={text} set={setText} lines={4} first />
    </Deed>
  );
}
