package engine

import (
	"errors"
	"path"
	"slices"
	"strings"

	"wf/api"
	"wf/protocol"
	"wf/protocol/tree"
)

// plan finds what differs, and on the way there what was named and does not.
func (x *restoring) plan(from, to protocol.Link) error {
	x.from, x.to = from, to
	differs := map[string]bool{}
	for c, err := range tree.Diff(x.read, from, to) {
		if err != nil {
			return api.NotKept(x.rec.Run, to, err)
		}
		differs[c.Path] = true
		meant := len(x.rec.Paths) == 0
		for _, p := range x.rec.Paths {
			meant = meant || c.Path == p || strings.HasPrefix(c.Path, p+"/") ||
				strings.HasPrefix(p, c.Path+"/") && (c.After.Mode == tree.Dir || c.After.Mode == "" && c.Before.Mode != tree.Dir) // it makes way
		}
		if meant {
			x.changes = append(x.changes, c)
		}
	}
	if to.String() != x.rec.To {
		return nil // what was the same then was not changed
	}
	for _, p := range x.rec.Paths {
		if err := x.planNamed(p, differs); err != nil {
			return err
		}
	}
	if x.rec.Force {
		x.planWays(differs)
	}
	return nil
}

// planNamed has what was named, and is the same in both trees, looked at: what lies there may be something else.
func (x *restoring) planNamed(p string, differs map[string]bool) error {
	is, err := tree.Find(x.read, x.to, p)
	if errors.Is(err, protocol.ErrUnknownArtifact) {
		if _, err = tree.Find(x.read, x.from, p); errors.Is(err, protocol.ErrUnknownArtifact) {
			return protocol.ErrUnknownArtifact.With("wf files "+string(x.rec.Run)+" lists them; paths begin at the workspace", "run %s recorded no %q, neither then nor last", x.rec.Run, p)
		}
		return api.NotKept(x.rec.Run, x.from, err)
	}
	if err != nil {
		return api.NotKept(x.rec.Run, x.to, err)
	}
	same := func(p string, e tree.Entry) {
		if !differs[p] {
			differs[p] = true // nothing is named twice
			x.changes = append(x.changes, tree.Change{Path: p, Before: e, After: e})
		}
	}
	if is.Mode != tree.Dir {
		same(p, is)
		return nil
	}
	for it, err := range tree.Walk(x.read, is.Link) {
		if err != nil {
			return api.NotKept(x.rec.Run, x.to, err)
		}
		if it.Mode != tree.Omitted {
			same(p+"/"+it.Path, it.Entry)
		}
	}
	return nil
}

// planWays has the directories of what is to be there made where somebody removed them.
func (x *restoring) planWays(known map[string]bool) {
	var ways []tree.Change
	for _, c := range x.changes {
		if c.After.Mode == "" {
			continue
		}
		for dir := path.Dir(c.Path); dir != "." && !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			ways = append(ways, tree.Change{Path: dir, Before: tree.Entry{Mode: tree.Dir}, After: tree.Entry{Mode: tree.Dir}})
		}
	}
	slices.SortFunc(ways, func(a, b tree.Change) int { return strings.Compare(a.Path, b.Path) }) // those within others behind them
	x.changes = append(ways, x.changes...)
}
