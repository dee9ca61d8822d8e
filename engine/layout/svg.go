package layout

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"wf/protocol"
)

// SVG writes the picture as one self-contained document: no script, no font, no address. It
// follows the light or dark scheme of the viewer, and reads aloud as its nodes and arrows.
// The error is that of w.
func (g *Graph) SVG(w io.Writer, o Overlay) error {
	p := &pen{w: bufio.NewWriter(w), g: g, o: o}
	p.f(`<svg xmlns="http://www.w3.org/2000/svg" class="wfg" role="img" aria-label="%s" viewBox="0 0 %d %d" width="%d" height="%d">`+"\n",
		escape("Workflow "+g.Name), g.Width, g.Height, g.Width, g.Height)
	p.f("<title>%s</title>\n<desc>%s</desc>\n<style>%s</style>\n", escape("Workflow "+g.Name), escape(g.words()), Style)
	p.f(`<rect class="paper" width="%d" height="%d" rx="12"/>`+"\n", g.Width, g.Height)
	for i := range g.Arcs {
		p.arc(&g.Arcs[i])
	}
	for i := range g.Nodes {
		p.node(&g.Nodes[i])
	}
	for i := range g.Arcs {
		p.label(&g.Arcs[i])
	}
	p.f("</svg>\n")
	return p.w.Flush()
}

// words are the arrows of the graph, in words.
func (g *Graph) words() string {
	var s []string
	for i := range g.Arcs {
		s = append(s, g.arrow(&g.Arcs[i]))
	}
	return strings.Join(s, "; ")
}

// arrow is an arc in words.
func (g *Graph) arrow(a *Arc) string {
	line := g.called(a.From) + " → " + g.called(a.To)
	if a.Label != "" {
		line += " (" + a.Label + ")"
	}
	return line
}

// called is the name of a node in texts for people.
func (g *Graph) called(n int) string {
	if g.Nodes[n].Kind == Join {
		return "join"
	}
	return title(g.Nodes[n].Name)
}

type pen struct {
	w *bufio.Writer
	g *Graph
	o Overlay
}

// f writes; a failure stays in the buffer and is returned by its Flush.
func (p *pen) f(format string, args ...any) { _, _ = fmt.Fprintf(p.w, format, args...) }

// escape makes a text safe within elements and attributes.
func escape(s string) string {
	return template.HTMLEscapeString(plain(s))
}

func (p *pen) arc(a *Arc) {
	class := "arc " + string(a.Kind)
	if a.Back {
		class += " back"
	}
	times := p.times(a)
	switch {
	case times > 0:
		class += " taken"
	case !p.o.empty():
		class += " idle"
	}
	p.f(`<g class="%s" data-edge="%d" data-to="%s"`, class, a.Edge, escape(p.g.Nodes[a.To].Name))
	headless := p.g.Nodes[a.To].Kind == Join
	if headless {
		p.f(` data-join="%s"`, strings.Join(p.joined(a.To), " "))
	}
	p.f(`><title>%s`, escape(p.g.arrow(a)))
	if times > 0 {
		p.f(", taken %d×", times)
	}
	p.f(`</title><path d="%s"/>`, curve(a, headless))
	if !headless {
		p.f(`<path class="head" d="%s"/>`, head(a))
	}
	p.f("</g>\n")
}

// times is how often a run took an arc. Into a join it is what went on behind it.
func (p *pen) times(a *Arc) int {
	to := &p.g.Nodes[a.To]
	if a.Kind == Always {
		return p.o.Visits[to.Name]
	}
	if to.Kind != Join {
		return p.o.Taken[protocol.Way{Edge: a.Edge, To: to.Name, Limit: a.Kind == Limit}]
	}
	most := map[int]int{} // edge → times: one firing goes to all of its targets
	for i := range p.g.Arcs {
		if b := &p.g.Arcs[i]; b.From == a.To {
			most[b.Edge] = max(most[b.Edge], p.times(b))
		}
	}
	sum := 0
	for _, n := range most {
		sum += n
	}
	return sum
}

// joined are the edges that leave a join.
func (p *pen) joined(bar int) []string {
	var out []string
	for i := range p.g.Arcs {
		if n := strconv.Itoa(p.g.Arcs[i].Edge); p.g.Arcs[i].From == bar && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// curve draws an arc upright through its points; it ends within the arrowhead if there is one.
func curve(a *Arc, headless bool) string {
	var s strings.Builder
	pts := a.Points
	fmt.Fprintf(&s, "M%d %d", pts[0].X, pts[0].Y)
	if a.From == a.To {
		x, top, bottom := pts[1].X, pts[0].Y, pts[2].Y
		fmt.Fprintf(&s, "C%d %d %d %d %d %d", x+8, top-6, x+8, bottom+6, pts[2].X+arrow-2, bottom)
		return s.String()
	}
	last := len(pts) - 1
	for i := 1; i <= last; i++ {
		from, to := pts[i-1], pts[i]
		if i == last && !headless {
			if to.Y > from.Y {
				to.Y -= arrow - 2
			} else {
				to.Y += arrow - 2
			}
		}
		if from.X == to.X {
			fmt.Fprintf(&s, "L%d %d", to.X, to.Y)
			continue
		}
		middle := (from.Y + to.Y) / 2
		fmt.Fprintf(&s, "C%d %d %d %d %d %d", from.X, middle, to.X, middle, to.X, to.Y)
	}
	return s.String()
}

// arrow is the length of an arrowhead.
const arrow = 9

func head(a *Arc) string {
	tip := a.Points[len(a.Points)-1]
	if a.From == a.To {
		return fmt.Sprintf("M%d %dl%d -5v10z", tip.X, tip.Y, arrow)
	}
	length := arrow
	if a.Points[len(a.Points)-2].Y < tip.Y {
		length = -arrow
	}
	return fmt.Sprintf("M%d %dl-5 %dh10z", tip.X, tip.Y, length)
}

func (p *pen) label(a *Arc) {
	times := p.times(a)
	box := a.LabelBox
	if box.W > 0 {
		class := "label " + string(a.Kind)
		if times == 0 && !p.o.empty() {
			class += " idle"
		}
		p.f(`<g class="%s"><rect x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, class, box.X, box.Y+1, box.W, box.H-2, box.H/2-1)
		p.f(`<text x="%d" y="%d">%s</text></g>`+"\n", box.X+box.W/2, box.Y+box.H/2+4, escape(a.Label))
	}
	if times < 2 {
		return
	}
	at := Point{box.X + box.W + 5, box.Y + 1}
	if box.W == 0 {
		at = a.Points[len(a.Points)/2]
		if before := a.Points[len(a.Points)/2-1]; len(a.Points) == 2 {
			at = Point{(at.X + before.X) / 2, (at.Y + before.Y) / 2}
		}
	}
	p.badge(at, times, "times")
}

// badge is a number on a small disc that grows with it.
func (p *pen) badge(at Point, n int, class string) {
	text := fmt.Sprintf("%d×", n)
	w := 10 + 7*len([]rune(text))
	p.f(`<g class="badge %s"><rect x="%d" y="%d" width="%d" height="18" rx="9"/><text x="%d" y="%d">%s</text></g>`+"\n",
		class, at.X-w/2, at.Y-9, w, at.X, at.Y+4, text)
}

// Style is the style sheet of the pictures; every rule starts at the class wfg. Each SVG has
// it inside. A page that forbids inline styles serves it as a file of its own.
//
//go:embed style.css
var Style string
