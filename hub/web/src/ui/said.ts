// What a step said, in a line.

import type {Step} from "../model/fold.ts";
import {lastLine, plain, shown, value} from "../model/text.ts";
import type {Run} from "../state/run.ts";

/** The summary or reason of a step if it has one, else how its text begins, or why it failed. */
export function said(run: Run, s: Step): string {
  const view = run.told(s.id);
  if (s.record) return view?.error ? failure(view.error.message, view.text) : summary(view?.output, view?.text ?? shown(s.said));
  return s.failures.length ? s.failures.at(-1)!.message : shown(s.said);
}

/** Why a step failed, and what it said last where that is not part of it. */
export function failure(message: string, text: string): string {
  const last = lastLine(text);
  return last === "" || message.includes(last) ? message : `${message} · ${last}`;
}

const telling = ["summary", "reason", "choice", "title", "verdict", "status"];

/** What an output and a text say, in a line. */
export function summary(output: unknown, text: string): string {
  if (output !== null && typeof output === "object" && !Array.isArray(output)) {
    const o = output as Record<string, unknown>;
    for (const k of telling) if (typeof o[k] === "string" && o[k]) return o[k];
    if (typeof o["exit_code"] === "number" && o["exit_code"] !== 0) return `exit ${o["exit_code"]} · ${lastLine(text)}`;
    if (text === "" && Object.keys(o).length) return fieldsLine(o);
  }
  return text.replace(/^\s*---[\s\S]*?\n---\s*/, "");
}

/** Fields in a line: "tone: warm · words: 120". */
export function fieldsLine(o: Record<string, unknown>): string {
  return Object.entries(o).filter(([, v]) => v !== "" && v !== null).map(([k, v]) => `${plain(k)}: ${typeof v === "object" && v !== null ? JSON.stringify(v) : value(v)}`).join(" · ");
}
