// A value that is read from the server, again whenever one of its keys changes, or the list that it shows.

import {useEffect, useState} from "preact/hooks";
import type {ListName} from "../net/replay.ts";
import {keepFresh} from "../state/lists.ts";

export interface Loaded<T> {
  value: T | null;
  error: string;
}

export function useLoad<T>(read: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[], list?: ListName): Loaded<T> {
  const [got, setGot] = useState<Loaded<T>>({value: null, error: ""});
  useEffect(() => {
    const c = new AbortController();
    const load = () => read(c.signal).then(
      (value) => void (c.signal.aborted || setGot({value, error: ""})),
      (e: unknown) => void (c.signal.aborted || setGot((was) => ({value: was.value, error: e instanceof Error ? e.message : String(e)}))),
    );
    const stop = list ? keepFresh([list], load) : void load();
    return () => {
      stop?.();
      c.abort();
    };
  }, keys);
  return got;
}
