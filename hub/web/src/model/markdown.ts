// The part of Markdown that people and models write: a text becomes blocks, and a line pieces. What it
// does not know stays text. Nothing of it is ever markup of the page.

/** A piece of a line. */
export type Piece =
  | {kind: "text"; text: string}
  | {kind: "code"; text: string}
  | {kind: "strong" | "em" | "del"; of: Piece[]}
  | {kind: "link"; to: string; of: Piece[]};

/** A block of a text. */
export type Block =
  | {kind: "p"; of: Piece[]}
  | {kind: "h"; level: number; of: Piece[]}
  | {kind: "code"; lang: string; text: string}
  | {kind: "quote"; of: Block[]}
  | {kind: "list"; from: number | null; of: Block[][]} // from is where a numbered one begins
  | {kind: "table"; head: Piece[][]; rows: Piece[][][]}
  | {kind: "fields"; of: [name: string, text: string][]} // that stand in front, between lines of dashes
  | {kind: "rule"};

const deepest = 8; // blocks within blocks, marks within marks; beyond it is text
const cells = 10_000; // of the tables of a text, and a row more: a short line can be a row of as many as the head has
const longest = 64 * 1024; // of a text that is read as Markdown

// Each of these reads a line in one go: no two repetitions side by side take the same characters.
const fence = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const heading = /^ {0,3}(#{1,6})\s+(.*)$/;
const rule = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const item = /^( {0,3})([-*+]|\d{1,9}[.)])(\s+)(.*)$/;
const quote = /^ {0,3}> ?(.*)$/;
const bar = /^\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?$/; // of a line without the space around it

/** Reads a text; null where it is too long to be read as Markdown. */
export function markdown(text: string): Block[] | null {
  if (text.length > longest) return null;
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const to = lines[0]?.trimEnd() === "---" ? lines.findIndex((l, i) => i > 0 && l.trimEnd() === "---") : -1;
  const room = {cells};
  if (to < 2) return blocks(lines, 0, room);
  // A value continues on lines that are indented; a block that is not made of fields is shown unchanged.
  const of: [string, string][] = [];
  for (const l of lines.slice(1, to)) {
    const m = /^([\w.-]{1,80}):(?: (.*))?$/.exec(l);
    if (m) of.push([m[1]!, m[2] ?? ""]);
    else if (of.length && (l === "" || /^[\s-]/.test(l))) of.at(-1)![1] += "\n" + l;
    else return [{kind: "code", lang: "yaml", text: lines.slice(1, to).join("\n")}, ...blocks(lines.slice(to + 1), 0, room)];
  }
  return [{kind: "fields", of: of.map(([n, v]) => [n, v.trim()])}, ...blocks(lines.slice(to + 1), 0, room)];
}

