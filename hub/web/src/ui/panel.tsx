// Parts of a page that fold away, and the edges between them that can be moved.

import type {ComponentChildren} from "preact";
import {isClosed, toggle} from "../state/layout.ts";
import {Button} from "./widgets.tsx";

/** A part of the page with a head; a click on its name folds it away, and back. */
export function Panel({id, name, class: more = "", beside, children}: {id: string; name: string; class?: string; beside?: ComponentChildren; children: ComponentChildren}) {
  const closed = isClosed(id);
  return (
    <section class={`panel ${id}${more}${closed ? " closed" : ""}`} aria-label={name}>
      <header>
        <h2><Button class="fold" aria-expanded={!closed} onClick={() => toggle(id)}><span aria-hidden="true">{closed ? "▸" : "▾"}</span>{name}</Button></h2>
        {beside}
      </header>
      {closed ? null : children}
    </section>
  );
}

/** The edge of a part, which can be dragged, and moved by the arrow keys; a double click puts it back. */
export function Edge({label, upright, value, low, high, step, usual, move, at}: {
  label: string;
  upright: boolean; // between what stands side by side
  value: number;
  low: number;
  high: number;
  step: number;
  usual: number;
  move: (v: number) => void;
  at: (e: PointerEvent, edge: HTMLElement) => number; // the value where a pointer is
}) {
  const to = (v: number) => move(Math.round(Math.min(high, Math.max(low, v))));
  return (
    <div
      class={`seam${upright ? " upright" : ""}`} role="separator" tabIndex={0} aria-label={label} aria-orientation={upright ? "vertical" : "horizontal"}
      aria-valuenow={Math.round(value)} aria-valuemin={low} aria-valuemax={high}
      onKeyDown={(e) => {
        const by = {ArrowLeft: -step, ArrowUp: -step, ArrowRight: step, ArrowDown: step}[e.key];
        if (by !== undefined) to(value + by);
        else if (e.key === "Home") to(low);
        else if (e.key === "End") to(high);
        else if (e.key === "Enter") to(usual);
        else return;
        e.preventDefault();
        e.stopPropagation();
      }}
      onDblClick={() => to(usual)}
      onPointerDown={(e) => e.button === 0 && e.currentTarget.setPointerCapture(e.pointerId)}
      onPointerMove={(e) => e.currentTarget.hasPointerCapture(e.pointerId) && to(at(e, e.currentTarget))}
    />
  );
}
