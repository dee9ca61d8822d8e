// A run from a workflow: its inputs, and what is kept about the job.

import {useEffect, useMemo, useRef, useState} from "preact/hooks";
import {fieldsOf, valuesOf} from "../model/schema.ts";
import {plain} from "../model/text.ts";
import {ApiError} from "../net/api.ts";
import {fault, go, info} from "../state/app.ts";
import {readWorkflows, startRun, workflows} from "../state/runs.ts";
import {Button, Dialog} from "./widgets.tsx";
import {FormFields, Line} from "./form.tsx";
import type {StartRequest} from "../model/service.ts";

export function Start({workflow = "", onClose}: {workflow?: string; onClose: () => void}) {
  const all = workflows.value;
  const here = useRef(true); // until the dialog is closed
  useEffect(() => {
    void readWorkflows(); // what there is may have changed since the list was read
    return () => {
      here.current = false;
    };
  }, []);
  const [name, setName] = useState(workflow);
  const chosen = all?.find((w) => w.name === name) ?? all?.find((w) => !w.problem) ?? all?.[0];
  const fields = useMemo(() => fieldsOf(chosen?.inputs), [chosen]);
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [faults, setFaults] = useState<Record<string, string>>({});
  const [job, setJob] = useState({title: "", description: "", type: "", scope: "", tags: "", target_user: "", model: "", context: "" as NonNullable<StartRequest["context"]>});
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState("");
  // One id for this dialog: sent twice, it starts one run.
  const request = useMemo(() => crypto.randomUUID(), []);

  const submit = async () => {
    if (!chosen || busy) return;
    const read = valuesOf(fields, typed);
    setFaults(read.faults);
    if (Object.keys(read.faults).length > 0) return;
    const r: StartRequest = {workflow: chosen.name, inputs: read.values, request_id: request};
    for (const k of ["title", "description", "type", "scope", "target_user"] as const) if (job[k].trim()) r[k] = job[k].trim();
    const tags = job.tags.split(/[\s,]+/).filter(Boolean);
    if (tags.length) r.tags = tags;
    const models = job.model.split(",").map((m) => m.trim()).filter(Boolean);
    if (models.length) r.models = {"": models};
    if (job.context) r.context = job.context;
    setBusy(true);
    setRefused("");
    try {
      const id = await startRun(r);
      if (!here.current) return;
      onClose();
      if (id) go("run", id);
    } catch (e) {
      setBusy(false);
      if (here.current && e instanceof ApiError) setRefused(e.message + (e.fix ? ` — ${e.fix}` : ""));
      else fault(e);
    }
  };
  const put = (k: keyof typeof job) => (v: string) => setJob({...job, [k]: v});
  return (
    <Dialog
      title="Start a run" onClose={onClose} onSubmit={() => void submit()}
      actions={<><Button class="btn" onClick={onClose}>Cancel</Button><button class="btn primary" disabled={!chosen || !!chosen.problem || busy}>{busy ? "Starting…" : "Start"}</button></>}
    >
      {all === null ? <p>Reading the workflows…</p> : all.length === 0 ? (
        info.value?.kind === "hub"
          ? <p>No worker that is connected has a workflow. <code>wf serve --hub URL</code> connects one.</p>
          : <p>The server knows no workflow. It looks in the directory it was started in; <code>wf init</code> writes a first one.</p>
      ) : (
        <>
          <div class="lab">
            <label for="start-workflow"><span>Workflow</span></label>
            <select id="start-workflow" class="field" value={chosen?.name} data-first onInput={(e) => {
              setName(e.currentTarget.value);
              setTyped({});
              setFaults({});
            }}>
              {all.map((w) => <option value={w.name}>{plain(w.name)}{w.waits_for_trust ? " (waits for trust)" : w.problem ? " (cannot be started)" : ""}</option>)}
            </select>
            {chosen?.description ? <small>{plain(chosen.description)}</small> : null}
            {chosen?.schedule && !chosen.waits_for_trust ? <small>It also starts by itself: {chosen.schedule}</small> : null}
            {chosen?.problem ? <span class="fault" role="alert">{plain(chosen.problem)}</span> : null}
          </div>
          <FormFields fields={fields} typed={typed} faults={faults} set={(k, v) => setTyped({...typed, [k]: v})} />
          <details>
            <summary>Title, tags and more</summary>
            <div class="body">
              <Line label="Title" value={job.title} set={put("title")} />
              <Line label="Description" value={job.description} set={put("description")} lines={2} />
              <div class="two">
                <Line label="Type" value={job.type} set={put("type")} />
                <Line label="Scope" value={job.scope} set={put("scope")} />
                <Line label="Tags" value={job.tags} set={put("tags")} placeholder="docs, urgent" />
                <Line label="For" value={job.target_user} set={put("target_user")} />
              </div>
              <div class="lab">
                <label for="start-context"><span>Context of agents</span></label>
                <select id="start-context" class="field" value={job.context} onInput={(e) => put("context")(e.currentTarget.value)}>
                  <option value="">as their roles say</option>
                  <option value="conversation">conversation: each goes on where it ended</option>
                  <option value="task">task: a small context each time</option>
                  <option value="fresh">fresh: each time anew</option>
                </select>
              </div>
              <Line label="Model of every role" value={job.model} set={put("model")} hint="as in --model; several are tried in order" />
            </div>
          </details>
          {refused ? <p class="worse" role="alert">{refused}</p> : null}
        </>
      )}
    </Dialog>
  );
}