function blocks(lines: string[], depth: number, room: {cells: number}): Block[] {
  const out: Block[] = [];
  let p: string[] = [];
  const end = () => {
    if (p.length) out.push({kind: "p", of: pieces(p.join("\n"), 0)});
    p = [];
  };
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!;
    let m;
    if (line.trim() === "") end();
    else if ((m = fence.exec(line))) {
      end();
      const from = i + 1;
      const close = new RegExp(`^ {0,3}${m[1]![0]}{${m[1]!.length},}\\s*$`);
      while (++i < lines.length && !close.test(lines[i]!));
      out.push({kind: "code", lang: m[2]!.trim().split(/\s/, 1)[0]!, text: lines.slice(from, i).join("\n")});
    } else if ((m = heading.exec(line))) {
      end();
      out.push({kind: "h", level: m[1]!.length, of: pieces(m[2]!.trim().replace(/ #+$/, ""), 0)});
    } else if (rule.test(line)) {
      end();
      out.push({kind: "rule"});
    } else if (depth < deepest && quote.test(line)) {
      end();
      const inner = [];
      for (; i < lines.length && (m = quote.exec(lines[i]!)); i++) inner.push(m[1]!);
      i--;
      out.push({kind: "quote", of: blocks(inner, depth + 1, room)});
    } else if (depth < deepest && (m = item.exec(line)) && (p.length === 0 || /^[-*+]|^1\D/.test(m[2]!))) {
      end();
      const numbered = /\d/.test(m[2]!);
      const list: Block[][] = [];
      const from = numbered ? parseInt(m[2]!) : null;
      while (i < lines.length && (m = item.exec(lines[i]!)) && /\d/.test(m[2]!) === numbered && !rule.test(lines[i]!)) {
        const indent = m[1]!.length + m[2]!.length + Math.min(m[3]!.length, 4);
        const inner = [m[4]!];
        // What is indented as far belongs to the item, after an empty line too.
        while (++i < lines.length) {
          const next = lines[i]!;
          const far = next.search(/\S/);
          if (far >= indent) inner.push(next.slice(indent));
          else if (far < 0 && (lines[i + 1] ?? "").search(/\S/) >= indent) inner.push("");
          else if (far >= 0 && !item.test(next) && inner.at(-1) !== "" && !heading.test(next) && !fence.test(next) && !quote.test(next)) inner.push(next.trimStart());
          else break;
        }
        list.push(blocks(inner, depth + 1, room));
        let after = i;
        while (after < lines.length && lines[after]!.trim() === "") after++;
        if (after > i && item.test(lines[after] ?? "")) i = after; // items with an empty line between them
      }
      i--;
      out.push({kind: "list", from, of: list});
    } else if (room.cells > 0 && line.includes("|") && bar.test((lines[i + 1] ?? "").trim()) && rowOf(line).length === rowOf(lines[i + 1]!).length) {
      end();
      const head = rowOf(line).map((c) => pieces(c, 0));
      const rows: Piece[][][] = [];
      for (i += 2; i < lines.length && lines[i]!.includes("|") && room.cells > 0; i++) {
        const row = rowOf(lines[i]!);
        room.cells -= head.length;
        rows.push(head.map((_, c) => pieces(row[c] ?? "", 0)));
      }
      i--;
      out.push({kind: "table", head, rows});
    } else p.push(line.trimStart());
  }
  end();
  return out;
}

function rowOf(line: string): string[] {
  const all = line.trim().split(/(?<!\\)\|/).map((c) => c.trim().replaceAll("\\|", "|"));
  return all.slice(all[0] === "" ? 1 : 0, all.length > 1 && all.at(-1) === "" ? -1 : undefined);
}

// A mark opens before a word and closes behind one: 2 * 3 * 4 is no emphasis, nor is snake_case.
const marks: [open: RegExp, close: RegExp, kind: "strong" | "em" | "del"][] = [
  [/\*\*(?=\S)/y, /\S\*\*(?!\*)/, "strong"], [/__(?=\S)/y, /\S__(?!\w)/, "strong"], [/~~(?=\S)/y, /\S~~/, "del"],
  [/\*(?=[^\s*])/y, /[^\s*]\*(?!\*)/, "em"], [/_(?=[^\s_])/y, /[^\s_]_(?!\w)/, "em"],
];
const special = /[\\`*_~[<h]/g;
const label = /[\]\n]/; // the end of one
const target = /\]\(\s*<?(https?:\/\/[^\s<>()]+)>?(?:\s+"[^"]*")?\s*\)/;

function pieces(text: string, depth: number): Piece[] {
  const out: Piece[] = [];
  let plain = "";
  let i = 0;
  const here = (re: RegExp) => {
    re.lastIndex = i;
    return re.exec(text);
  };
  // What closes something is looked for once along the text, however much it could close.
  const found = new Map<RegExp | string, RegExpExecArray | null>();
  const next = (what: RegExp | string, from: number) => {
    let m = found.get(what);
    if (m === undefined || (m && m.index < from)) {
      const re = new RegExp(what, "g");
      re.lastIndex = from;
      found.set(what, m = re.exec(text));
    }
    return m;
  };
  for (;;) {
    const at = here(special)?.index ?? text.length;
    const over = at === text.length;
    plain += text.slice(i, at);
    i = at;
    const word = /\w/.test(text[i - 1] ?? "");
    let m: RegExpExecArray | null;
    let end: typeof m | undefined; // behind it, or behind one character, the text goes on
    let p: Piece | undefined; // none is text
    if ((m = here(/([*_~])\1{3,}|`{10,}/y))) end = m; // a line of stars is one
    else if ((end = here(/\\[\\`*_{}[\]()#+.!|~<>-]/y))) i++;
    else if ((m = end = here(/`+/y))) {
      const from = i + m[0].length;
      if ((m = next("(?<!`)" + m[0] + "(?!`)", from))) p = {kind: "code", text: text.slice(from, (end = m).index).replace(/^ (.*) $/s, "$1")};
    } else if (depth < deepest && text[i] === "[" && (m = next(target, i + 2)) && next(label, i + 1)!.index === m.index) p = {kind: "link", to: m[1]!, of: pieces(text.slice(i + 1, (end = m).index), depth + 1)};
    else if (!word && (m = here(/<?(https?:\/\/[^\s<>"'`)\]]{2,}(?<![.,;:!?]))>?/y))) p = {kind: "link", to: m[1]!, of: [{kind: "text", text: (end = m)[1]!}]};
    else if (depth < deepest && !(word && text[i] === "_")) {
      for (const [open, close, kind] of marks) {
        const from = here(open) && open.lastIndex;
        if (!p && from && (m = next(close, from))) p = {kind, of: pieces(text.slice(from, (end = m).index + 1), depth + 1)};
      }
    }
    if (plain && (p || over)) {
      out.push({kind: "text", text: plain});
      plain = "";
    }
    if (over) return out;
    const to = end ? end.index + end[0].length : i + 1;
    if (p) out.push(p);
    else plain += text.slice(i, to);
    i = to;
  }
}
