// A unified diff, line by line, for reading.

export interface DiffLine {
  kind: "same" | "add" | "del" | "hunk";
  old: number | null; // line numbers from 1
  now: number | null;
  text: string;
}

/** The lines of a unified diff. File headers and "no newline" remarks are left out. */
export function diffLines(unified: string): DiffLine[] {
  const out: DiffLine[] = [];
  let old = 0;
  let now = 0;
  let inside = false;
  for (const line of unified.replace(/\n$/, "").split("\n")) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      old = Number(hunk[1]);
      now = Number(hunk[2]);
      inside = true;
      out.push({kind: "hunk", old: null, now: null, text: line});
      continue;
    }
    if (!inside || line.startsWith("\\")) continue;
    const text = line.slice(1);
    if (line.startsWith("+")) out.push({kind: "add", old: null, now: now++, text});
    else if (line.startsWith("-")) out.push({kind: "del", old: old++, now: null, text});
    else out.push({kind: "same", old: old++, now: now++, text});
  }
  return out;
}
