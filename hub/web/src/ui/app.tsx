// The frame: who is connected to what, where we are, and the keys.

import {useEffect, useRef, useState} from "preact/hooks";
import {away, dismiss, fault, go, help, hrefOf, info, link, locked, login, nextTheme, notes, now, reached, replay, route, theme} from "../state/app.ts";
import {Compare} from "./compare.tsx";
import {Hub} from "./hub.tsx";
import {Button, Dialog} from "./widgets.tsx";
import {Line} from "./form.tsx";
import {RunPage} from "./run.tsx";
import {Runs} from "./runs.tsx";
import {OfStore} from "./store.tsx";
import {Workflows} from "./workflows.tsx";
import {keyed} from "./keys.ts";

export function App() {
  useEffect(() => keyed({
    "?": () => (help.value = true),
    t: nextTheme,
    g: () => go("runs"),
  }), []);
  const main = useRef<HTMLElement>(null);
  const r = route.value;
  const place = r.page + r.run;
  const before = useRef(place);
  useEffect(() => {
    if (before.current === place) return;
    before.current = place;
    scrollTo(0, 0);
    main.current?.focus({preventScroll: true}); // a new page: reading starts at its top
  }, [place]);
  if (locked.value !== null) return <Door />;
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => {
        e.preventDefault();
        main.current?.focus();
      }}>Skip to the content</a>
      <Top />
      <main id="main" ref={main} tabIndex={-1}>
        {info.value === null ? <Waiting /> : r.page === "run" ? <RunPage key={r.run} id={r.run} /> : r.page === "runs" ? <Runs /> : r.page === "agents" || r.page === "queue" ? <Hub page={r.page} /> : r.page === "workflows" ? <Workflows /> : r.page === "compare" ? <Compare /> : <OfStore key={r.page} page={r.page} />}
      </main>
      <Notes />
      {help.value ? <Help /> : null}
    </>
  );
}

function Top() {
  const r = route.value;
  const nav = useRef<HTMLElement>(null);
  useEffect(() => void nav.current?.querySelector("[aria-current]")?.scrollIntoView({block: "nearest", inline: "center"}), [r.page, info.value]); // where not all of them have room
  const at = (page: string) => (r.page === page || (page === "runs" && (r.page === "run" || r.page === "compare")) ? "page" : undefined);
  return (
    <header class="top">
      <a class="brand" href={hrefOf("runs")} aria-label="wf, all runs"><img src="/assets/icon.svg" alt="" width={22} height={22} /><span>wf</span></a>
      <nav aria-label="Pages" ref={nav}>
        <a href={hrefOf("runs")} aria-current={at("runs")}>Runs</a>
        <a href={hrefOf("workflows")} aria-current={at("workflows")}>Workflows</a>
        {info.value?.kind === "hub" ? <a href={hrefOf("agents")} aria-current={at("agents")}>Workers</a> : null}
        {info.value?.kind === "hub" ? <a href={hrefOf("queue")} aria-current={at("queue")}>Queue</a> : null}
        <a href={hrefOf("notifications")} aria-current={at("notifications")}>Notifications</a>
        <a href={hrefOf("tables")} aria-current={at("tables")}>Sweeps</a>
        <a href={hrefOf("deletions")} aria-current={at("deletions")}>Deleted</a>
      </nav>
      <div class="end">
        {info.value?.name ? <span class="name dim">{info.value.kind === "hub" ? "hub " : ""}{info.value.name}</span> : null}
        <Connection />
        <Button class="btn quiet icon" onClick={nextTheme} aria-label={`theme: ${theme.value}, change`} title={`Theme: ${theme.value} (t)`}>
          <ThemeIcon />
        </Button>
        <Button class="btn quiet icon" onClick={() => (help.value = true)} aria-label="keyboard help" title="Keys (?)">?</Button>
      </div>
    </header>
  );
}

