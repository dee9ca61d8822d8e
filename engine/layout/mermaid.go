package layout

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Mermaid writes the graph as a Mermaid flowchart, one arrow a line. The error is that of w.
func (g *Graph) Mermaid(w io.Writer) error {
	b := bufio.NewWriter(w)
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(b, format, args...) } // Flush returns the error
	p("flowchart TD\n")
	for i := range g.Nodes {
		n := &g.Nodes[i]
		look := looks[n.Kind]
		text := quote(title(n.Name))
		if n.Kind == Join {
			text = "join"
		}
		if n.Note != "" {
			text += "<br/>" + quote(n.Note)
		}
		p("    n%d%s\"%s\"%s\n", i, look.left, text, look.right)
	}
	for i := range g.Arcs {
		a := &g.Arcs[i]
		line := "-->"
		if a.Kind != Forward {
			line = "-.->"
		}
		if a.Label != "" {
			line += `|"` + quote(a.Label) + `"|`
		}
		p("    n%d %s n%d\n", a.From, line, a.To)
	}
	return b.Flush()
}

// quote writes every character that means something to Mermaid or HTML as its entity.
func quote(s string) string {
	var out strings.Builder
	for _, r := range plain(s) {
		switch {
		case strings.ContainsRune("#\"'`<>&|{}[]()\\;%", r):
			fmt.Fprintf(&out, "#%d;", r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
