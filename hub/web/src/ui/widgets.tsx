// Small pieces that all pages use.

import type {ComponentChildren, JSX} from "preact";
import {useEffect, useId, useLayoutEffect, useRef, useState} from "preact/hooks";
import {ago, day, plain, shortCID, size, span, value} from "../model/text.ts";
import {skew} from "../net/api.ts";
import {now, tell} from "../state/app.ts";

const marks: Record<string, string> = {
  running: "M4.5 1a3.500 3.500 0 1 1 0 7a3.500 3.500 0 1 1 0-7",
  retrying: "M8 4.500A3.500 3.500 0 1 1 6.500 1.600M8 1v2.500H5.500",
  ok: "M1 5l2.500 2.500L8 2",
  done: "M1 5l2.500 2.500L8 2",
  delivered: "M1 5l2.500 2.500L8 2",
  passed: "M1 5l2.500 2.500L8 2",
  mixed: "M1.500 4.500h6",
  error: "M4.500 1v4M4.500 7.800v.1",
  nonzero: "M4.500 1v4M4.500 7.800v.1",
  failed: "M1.500 1.500l6 6M7.500 1.500l-6 6",
  dead: "M1.500 1.500l6 6M7.500 1.500l-6 6",
  waiting: "M2.800 1.500v6M6.200 1.500v6",
  suspended: "M4.500 1v4M4.500 7.800v.1",
  interrupted: "M4.500 1v4M4.500 7.800v.1",
  parked: "M4.500 1v4M4.500 7.800v.1",
  cancelled: "M1.500 4.500h6",
  skipped: "M1.500 4.500h6",
  queued: "M4.500 4.500v.1",
  leased: "M1 4.500h5M4.500 2l3 2.500l-3 2.500",
};

/** The id of a step; where room is short its role is cut, and not which visit it is. */
export function StepName({id, role}: {id: string; role: string}) {
  return <span class="stepname" title={id}><span>{role}</span>{id.slice(role.length)}</span>;
}

/** A status in words. */
export const statusWord = (of: string): string => of === "nonzero" ? "exit not 0" : of === "unread" ? "ended" : of.replace("_", " ");

/** A status as a shape and a word. */
export function Status({of, bare}: {of: string; bare?: boolean}) {
  return (
    <span class={`status s-${of}`}>
      <span class="mark" aria-hidden="true">
        <svg viewBox="0 0 9 9"><path d={marks[of] ?? marks["queued"]!} /></svg>
      </span>
      <span class={bare ? "sr" : undefined}>{statusWord(of)}</span>
    </span>
  );
}

/** How long ago by the clock of the server, with the whole date where the pointer rests. */
export function Ago({at}: {at: string}) {
  const t = Date.parse(at);
  return <time dateTime={at} title={day(t)} class="nowrap">{ago(now.value + skew - t)}</time>;
}

/** Whether a run has ended. */
export const over = (status: string): boolean => status === "done" || status === "failed" || status === "cancelled";

/** How long a run took by the clock, to its end or until now. */
export const wall = (r: {status: string; started: string; updated: string}): string => span((over(r.status) ? Date.parse(r.updated) : now.value + skew) - Date.parse(r.started));

/** A CID, shortened; a click copies all of it. */
export function CID({of, label = "CID"}: {of: string | null | undefined; label?: string}) {
  if (!of) return <span class="dim">–</span>;
  return (
    <Button class="btn quiet mono tight" title={`${of} — copy`} aria-label={`${shortCID(of)}, copy the ${label}`} onClick={() => void copy(of)}>
      {shortCID(of)}
    </Button>
  );
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    tell("copied");
  } catch {
    tell(`not copied: ${text}`, true);
  }
}

/** A button that sends no form. */
export const Button = (of: JSX.IntrinsicElements["button"]) => <button type="button" {...of} />;

export function Empty({title, children}: {title: string; children?: ComponentChildren}) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

/** Fields and their values; a value is text, whatever it holds. */
export function Fields({of}: {of: [string, ComponentChildren, boolean?][]}) {
  const rows = of.filter(([, v]) => v !== "" && v !== null && v !== undefined);
  if (rows.length === 0) return null;
  return (
    <dl class="fields">
      {rows.map(([name, v, mono]) => [<dt>{name}</dt>, <dd class={mono ? "mono" : undefined}>{v}</dd>])}
    </dl>
  );
}

/** An object of values as Fields. */
export function Values({of}: {of: unknown}) {
  if (of === null || typeof of !== "object") return of === null || of === undefined ? null : <pre class="mono">{value(of)}</pre>;
  const entries = Object.entries(of as Record<string, unknown>);
  return <Fields of={entries.map(([k, v]) => [plain(k), value(v) || "–", typeof v === "object" && v !== null])} />;
}

