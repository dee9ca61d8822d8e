import assert from "node:assert/strict";
import {describe, test} from "node:test";
import {markdown, type Block, type Piece} from "../../src/model/markdown.ts";

// A tree in short: what it is, and what is in it.
const piece = (p: Piece): string => p.kind === "text" ? p.text : p.kind === "code" ? `<code ${p.text}>` : p.kind === "link" ? `<a ${p.to} ${line(p.of)}>` : `<${p.kind} ${line(p.of)}>`;
const line = (of: readonly Piece[]): string => of.map(piece).join("");
const block = (b: Block): string => {
  switch (b.kind) {
    case "p": return `p ${line(b.of)}`;
    case "h": return `h${b.level} ${line(b.of)}`;
    case "code": return `code ${b.lang}|${b.text}`;
    case "quote": return `quote(${all(b.of)})`;
    case "list": return `list ${b.from ?? "-"}(${b.of.map(all).join("; ")})`;
    case "table": return `table ${b.head.map(line).join(",")}(${b.rows.map((r) => r.map(line).join(",")).join("; ")})`;
    case "fields": return `fields ${b.of.map(([n, t]) => `${n}=${t}`).join(",")}`;
    case "rule": return "rule";
  }
};
const all = (of: readonly Block[]): string => of.map(block).join(" / ");
const read = (text: string): string => all(markdown(text)!);

describe("Markdown", () => {
  for (const [text, want] of [
    ["plain", "p plain"],
    ["# A **small** thing #\ntext", "h1 A <strong small> thing / p text"],
    ["a\nb\n\nc", "p a\nb / p c"],
    ["- a\n- b\n  - c\n\n  more\n1. x\n2. y", "list -(p a; p b / list -(p c) / p more) / list 1(p x; p y)"],
    ["- a\n\n- b\n\nend", "list -(p a; p b) / p end"],
    ["7) a", "list 7(p a)"],
    ["in 2026\n1986. was a year", "p in 2026\n1986. was a year"],
    ["```go\na # b\n\n- c\n```\nafter", "code go|a # b\n\n- c / p after"],
    ["~~~\nnot closed", "code |not closed"],
    ["``` \t go  run it\nx\n```", "code go|x"],
    ["``` a`b\nx", "p ``` a`b\nx"],
    ["a | b\n  :-- | --: \t\n1 | 2", "table a,b(1,2)"],
    ["> a\n> - b\nc", "quote(p a / list -(p b)) / p c"],
    ["| a | b |\n|---|:-:|\n| 1 | 2\\|3 |\nend", "table a,b(1,2|3) / p end"],
    ["Values:\n| a |\n|---|\n| 1 |", "p Values: / table a(1)"],
    ["a | b\nc", "p a | b\nc"],
    ["***\n- - -", "rule / rule"],
    ["snake_case_name 2 * 3 * 4 a*b", "p snake_case_name 2 * 3 * 4 a*b"],
    ["*a* _b_ ~~c~~ __d__ **e *f***", "p <em a> <em b> <del c> <strong d> <strong e <em f>>"],
    ["``a ` b`` and `c", "p <code a ` b> and `c"],
    ["\\*no\\*", "p *no*"],
    ["see https://a.b/c(d). [l](https://x.y)", "p see <a https://a.b/c(d https://a.b/c(d>). <a https://x.y l>"],
    ["[j](javascript:alert(1)) [d](data:x) <img src=x onerror=1>", "p [j](javascript:alert(1)) [d](data:x) <img src=x onerror=1>"],
    ["---\nverdict: good\nnote: |\n  two\n  lines\n---\n# T", "fields verdict=good,note=|\n  two\n  lines / h1 T"],
    ["---\nnot a field\n---\nx", "code yaml|not a field / p x"],
    ["---\nx", "rule / p x"],
    ["a\r\nb", "p a\nb"],
  ] as const) test(JSON.stringify(text), () => assert.equal(read(text), want));

  test("a text that is too long is not read, and blocks within blocks end somewhere", () => {
    assert.notEqual(markdown("x".repeat(64 * 1024)), null);
    assert.equal(markdown("x".repeat(64 * 1024 + 1)), null);
    assert.match(read("> ".repeat(30) + "x"), /^(quote\(){8}p (> )+x\)/);
  });

  test("nothing of a text is lost", () => {
    for (const hostile of ["*", "`", "_", "[", "~~a ", "**a ", "|", "> ", "- ", "<http", "`a ", "# " + " ".repeat(100), "\\", "***a", "[a](", "https://"]) {
      const text = hostile.repeat(Math.floor(60_000 / hostile.length)) + "end";
      assert.ok(read(text).includes("end"), hostile);
    }
  });
});

