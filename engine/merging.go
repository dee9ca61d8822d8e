package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"wf/engine/rules"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles"
)

// merging performs merge roles: what visits changed in own copies of the workspace comes into the workspace.
//
//	visits of `of` that went well ─► tree.ThreeWay ─► stored ─► Restore ─► {status, base, tree, conflicts}
//
// It can be repeated at any point: the merged tree follows from the records alone, and Restore goes on with what a process that
// was killed has begun.
type merging struct {
	e     *Engine
	begun protocol.StepStarted
	end   *ownOutcome
}

// What a merge tells of conflicts at most.
const (
	conflictsMax     = 1000
	conflictLinesMax = 64 << 10 // bytes, in all
)

// conflictWorkspace is the kind of a path at which the workspace has what no tree has.
const conflictWorkspace = "workspace"

// Perform merges, and concludes with what has come of it.
func (m merging) Perform(ctx context.Context, turn protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
	_, items, err := mergedItems(m.e.records(ctx), m.begun.Start, m.begun.Parents, turn.Role.Merge.Of)
	if err != nil {
		return protocol.Conclusion{}, err
	}
	if len(items) == 0 {
		return merged(protocol.OwnFiles{}, nil)
	}
	sides := make([]protocol.Link, len(items))
	for i, rec := range items {
		if sides[i] = rec.Own.Tree; rec.Own.Base != items[0].Own.Base {
			return protocol.Conclusion{}, fmt.Errorf("visits of %s began with different files: %w", rec.Role, protocol.Hinted(protocol.ErrInvalid, "wf fork before the fan-out has them begin with the same"))
		}
	}
	keep := newKeeper(ctx, m.e)
	defer func() { m.end.release = keep.release }()
	files := protocol.OwnFiles{Base: items[0].Own.Base}
	root, conflicts, err := tree.ThreeWay(keep.read, keep.put, files.Base, sides)
	if err == nil {
		err = keep.flush() // before the workspace changes: what is in it can be told from then on
	}
	if err != nil {
		return protocol.Conclusion{}, err
	}
	files.Tree = root
	leave, err := heldIn(turn.Workspace)
	if err != nil {
		return protocol.Conclusion{}, err
	}
	done, err := restoreFiles(ctx, keep.read, turn.Workspace, files.Base, files.Tree, leave)
	if err != nil {
		return protocol.Conclusion{}, err
	}
	told := make([]conflictTold, 0, len(conflicts)+len(done.Conflicts))
	for _, c := range conflicts {
		at := 0
		if item := items[c.Side].Item; item != nil {
			at = item.Index
		}
		told = append(told, conflictTold{Path: c.Path, Kind: c.Kind, Item: &at, Lines: c.Lines})
	}
	for _, c := range done.Conflicts {
		told = append(told, conflictTold{Path: c.Path, Kind: conflictWorkspace, Why: c.Why})
	}
	m.end.files = &files
	m.end.recorded = func() {
		for _, rec := range items {
			m.e.dropCopy(turn.Run, rec)
		}
		m.e.dropBase(turn.Run, items[0])
	}
	return merged(files, told)
}

// conflictTold is a conflict in the data of a merge.
type conflictTold struct {
	Path  string `json:"path"`
	Kind  string `json:"kind"`
	Item  *int   `json:"item,omitempty"`  // the one that was not taken over
	Lines string `json:"lines,omitempty"` // of it, with those that stand in their place
	Why   string `json:"why,omitempty"`   // of the kind workspace
}

// merged is the conclusion of a merge.
func merged(files protocol.OwnFiles, conflicts []conflictTold) (protocol.Conclusion, error) {
	out := map[string]any{"status": protocol.MergeOK, "base": files.Base.String(), "tree": files.Tree.String()}
	if len(conflicts) > 0 {
		out["status"] = protocol.MergeConflict
	}
	if more := len(conflicts) - conflictsMax; more > 0 {
		out["more"], conflicts = more, conflicts[:conflictsMax]
	}
	left := conflictLinesMax
	for i := range conflicts {
		if left -= len(conflicts[i].Lines); left < 0 {
			conflicts[i].Lines = ""
		}
	}
	if conflicts == nil {
		conflicts = []conflictTold{}
	}
	out["conflicts"] = conflicts
	data, err := protocol.CanonicalJSON(out)
	return protocol.Conclusion{Data: data}, err
}