function ThemeIcon() {
  const t = theme.value;
  return (
    <svg viewBox="0 0 18 18" width={16} height={16} aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round">
      {t === "dark" ? (
        <path d="M14.500 11A6.300 6.300 0 0 1 7 3.500A6.300 6.300 0 1 0 14.500 11z" stroke-linejoin="round" />
      ) : t === "light" ? (
        <><circle cx="9" cy="9" r="3.300" /><path d="M9 1.500v1.600M9 14.900v1.600M1.500 9h1.600M14.900 9h1.600M3.700 3.700l1.100 1.100M13.200 13.200l1.100 1.100M14.300 3.700l-1.100 1.100M4.800 13.200l-1.100 1.100" /></>
      ) : (
        <><circle cx="9" cy="9" r="6.500" /><path d="M9 2.500v13a6.500 6.500 0 0 0 0-13z" fill="currentColor" stroke="none" /></>
      )}
    </svg>
  );
}

/** How the connection stands; said aloud when it changes, not while it counts down. */
function Connection() {
  const l = link.value;
  const open = l === "open";
  const wait = l === "lost" ? Math.max(0, Math.ceil((replay.nextTry - now.value) / 1000)) : 0;
  const stuck = open && away.value;
  const word = stuck ? "the server waits for its store" : open ? "live" : info.value === null ? "connecting" : "reconnecting";
  return (
    <span class={`link ${open && !stuck ? "open" : "lost"}`}>
      <span class="dot" aria-hidden="true" />
      <span role="status" aria-live="polite" data-link={open ? "open" : "lost"} data-store={stuck ? "away" : "there"}>{word}</span>
      {wait > 0 ? <span class="long" aria-hidden="true">in {wait} s</span> : null}
      {l === "lost" ? <Button class="btn quiet" onClick={() => replay.hurry()}>retry now</Button> : null}
    </span>
  );
}

function Waiting() {
  return <p class="empty">{reached.value ? "Connecting…" : "The server does not answer. The page tries again by itself."}</p>;
}

function Door() {
  const [code, setCode] = useState("");
  return (
    <main>
      <form class="panel door" onSubmit={(e) => {
        e.preventDefault();
        login(code).catch(fault);
      }}>
        <h1><img src="/assets/icon.svg" alt="" />Sign in</h1>
        <p>Open the address that <code>wf serve</code> or <code>wf hub</code> printed: it holds a code that works once. Or type the code:</p>
        {locked.value ? <p class="worse" role="alert">{locked.value}</p> : null}
        <Line label="Code" value={code} set={setCode} first />
        <button class="btn primary" disabled={code.trim() === ""}>Sign in</button>
      </form>
    </main>
  );
}

function Notes() {
  return (
    <div class="notes" aria-live="polite">
      {notes.value.map((n) => (
        <div key={n.id} class={n.fault ? "fault" : undefined} role={n.fault ? "alert" : undefined}>
          <span>{n.text}</span>
          <Button class="btn quiet icon" aria-label="dismiss" onClick={() => dismiss(n.id)}>×</Button>
        </div>
      ))}
    </div>
  );
}

const keys: [string, [string, string][]][] = [
  ["Everywhere", [["?", "these keys"], ["g", "all runs"], ["t", "theme: system, light, dark"], ["Esc", "close"]]],
  ["Runs", [["/", "search"], ["n", "start a run"], ["j k", "next, previous run"], ["Enter", "open it"]]],
  ["A run", [["j k", "next, previous step"], ["1 … 8", "tabs"], ["← →", "one event back, on (in the scrubber also PageUp, PageDown, Home, End)"],
    ["Space", "replay, pause"], ["l", "back to live"], ["a", "to the question that waits"], ["+ - 0", "graph: larger, smaller, all of it"]]],
];

function Help() {
  return (
    <Dialog title="Keys" onClose={() => (help.value = false)}>
      <dl class="keys">
        {keys.map(([name, list]) => [
          <h3>{name}</h3>,
          ...list.map(([k, what]) => [<dt>{k.split(" ").map((x) => (x === "…" ? "…" : <kbd>{x}</kbd>))}</dt>, <dd>{what}</dd>]),
        ])}
      </dl>
    </Dialog>
  );
}
