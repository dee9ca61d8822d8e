package rules

import (
	"fmt"
	"maps"
	"slices"

	"wf/protocol"
)

// snapshotVersion changes whenever the meaning of a snapshot does; another one is ignored.
const snapshotVersion = 7

// The stored form of a State: what Fold would compute, without the caches. It is derived,
// kept under the head it belongs to, and may be lost at any time.
type (
	Snapshot struct {
		V         int                            `cbor:"v"`
		Info      Info                           `cbor:"info"`
		Start     protocol.Link                  `cbor:"start"`
		Seq       protocol.Seq                   `cbor:"seq"`
		TS        int64                          `cbor:"ts"`
		Totals    Totals                         `cbor:"totals"`
		Timed     Times                          `cbor:"timed"`
		Limits    protocol.Limits                `cbor:"limits"`
		Acts      []snapAct                      `cbor:"acts"`
		Nums      map[string]int                 `cbor:"nums"`
		Ways      []protocol.WayTaken            `cbor:"ways"`
		Fates     map[string]protocol.StepStatus `cbor:"fates"`
		NextN     int                            `cbor:"next"`
		Active    bool                           `cbor:"active"`
		Stopped   bool                           `cbor:"stopped"`
		Status    string                         `cbor:"status"`
		Reason    string                         `cbor:"reason"`
		Detail    string                         `cbor:"detail"`
		Code      string                         `cbor:"code"`
		Result    protocol.Link                  `cbor:"result"`
		Histories []snapHistory                  `cbor:"histories"`
		Refs      []snapRef                      `cbor:"refs"`  // activations that histories name
		Convs     []snapConvs                    `cbor:"convs"` // and conversations

		Inbox   []protocol.MessageIn `cbor:"inbox,omitempty"`
		Compact bool                 `cbor:"compact,omitempty"`
		Windows map[string]int64     `cbor:"windows,omitempty"`
		Allowed map[string]string    `cbor:"allowed,omitempty"`
	}
	snapAct struct {
		N       int             `cbor:"n"`
		Take    int             `cbor:"take"`
		Role    string          `cbor:"role"`
		Num     int             `cbor:"num"`
		Edge    int             `cbor:"edge"`
		Via     protocol.Via    `cbor:"via"`
		Parents []int           `cbor:"parents"`
		Links   []protocol.Link `cbor:"links"`
		Of      int             `cbor:"of"`
		Visits  []*snapVisit    `cbor:"visits"`
		Edges   []int           `cbor:"edges"`
		Entries map[string]int  `cbor:"entries"`
		History int             `cbor:"history"` // in Histories: activations of one branch share it
		Offer   *snapOffer      `cbor:"offer"`
	}
	snapVisit struct {
		Index    int                 `cbor:"index"`
		Number   int                 `cbor:"number"`
		Item     *protocol.Item      `cbor:"item"`
		Resumes  protocol.Link       `cbor:"resumes"`
		Tools    protocol.Link       `cbor:"tools"`
		Inject   protocol.Link       `cbor:"inject"`
		Prompt   protocol.Text       `cbor:"prompt"`
		Attempt  int                 `cbor:"attempt"`
		Mode     int                 `cbor:"mode"`
		Waiting  protocol.WaitKind   `cbor:"waiting"`
		Due      int64               `cbor:"due"`
		Question protocol.Text       `cbor:"question"`
		Choices  []protocol.Choice   `cbor:"choices"`
		Form     protocol.Text       `cbor:"form"`
		Shown    string              `cbor:"shown,omitempty"`
		First    protocol.Seq        `cbor:"first"`
		Record   protocol.Link       `cbor:"record"`
		Status   protocol.StepStatus `cbor:"status"`
		LastErr  string              `cbor:"lastErr"`
		LastCode string              `cbor:"lastCode"`
		Anew     bool                `cbor:"anew"`
		Again    bool                `cbor:"again"`
		Size     int64               `cbor:"size"`
		Moved    bool                `cbor:"compacted"`
		Compact  bool                `cbor:"compact,omitempty"`
		Lap      *lap                `cbor:"lap,omitempty"`
	}
	snapOffer struct {
		Failed  bool        `cbor:"failed"`
		Closed  bool        `cbor:"closed"`
		Granted []int       `cbor:"granted"`
		Ref     int         `cbor:"ref"`   // of the activation, in Refs; −1 for START
		Convs   int         `cbor:"convs"` // in Convs
		Taken   []snapTaken `cbor:"taken"`
	}
	snapTaken struct {
		Part    int      `cbor:"part"`
		Targets []string `cbor:"targets"`
	}
	snapHistory struct {
		Latest map[string]int `cbor:"latest"` // in Refs
		Convs  map[string]int `cbor:"convs"`  // in Convs
	}
	snapRef struct {
		N       int             `cbor:"n"`
		Records []protocol.Link `cbor:"records"`
		Batch   bool            `cbor:"batch"`
	}
	snapConvs struct {
		Plain *snapConvo              `cbor:"plain"`
		Items map[string][]*snapConvo `cbor:"items"`
	}
	snapConvo struct {
		N      int           `cbor:"n"`
		Record protocol.Link `cbor:"record"`
		Visit  int           `cbor:"visit"`
		Size   int64         `cbor:"size"`
	}
)

