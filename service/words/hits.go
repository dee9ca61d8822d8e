package words

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// Excerpts of a run.
const (
	hitsMax  = 3
	triesMax = 3 * hitsMax // documents that are read for them
)

// candidate is a document in which words occur.
type candidate struct {
	unit  int
	doc   doc
	words uint32 // a bit for each word
}

// seeking looks for excerpts of a run: texts in which words occur, those with the most words, and of these the latest.
type seeking struct {
	run   protocol.RunID
	all   []candidate
	seen  uint32 // the words of what was found
	tries int
	out   []api.Hit
}

// next takes the best candidate; false where enough was found, or none is left.
func (k *seeking) next(f *Found) (best candidate, ok bool) {
	if len(k.all) == 0 || len(k.out) == hitsMax || k.tries == triesMax {
		return best, false
	}
	k.tries++
	best = slices.MaxFunc(k.all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(bits.OnesCount32(a.words&^k.seen), bits.OnesCount32(b.words&^k.seen)), cmp.Compare(bits.OnesCount32(a.words), bits.OnesCount32(b.words)),
			cmp.Compare(f.weight(a), f.weight(b)), cmp.Compare(a.doc.seq, b.doc.seq))
	})
	k.all = slices.DeleteFunc(k.all, func(c candidate) bool { return c == best })
	return best, true
}

// Hits are excerpts of a run.
func (f *Found) Hits(ctx context.Context, run protocol.RunID) ([]api.Hit, error) {
	all, err := f.HitsOf(ctx, []protocol.RunID{run})
	return all[0], err
}

// HitsOf are excerpts of runs. Where the store reads many blocks together, those of all runs are read in a few rounds; else some runs
// are looked at at a time.
func (f *Found) HitsOf(ctx context.Context, runs []protocol.RunID) ([][]api.Hit, error) {
	all, errs := make([]*seeking, len(runs)), make([]error, len(runs))
	for i, run := range runs {
		all[i] = &seeking{run: run, all: f.candidates(run)}
	}
	if _, ok := f.x.store.(cas.Together); ok {
		errs = []error{f.seek(ctx, all)}
	} else {
		var each sync.WaitGroup
		room := make(chan struct{}, runtime.GOMAXPROCS(0))
		for i := range all {
			room <- struct{}{}
			each.Go(func() {
				defer func() { <-room }()
				errs[i] = f.seek(ctx, all[i:i+1])
			})
		}
		each.Wait()
	}
	out := make([][]api.Hit, len(runs))
	for i, k := range all {
		out[i] = k.out
	}
	return out, errors.Join(errs...)
}

