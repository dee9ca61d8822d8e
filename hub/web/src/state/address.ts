// The place in the journal is part of the address: seq=12.

import {effect, untracked} from "@preact/signals";
import {refine, route} from "./app.ts";
import type {Run} from "./run.ts";

const writeAfter = 200; // ms: a hand on the slider passes many places

/**
 * Follows the address to the places that it names, and writes the place that is looked at, until
 * the returned function is called. What was not written here was asked for: a link was followed, and
 * that comes before what is to be written.
 */
export function followAddress(run: Run): () => void {
  let wrote = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  const seek = effect(() => {
    const {query, run: id} = route.value;
    const asked = query["seq"] ?? "";
    if (!run.ready.value || id !== run.id || asked === wrote) return;
    wrote = asked;
    untracked(() => {
      run.playing.value = false;
      run.look(Number(asked) > 0 ? Number(asked) : null);
    });
  });
  const write = effect(() => {
    const at = run.cursor.value;
    clearTimeout(timer);
    if (!run.ready.value || run.playing.value || run.seeking.value !== null) return;
    timer = setTimeout(() => {
      wrote = at === null ? "" : String(at);
      refine({seq: wrote});
    }, writeAfter);
  });
  return () => {
    seek();
    write();
    clearTimeout(timer);
  };
}
