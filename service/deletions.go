package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/service/query"
)

// Deletions lists the runs that were deleted.
func (l *Local) Deletions(ctx context.Context, p api.Part) (*api.Deletions, error) {
	all, err := cas.Tombstones(ctx, l.Store)
	if err != nil {
		return nil, err
	}
	protocol.Sort(all, func(a, b protocol.Tombstone) int { return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(a.Run, b.Run)) })
	place := func(t protocol.Tombstone) string { return fmt.Sprintf("%d.%s", t.At, t.Run) }
	if p.After != "" {
		i := slices.IndexFunc(all, func(t protocol.Tombstone) bool { return place(t) == p.After })
		if i < 0 {
			return nil, protocol.ErrUsage.With("give the next of an earlier answer", "%.100q is no place in the list of deletions", p.After)
		}
		all = all[i+1:]
	}
	out, bytes := &api.Deletions{Schema: "wf.deletions/v1", Items: []api.Deletion{}}, 0
	for i, t := range all {
		if p.Full(i, bytes, len(t.Why)) {
			out.Next = place(all[i-1])
			break
		}
		out.Items, bytes = append(out.Items, api.Deletion{Run: t.Run, Seq: t.Seq, By: t.By, At: query.Stamp(t.At), Why: t.Why}), bytes+len(t.Why)
	}
	return out, nil
}