// Snapshot is the stored form of s, the live region only. It shares memory with s: it is to be
// encoded before s moves.
func (s *State) Snapshot() *Snapshot {
	s.prune()
	return s.snapshot()
}

// Readable reports whether the snapshot is of the form that this binary reads.
func (in *Snapshot) Readable() bool { return in.V == snapshotVersion }

// snapshot is the stored form of all that s holds.
func (s *State) snapshot() *Snapshot {
	past := snapPast{refs: map[*ref]int{}, convs: map[*conversations]int{}}
	out := &Snapshot{V: snapshotVersion, Info: s.Info, Start: s.Start, Seq: s.Seq, TS: s.TS, Totals: s.Totals, Timed: s.timed,
		Limits: s.Limits, Nums: s.nums, Ways: s.Ways(), Fates: s.path.fates, NextN: s.nextN, Active: s.active, Result: s.result, Inbox: s.inbox, Compact: s.compact, Windows: s.windows, Allowed: s.allowed}
	if s.stop != nil {
		out.Stopped, out.Status, out.Reason, out.Detail, out.Code = true, string(s.stop.status), string(s.stop.reason), s.stop.detail, s.stop.code
	}
	for _, a := range s.acts {
		x := snapAct{N: a.n, Take: a.take, Role: a.role, Num: a.num, Edge: a.edge, Via: a.via, Parents: a.parents,
			Links: a.links, Of: a.of, Edges: a.edges, Entries: a.entries, History: len(out.Histories)}
		out.Histories = append(out.Histories, past.of(a))
		for _, v := range a.visits {
			x.Visits = append(x.Visits, snapVisitOf(v))
		}
		if a.offer != nil {
			x.Offer = snapOfferOf(a.offer)
			x.Offer.Ref, x.Offer.Convs = past.offer(a)
		}
		out.Acts = append(out.Acts, x)
	}
	out.Refs, out.Convs = past.allRefs, past.allConvs
	return out
}

func snapVisitOf(v *visit) *snapVisit {
	if v == nil {
		return nil
	}
	return &snapVisit{Index: v.id.Index, Number: v.number, Item: v.item, Resumes: v.resumes, Tools: v.tools, Inject: v.inject,
		Prompt: v.prompt, Attempt: v.attempt, Mode: int(v.mode), Waiting: v.waiting, Due: v.due, Question: v.question,
		Choices: v.choices, Form: v.form, Shown: v.shown, First: v.first, Record: v.record, Status: v.status, LastErr: v.lastErr, LastCode: v.lastCode, Anew: v.anew, Again: v.again,
		Size: v.size, Moved: v.compacted, Compact: v.compact, Lap: v.lap}
}

