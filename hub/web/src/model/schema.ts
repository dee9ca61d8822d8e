// A form from a JSON Schema of an object, and the values that were typed into it.

export interface Field {
  name: string;
  kind: "text" | "lines" | "number" | "integer" | "flag" | "pick" | "json";
  label: string;
  hint: string;
  required: boolean;
  options: {label: string; value: string}[]; // pick: value is JSON
  initial: string; // as it is typed; a flag is "true" or ""
}

type Schema = Record<string, unknown>;

/** The fields of an object schema as x-order lists them; others follow as required does, then in the order of the schema. */
export function fieldsOf(schema: unknown): Field[] {
  const s = object(schema);
  const required = names(s["required"]);
  const properties = object(s["properties"]);
  const order = new Set([...names(s["x-order"]), ...required, ...Object.keys(properties)]);
  return [...order].filter((name) => Object.hasOwn(properties, name)).map((name) => fieldOf(name, object(properties[name]), required.includes(name)));
}

function names(v: unknown): string[] {
  return Array.isArray(v) ? v.map(String) : [];
}

function fieldOf(name: string, p: Schema, required: boolean): Field {
  const type = Array.isArray(p["type"]) ? String(p["type"].find((t) => t !== "null")) : String(p["type"] ?? "");
  const f: Field = {
    name, label: String(p["title"] ?? name), hint: String(p["description"] ?? ""), required,
    kind: "json", options: [], initial: "",
  };
  if (Array.isArray(p["enum"])) {
    f.kind = "pick";
    f.options = p["enum"].map((v) => ({label: typeof v === "string" ? v : JSON.stringify(v), value: JSON.stringify(v)}));
    if ("default" in p) f.initial = JSON.stringify(p["default"]); // else a person chooses, and does not send what comes first unseen
    return f;
  }
  const fallback = p["default"];
  switch (type) {
    case "string":
      f.kind = p["format"] === "multiline" || num(p["maxLength"]) > 200 || String(fallback ?? "").includes("\n") ? "lines" : "text";
      f.initial = typeof fallback === "string" ? fallback : "";
      break;
    case "number":
    case "integer":
      f.kind = type;
      f.initial = fallback === undefined || fallback === null ? "" : String(fallback);
      break;
    case "boolean":
      f.kind = "flag";
      f.initial = fallback === true ? "true" : "";
      break;
    default:
      f.initial = fallback === undefined ? "" : JSON.stringify(fallback, null, 2);
      if (f.hint === "") f.hint = type === "" ? "JSON" : `JSON: ${type}`;
  }
  return f;
}

/** The typed values as what the schema asks for. Empty optional fields are left out. */
export function valuesOf(fields: readonly Field[], typed: Record<string, string>): {values: Record<string, unknown>; faults: Record<string, string>} {
  const values: Record<string, unknown> = {};
  const faults: Record<string, string> = {};
  for (const f of fields) {
    const t = typed[f.name] ?? f.initial;
    if (f.kind === "flag") {
      values[f.name] = t === "true";
      continue;
    }
    if (t === "") {
      if (f.required) faults[f.name] = "is required";
      continue;
    }
    const read = valueOf(f, t);
    if (read.fault) faults[f.name] = read.fault;
    else values[f.name] = read.value;
  }
  return {values, faults};
}

function valueOf(f: Field, t: string): {value?: unknown; fault?: string} {
  switch (f.kind) {
    case "text":
    case "lines":
      return {value: t};
    case "number":
    case "integer": {
      const n = Number(t.trim());
      if (t.trim() === "" || !Number.isFinite(n)) return {fault: "must be a number"};
      if (f.kind === "integer" && !Number.isSafeInteger(n)) return {fault: "must be a whole number"};
      return {value: n};
    }
    default:
      try {
        return {value: JSON.parse(t)};
      } catch {
        return {fault: "is not valid JSON"};
      }
  }
}

function object(v: unknown): Schema {
  return v !== null && typeof v === "object" && !Array.isArray(v) ? (v as Schema) : {};
}

function num(v: unknown): number {
  return typeof v === "number" ? v : 0;
}
