// The files that a step keeps. What they are called and hold was written by an agent: a name is shown as text, and
// a file is saved, never opened.

import {useState} from "preact/hooks";
import type {Step} from "../model/fold.ts";
import {plain, size} from "../model/text.ts";
import type {Artifact} from "../model/service.ts";
import {api} from "../net/api.ts";
import {fault} from "../state/app.ts";
import type {Run} from "../state/run.ts";
import {useLoad} from "./load.ts";

// why a file was left out, in words.
const reasons: Record<string, string> = {
  name: "its name is not UTF-8", special: "a socket, pipe or device", size: "it is larger than a file may be",
  secret: "it holds a secret, or what has the shape of one", unstable: "it changed each time it was read", denied: "it may not be read",
};

const part = 100; // files of a list that is read at once

export function Artifacts({run, step: s, of}: {run: Run; step: Step; of: string}) {
  const first = useLoad((signal) => api.artifacts(run.id, s.id, "", part, signal), [run.id, s.id, of]);
  const [more, setMore] = useState<{list: Artifact[]; next: string | undefined} | null>(null);
  const [busy, setBusy] = useState(false);
  const got = first.value;
  const list = [...(got?.artifacts ?? []), ...(more?.list ?? [])];
  const next = more ? more.next : got?.next;
  const act = async (deed: () => Promise<unknown>) => {
    setBusy(true);
    await deed().catch(fault);
    setBusy(false);
  };
  const readOn = async () => {
    const behind = await api.artifacts(run.id, s.id, next!, part);
    setMore({list: [...(more?.list ?? []), ...behind.artifacts], next: behind.next});
  };
  return (
    <section>
      <h2>Files</h2>
      {first.error ? <p class="worse" role="alert">{first.error}</p> : got ? null : <p class="dim">Reading…</p>}
      {list.length ? (
        <div class="box scroll" tabIndex={0} role="region" aria-label="files that the step keeps">
          <table class="plain">
            <thead><tr><th scope="col">Path</th><th scope="col" class="num">Size</th><th scope="col">Kind</th><th scope="col"><span class="sr">Actions</span></th></tr></thead>
            <tbody>
              {list.map((f) => (
                <tr key={f.path} data-artifact={f.path}>
                  <td class="mono path">{plain(f.path)}</td>
                  <td class="num nowrap">{size(f.size)}</td>
                  <td>{f.mode === "omitted" ? <span class="worse">not kept: {reasons[f.why ?? ""] ?? plain(f.why ?? "")}</span> : f.mode === "exec" ? "program" : f.mode}</td>
                  <td>{f.mode === "file" || f.mode === "exec" ? (
                    <button type="button" class="btn quiet tight" aria-disabled={busy} aria-label={`download ${plain(f.path)}`} onClick={() => busy || void act(() => save(run.id, s.id, f.path))}>download</button>
                  ) : null}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      {next ? <button type="button" class="btn" aria-disabled={busy} onClick={() => busy || void act(readOn)}>Show more files</button> : null}
    </section>
  );
}

// The server wants the token in a header, which a plain link cannot send.
async function save(run: string, step: string, path: string): Promise<void> {
  const url = URL.createObjectURL(await api.artifact(run, step, path));
  const a = document.createElement("a");
  a.href = url;
  a.download = plain(path.slice(path.lastIndexOf("/") + 1)) || "file";
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser reads it behind the click
}