// candidates are the documents of a run in which words occur.
func (f *Found) candidates(run protocol.RunID) (all []candidate) {
	n, ok := f.ids[string(run)]
	if !ok {
		return nil
	}
	upTo := map[int]protocol.Seq{}
	var include func(n int, to protocol.Seq)
	include = func(n int, to protocol.Seq) {
		if had, known := upTo[n]; known && had >= to {
			return
		}
		upTo[n] = to
		for _, s := range f.from[n] {
			include(s.unit, s.upTo)
		}
	}
	include(n, math.MaxInt64)
	for _, n := range slices.SortedFunc(maps.Keys(upTo), func(a, b int) int { return cmp.Compare(f.of[a].id, f.of[b].id) }) {
		for _, p := range f.in[n] {
			s := &f.seg[p.seg]
			for d, end := s.docsOf(p.unit); d < end; d++ {
				c := candidate{unit: n, doc: s.docs[d]}
				for t := range f.terms {
					if s.hits[t].has(d) {
						c.words |= 1 << t
					}
				}
				if c.words != 0 && (c.doc.seq <= upTo[n] || f.of[c.unit].run() == "") {
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// seek reads the best candidate of each run, and the next ones, until enough is found.
func (f *Found) seek(ctx context.Context, all []*seeking) error {
	r := &gathering{f: f, ctx: ctx}
	for {
		var round []*try
		for _, k := range all {
			if c, ok := k.next(f); ok {
				round = append(round, &try{seeking: k, candidate: c})
			}
		}
		if len(round) == 0 {
			return nil
		}
		r.read(round)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, t := range round {
			if t.hit != nil && !slices.ContainsFunc(t.out, func(h api.Hit) bool { return h.Text == t.hit.Text }) {
				t.out = append(t.out, *t.hit)
				t.seen |= t.words
			}
		}
	}
}

// weight has what was said come before what the definition says.
func (f *Found) weight(c candidate) int {
	if f.of[c.unit].run() == "" {
		return 0
	}
	return 1
}

// A try is a candidate whose text is read. One whose text cannot be read, or has changed, is passed over: the run is shown without it.
type try struct {
	*seeking
	candidate
	event *protocol.Entry // nil: it is not read yet
	hit   *api.Hit
}

// gathering reads the texts of candidates. What one of them misses is read together with what the others miss, and then they are looked at again.
type gathering struct {
	f      *Found
	ctx    context.Context
	have   map[protocol.Link][]byte
	missed map[protocol.Link]bool // by candidates that were looked at
	misses int
	alone  map[protocol.Link]bool // what does not come with others
}

// errMissed is that a block is read with others, before the next look.
var errMissed = errors.New("the block is read with others")

func (r *gathering) read(round []*try) {
	r.events(round)
	r.have, r.alone = map[protocol.Link][]byte{}, map[protocol.Link]bool{}
	for len(round) > 0 && r.ctx.Err() == nil {
		r.missed = map[protocol.Link]bool{}
		var again []*try
		for _, t := range round {
			before := r.misses
			hit, err := r.look(t)
			if r.misses > before {
				again = append(again, t)
			} else if err == nil {
				t.hit = hit
			}
		}
		r.fetch()
		round = again
	}
}

// events reads the events of candidates together, where the store can do that.
func (r *gathering) events(round []*try) {
	s, ok := r.f.x.store.(cas.Scattered)
	if !ok {
		return
	}
	var at []cas.EventAt
	var of []*try
	for _, t := range round {
		if run := r.f.of[t.unit].run(); run != "" {
			at, of = append(at, cas.EventAt{Run: run, Seq: t.doc.seq}), append(of, t)
		}
	}
	got, err := s.EventsAt(r.ctx, at)
	if err != nil {
		return // each is read for itself
	}
	for i := range got {
		if got[i].Raw != nil {
			of[i].event = &got[i]
		}
	}
}

// block gives a block that was read, or notes that it is missed.
func (r *gathering) block(l protocol.Link) ([]byte, error) {
	if data, ok := r.have[l]; ok {
		return data, nil
	}
	if _, ok := r.f.x.store.(cas.Together); !ok || r.alone[l] {
		return r.f.x.store.Block(r.ctx, l)
	}
	r.missed[l] = true
	r.misses++
	return nil, errMissed
}

// fetch reads what was missed. What does not come, since it is long or damaged, is read for itself.
func (r *gathering) fetch() {
	s, ok := r.f.x.store.(cas.Together)
	if !ok || len(r.missed) == 0 {
		return
	}
	got, err := s.Blocks(r.ctx, slices.Collect(maps.Keys(r.missed)))
	for _, b := range got {
		r.have[b.Link] = b.Data
	}
	for l := range r.missed {
		if _, ok := r.have[l]; !ok && (err != nil || len(got) == 0) {
			r.alone[l] = true
		}
	}
}

// look reads the text of a candidate; nil where it has none of the words.
func (r *gathering) look(t *try) (*api.Hit, error) {
	pieces, err := r.pieces(t)
	if err != nil {
		return nil, err
	}
	f := r.f
	for _, p := range pieces {
		if p.seq != t.doc.seq || p.kind != t.doc.kind {
			continue
		}
		if text := excerpt(p.text, f.terms); text != "" {
			h := &api.Hit{Step: p.step, Kind: p.kind.String(), Text: text}
			if of := f.of[t.unit].run(); of != "" && of != t.run && !f.builds(t.run, t.unit) {
				h.Run = of
			}
			return h, nil
		}
	}
	return nil, nil
}

// pieces are the texts of the event, or definition, of a candidate.
func (r *gathering) pieces(t *try) ([]piece, error) {
	u := r.f.of[t.unit]
	if u.run() == "" {
		l, err := protocol.ParseLink(u.id[len(defPrefix):])
		if err != nil {
			return nil, err
		}
		return prompts(r.block, l)
	}
	if t.event == nil {
		for e, err := range r.f.x.store.After(r.ctx, u.run(), t.doc.seq-1) {
			if err != nil {
				return nil, err
			}
			t.event = &e
			break
		}
	}
	said := reading{read: r.block}
	if t.event == nil {
		return nil, nil
	}
	err := said.event(t.event)
	return said.pieces, err
}
