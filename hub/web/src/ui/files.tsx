// Files of a step: those that it keeps, and those that it changed. What they are called and hold was written by an agent: a name is
// shown as text, and a file is saved, never opened.

import {useState} from "preact/hooks";
import type {Step} from "../model/fold.ts";
import {plain, size} from "../model/text.ts";
import type {StepFile} from "../model/service.ts";
import {api} from "../net/api.ts";
import {fault} from "../state/app.ts";
import type {Run} from "../state/run.ts";
import {useLoad} from "./load.ts";
import {Button} from "./widgets.tsx";

// why a file was left out, in words.
const reasons: Record<string, string> = {
  name: "its name is not UTF-8", special: "a socket, pipe or device", size: "it is larger than a file may be",
  secret: "it holds a secret, or what has the shape of one", unstable: "it changed each time it was read", denied: "it may not be read",
};

const marks: Record<string, string> = {added: "+", changed: "~", removed: "−"};

const part = 100; // files of a list that is read at once

interface Part {
  list: StepFile[];
  next: string | undefined;
}

interface Source {
  title: string; // none where a button has opened the list
  label: string; // of the list, for screen readers
  left: string; // of a file whose content there is not: what it is not
  none: string; // in place of an empty list
  read: (after: string, signal?: AbortSignal) => Promise<Part>;
  load: (f: StepFile) => Promise<Blob>;
}

function Files({of: o, keys}: {of: Source; keys: readonly unknown[]}) {
  const first = useLoad((signal) => o.read("", signal), keys);
  const [more, setMore] = useState<Part | null>(null);
  const [busy, setBusy] = useState(false);
  const got = first.value;
  const list = [...(got?.list ?? []), ...(more?.list ?? [])];
  const next = more ? more.next : got?.next;
  const differ = list.some((f) => f.change);
  const act = async (deed: () => Promise<unknown>) => {
    setBusy(true);
    await deed().catch(fault);
    setBusy(false);
  };
  const readOn = async () => {
    const behind = await o.read(next!);
    setMore({list: [...(more?.list ?? []), ...behind.list], next: behind.next});
  };
  return (
    <section>
      {o.title ? <h2>{o.title}</h2> : null}
      {first.error ? <p class="worse" role="alert">{first.error}</p> : got ? null : <p class="dim">Reading…</p>}
      {got && !list.length && o.none ? <p class="dim">{o.none}</p> : null}
      {list.length ? (
        <div class="box scroll" tabIndex={0} role="region" aria-label={o.label}>
          <table class="plain">
            <thead><tr>
              {differ ? <th scope="col">Change</th> : null}
              <th scope="col">Path</th><th scope="col" class="num">Size</th><th scope="col">Kind</th>
              {differ ? <th scope="col">By</th> : null}
              <th scope="col"><span class="sr">Actions</span></th>
            </tr></thead>
            <tbody>
              {list.map((f) => (
                <tr key={f.path} data-file={f.path}>
                  {differ ? <td class="nowrap"><span aria-hidden="true">{marks[f.change ?? ""]} </span>{f.change}</td> : null}
                  <td class="mono path">{plain(f.path)}</td>
                  <td class="num nowrap">{size(f.size)}</td>
                  <td>{f.mode === "omitted" ? <span class="worse">{o.left}: {reasons[f.why ?? ""] ?? plain(f.why ?? "")}</span> : f.mode === "exec" ? "program" : f.mode}</td>
                  {differ ? <td>{plain((f.by ?? []).join(", "))}</td> : null}
                  <td>{f.mode === "file" || f.mode === "exec" ? (
                    <Button class="btn quiet tight" aria-disabled={busy} aria-label={`download ${plain(f.path)}`} onClick={() => busy || void act(async () => save(await o.load(f), f.path))}>download</Button>
                  ) : null}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      {next ? <Button class="btn" aria-disabled={busy} onClick={() => busy || void act(readOn)}>Show more files</Button> : null}
    </section>
  );
}

export function Artifacts({run, step: s, of}: {run: Run; step: Step; of: string}) {
  return <Files keys={[run.id, s.id, of]} of={{
    title: "Files", label: "files that the step keeps", left: "not kept", none: "",
    read: async (after, signal) => {
      const got = await api.artifacts(run.id, s.id, after, part, signal);
      return {list: got.artifacts, next: got.next};
    },
    load: (f) => api.artifact(run.id, s.id, f.path),
  }} />;
}

/** What wf files RUN:STEP --changed lists; it is read when it is asked for. A file that is gone is saved as the step found it. */
export function Changed({run, step: s}: {run: Run; step: Step}) {
  const [open, turn] = useState(false);
  return (
    <section>
      <Button class="btn" aria-expanded={open} onClick={() => turn(!open)}>Changed files</Button>
      {open ? <ChangedList run={run} step={s} /> : null}
    </section>
  );
}

function ChangedList({run, step: s}: {run: Run; step: Step}) {
  return <Files keys={[run.id, s.id]} of={{
    title: "", label: "files that changed in the step", left: "not recorded", none: "no files",
    read: async (after, signal) => {
      const got = await api.changed(run.id, s.id, after, part, signal);
      return {list: got.files, next: got.next};
    },
    load: (f) => api.file(run.id, s.id, f.path, f.change === "removed"),
  }} />;
}

// The server wants the token in a header, which a plain link cannot send.
function save(what: Blob, path: string): void {
  const url = URL.createObjectURL(what);
  const a = document.createElement("a");
  a.href = url;
  a.download = plain(path.slice(path.lastIndexOf("/") + 1)) || "file";
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser reads it behind the click
}
