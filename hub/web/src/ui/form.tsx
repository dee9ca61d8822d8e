// Fields of a JSON Schema as inputs.

import {useEffect, useId} from "preact/hooks";
import type {Field} from "../model/schema.ts";

export function FormFields({fields, typed, faults, set}: {
  fields: readonly Field[];
  typed: Record<string, string>;
  faults: Record<string, string>;
  set: (name: string, value: string) => void;
}) {
  // What is wrong is where the focus goes.
  useEffect(() => {
    if (Object.keys(faults).length) document.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [faults]);
  return <>{fields.map((f) => <FormField key={f.name} field={f} value={typed[f.name] ?? f.initial} fault={faults[f.name] ?? ""} set={(v) => set(f.name, v)} />)}</>;
}

function FormField({field: f, value, fault, set}: {field: Field; value: string; fault: string; set: (v: string) => void}) {
  const id = useId();
  const about = [f.hint ? id + "h" : "", fault ? id + "f" : ""].filter(Boolean).join(" ");
  const shared = {
    id, name: f.name, "aria-describedby": about || undefined, "aria-invalid": fault !== "", "aria-required": f.required || undefined,
    onInput: (e: Event) => set((e.currentTarget as HTMLInputElement).value),
  };
  if (f.kind === "flag") {
    return (
      <div class="lab flag">
        <input id={id} name={f.name} type="checkbox" checked={value === "true"} aria-describedby={about || undefined}
          onInput={(e) => set(e.currentTarget.checked ? "true" : "")} />
        <label for={id}><span>{f.label}</span></label>
        {f.hint ? <small id={id + "h"}>{f.hint}</small> : null}
      </div>
    );
  }
  return (
    <div class="lab">
      <label for={id}><span>{f.label}</span>{f.required ? <small> required</small> : null}</label>
      {f.kind === "pick" ? (
        <select class="field" {...shared} value={value}>
          {f.required && value !== "" ? null : <option value="">{f.required ? "choose…" : "–"}</option>}
          {f.options.map((o) => <option value={o.value}>{o.label}</option>)}
        </select>
      ) : f.kind === "lines" || f.kind === "json" ? (
        <textarea class={f.kind === "json" ? "field code" : "field"} rows={3} {...shared} value={value} spellcheck={f.kind === "lines"} />
      ) : (
        <input class="field" {...shared} value={value} inputMode={f.kind === "text" ? undefined : f.kind === "integer" ? "numeric" : "decimal"} autocomplete="off" />
      )}
      {f.hint ? <small id={id + "h"}>{f.hint}</small> : null}
      {fault ? <span class="fault" id={id + "f"}>{fault}</span> : null}
    </div>
  );
}

/** One line or several of free text with a label. */
export function Line({label, hint, value, set, lines, first, placeholder}: {
  label: string;
  hint?: string;
  value: string;
  set: (v: string) => void;
  lines?: number;
  first?: boolean;
  placeholder?: string;
}) {
  const id = useId();
  const shared = {
    id, class: "field", value, placeholder, "aria-describedby": hint ? id + "h" : undefined, ...(first ? {"data-first": true} : {}),
    onInput: (e: Event) => set((e.currentTarget as HTMLInputElement).value),
  };
  return (
    <div class="lab">
      <label for={id}><span>{label}</span></label>
      {lines ? <textarea rows={lines} {...shared} /> : <input autocomplete="off" {...shared} />}
      {hint ? <small id={id + "h"}>{hint}</small> : null}
    </div>
  );
}
