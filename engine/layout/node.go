package layout

import "slices"

// looks are how the kinds are shown: in words for a screen reader, between brackets in Mermaid, and
// those of roles by an icon, which is drawn in a field of 18 × 18.
var looks = map[Kind]struct{ words, left, right, icon string }{
	Agent:       {"agent", "(", ")", `<path d="M9 1.5l1.7 5.1a1.5 1.5 0 0 0 .9.9L16.5 9l-4.9 1.5a1.5 1.5 0 0 0-.9.9L9 16.5l-1.7-5.1a1.5 1.5 0 0 0-.9-.9L1.5 9l4.9-1.5a1.5 1.5 0 0 0 .9-.9z"/>`},
	Command:     {"command", "[", "]", `<path d="M3 4.5L7.5 9 3 13.5M9.5 14H15"/>`},
	Person:      {"person", "([", "])", `<circle cx="9" cy="5.5" r="3.2"/><path d="M2.8 16c.4-3.4 2.8-5.4 6.2-5.4s5.8 2 6.2 5.4"/>`},
	Timer:       {"timer", "{{", "}}", `<circle cx="9" cy="9" r="6.8"/><path d="M9 5v4.2l2.8 1.8"/>`},
	SubWorkflow: {"sub-workflow", "[[", "]]", `<rect x="2" y="2" width="6" height="5" rx="1.5"/><rect x="10" y="11" width="6" height="5" rx="1.5"/><path d="M5 7v4.5a2 2 0 0 0 2 2h3"/>`},
	Values:      {"values", "[/", "/]", `<path d="M7 2.5C4.5 2.5 5.5 6 5 7.5 4.7 8.5 4 9 3 9c1 0 1.7.5 2 1.5.5 1.5-.5 5 2 5M11 2.5c2.5 0 1.5 3.5 2 5 .3 1 1 1.5 2 1.5-1 0-1.7.5-2 1.5-.5 1.5.5 5-2 5"/>`},
	Start:       {"start", "((", "))", ""},
	End:         {"end", "((", "))", ""},
	Fail:        {"failure", "((", "))", ""},
	Suspend:     {"suspension", "((", "))", ""},
	Join:        {"join", "{{", "}}", ""},
}

func (p *pen) node(n *Node) {
	class := "node " + string(n.Kind)
	status := p.o.Status[n.Name]
	switch status {
	case "running", "ok", "failed", "waiting":
		class += " " + status
	default:
		status = ""
	}
	visits := p.o.Visits[n.Name]
	role := looks[n.Kind].icon != ""
	switch {
	case p.o.empty():
	case role && visits == 0 && status == "", ends[n.Kind] && !p.reached(n):
		class += " idle"
	case ends[n.Kind]:
		class += " reached"
	}
	p.f(`<g class="%s"`, class)
	if role {
		p.f(` data-role="%s"`, escape(n.Name))
	}
	p.f(`><title>%s`, escape(looks[n.Kind].words))
	if role {
		p.f(" %s", escape(n.Name))
	}
	if status != "" {
		p.f(", %s", status)
	}
	if visits > 0 {
		p.f(", visited %d×", visits)
	}
	p.f("</title>")
	switch {
	case n.Kind == Join:
		p.f(`<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="3"/>`, n.X, n.Y, n.W, n.H)
	case !role:
		p.f(`<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, n.X, n.Y, n.W, n.H, n.H/2)
		p.f(`<text class="end" x="%d" y="%d">%s</text>`, n.X+n.W/2, n.Y+n.H/2+4, escape(n.Name))
	default:
		p.role(n, status)
	}
	p.f("</g>\n")
	if visits > 0 && role {
		p.badge(Point{n.X + n.W - 6, n.Y}, visits, "visits")
	}
}

// ends are the nodes at which a token stays.
var ends = map[Kind]bool{End: true, Fail: true, Suspend: true}

// reached tells whether a token of the run came to an end of the graph.
func (p *pen) reached(n *Node) bool {
	return slices.ContainsFunc(p.g.Arcs, func(a Arc) bool { return p.g.Nodes[a.To].Name == n.Name && p.times(&a) > 0 })
}

// role draws the box of a role: its outline tells the kind, so does its icon.
func (p *pen) role(n *Node, status string) {
	if status != "" {
		p.f(`<rect class="ring" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, n.X-4, n.Y-4, n.W+8, n.H+8, corner(n)+4)
	}
	switch n.Kind {
	case Values:
		p.f(`<path class="box" d="M%d %dh%dl-10 %dh-%dz"/>`, n.X+10, n.Y, n.W-10, n.H, n.W-10)
	case Timer:
		p.f(`<path class="box" d="M%d %dh%dl12 %dl-12 %dh-%dl-12 -%dz"/>`, n.X+12, n.Y, n.W-24, n.H/2, n.H-n.H/2, n.W-24, n.H-n.H/2)
	default:
		p.f(`<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, n.X, n.Y, n.W, n.H, corner(n))
	}
	if n.Kind == SubWorkflow {
		p.f(`<rect class="inner" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, n.X+4, n.Y+4, n.W-8, n.H-8, corner(n)-3)
	}
	p.f(`<g class="icon" transform="translate(%d %d)">%s</g>`, n.X+16, n.Y+n.H/2-9, looks[n.Kind].icon)
	y := n.Y + n.H/2 + 5
	if n.Note != "" {
		p.f(`<text class="note" x="%d" y="%d">%s</text>`, n.X+iconRoom, y+11, escape(n.Note))
		y -= 6
	}
	p.f(`<text class="name" x="%d" y="%d">%s</text>`, n.X+iconRoom, y, escape(title(n.Name)))
}

func corner(n *Node) int {
	switch n.Kind {
	case Person:
		return n.H / 2
	case Command:
		return 4
	}
	return 11
}
