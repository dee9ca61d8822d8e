package words

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"math/bits"
	"slices"

	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/service/query"
)

// A Found says in which runs all that is looked for occurs.
type Found struct {
	x     *Index
	terms []api.Wanted // the words; a person is behind them
	*view
	seg   []found    // by segment
	first [][]uint32 // by what is looked for and unit: the first event that has it, or never
}

// found is what fits in a segment.
type found struct {
	*segment
	unit []int    // the numbers of its units
	hits []bitmap // by what is looked for
}

const never = math.MaxUint32

// Find looks for the words of a search in what is indexed, and for a person that began a run or answered in it, or that it was begun for; ""
// is any.
func (x *Index) Find(ctx context.Context, terms []api.Wanted, by string) (*Found, error) {
	for {
		v, err := x.refresh(ctx)
		if err != nil {
			return nil, err
		}
		f, err := x.find(ctx, v, terms, by)
		switch {
		case err == nil:
			return f, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !damage(err):
			return nil, err
		}
		now, later := x.refresh(ctx)
		switch {
		case later != nil:
			return nil, later
		case errors.Is(err, fs.ErrNotExist) && now != v:
			// another process has replaced a segment
		default:
			x.discard()
		}
	}
}

func (x *Index) find(ctx context.Context, v *view, terms []api.Wanted, by string) (*Found, error) {
	v.once.Do(v.gather)
	f := &Found{x: x, terms: terms, view: v}
	looked := terms
	if by != "" {
		looked = append(slices.Clone(terms), person(by))
	}
	f.seg = make([]found, len(v.segs))
	err := x.read(ctx, v.segs, func(s *segment) []part { return s.blocksOf(looked) }, func(i int, r io.ReaderAt) error {
		one := found{segment: v.segs[i], unit: v.nums[i]}
		for _, t := range looked {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			m, err := one.match(r, t)
			if err != nil {
				return err
			}
			one.hits = append(one.hits, m)
		}
		f.seg[i] = one
		return nil
	})
	if err != nil {
		return nil, err
	}
	for t := range looked {
		f.first = append(f.first, f.firstOf(t))
	}
	return f, nil
}

// Searched says how far runs were searched; errs are why some of them cannot be.
func (f *Found) Searched(heads []cas.Head) (out api.Searched, errs []error) {
	f.x.mu.Lock()
	defer f.x.mu.Unlock()
	first := int64(0) // of the runs that are behind
	for _, h := range heads {
		run := protocol.RunOf(h.Name)
		if u := f.view.unit(string(run)); current(u, h) || u != nil && u.seq > h.Seq { // CatchUp knows that it is newer than the list
			out.Runs++
			continue
		}
		out.Behind++
		if why := f.x.failed[run]; why.head == h.Link {
			errs = append(errs, why.err)
		}
		if first == 0 || h.TS < first {
			first = h.TS
		}
	}
	upTo := int64(0)
	for _, h := range heads {
		if first == 0 || h.TS < first {
			upTo = max(upTo, h.TS)
		}
	}
	if upTo > 0 {
		out.UpTo = query.Stamp(upTo)
	}
	return out, errs
}

// firstOf is by unit the first event that says a word, in texts of its own or of others that count as its own.
func (f *Found) firstOf(t int) []uint32 {
	own := slices.Repeat([]uint32{never}, len(f.of))
	for _, s := range f.seg {
		u := 0
		for i, w := range s.hits[t] {
			for ; w != 0; w &= w - 1 {
				d := uint32(i*64 + bits.TrailingZeros64(w))
				for s.ends[u] <= d {
					u++
				}
				own[s.unit[u]] = min(own[s.unit[u]], uint32(min(s.docs[d].seq, never-1)))
			}
		}
	}
	out := make([]uint32, len(f.of))
	state := make([]byte, len(f.of)) // 1 while it is found out, 2 behind
	var of func(n int) uint32
	of = func(n int) uint32 {
		switch state[n] {
		case 1:
			return never // a circle, which no store has
		case 2:
			return out[n]
		}
		state[n] = 1
		first := own[n]
		for _, s := range f.from[n] {
			if at := of(s.unit); at != never && protocol.Seq(at) <= s.upTo {
				first = min(first, s.says(at))
			}
		}
		out[n], state[n] = first, 2
		return first
	}
	for n := range out {
		of(n)
	}
	return out
}

// A source is a unit whose texts count as those of another.
type source struct {
	unit int
	upTo protocol.Seq // its events up to this one
	base bool         // its events are events of the other
}

// says is the event of the other unit in whose place one of this counts.
func (s source) says(at uint32) uint32 {
	if s.base {
		return at
	}
	return 1 // definitions are there from the beginning, and of which event a sub-workflow is a part is not known
}

// gather numbers the units and finds the sources of each.
func (v *view) gather() {
	most := 0
	for _, s := range v.segs {
		most += len(s.units)
	}
	v.ids, v.of, v.nums = make(map[string]int, most), make([]*unit, 0, most), make([][]int, len(v.segs))
	for i, s := range v.segs {
		v.nums[i] = make([]int, len(s.units))
		for j := range s.units {
			u := &s.units[j]
			n, known := v.ids[u.id]
			if !known {
				n = len(v.of)
				v.ids[u.id] = n
				v.of = append(v.of, u)
			} else if v.of[n].seq < u.seq {
				v.of[n] = u
			}
			v.nums[i][j] = n
		}
	}
	flat, count := make([]spot, most), make([]int, len(v.of))
	for _, nums := range v.nums {
		for _, n := range nums {
			count[n]++
		}
	}
	v.in = make([][]spot, len(v.of))
	for n, c := range count {
		v.in[n], flat = flat[:0:c], flat[c:]
	}
	for i, nums := range v.nums {
		for j, n := range nums {
			v.in[n] = append(v.in[n], spot{i, j})
		}
	}
	v.from = make([][]source, len(v.of))
	add := func(n int, id string, upTo protocol.Seq, base bool) {
		if of, ok := v.ids[id]; ok {
			v.from[n] = append(v.from[n], source{of, upTo, base})
		}
	}
	for n, u := range v.of {
		if u.base != "" {
			add(n, u.base, u.shared, true)
		}
		for _, d := range u.defs {
			add(n, d, math.MaxInt64, false)
		}
		if p, ok := v.ids[string(u.facts.Parent)]; ok && u.facts.Parent != "" {
			add(p, u.id, math.MaxInt64, false)
		}
	}
}

// Has reports whether all that is looked for occurs in a run.
func (f *Found) Has(run protocol.RunID) bool {
	n, ok := f.ids[string(run)]
	return ok && !slices.ContainsFunc(f.first, func(first []uint32) bool { return first[n] == never })
}

// builds reports whether a run shares events of a unit.
func (f *Found) builds(run protocol.RunID, n int) bool {
	for at, ok := f.ids[string(run)]; ok; at, ok = f.ids[f.of[at].base] {
		if at == n {
			return true
		}
		if f.of[at].base == "" {
			return false
		}
	}
	return false
}

// String is the kind as api.Hit has it.
func (k kind) String() string {
	return [...]string{"title", "input", "prompt", "answer", "error", "question", "", ""}[k&7]
}
