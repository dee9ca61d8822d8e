// Single keys, while nobody types.

/** Binds keys until the returned function is called. */
export function keyed(keys: Record<string, (e: KeyboardEvent) => void>): () => void {
  const on = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
    const t = e.target as HTMLElement;
    if (t.closest("input, textarea, select, [contenteditable], dialog")) return;
    // What a focused control does with a key is its own business.
    if ((e.key === " " || e.key === "Enter") && t.closest("button, a, summary, [role=button], [role=option], [role=tab]")) return;
    if (e.key.startsWith("Arrow") && t.closest("[role=slider], [role=listbox], [role=tablist]")) return;
    const box = t.closest('[tabindex="0"]'); // which may scroll
    if (box && (e.key === " " ? box.scrollHeight > box.clientHeight : e.key.startsWith("Arrow") && box.scrollWidth > box.clientWidth)) return;
    const f = keys[e.key];
    if (!f) return;
    e.preventDefault();
    f(e);
  };
  document.addEventListener("keydown", on);
  return () => document.removeEventListener("keydown", on);
}

/** Moves the focus among the elements that fit, by ±1, from where it is. */
export function step(selector: string, by: number): void {
  const all = [...document.querySelectorAll<HTMLElement>(selector)];
  const i = all.indexOf(document.activeElement as HTMLElement);
  const to = i < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, i + by));
  all[to]?.focus();
  all[to]?.scrollIntoView({block: "nearest"});
}
