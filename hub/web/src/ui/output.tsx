// What a step concluded, and how that differs from its visit before.

import {diffLines} from "../model/diff.ts";
import type {Step} from "../model/fold.ts";
import {plain, shown} from "../model/text.ts";
import {api} from "../net/api.ts";
import type {Run} from "../state/run.ts";
import {Artifacts, Changed} from "./files.tsx";
import {Button, CID, copy, Empty, Fields, TextBox, Values} from "./widgets.tsx";
import {useLoad} from "./load.ts";
import {Fault, StepHead} from "./step.tsx";

// The actions of roles that may write files.
const writes = new Set(["prompt", "run", "merge"]);

export function Output({run, step: s}: {run: Run; step: Step}) {
  const view = run.told(s.id);
  const ended = s.record !== null;
  const text = ended ? (view?.text ?? "") : shown(s.said);
  const output = ended ? view?.output : null;
  const some = output !== null && output !== undefined && Object.keys(output).length > 0;
  return (
    <>
      <StepHead run={run} step={s} />
      {ended ? null : <p class="dim">It has not ended{run.cursor.value === null ? "" : " here"}; this is what it said last.</p>}
      {some ? <section><h2>Fields</h2><Values of={output} /></section> : null}
      {text ? (
        <TextBox caption={<><b>text</b><Button class="btn quiet tight end" onClick={() => void copy(text)}>copy</Button></>} text={text} />
      ) : ended && !some && !view?.artifacts ? <Empty title="It put nothing out" /> : null}
      {ended && view?.artifacts ? <Artifacts run={run} step={s} of={view.artifacts} /> : null}
      {ended && writes.has(view?.action ?? "") ? <Changed run={run} step={s} /> : null}
      {ended && view?.error ? <Fault of={view.error} /> : null}
      {ended && view ? (
        <Fields of={[
          ["record", <CID of={view.cid} label="record" />],
          ["resumes", view.resumes ? <CID of={view.resumes} label="what it resumes" /> : ""],
          ["after", view.parents.length ? view.parents.map((p) => <CID of={p} label="parent" />) : ""],
          ["workspace", view.workspace ? `${view.workspace.git_head.slice(0, 12)}${view.workspace.dirty ? ", changed" : ""}` : ""],
        ]} />
      ) : null}
    </>
  );
}

export function Diff({run, step: s}: {run: Run; step: Step}) {
  const got = useLoad((signal) => (s.record ? api.diff(run.id, s.id, signal) : Promise.resolve(null)), [run.id, s.id, s.record]);
  if (!s.record) return <><StepHead run={run} step={s} /><Empty title="It has not ended">A diff compares what two visits concluded.</Empty></>;
  const d = got.value;
  if (!d) return <><StepHead run={run} step={s} />{got.error ? <p class="worse" role="alert">{got.error}</p> : <p class="dim">Reading…</p>}</>;
  const lines = diffLines(d.unified);
  return (
    <>
      <StepHead run={run} step={s} />
      {d.previous === null ? <p class="dim">This is the first visit of {s.role}: all of it is new.</p> : (
        <p>
          From {d.previous} to {s.id}: {d.equal ? "the same." : <><span class="good">+{d.added}</span> <span class="worse">−{d.removed}</span> <span class="dim">lines</span></>}
        </p>
      )}
      {(d.changed ?? []).length ? <ul class="changes" aria-label="what differs">{d.changed!.map((c) => <li class="tag">{plain(c)}</li>)}</ul> : null}
      {lines.length === 0 ? null : (
        <>
          <div class="diff" tabIndex={0} role="region" aria-label={`what changed in ${s.id}`}>
            <table>
              <tbody>
                {lines.map((l, i) => (
                  <tr key={i} class={l.kind}>
                    <td class="ln">{l.old ?? ""}</td><td class="ln">{l.now ?? ""}</td>
                    <td class="sg">{l.kind === "add" ? "+" : l.kind === "del" ? "−" : ""}</td><td>{plain(l.text)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </>
  );
}
