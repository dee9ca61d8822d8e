// Lists that are read again when the server says that they changed.

import {replay} from "./app.ts";
import type {ListName} from "../net/replay.ts";

const rest = 100; // ms between two readings at least
const share = 3; // a reading that took long is followed by a pause of so many times that

/** Calls read at once, and then again after each change of one of the lists; one at a time, and not while the page is hidden. */
export function keepFresh(lists: readonly ListName[], read: (changed: ReadonlySet<ListName>) => Promise<void>): () => void {
  let stopped = false;
  let busy = false;
  let due = new Set<ListName>(lists);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const go = async () => {
    if (stopped || busy || due.size === 0 || document.hidden) return;
    busy = true;
    const changed = due;
    due = new Set();
    const began = performance.now();
    try {
      await read(changed);
    } finally {
      timer = setTimeout(() => {
        busy = false;
        void go();
      }, Math.max(rest, share * (performance.now() - began)));
    }
  };
  const stop = replay.list(lists, ({list}) => {
    due.add(list);
    void go();
  });
  const seen = () => void go();
  document.addEventListener("visibilitychange", seen);
  void go();
  return () => {
    stopped = true;
    stop();
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
}
