// The proof of a run by hash, as the server finds it now.

import {useState} from "preact/hooks";
import {plain, plural} from "../model/text.ts";
import {api} from "../net/api.ts";
import type {Run} from "../state/run.ts";
import {Button, Fields} from "./widgets.tsx";
import type {Verify} from "../model/service.ts";

export function Verify({run}: {run: Run}) {
  const [got, setGot] = useState<{v: Verify; seq: number} | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const verify = async () => {
    setBusy(true);
    setError("");
    try {
      const seq = run.journal.seq;
      setGot({v: await api.verify(run.id), seq});
    } catch (e) {
      setError(e instanceof Error ? e.message : String(e));
    }
    setBusy(false);
  };
  const v = got?.v;
  return (
    <>
      <p>Every block of the run is read again and held against its hash and its place: events, chain, records, head.
        This page itself checks that each event continues the one before.</p>
      <Button class="btn primary" disabled={busy} onClick={() => void verify()}>{busy ? "Verifying…" : got ? "Verify again" : "Verify"}</Button>
      <div role="status" aria-live="polite">
        {error ? <p class="worse">{error}</p> : null}
        {v ? (
          v.ok
            ? <p class="good" data-verified>✓ {plural(v.checked.events, "event")}, {plural(v.checked.records, "record")}, {plural(v.checked.blocks, "block")} read again, all as their hashes say (up to event {got.seq})</p>
            : <p class="worse">✗ {plural(v.findings.length, "finding")}</p>
        ) : null}
      </div>
      {v?.findings.map((f) => (
        <Fields of={[["where", plain(f.where)], ["what", plain(f.kind)], ["expected", plain(f.expected), true], ["actual", plain(f.actual), true], ["fix", plain(f.fix)]]} />
      ))}
      {v?.not_proven.length ? <section><h2>Not proven</h2><ul>{v.not_proven.map((n) => <li>{plain(n)}</li>)}</ul></section> : null}
    </>
  );
}
