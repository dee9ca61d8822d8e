// The engine's picture of the workflow, with what the run has done at the seq that is looked at.

import {useEffect, useRef, useState} from "preact/hooks";
import {way} from "../model/fold.ts";
import {api} from "../net/api.ts";
import {isClosed} from "../state/layout.ts";
import type {Run} from "../state/run.ts";
import {Panel} from "./panel.tsx";
import {Canvas} from "./canvas.ts";
import {Button} from "./widgets.tsx";

const ns = "http://www.w3.org/2000/svg";
const elements = new Set(["svg", "g", "path", "rect", "circle", "text", "title", "desc"]);
const attributes = new Set([
  "class", "d", "x", "y", "width", "height", "rx", "ry", "r", "cx", "cy", "transform", "viewBox", "data-role", "data-edge", "data-to", "data-join", "aria-label",
]);

export function Graph({run, chosen, choose}: {run: Run; chosen: string; choose: (id: string) => void}) {
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const [failed, setFailed] = useState(false);
  const [zoom, setZoom] = useState("");
  const canvas = useRef<Canvas | null>(null);
  const definition = run.view.value?.definition ?? "";
  const over = run.head.final; // then the server knows the way to the end
  const pick = useRef((_: string) => {});
  const state = run.state;
  const closed = isClosed("graph");
  pick.current = (role) => {
    // A second click on a role goes to its visit before.
    const visits = [...state.steps.values()].filter((s) => s.role === role).map((s) => s.id);
    const i = visits.indexOf(chosen);
    const id = i > 0 ? visits[i - 1] : visits.at(-1);
    if (id) choose(id);
  };

  useEffect(() => {
    if (!definition) return;
    let mine = true;
    api.graph(run.id).then((text) => {
      if (!mine) return;
      const got = clean(text, (role) => pick.current(role));
      setDrawn(got);
      setFailed(!got);
    }, () => mine && setFailed(true));
    return () => {
      mine = false;
    };
  }, [definition, run.id, over]);
  const box = useRef<HTMLDivElement>(null);
  const map = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!drawn || closed) return;
    const c = (canvas.current = new Canvas(box.current!, map.current!, drawn.svg, canvas.current?.place ?? null, setZoom));
    return () => c.stop();
  }, [drawn, closed]);
  const seq = state.seq;
  const role = run.step(chosen)?.role ?? "";
  useEffect(() => {
    if (!drawn || closed) return;
    paint(drawn, run, role);
    canvas.current!.repaint();
  }, [drawn, state, seq, run.fans, role, closed]);
  useEffect(() => {
    const node = drawn?.svg.querySelector(`[data-role="${CSS.escape(role)}"]`);
    if (node) canvas.current?.reveal(node);
  }, [drawn, role, closed]);

  const act = (f: (c: Canvas) => void) => () => canvas.current && f(canvas.current);
  return (
    <Panel id="graph" name="Graph" beside={closed ? null : (
      <div class="ctl" role="group" aria-label="View of the graph">
        <Button class="btn quiet icon" aria-label="smaller" title="Smaller (-)" onClick={act((c) => c.by(1 / 1.25))}>−</Button>
        <span class="dim zoom" aria-live="polite">{zoom}</span>
        <Button class="btn quiet icon" aria-label="larger" title="Larger (+)" onClick={act((c) => c.by(1.25))}>+</Button>
        <Button class="btn quiet tight" title="All of it (0)" onClick={act((c) => c.fit())}>Fit</Button>
        <Button class="btn quiet tight" onClick={act((c) => c.whole())}>Full screen</Button>
      </div>
    )}>
      {failed ? <p class="empty">The graph cannot be drawn.</p> : drawn ? null : <p class="empty">Reading…</p>}
      <div class="stage">
        <div class="paper-box" ref={box} tabIndex={0} role="group" aria-label="graph of the workflow" onKeyDown={(e) => {
          const f = {"+": () => canvas.current?.by(1.25), "=": () => canvas.current?.by(1.25), "-": () => canvas.current?.by(1 / 1.25), "0": () => canvas.current?.fit()}[e.key];
          if (!f || e.ctrlKey || e.metaKey) return;
          e.preventDefault();
          e.stopPropagation();
          f();
        }} />
        <div class="map" ref={map} aria-hidden="true" />
      </div>
    </Panel>
  );
}

/** A picture, and the arcs by which the whole run came to its ends: no step tells of these. */
interface Drawn {
  svg: SVGSVGElement;
  last: ReadonlySet<Element>;
}

const ends = new Set(["END", "FAIL", "SUSPEND"]);

