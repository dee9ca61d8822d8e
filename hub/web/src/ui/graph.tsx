// The engine's picture of the workflow, with what the run has done at the seq that is looked at.

import {useEffect, useRef, useState} from "preact/hooks";
import type {State} from "../model/fold.ts";
import {api} from "../net/api.ts";
import type {Run} from "../state/run.ts";

const ns = "http://www.w3.org/2000/svg";
const elements = new Set(["svg", "g", "path", "rect", "circle", "text", "title", "desc"]);
const attributes = new Set([
  "class", "d", "x", "y", "width", "height", "rx", "ry", "r", "cx", "cy", "transform", "viewBox", "data-role", "data-edge", "aria-label",
]);

export function Graph({run, chosen, choose}: {run: Run; chosen: string; choose: (id: string) => void}) {
  const [svg, setSvg] = useState<SVGSVGElement | null>(null);
  const [failed, setFailed] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const definition = run.view.value?.definition ?? "";
  const pick = useRef((_: string) => {});
  const state = run.state;
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
      const drawn = clean(text, (role) => pick.current(role));
      setSvg(drawn);
      setFailed(!drawn);
    }, () => mine && setFailed(true));
    return () => {
      mine = false;
    };
  }, [definition, run.id]);
  useEffect(() => {
    if (svg) box.current!.replaceChildren(svg);
  }, [svg]);
  const seq = state.seq;
  useEffect(() => {
    if (svg) paint(svg, state, state.steps.get(chosen)?.role ?? "");
  }, [svg, state, seq, chosen]);

  return (
    <section class="panel graph" aria-label="Graph">
      <header><h2>Graph</h2></header>
      <div class="paper-box" ref={box} tabIndex={0} role="group" aria-label="graph of the workflow" />
      {failed ? <p class="empty">The graph cannot be drawn.</p> : svg ? null : <p class="empty">Reading…</p>}
    </section>
  );
}

/** The picture rebuilt from what it may hold: shapes, words and classes. No script, style, link or address gets in. */
function clean(text: string, pick: (role: string) => void): SVGSVGElement | null {
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
  svg.querySelector(":scope > title")?.remove(); // it would cover the titles of the nodes
  // What the server painted is taken off: paint does it for any seq.
  for (const e of svg.querySelectorAll(".badge, .ring")) e.remove();
  for (const node of svg.querySelectorAll<SVGElement>("[data-role]")) {
    const role = node.getAttribute("data-role")!;
    node.setAttribute("role", "button");
    node.setAttribute("tabindex", "0");
    node.querySelector("title")?.remove(); // paint names the node
    for (const word of [...node.querySelectorAll(".name"), ...node.querySelectorAll(".note")]) node.append(" ", word); // in the order of reading
    node.addEventListener("click", () => pick(role));
    node.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" && e.key !== " ") return;
      e.preventDefault();
      pick(role);
    });
  }
  return svg;
}

const shownStatus: Record<string, string> = {
  running: "running", retrying: "running", waiting: "waiting", parked: "waiting", ok: "ok", skipped: "ok", failed: "failed",
};

function paint(svg: SVGSVGElement, state: State, chosen: string): void {
  for (const e of svg.querySelectorAll(".badge, .ring")) e.remove();
  for (const node of svg.querySelectorAll<SVGGElement>("[data-role]")) {
    const role = node.getAttribute("data-role")!;
    const visits = state.visits(role);
    const status = visits ? (shownStatus[state.newest(role)!.status] ?? "") : "";
    node.classList.remove("running", "ok", "failed", "waiting", "idle");
    node.classList.add(status || "idle");
    node.setAttribute("aria-pressed", String(role === chosen));
    const words = [...node.querySelectorAll("text")].map((t) => t.textContent).join(" ");
    node.setAttribute("aria-label", `${words || role}${status ? `, ${status}, visited ${visits}×` : ", not visited"}`);
    const outline = node.querySelector<SVGGraphicsElement>(".box");
    if (!visits || !outline) continue;
    const b = outline.getBBox();
    node.insertBefore(shape("rect", {class: "ring", x: b.x - 4, y: b.y - 4, width: b.width + 8, height: b.height + 8, rx: Number(outline.getAttribute("rx") ?? 8) + 4}), outline);
    if (visits > 1) node.after(badge(b.x + b.width - 6, b.y, visits));
  }
  for (const arc of svg.querySelectorAll<SVGGElement>(".arc[data-edge]")) {
    const times = arc.classList.contains("limit") ? 0 : (state.taken.get(Number(arc.getAttribute("data-edge"))) ?? 0);
    arc.classList.toggle("taken", times > 0);
    arc.classList.toggle("idle", times === 0 && state.steps.size > 0);
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
