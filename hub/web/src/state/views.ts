// Filters of the list of runs that a person has kept under a name, for this browser.

import {signal} from "@preact/signals";

/** A filter by its parameters, those that say something alone. */
export interface View {
  name: string;
  query: Record<string, string>;
}

const place = "wf-views";
const most = 30;

function stored(): View[] {
  try {
    const all: unknown = JSON.parse(localStorage.getItem(place) ?? "[]");
    return Array.isArray(all) ? all.filter(isView).slice(0, most) : [];
  } catch {
    return []; // storage is off, or holds something else
  }
}

function isView(v: unknown): v is View {
  const {name, query} = (v ?? {}) as Partial<View>;
  return typeof name === "string" && typeof query === "object" && query !== null && Object.values(query).every((x) => typeof x === "string");
}

export const views = signal<readonly View[]>(stored());

function keep(all: readonly View[]): void {
  views.value = all;
  try {
    if (all.length) localStorage.setItem(place, JSON.stringify(all));
    else localStorage.removeItem(place);
  } catch {
    // not kept; it holds for this page
  }
}

/** Keeps a filter under a name, in place of what had that name. */
export function keepView(name: string, query: Record<string, string>): void {
  keep([...views.value.filter((v) => v.name !== name), {name, query}].slice(-most));
}

export function dropView(name: string): void {
  keep(views.value.filter((v) => v.name !== name));
}

/** A filter without what it leaves open. */
export const said = (f: object): Record<string, string> => Object.fromEntries(Object.entries(f).filter(([, v]) => v !== "")) as Record<string, string>;
