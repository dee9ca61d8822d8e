package cas

import (
	"context"
	"errors"
	"fmt"

	"wf/protocol"
)

// An archive says what it holds: its header names the roots, of which the last one is the record of the runs and lies at the
// end of the file, and what a root leads to follows in the one order in which Export writes it. So a part that is
// lost, or lies elsewhere, is found whatever is left.

// contents are the sections of an archive, as they were read.
type contents struct {
	roots    []protocol.Link
	missing  map[protocol.Link]bool // roots that have not come
	sections []section
}

type section struct {
	name blockName
	at   int64 // in bytes from the beginning of the file
}

func contentsOf(roots []protocol.Link) *contents {
	c := &contents{roots: roots, missing: make(map[protocol.Link]bool, len(roots))}
	for _, l := range roots {
		c.missing[l] = true
	}
	return c
}

// add notes a block; one of another system may only be a root.
func (c *contents) add(l protocol.Link, at int64) {
	delete(c.missing, l)
	if n, ok := nameOf(l); ok {
		c.sections = append(c.sections, section{n, at})
	}
}

// cut says why an archive cannot be whole by its roots alone; nil where they are there. Heads may be left out of an archive for
// a store that has them, which elsewhere is for the caller to know.
func (c *contents) cut() error {
	if len(c.roots) == 0 {
		return errors.New("it has no roots, and so no run")
	}
	if last := c.roots[len(c.roots)-1]; c.missing[last] {
		return fmt.Errorf("it ends before %s, its last root: it is cut off, or its header was changed", last)
	}
	for i, l := range c.roots {
		if _, ours := nameOf(l); !ours && c.missing[l] {
			return fmt.Errorf("it does not hold %s, root %d: its header was changed", l, i)
		}
	}
	return nil
}

// misplaced is the first section of an archive with a record of its runs that is not where Export writes it; nil where there is
// none. Sections may be missing: those are told by what links to them. The blocks are those of the graph.
func (c *contents) misplaced(ctx context.Context, v *Verifier) (*section, error) {
	if len(c.roots) == 0 || len(c.sections) == 0 {
		return nil, nil
	}
	record, _ := nameOf(c.roots[len(c.roots)-1])
	if nd := v.g.nodes[record]; nd == nil || nd.archive == nil {
		return nil, nil // of a wf that wrote none, or of another program, which has an order of its own
	}
	next := 0
	met := func(n blockName) {
		if next < len(c.sections) && c.sections[next].name == n {
			next++
		}
	}
	var todo []blockName
	push := func(l protocol.Link) {
		if n, ok := nameOf(l); ok {
			todo = append(todo, n)
		}
	}
	runs := v.g.nodes[record].archive.Runs
	for i := len(runs) - 1; i >= 0; i-- {
		if runs[i].Files.Defined() {
			push(runs[i].Files)
		}
	}
	for i := len(runs) - 1; i >= 0; i-- {
		push(runs[i].Head)
	}
	for done := map[blockName]bool{}; len(todo) > 0; {
		n := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; done[n] {
			continue
		}
		if done[n] = true; len(done)%1024 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		met(n)
		if nd := v.g.nodes[n]; nd != nil {
			for i := len(nd.links) - 1; i >= 0; i-- {
				todo = append(todo, nd.links[i].to)
			}
		}
	}
	if met(record); next < len(c.sections) {
		return &c.sections[next], nil
	}
	return nil, nil
}

// errMisplaced says what is wrong with a section that is misplaced.
func errMisplaced(s *section) error {
	return fmt.Errorf("block %s is not where an export has it: blocks were added, moved or doubled", s.name)
}
