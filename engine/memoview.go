package engine

import (
	"slices"
	"strings"

	"wf/api"
	"wf/engine/rules"
	"wf/protocol"
)

// reuses sums up what became of the steps; nil where none took an earlier result.
func reuses(steps []*api.Step, t rules.Totals) *api.Reuses {
	if t.Reused == 0 {
		return nil
	}
	sum := &api.Reuses{Performed: t.Performed, Reused: t.Reused, From: []protocol.RunID{}}
	for _, s := range steps {
		if s.Reuse == nil || s.Reuse.From == "" {
			continue
		}
		run, _, _ := strings.Cut(s.Reuse.From, ":")
		if !slices.Contains(sum.From, protocol.RunID(run)) {
			sum.From = append(sum.From, protocol.RunID(run))
		}
	}
	return sum
}

// reuse shows what became of reusing the result of a visit. The newest attempt decides.
func (b *viewer) reuse(d protocol.Data, st *api.Step) (err error) {
	switch d := d.(type) {
	case protocol.Reused:
		st.Reuse = &api.Reuse{Key: d.Key, From: d.Origin, Memo: api.CID(d.Memo), Files: d.Files, SparedMS: d.Spared}
	case protocol.NotReused:
		if d.Detail.S, err = textOf(b.read, d.Detail); err != nil {
			return err
		}
		st.Reuse = &api.Reuse{Key: d.Key, Why: d.Why, Part: d.Part, Compared: d.Origin, Reason: d.Text()}
	case protocol.NotStored:
		why, err := textOf(b.read, d.Detail)
		if err != nil || st.Reuse == nil {
			return err
		}
		if st.Reuse.NotStored = why; d.Part != "" {
			st.Reuse.NotStored = d.Part + ": " + why
		}
	}
	return nil
}