/** The picture rebuilt from what it may hold: shapes, words and classes. No script, style, link or address gets in. */
function clean(text: string, pick: (role: string) => void): Drawn | null {
  // The picture's own style is for files; a parser would report it to the policy of the page.
  const bare = text.replace(/<style>[^<]*<\/style>/, "");
  const root = new DOMParser().parseFromString(bare, "image/svg+xml").documentElement;
  if (root.localName !== "svg") return null;
  const copy = (from: Element): Element | null => {
    if (!elements.has(from.localName)) return null;
    const to = document.createElementNS(ns, from.localName);
    for (const a of from.attributes) if (attributes.has(a.name)) to.setAttribute(a.name, a.value);
    for (const child of from.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) to.append(child.textContent ?? "");
      else if (child.nodeType === Node.ELEMENT_NODE) to.append(copy(child as Element) ?? "");
    }
    return to;
  };
  const svg = copy(root) as SVGSVGElement;
  svg.setAttribute("role", "group");
  const last = new Set([...svg.querySelectorAll(".arc.taken")].filter((a) => ends.has(a.getAttribute("data-to") ?? "")));
  svg.querySelector(":scope > title")?.remove(); // it would cover the titles of the nodes
  // What the server painted is taken off: paint does it for any seq.
  for (const e of svg.querySelectorAll(".badge, .ring")) e.remove();
  for (const node of svg.querySelectorAll<SVGElement>("[data-role]")) {
    const role = node.getAttribute("data-role")!;
    node.setAttribute("role", "button");
    node.setAttribute("tabindex", "0");
    for (const word of [...node.querySelectorAll(".name"), ...node.querySelectorAll(".note")]) node.append(" ", word); // in the order of reading
    node.addEventListener("click", () => pick(role));
    node.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" && e.key !== " ") return;
      e.preventDefault();
      pick(role);
    });
  }
  return {svg, last};
}

const shownStatus: Record<string, string> = {
  running: "running", retrying: "running", waiting: "waiting", queued: "waiting", parked: "waiting", ok: "ok", skipped: "ok", failed: "failed",
};

function paint({svg, last}: Drawn, run: Run, chosen: string): void {
  const {state} = run;
  for (const e of svg.querySelectorAll(".badge, .ring")) e.remove();
  for (const node of svg.querySelectorAll<SVGGElement>("[data-role]")) {
    const role = node.getAttribute("data-role")!;
    const visits = state.visits(role);
    const status = visits ? (shownStatus[run.newest(role)!] ?? "") : "";
    node.classList.remove("running", "ok", "failed", "waiting", "idle");
    if (status || !visits) node.classList.add(status || "idle");
    node.setAttribute("aria-pressed", String(role === chosen));
    const words = [...node.querySelectorAll("text")].map((t) => t.textContent).join(" ");
    const name = `${words || role}${visits ? `, ${status || "of which not all items were read"}, visited ${visits}×` : ", not visited"}`;
    node.setAttribute("aria-label", name);
    const title = node.querySelector("title");
    if (title) title.textContent = name;
    const outline = node.querySelector<SVGGraphicsElement>(".box");
    if (!visits || !outline) continue;
    const b = outline.getBBox();
    node.insertBefore(shape("rect", {class: "ring", x: b.x - 4, y: b.y - 4, width: b.width + 8, height: b.height + 8, rx: Number(outline.getAttribute("rx") ?? 8) + 4}), outline);
    if (visits > 1) node.after(badge(b.x + b.width - 6, b.y, visits));
  }
  const final = state.final ? [...last] : [];
  const went = new Set([...state.taken.keys()].map((k) => k.split(" ", 1)[0]!).concat(final.map((a) => a.getAttribute("data-edge")!)));
  const arrived = new Set<string>();
  for (const arc of svg.querySelectorAll<SVGGElement>(".arc[data-edge]")) {
    const to = arc.getAttribute("data-to") ?? "";
    const join = arc.getAttribute("data-join"); // into a join: the edges behind it
    const taken = join !== null ? join.split(" ").some((e) => went.has(e))
      : ends.has(to) ? final.includes(arc)
        : state.taken.has(way(Number(arc.getAttribute("data-edge")), to, arc.classList.contains("limit")));
    if (taken) arrived.add(to);
    arc.classList.toggle("taken", taken);
    arc.classList.toggle("idle", !taken && state.steps.size > 0);
  }
  for (const end of svg.querySelectorAll(".node.end, .node.fail, .node.suspend")) {
    const there = arrived.has(end.querySelector(".end")?.textContent ?? "");
    end.classList.toggle("reached", there);
    end.classList.toggle("idle", !there && state.steps.size > 0);
  }
}

function shape(name: string, attrs: Record<string, string | number>): SVGElement {
  const e = document.createElementNS(ns, name);
  for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, String(v));
  return e;
}

function badge(x: number, y: number, n: number): SVGElement {
  const g = shape("g", {class: "badge visits"});
  const text = `${n}×`;
  const w = 10 + 7 * text.length;
  g.append(shape("rect", {x: x - w / 2, y: y - 9, width: w, height: 18, rx: 9}));
  const t = shape("text", {x, y: y + 4});
  t.textContent = text;
  g.append(t);
  return g;
}
