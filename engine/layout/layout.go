// Package layout draws a workflow: the same picture for a web page, a terminal and a README.
//
//	Workflow ─► nodes, arcs ─► layers ─► order ─► coordinates ─► SVG
//	                  └──────► Mermaid, text
//
// # Words
//
// A node is a role, START, END, FAIL, SUSPEND or the bar of a join. An arc is one arrow: an
// edge to two roles is two arcs, one more leads to its on_limit. A back arc closes a loop and
// runs against the direction of reading. Ranks are the rows of the picture: nodes stand in
// even ranks; labels, and arcs that pass, in the odd ones between.
//
// # Deterministic
//
// The same workflow gives the same bytes everywhere: whole numbers, fixed sweeps, declared
// order wherever two things are equal.
//
// # Not promised
//
// That a picture stays the same when the package changes. That a graph of a thousand roles is
// worth looking at.
package layout

import (
	"wf/protocol"
)

// Graph is a workflow laid out: every node and arc has its place, in pixels from the upper
// left corner.
type Graph struct {
	Name          string
	Width, Height int
	Nodes         []Node
	Arcs          []Arc
}

// Kind tells nodes apart.
type Kind string

// The kinds of nodes; those of roles say what performs them.
const (
	Agent       Kind = "agent"
	Command     Kind = "command"
	Person      Kind = "person"
	Timer       Kind = "timer"
	SubWorkflow Kind = "workflow"
	Values      Kind = "values"
	Start       Kind = "start"
	End         Kind = "end"
	Fail        Kind = "fail"
	Suspend     Kind = "suspend"
	Join        Kind = "join"
)

// Node is a box of the picture.
type Node struct {
	Name       string // of the role, or START …; "" for a join
	Kind       Kind
	Note       string // what it does, shortened; "" is none
	X, Y, W, H int    // upper left corner and size
}

// ArcKind tells why a token goes along an arc.
type ArcKind string

// The kinds of arcs.
const (
	Forward ArcKind = "edge"
	Limit   ArcKind = "limit"   // to on_limit, when a bound is exhausted
	Failure ArcKind = "failure" // an on: failure edge
	Always  ArcKind = "always"  // to the always roles, when a run closes
)

// Arc is an arrow of the picture.
type Arc struct {
	Edge     int // index in the definition; below 0 for Always
	From, To int // indices in Nodes
	Kind     ArcKind
	Label    string  // condition, bound, fan-out, shortened; "" is none
	Back     bool    // closes a loop
	Points   []Point // from From to To; the line is curved between them, upright in each
	LabelBox Box     // where Label stands, zero without one

	bounded bool // by a limit or by max_visits
}

// Point is a place, in pixels.
type Point struct{ X, Y int }

// Box is an area, in pixels.
type Box struct{ X, Y, W, H int }

// Overlay is what a run has done so far, to be shown on the picture. The zero Overlay shows
// the definition alone.
type Overlay struct {
	Visits map[string]int       // role → times entered
	Taken  map[protocol.Way]int // times taken
	Status map[string]string    // role → running, ok, failed or waiting
}

func (o Overlay) empty() bool { return len(o.Visits)+len(o.Taken)+len(o.Status) == 0 }

// Of lays out a workflow. Ends of edges that name no role are left out.
func Of(w *protocol.Workflow) *Graph {
	g := build(w)
	d := newDrawing(g)
	d.order()
	d.place()
	d.trace()
	return g
}
