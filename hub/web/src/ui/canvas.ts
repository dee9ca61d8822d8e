// A picture in a box: it is made smaller and larger, dragged, shown on the whole screen, and has a map of itself where
// the box shows a part.

import {fault} from "../state/app.ts";

/** Where a picture was left: how large it is drawn, and which of its points is in the middle of the box. */
interface Place {
  zoom: number;
  x: number;
  y: number;
}

const smallest = 0.02;
const largest = 3;
const readable = 0.6; // smaller than that, names cannot be read
const mapSize = 150; // px, of its longer side

export class Canvas {
  /** null while the picture is as large as fits: then it stays so when the box changes. */
  place: Place | null;
  readonly #width: number;
  readonly #height: number;
  readonly #stopping: (() => void)[] = [];
  #view: Element | null = null; // of the map: what the box shows
  readonly #nodes: [node: Element, onMap: Element][] = [];

  constructor(private readonly box: HTMLElement, private readonly map: HTMLElement, private readonly svg: SVGSVGElement, place: Place | null, private readonly zoomed: (zoom: string) => void) {
    this.#width = Number(svg.getAttribute("width")) || 300;
    this.#height = Number(svg.getAttribute("height")) || 200;
    if (!svg.hasAttribute("viewBox")) svg.setAttribute("viewBox", `0 0 ${this.#width} ${this.#height}`);
    box.replaceChildren(svg);
    this.place = place;
    const on = <K extends keyof HTMLElementEventMap>(e: HTMLElement, type: K, f: (e: HTMLElementEventMap[K]) => void, o?: AddEventListenerOptions) => {
      e.addEventListener(type, f, o);
      this.#stopping.push(() => e.removeEventListener(type, f));
    };
    on(box, "wheel", (e) => {
      if (!e.ctrlKey && !e.metaKey) return; // else it scrolls
      e.preventDefault();
      this.by(Math.exp(-e.deltaY / 300));
    }, {passive: false});
    this.#drag(on);
    on(box, "scroll", () => {
      if (this.place) this.place = this.#middle();
      this.#look();
    });
    const follow = (e: PointerEvent) => {
      const r = this.map.getBoundingClientRect();
      this.#center(((e.clientX - r.left) / r.width) * this.#width, ((e.clientY - r.top) / r.height) * this.#height);
    };
    on(map, "pointerdown", (e) => {
      map.setPointerCapture(e.pointerId);
      follow(e);
    });
    on(map, "pointermove", (e) => map.hasPointerCapture(e.pointerId) && follow(e));
    const sized = new ResizeObserver(() => this.#draw());
    sized.observe(box);
    this.#stopping.push(() => sized.disconnect());
    this.#draw();
  }

  stop(): void {
    for (const s of this.#stopping) s();
  }

  /** So many times as large as it is. */
  by(factor: number): void {
    const at = this.#middle();
    this.place = {...at, zoom: Math.min(largest, Math.max(smallest, at.zoom * factor))};
    this.#draw();
  }

  /** As large as the box has room for. */
  fit(): void {
    this.place = null;
    this.#draw(true);
  }

  /** On the whole screen, or back. */
  whole(): void {
    const panel = this.box.closest("section")!;
    if (document.fullscreenElement === panel) void document.exitFullscreen();
    else panel.requestFullscreen().then(() => this.box.focus(), fault); // a browser may refuse
  }

  /** Moves the picture so that a node is in sight. */
  reveal(node: Element): void {
    const outer = this.box.getBoundingClientRect();
    const inner = node.getBoundingClientRect();
    const beyond = (from: number, to: number, low: number, high: number) => (from < low ? from - low - 16 : to > high ? to - high + 16 : 0);
    this.box.scrollTop += beyond(inner.top, inner.bottom, outer.top, outer.bottom);
    this.box.scrollLeft += beyond(inner.left, inner.right, outer.left, outer.right);
    if (this.place) this.place = this.#middle();
    this.#look();
  }

  /** Colours the map as the picture was painted. */
  repaint(): void {
    if (this.#nodes.length === 0) this.#chart();
    for (const [node, r] of this.#nodes) r.setAttribute("class", node.getAttribute("class") ?? "");
    this.#look();
  }

  // Draws the map: where the nodes are does not change. It can be drawn once the picture is shown.
  #chart(): void {
    const ns = this.svg.namespaceURI!;
    const own = this.svg.getCTM();
    if (!own) return;
    const all = document.createElementNS(ns, "svg");
    all.setAttribute("viewBox", `0 0 ${this.#width} ${this.#height}`);
    const small = mapSize / Math.max(this.#width, this.#height);
    this.map.style.width = `${this.#width * small}px`;
    this.map.style.height = `${this.#height * small}px`;
    for (const box of this.svg.querySelectorAll<SVGGraphicsElement>(".node .box")) {
      const at = box.getBBox();
      const m = own.inverse().multiply(box.getCTM() ?? own);
      const r = document.createElementNS(ns, "rect");
      for (const [k, v] of Object.entries({x: at.x, y: at.y, width: at.width, height: at.height, transform: `matrix(${m.a} ${m.b} ${m.c} ${m.d} ${m.e} ${m.f})`})) r.setAttribute(k, String(v));
      all.append(r);
      this.#nodes.push([box.parentElement!, r]);
    }
    this.#view = document.createElementNS(ns, "rect");
    this.#view.setAttribute("class", "view");
    all.append(this.#view);
    this.map.replaceChildren(all);
  }

  // As large as fits, though not so small that it cannot be read, unless that is asked for.
  #fitting(all: boolean): number {
    const zoom = Math.min(1, (this.box.clientWidth - 20) / this.#width, (this.box.clientHeight - 20) / this.#height);
    return Math.max(smallest, all ? zoom : Math.max(zoom, Math.min(readable, (this.box.clientWidth - 20) / this.#width)));
  }

  #draw(all = false): void {
    if (this.box.clientWidth === 0) return; // it is not shown
    const zoom = this.place?.zoom ?? this.#fitting(all);
    this.svg.style.width = `${this.#width * zoom}px`;
    this.svg.style.height = `${this.#height * zoom}px`;
    this.box.parentElement!.style.maxHeight = `${this.#height * zoom + 22}px`; // with its edges: no more than is filled
    if (this.place) this.#center(this.place.x, this.place.y);
    if (all) this.place = this.#middle();
    this.zoomed(`${Math.round(100 * zoom)} %`);
    this.#look();
  }

  // The zoom, and the point in the middle of the box.
  #middle(): Place {
    const r = this.svg.getBoundingClientRect();
    const b = this.box.getBoundingClientRect();
    const zoom = r.width / this.#width || 1;
    return {zoom, x: (b.left + b.width / 2 - r.left) / zoom, y: (b.top + b.height / 2 - r.top) / zoom};
  }

  #center(x: number, y: number): void {
    const at = this.#middle();
    this.box.scrollLeft += (x - at.x) * at.zoom;
    this.box.scrollTop += (y - at.y) * at.zoom;
  }

  // Shows the map, and which part is seen, where that is not all.
  #look(): void {
    const {box} = this;
    const part = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
    this.map.classList.toggle("shown", part);
    if (!part || !this.#view) return;
    const at = this.#middle();
    const w = box.clientWidth / at.zoom;
    const h = box.clientHeight / at.zoom;
    for (const [k, v] of Object.entries({x: at.x - w / 2, y: at.y - h / 2, width: w, height: h})) this.#view.setAttribute(k, String(v));
  }

  // Dragged by its paper, not by a node, which is pressed.
  #drag(on: <K extends keyof HTMLElementEventMap>(e: HTMLElement, type: K, f: (e: HTMLElementEventMap[K]) => void) => void): void {
    on(this.box, "pointerdown", (e) => {
      if (e.button === 0 && e.pointerType === "mouse" && !(e.target as Element).closest("[data-role]")) this.box.setPointerCapture(e.pointerId);
    });
    on(this.box, "pointermove", (e) => {
      if (!this.box.hasPointerCapture(e.pointerId)) return;
      this.box.scrollLeft -= e.movementX;
      this.box.scrollTop -= e.movementY;
    });
  }
}
