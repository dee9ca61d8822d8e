// How a person has arranged the page of a run: kept for this browser.

import {effect, signal} from "@preact/signals";

export interface Layout {
  left: number; // width of graph and steps, in percent
  lanes: number; // height of the timeline, in pixels
  closed: string[]; // panels that are folded away
}

const name = "wf-layout";
export const usual: Layout = {left: 40, lanes: 132, closed: []};

function stored(): Layout {
  try {
    const v = JSON.parse(localStorage.getItem(name) ?? "{}") as Partial<Layout>;
    return {
      left: within(v.left, 15, 80, usual.left), lanes: within(v.lanes, 40, 1000, usual.lanes),
      closed: Array.isArray(v.closed) ? v.closed.filter((x) => typeof x === "string") : [],
    };
  } catch {
    return usual; // storage is off, or holds something else
  }
}

const within = (v: unknown, low: number, high: number, other: number): number => typeof v === "number" && v >= low && v <= high ? v : other;

export const layout = signal<Layout>(stored());
effect(() => {
  const text = JSON.stringify(layout.value);
  try {
    if (text === JSON.stringify(usual)) localStorage.removeItem(name);
    else localStorage.setItem(name, text);
  } catch {
    // not kept; it holds for this page
  }
});

export function arrange(change: Partial<Layout>): void {
  layout.value = {...layout.value, ...change};
}

export const isClosed = (panel: string): boolean => layout.value.closed.includes(panel);

export function toggle(panel: string): void {
  const {closed} = layout.value;
  arrange({closed: closed.includes(panel) ? closed.filter((p) => p !== panel) : [...closed, panel]});
}
