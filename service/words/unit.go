package words

import (
	"encoding/binary"
	"maps"
	"slices"

	"wf/engine/rules"
	"wf/protocol"
	"wf/service/query"
)

// A unit is a run as far as it is indexed, or a definition.
type unit struct {
	id   string       // of the run; of a definition, defPrefix and its CID
	from protocol.Seq // the documents of the segment are of events behind this one …
	seq  protocol.Seq // … up to this one
	head string       // the bytes of the CID of event seq

	base   string       // the run whose events up to shared are a part of this one, and are not indexed again
	shared protocol.Seq // from is not less
	defs   []string     // the definitions of the run, as ids of units
	facts  query.Facts
}

// defPrefix begins the id of a unit that is no run.
const defPrefix = "="

// run is the run that a unit is; "" for a definition.
func (u *unit) run() protocol.RunID {
	if u.id == "" || u.id[:1] == defPrefix {
		return ""
	}
	return protocol.RunID(u.id)
}

func (u *unit) append(b []byte) []byte {
	b = appendString(b, u.id)
	for _, n := range []protocol.Seq{u.from, u.seq, u.shared} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = appendString(b, u.head)
	b = appendString(b, u.base)
	b = appendStrings(b, u.defs)
	f := &u.facts
	for _, s := range []string{string(f.Status), f.Workflow, f.Type, f.Title, f.Description, f.RequestID, string(f.Parent)} {
		b = appendString(b, s)
	}
	b = appendStrings(b, f.Tags)
	b = binary.AppendUvarint(b, uint64(f.Calls))
	b = binary.AppendUvarint(b, uint64(f.Tokens))
	b = binary.AppendUvarint(b, uint64(len(f.Models)))
	for _, model := range slices.Sorted(maps.Keys(f.Models)) {
		b = appendString(b, model)
		t := f.Models[model]
		for _, n := range []int64{int64(t.Calls), int64(t.Unreported), t.Input, t.Cached, t.CacheWrite5m, t.CacheWrite1h, t.Output} {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	return b
}

func (c *cursor) unit() (u unit) {
	seq := func() protocol.Seq { return protocol.Seq(c.uint()) }
	u.id, u.from, u.seq, u.shared = c.string(), seq(), seq(), seq()
	u.head, u.base, u.defs = c.string(), c.string(), c.strings()
	f := &u.facts
	f.Status = protocol.RunStatus(c.string())
	f.Workflow, f.Type, f.Title, f.Description, f.RequestID, f.Parent = c.string(), c.string(), c.string(), c.string(), c.string(), protocol.RunID(c.string())
	f.Tags = c.strings()
	f.Calls, f.Tokens = int(c.uint()), int64(c.uint())
	for n := c.count(); n > 0 && !c.bad; n-- {
		if f.Models == nil {
			f.Models = make(map[string]rules.Tokens, n)
		}
		model, t := c.string(), rules.Tokens{}
		t.Calls, t.Unreported = int(c.uint()), int(c.uint())
		for _, n := range []*int64{&t.Input, &t.Cached, &t.CacheWrite5m, &t.CacheWrite1h, &t.Output} {
			*n = int64(c.uint())
		}
		f.Models[model] = t
	}
	return u
}