/** Text in a box with a caption; long texts scroll, by keyboard too. */
export function TextBox({caption, text, class: more = ""}: {caption?: ComponentChildren; text: string; class?: string}) {
  return (
    <div class={`box ${more}`}>
      {caption ? <div class="cap">{caption}</div> : null}
      <Scroll text={text} />
    </div>
  );
}

/** Takes an element into the tab order while it scrolls, and only then. */
export function useReach<T extends HTMLElement>(label: string, keys: readonly unknown[]) {
  const ref = useRef<T>(null);
  useEffect(() => {
    const e = ref.current;
    if (!e) return;
    const check = () => {
      const scrolls = e.scrollHeight > e.clientHeight + 1;
      if (scrolls === (e.tabIndex === 0)) return;
      for (const [name, v] of Object.entries({tabindex: "0", role: "region", "aria-label": label})) {
        if (scrolls) e.setAttribute(name, v);
        else e.removeAttribute(name);
      }
    };
    check();
    const o = new ResizeObserver(check);
    o.observe(e);
    return () => o.disconnect();
  }, keys);
  return ref;
}

const mostShown = 200_000; // characters of a text that are drawn unasked

/** A text as it is, which is reached by keyboard. Of a very long one the rest is drawn when it is asked for. */
export function Scroll({text, label = "text"}: {text: string; label?: string}) {
  const [all, setAll] = useState(false);
  const ref = useReach<HTMLPreElement>(label, [text, all]);
  const rest = all ? 0 : text.length - mostShown;
  return <><pre ref={ref}>{plain(rest > 0 ? text.slice(0, mostShown) : text)}</pre>{rest > 0 ? <p class="foot"><Button class="btn" onClick={() => setAll(true)}>Show the other {size(rest)}</Button></p> : null}</>;
}

/** A modal dialog: Escape and the backdrop close it, the focus stays inside and goes back. */
export function Dialog({title, onClose, onSubmit, actions, children}: {
  title: string;
  onClose: () => void;
  onSubmit?: () => void;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const d = ref.current!;
    const before = document.activeElement;
    d.showModal();
    d.querySelector<HTMLElement>("[data-first], .body input, .body select, .body textarea")?.focus();
    return () => {
      d.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const inside = (
    <>
      <header><h2 id={id}>{title}</h2></header>
      <div class="body">{children}</div>
      <footer>{actions ?? <Button class="btn" data-first onClick={onClose}>Close</Button>}</footer>
    </>
  );
  return (
    <dialog
      ref={ref}
      aria-labelledby={id}
      onCancel={(e) => {
        e.preventDefault();
        onClose();
      }}
      onMouseDown={(e) => {
        if (e.target === ref.current) onClose();
      }}
    >
      {onSubmit ? (
        <form
          noValidate
          onSubmit={(e) => {
            e.preventDefault();
            onSubmit();
          }}
          onKeyDown={(e) => {
            if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) onSubmit();
          }}
        >
          {inside}
        </form>
      ) : (
        <div>{inside}</div>
      )}
    </dialog>
  );
}

export interface Tab {
  id: string;
  name: string;
  ruled?: boolean; // a rule before it
}

/** Tabs after the ARIA pattern: arrows move, the chosen one alone is in the tab order. */
export function Tabs({tabs, chosen, choose, label, panel}: {tabs: Tab[]; chosen: string; choose: (id: string) => void; label: string; panel: string}) {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const bar = ref.current!;
    const tab = bar.querySelector<HTMLElement>("[aria-selected=true]");
    if (tab) bar.scrollLeft = Math.min(Math.max(bar.scrollLeft, tab.offsetLeft + tab.offsetWidth - bar.clientWidth + 28), tab.offsetLeft - 28);
  }, [chosen]);
  const move = (e: KeyboardEvent) => {
    const i = tabs.findIndex((t) => t.id === chosen);
    const to = {ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1}[e.key];
    if (to === undefined) return;
    e.preventDefault();
    e.stopPropagation();
    const next = tabs[(to + tabs.length) % tabs.length]!;
    choose(next.id);
    ref.current?.querySelector<HTMLElement>(`[data-tab="${next.id}"]`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} ref={ref} onKeyDown={move}>
      {tabs.map((t) => [
        t.ruled ? <span class="rule" role="presentation" /> : null,
        <Button
          role="tab" id={`tab-${t.id}`} data-tab={t.id} aria-controls={panel}
          aria-selected={t.id === chosen} tabIndex={t.id === chosen ? 0 : -1} onClick={() => choose(t.id)}
        >
          {t.name}
        </Button>,
      ])}
    </div>
  );
}