/** How many characters the patterns look at while a text is read: a search up to what it finds, a pattern that fails all of the text. */
function steps(text: string): number {
  const exec = RegExp.prototype.exec;
  let n = 0;
  RegExp.prototype.exec = function (s) {
    const from = this.lastIndex;
    const m = exec.call(this, s);
    n += m ? m.index + m[0].length - from : this.sticky ? 1 : s.length - from;
    return m;
  };
  try {
    markdown(text);
  } finally {
    RegExp.prototype.exec = exec;
  }
  return n;
}

test("each character of a text is looked at a bounded number of times, whatever marks it has", () => {
  const lone = ["*", "**", "***", "_", "__", "~~", "`", "``", "[", "![", "[a](", "[a](http://b ", "[a](http://b \"", "](http://b)", "<", "<http", "http://", "h", "\\", "!", "(", ")", "]"];
  const pairs = lone.flatMap((u) => ["*", "_", "`", "["].map((v) => u + "a" + v + " "));
  const units = [...lone, ...lone.map((u) => u + "a "), ...lone.map((u) => "a" + u + " "), ...lone.map((u) => u + "a\n"),
    "> > > ", "> a\n", "> ", "- ", "- a\n", "  - a\n", "- a\n\n", "1. a\n", "> - ", "- > ", "    ", "    - a\n", "\t", "|", "| a |", "|a|\n", "-|-\n", "a|b\n-|-\n", "**a** ", "[a](http://b) ", "`a``b```c````", "[[[a]", "[".repeat(400) + "a](http://b) "];
  units.push(Array.from({length: 200}, (_, i) => "`".repeat(i + 1) + "a ").join(""));
  for (const u of [...units, ...pairs]) {
    for (const size of pairs.includes(u) ? [16_384] : [1_024, 16_384, 65_536]) {
      const n = steps(u.repeat(Math.ceil(size / u.length)).slice(0, size));
      assert.ok(n < 60 * size, `${JSON.stringify(u)}, ${size} times: ${n} steps`);
    }
  }
});

test("the time for a line grows with its length, and not with the square of it", () => {
  for (const line of ["a|b\n" + "%" + "x", "a|b\n-|-" + "%" + "x", "```" + "%" + "`"]) {
    for (const c of [" ", "a", "-", "|", "-|"]) {
      const time = (n: number) => Math.min(...[0, 1, 2].map(() => {
        const began = process.cpuUsage(); // what else the machine does takes none of it
        markdown(line.replace("%", c.repeat(n / c.length)));
        return process.cpuUsage(began).user / 1000;
      }));
      const short = time(6_000);
      const long = time(60_000);
      assert.ok(long < 30 * short + 100, `${JSON.stringify(line)} with ${JSON.stringify(c)}: ${short} ms and ${long} ms`);
    }
  }
});

test("the tables of a text have a bound of cells, however short their lines are", () => {
  const table = (columns: number, rows: number) => `${"|a".repeat(columns)}|\n${"|-".repeat(columns)}|\n${"|\n".repeat(rows)}`;
  const cells = (text: string) => markdown(text)!.flatMap((b) => (b.kind === "table" ? b.rows.map((r) => r.length) : [])).reduce((n, x) => n + x, 0);
  assert.equal(cells(table(100, 99)), 9_900);
  assert.equal(cells(table(100, 100)), 10_000);
  assert.equal(cells(table(100, 101)), 10_000);
  assert.equal(cells(table(8_000, 10_000)), 16_000);
  const several = `${table(100, 60)}\n`.repeat(40);
  assert.equal(cells(several), 10_000);
  assert.equal(cells("x\n\n" + several), 10_000);
  const quoted = markdown(several.replace(/^/gm, "> "))!;
  assert.equal(quoted.length, 1);
  assert.ok(JSON.stringify(quoted).length < 200_000, "in a quote too");
});
