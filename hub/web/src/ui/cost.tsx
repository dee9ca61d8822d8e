// What the model calls of a run used and cost.

import {useMemo, useState} from "preact/hooks";
import {dollars, plain, share, tokens} from "../model/text.ts";
import {api} from "../net/api.ts";
import type {Run} from "../state/run.ts";
import {Button, Empty} from "./widgets.tsx";
import {useLoad} from "./load.ts";

const rowsAtOnce = 200;

export function Cost({run, step}: {run: Run; step: string}) {
  const [by, setBy] = useState("role");
  const [most, setMost] = useState(rowsAtOnce);
  const got = useLoad((signal) => api.cost(run.id, by, signal), [run.id, by, run.head.usage.calls]);
  const c = got.value;
  // The step that is looked at, then what cost most.
  const rows = useMemo(() => (c?.items ?? []).toSorted((a, b) =>
    Number(b.name === step) - Number(a.name === step) || Number(b.cost_usd ?? 0) - Number(a.cost_usd ?? 0) || b.input + b.output - a.input - a.output), [c, step]);
  return (
    <>
      <div class="chips" role="group" aria-label="Sum by">
        {["role", "step", "task", "model", "kind"].map((b) => <Button class="chip" aria-pressed={b === by} onClick={() => setBy(b)}>by {b}</Button>)}
      </div>
      {got.error ? <p class="worse" role="alert">{got.error}</p> : null}
      {!c ? (got.error ? null : <p class="dim">Reading…</p>) : c.total.calls === 0 ? <Empty title="No model was asked">The run has cost nothing so far.</Empty> : (
        <div class="box scroll" tabIndex={0} role="region" aria-label="cost">
          <table class="plain">
            <thead><tr><th scope="col">{by}</th><th scope="col" class="num">Calls</th><th scope="col" class="num">In</th><th scope="col" class="num">Cached</th><th scope="col" class="num">Out</th><th scope="col" class="num">Cost</th><th scope="col"><span class="sr">share of the tokens</span></th></tr></thead>
            <tbody>
              {rows.slice(0, most).map((r) => (
                <tr key={r.name}>
                  <td>{r.name === step ? <b>{r.name}</b> : plain(r.name ?? "") || "–"}</td><td class="num">{r.calls}</td><td class="num">{tokens(r.input)}</td><td class="num">{share(r.cached, r.input)}</td><td class="num">{tokens(r.output)}</td><td class="num">{dollars(r.cost_usd)}</td>
                  <td><span class="meter" aria-hidden="true"><i style={{width: `${(100 * (r.input + r.output)) / Math.max(1, c.total.input + c.total.output)}%`}} /></span></td>
                </tr>
              ))}
            </tbody>
            <tfoot>
              <tr><td>total</td><td class="num">{c.total.calls}</td><td class="num">{tokens(c.total.input)}</td><td class="num">{share(c.total.cached, c.total.input)}</td><td class="num">{tokens(c.total.output)}</td><td class="num">{dollars(c.total.cost_usd)}</td><td /></tr>
            </tfoot>
          </table>
        </div>
      )}
      {rows.length > most ? <Button class="btn" onClick={() => setMost(most + rowsAtOnce)}>Show {Math.min(rowsAtOnce, rows.length - most)} more of {rows.length - most}</Button> : null}
      {c && c.total.calls ? <p class="dim">Prices of {c.prices}. Every call counts, those of failed tries too{c.total.unreported ? `; ${c.total.unreported} calls did not tell their tokens` : ""}.</p> : null}
    </>
  );
}