func snapOfferOf(o *offer) *snapOffer {
	x := &snapOffer{Failed: o.failed, Closed: o.closed}
	for part := range o.granted {
		x.Granted = append(x.Granted, part)
	}
	slices.Sort(x.Granted)
	for part, targets := range o.taken {
		t := snapTaken{Part: part}
		for name := range targets {
			t.Targets = append(t.Targets, name)
		}
		slices.Sort(t.Targets)
		x.Taken = append(x.Taken, t)
	}
	slices.SortFunc(x.Taken, func(a, b snapTaken) int { return a.Part - b.Part })
	return x
}

// Restore is the state that a snapshot was made of. An error means only that the journal has to be folded
// instead.
func (in *Snapshot) Restore(from Records) (*State, error) {
	if !in.Readable() {
		return nil, fmt.Errorf("snapshot version %d, want %d", in.V, snapshotVersion)
	}
	o, err := from.Open(in.Start)
	if err != nil {
		return nil, err
	}
	s := New(from)
	s.Info, s.Start, s.Seq, s.TS, s.Totals, s.timed, s.Limits = in.Info, in.Start, in.Seq, in.TS, in.Totals, in.Timed, in.Limits
	s.nextN, s.active, s.result, s.prog, s.begun, s.inbox, s.compact, s.windows, s.allowed = in.NextN, in.Active, in.Result, o.Program, o, in.Inbox, in.Compact, in.Windows, in.Allowed
	maps.Copy(s.nums, in.Nums)
	for _, w := range in.Ways {
		s.path.ways[w.Way] = w.Times
	}
	maps.Copy(s.path.fates, in.Fates)
	if in.Stopped {
		s.stop = &stop{protocol.RunStatus(in.Status), protocol.SuspendReason(in.Reason), in.Detail, in.Code}
	}
	past, err := pastOf(in)
	if err != nil {
		return nil, err
	}
	for _, x := range in.Acts {
		a := &act{n: x.N, take: x.Take, role: x.Role, num: x.Num, edge: x.Edge, via: x.Via, parents: x.Parents,
			links: x.Links, of: x.Of, edges: x.Edges, entries: x.Entries}
		if a.entries == nil {
			a.entries = map[string]int{}
		}
		if x.History < 0 || x.History >= len(in.Histories) {
			return nil, fmt.Errorf("snapshot: activation %d has no history", x.N)
		}
		if err := past.into(a, in.Histories[x.History]); err != nil {
			return nil, err
		}
		for _, v := range x.Visits {
			a.visits = append(a.visits, v.visit(a))
		}
		if x.Offer != nil {
			if a.offer, err = x.Offer.offer(a, past); err != nil {
				return nil, err
			}
		}
		s.acts = append(s.acts, a)
	}
	s.reindex()
	return s, nil
}

func (v *snapVisit) visit(a *act) *visit {
	if v == nil {
		return nil
	}
	return &visit{id: protocol.StepID{Role: a.role, N: a.num, Index: v.Index}, of: a, number: v.Number, item: v.Item,
		resumes: v.Resumes, tools: v.Tools, inject: v.Inject, prompt: v.Prompt, attempt: v.Attempt, mode: Mode(v.Mode),
		waiting: v.Waiting, due: v.Due, question: v.Question, choices: v.Choices, form: v.Form, shown: v.Shown, first: v.First, record: v.Record,
		status: v.Status, lastErr: v.LastErr, lastCode: v.LastCode, anew: v.Anew, again: v.Again,
		size: v.Size, compacted: v.Moved, compact: v.Compact, lap: v.Lap}
}

func (x *snapOffer) offer(a *act, past restoredPast) (*offer, error) {
	o := &offer{failed: x.Failed, closed: x.Closed}
	if err := past.token(a, o, x); err != nil {
		return nil, err
	}
	for _, part := range x.Granted {
		o.grant(part)
	}
	for _, t := range x.Taken {
		if o.taken == nil {
			o.taken = map[int]map[string]bool{}
		}
		o.taken[t.Part] = map[string]bool{}
		for _, name := range t.Targets {
			o.taken[t.Part][name] = true
		}
	}
	return o, nil
}
