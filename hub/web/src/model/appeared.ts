// What a command or a tool left in the workspace on which programs of the user act: in the words of the terminal.

const words: Record<string, [what: string, program?: string]> = { // of git where none is named
  repository: ["a git repository in"],
  gitlink: ["a link to a git repository in"],
  bare: ["a bare git repository in"],
  hooks: ["what git runs or reads as settings,"],
  rebase: ["an unfinished rebase that runs commands in"],
  store: ["a .wf in", ""],
  envrc: ["an .envrc in", "direnv"],
  tasks: ["tasks of an editor,", "editor"],
  workflow: ["a workflow,", "wf serve (once you trust it)"],
};

interface Found {kind: string; path: string; changed?: boolean; link?: string}
interface Appeared {found: Found[] | null; more?: number; partial?: boolean; beside?: boolean; unprotected?: number; left?: string[]; undone?: string[]}

/** One line of it, without who made it; "" for nothing. */
export function appeared(data: Record<string, unknown>): string {
  const a = data["appeared"] as Appeared | null | undefined;
  if (!a) return "";
  const found = a.found ?? [];
  const known = (f: Found) => words[f.kind] ?? [f.kind, "programs"];
  const did = [false, true].flatMap((changed) => {
    const these = found.filter((f) => !!f.changed === changed).map((f) => `${known(f)[0]} ${f.path}${f.link ? ` (by the link ${f.link})` : ""}`);
    return these.length ? [`${changed ? "changed" : "made"} ${these.join(", ")}`] : [];
  });
  const parts: string[] = [];
  if (a.left) parts.push(`left ${a.left.join(", ")}, which git acts on and wf could not remove: do so first`);
  if (a.undone) parts.push(`moved aside or put back ${a.undone.join(", ")}: git acts on it`);
  if (did.length) {
    const programs = [...new Set(found.map((f) => known(f)[1] ?? "git"))].filter(Boolean);
    const ends: string[] = [];
    if (programs.length) ends.push(`wf does not act on it; your ${programs.join(", ")} may`);
    if (found.some((f) => f.kind === "store")) ends.push("wf trusts nothing in that .wf");
    const text = did.join(", ");
    parts.push(`${a.beside ? "this step, or one beside it, " : ""}${text}: ${ends.join("; ")}`);
  }
  if (a.more) parts.push(`${a.more} more`);
  if (a.partial) parts.push("the workspace was not looked at as a whole: more may have appeared");
  if (a.unprotected) parts.push(`commands can change the git settings of ${a.unprotected} repositories: there are more than are protected`);
  return (a.left || found.some((f) => f.link) ? "ALARM: " : "") + parts.join("; ");
}
