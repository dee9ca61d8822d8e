package service

import (
	"context"
	"errors"

	"wf/api"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/service/query"
)

// A foldedVisit is a workspace into which a merge has taken over what visits up to this one left in their own copies.
type foldedVisit struct {
	of   api.OwnVisit
	root protocol.Link
}

// merge takes a merge apart that broke the check, where good and bad are the looks before it and behind: it finds the visit with whose
// files it did. told is false where it cannot be taken apart.
func (s *filesSearch) merge(ctx context.Context, l *api.Looks, good, bad *api.Shot) (told bool, err error) {
	m := l.OwnOf(bad.Step)
	if m == nil || len(m.Merged) == 0 || len(bad.By) != 1 || bad.By[0] != bad.Step {
		return false, nil
	}
	folds, err := s.folds(l, m, good.Root)
	if errors.Is(err, protocol.ErrNotFound) || err == nil && (len(folds) == 0 || folds[len(folds)-1].root != bad.Root) {
		return false, nil // what the visits left is not kept, or is not all that was changed
	}
	if err != nil {
		return false, err
	}
	last := len(folds)
	from, to, err := turning(last+1, func(at int) (api.Verdict, error) {
		t, err := s.try(ctx, *bad, folds[at-1].root, folds[at-1].of.Step)
		if err != nil {
			return "", err
		}
		return t.Verdict, nil
	})
	if err != nil {
		return false, err
	}
	s.out.Merge, s.out.By = m.Step, nil
	for _, f := range folds[from:to] {
		s.out.By = append(s.out.By, f.of.Step)
	}
	if len(s.out.By) > 1 {
		return true, nil
	}
	of := folds[from].of
	span, err := l.Of(of.Step)
	if err != nil {
		return false, err
	}
	s.out.Diff, err = query.FilesDiff(s.read, s.side(span.Found()), s.side(span.Left()), func(string) []string { return s.out.By })
	return true, err
}

// folds are the workspaces on the way of a merge, without those of visits that changed nothing more; none where that way does not lead
// to what was merged.
func (s *filesSearch) folds(l *api.Looks, m *api.OwnVisit, good protocol.Link) (out []foldedVisit, err error) {
	base, err := protocol.ParseLink(m.Base)
	if err != nil {
		return nil, err
	}
	now, last := base, good
	for _, name := range m.Merged {
		from := now
		for _, v := range l.Lineage(name) {
			side, err := protocol.ParseLink(v.Tree)
			if err != nil {
				return nil, err
			}
			if now, _, err = tree.ThreeWay(s.read, s.put, base, []protocol.Link{from, side}); err != nil {
				return nil, err
			}
			root, err := s.onto(good, base, now)
			if err != nil {
				return nil, err
			}
			if root != last {
				out, last = append(out, foldedVisit{v, root}), root
			}
		}
	}
	if now.String() != m.Tree {
		return nil, nil
	}
	return out, nil
}

// onto is a tree with what changed between two others, at paths that are as in the first of them: a merge leaves alone what changed
// meanwhile.
func (s *filesSearch) onto(root, base, now protocol.Link) (protocol.Link, error) {
	if root == base {
		return now, nil
	}
	edits := map[string]tree.Entry{}
	for c, err := range tree.Diff(s.read, base, now) {
		if err != nil {
			return root, err
		}
		is, err := tree.Find(s.read, root, c.Path)
		if errors.Is(err, protocol.ErrUnknownArtifact) {
			is, err = tree.Entry{}, nil
		}
		if err != nil {
			return root, err
		}
		if c.Before.Mode == tree.Dir || c.After.Mode == tree.Dir || is.Mode == c.Before.Mode && is.Link == c.Before.Link {
			edits[c.Path] = c.After
		}
	}
	return tree.Edit(s.read, root, edits, s.put)
}

// put keeps a block of a tree that was made here.
func (s *filesSearch) put(b tree.Block) error {
	s.made[b.Link] = b.Data
	return nil
}

// overlay reads blocks that were made here, else those of the store.
func (s *filesSearch) overlay(ctx context.Context) tree.Read {
	return func(l protocol.Link) ([]byte, error) {
		if data, ok := s.made[l]; ok {
			return data, nil
		}
		return s.Store.Block(ctx, l)
	}
}
