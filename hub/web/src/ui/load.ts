// A value that is read from the server, again whenever one of its keys changes.

import {useEffect, useState} from "preact/hooks";

export interface Loaded<T> {
  value: T | null;
  error: string;
}

export function useLoad<T>(read: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[]): Loaded<T> {
  const [got, setGot] = useState<Loaded<T>>({value: null, error: ""});
  useEffect(() => {
    const c = new AbortController();
    read(c.signal).then(
      (value) => c.signal.aborted || setGot({value, error: ""}),
      (e: unknown) => c.signal.aborted || setGot((was) => ({value: was.value, error: e instanceof Error ? e.message : String(e)})),
    );
    return () => c.abort();
  }, keys);
  return got;
}
