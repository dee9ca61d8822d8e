// A text as it was meant: headings, lists, code. It is drawn from blocks and pieces, never from markup.

import type {JSX} from "preact";
import {useMemo} from "preact/hooks";
import {markdown, type Block, type Piece} from "../model/markdown.ts";
import {plain} from "../model/text.ts";
import {Fields, Scroll, useReach} from "./widgets.tsx";

/** A text with its Markdown drawn; one that is too long for that is shown as it is. */
export function Markdown({text, label = "text"}: {text: string; label?: string}) {
  const of = useMemo(() => markdown(plain(text)), [text]);
  const ref = useReach<HTMLDivElement>(label, [of]);
  return of ? <div class="md" ref={ref}>{of.map((b, i) => <BlockOf key={i} of={b} />)}</div> : <Scroll text={text} label={label} />;
}

function BlockOf({of: b}: {of: Block}): JSX.Element {
  switch (b.kind) {
    case "p": return <p><Pieces of={b.of} /></p>;
    case "h": return <p class={`h${Math.min(b.level, 3)}`}><Pieces of={b.of} /></p>; // the headings of the page are its own
    case "code": return <Scroll text={b.text} label={b.lang ? `code, ${b.lang}` : "code"} />;
    case "quote": return <blockquote>{b.of.map((x) => <BlockOf of={x} />)}</blockquote>;
    case "list": {
      const items = b.of.map((x) => <li>{x.map((y) => (y.kind === "p" ? <span><Pieces of={y.of} /></span> : <BlockOf of={y} />))}</li>);
      return b.from === null ? <ul>{items}</ul> : <ol start={b.from}>{items}</ol>;
    }
    case "table":
      return (
        <div class="scroll"><table class="plain">
          <thead><tr>{b.head.map((c) => <th scope="col"><Pieces of={c} /></th>)}</tr></thead>
          <tbody>{b.rows.map((r) => <tr>{r.map((c) => <td><Pieces of={c} /></td>)}</tr>)}</tbody>
        </table></div>
      );
    case "fields": return <Fields of={b.of.map(([name, text]) => [name, text || "–", text.includes("\n")])} />;
    case "rule": return <hr />;
  }
}

function Pieces({of}: {of: readonly Piece[]}): JSX.Element {
  return (
    <>
      {of.map((p) => {
        switch (p.kind) {
          case "text": return p.text;
          case "code": return <code>{p.text}</code>;
          case "strong": return <strong><Pieces of={p.of} /></strong>;
          case "em": return <em><Pieces of={p.of} /></em>;
          case "del": return <del><Pieces of={p.of} /></del>;
          case "link": return <a href={p.to} title={p.to} target="_blank" rel="noopener noreferrer nofollow"><Pieces of={p.of} /></a>;
        }
      })}
    </>
  );
}