// mergedItems are the newest visits of a role with own copies that a merge with these parents comes behind, those that went well in
// the order of the items, with their CIDs. What an earlier merge of the role took over is not taken over again.
func mergedItems(from rules.Records, start protocol.Link, parents []protocol.Link, of string) (links []protocol.Link, out []*protocol.StepRecord, err error) {
	seen := map[protocol.Link]bool{start: true}
	at := map[*protocol.StepRecord]protocol.Link{}
	for todo := parents; len(todo) > 0; todo = todo[1:] {
		if seen[todo[0]] {
			continue
		}
		seen[todo[0]] = true
		rec, err := from.Step(todo[0])
		if err != nil {
			return nil, nil, err
		}
		if rec.Role == of {
			if rec.Own != nil && rec.Status == protocol.StepOK {
				out, at[rec] = append(out, rec), todo[0]
			}
			continue
		}
		seen[rec.Start] = true
		switch merges, err := mergeOf(from, rec); {
		case err != nil:
			return nil, nil, err
		case merges != of:
			todo = append(todo, rec.Parents...)
		}
	}
	slices.SortStableFunc(out, func(a, b *protocol.StepRecord) int { return cmp.Compare(itemOf(a), itemOf(b)) })
	for _, rec := range out {
		links = append(links, at[rec])
	}
	return links, out, nil
}

// An OwnVisit is what became of a visit with a copy of the workspace for itself, or of a merge of such.
type OwnVisit struct {
	protocol.OwnFiles
	Found  protocol.Link   // what the visit began with
	From   protocol.Link   // the record of the visit that left Found; null where it is Base
	Merged []protocol.Link // of a merge: the records of the visits that it took over, in the order in which it did
	Merges bool            // it is one
}

// OwnVisit reads what a record of a visit with an own copy, or of a merge, tells; nil of another one.
func (e *Engine) OwnVisit(ctx context.Context, rec *protocol.StepRecord) (*OwnVisit, error) {
	if rec.Own == nil {
		return nil, nil
	}
	from := e.records(ctx)
	out := &OwnVisit{OwnFiles: *rec.Own, Found: rec.Own.Base}
	of, err := mergeOf(from, rec)
	if err != nil {
		return nil, err
	}
	if out.Merges = of != ""; out.Merges {
		out.Merged, _, err = mergedItems(from, rec.Start, rec.Parents, of)
		return out, err
	}
	before, err := goesOnFrom(from, rec.Start, rec.Parents, rec.Via)
	if err == nil && before != nil {
		out.Found, out.From = before.Tree, rec.Parents[0]
	}
	return out, err
}

func itemOf(r *protocol.StepRecord) int {
	if r.Item == nil {
		return -1
	}
	return r.Item.Index
}

// dropCopy removes the copy of a visit of which all is recorded.
func (e *Engine) dropCopy(run protocol.RunID, rec *protocol.StepRecord) {
	e.drop(run, rec, copyName(rules.StepKey(run, begunAs(rec))))
}

// dropBase removes the copy over which those of a fan-out lie in layers, where one of these is recorded, and the others are.
func (e *Engine) dropBase(run protocol.RunID, rec *protocol.StepRecord) {
	e.drop(run, rec, baseKey(run, *begunAs(rec)))
}

// begunAs is what the key of a visit is made of.
func begunAs(rec *protocol.StepRecord) *protocol.StepStarted {
	return &protocol.StepStarted{Start: rec.Start, Parents: rec.Parents, Role: rec.Role, Edge: rec.Edge, Item: rec.Item}
}

func (e *Engine) drop(run protocol.RunID, rec *protocol.StepRecord, name string) {
	if err := roles.DropOwnCopy(e.Copies, run, name); err != nil {
		e.warn(fmt.Errorf("the copy of the workspace of a visit of %s was not removed: %w", rec.Role, err))
	}
}

// over lets go of what commands keep while a run goes on.
func (e *Engine) over(run protocol.RunID) {
	if e.Over != nil {
		e.Over(run)
	}
}

// dropCopies removes the copies of the visits of a run that is over: what they made is in their records.
func (e *Engine) dropCopies(run protocol.RunID) {
	if e.Copies == "" {
		return
	}
	if err := roles.DropOwnCopies(e.Copies, run); err != nil {
		e.warn(fmt.Errorf("copies of the workspace of run %s were not removed: %w", run, err))
	}
}
