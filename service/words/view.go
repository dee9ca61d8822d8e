package words

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"wf/protocol"
)

// A view is the index at a moment. It does not change.
type view struct {
	segs  []*segment
	units map[string]*unit // as each is indexed last
	runs  int              // units that are runs

	once sync.Once // what belongs together is found with the first search
	ids  map[string]int
	of   []*unit    // by number, as ids has it
	from [][]source // what counts as said in each besides its own texts
}

// newView joins segments. One with a hole is an error wrapping errDamaged.
func newView(segs []*segment) (*view, error) {
	v := &view{segs: segs, units: map[string]*unit{}}
	type span struct{ from, sum protocol.Seq }
	spans := map[string]span{}
	for _, s := range segs {
		for i := range s.units {
			u := &s.units[i]
			sp, known := spans[u.id]
			if !known || u.from < sp.from {
				sp.from = u.from
			}
			sp.sum += u.seq - u.from
			spans[u.id] = sp
			if old := v.units[u.id]; old == nil || old.seq < u.seq {
				v.units[u.id] = u
			}
		}
	}
	for id, sp := range spans {
		u := v.units[id]
		begin := protocol.Seq(0)
		if u.base != "" {
			begin = u.shared
			if b := v.units[u.base]; b == nil || b.seq < u.shared {
				return nil, fmt.Errorf("what %s shares with %s is %w", id, u.base, errDamaged)
			}
		}
		if sp.from != begin || sp.sum != u.seq-begin {
			return nil, fmt.Errorf("the parts of %s are %w", id, errDamaged)
		}
	}
	for _, u := range v.units {
		if u.run() != "" {
			v.runs++
		}
	}
	return v, nil
}

// at is how far a unit is indexed.
func (v *view) at(id string) protocol.Seq {
	if u := v.units[id]; u != nil {
		return u.seq
	}
	return 0
}

// with are some units, those that build on them, and the definitions that nothing else has.
func (v *view) with(ids []string) map[string]bool {
	drop := map[string]bool{}
	for _, id := range ids {
		if v.units[id] != nil {
			drop[id] = true
		}
	}
	for more := len(drop) > 0; more; {
		more = false
		for id, u := range v.units {
			if !drop[id] && u.base != "" && drop[u.base] {
				drop[id], more = true, true
			}
		}
	}
	if len(drop) == 0 {
		return drop
	}
	needed := map[string]bool{}
	for id, u := range v.units {
		if !drop[id] {
			for _, d := range u.defs {
				needed[d] = true
			}
		}
	}
	for id, u := range v.units {
		if u.run() == "" && !needed[id] {
			drop[id] = true
		}
	}
	return drop
}

// refresh reads the index again where another process has changed it. What is damaged counts as nothing, and the next commit
// puts another in its place. mu is held.
func (x *Index) refresh() *view {
	for range 3 {
		now := x.folder.stamp()
		if x.at != nil && (now.same(x.stamp) || now.file == nil && x.stamp.file == nil) {
			return x.at
		}
		segs, err := x.load()
		if errors.Is(err, fs.ErrNotExist) {
			continue // a segment was removed since the manifest was read
		}
		var v *view
		if err == nil {
			v, err = newView(append(segs, x.memory...))
		}
		if err != nil {
			segs = nil
			if v, err = newView(x.memory); err != nil {
				x.memory = nil
				v = &view{units: map[string]*unit{}}
			}
		}
		x.at, x.stamp, x.segs = v, now, segs
		return v
	}
	return x.hold(nil)
}

// hold takes segments for what the folder has.
func (x *Index) hold(segs []*segment) *view {
	v, err := newView(append(slices.Clone(segs), x.memory...))
	if err != nil {
		segs, x.memory = nil, nil
		v = &view{units: map[string]*unit{}}
	}
	x.at, x.segs = v, segs
	return v
}

// load reads the segments that count; those that are known already are not read again.
func (x *Index) load() ([]*segment, error) {
	if x.ignore {
		return nil, nil
	}
	names, err := x.folder.names()
	if err != nil {
		return nil, err
	}
	out := make([]*segment, 0, len(names))
	for _, name := range names {
		if i := slices.IndexFunc(x.segs, func(s *segment) bool { return s.name == name }); i >= 0 {
			out = append(out, x.segs[i])
			continue
		}
		s, err := x.loadSegment(name)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (x *Index) loadSegment(name string) (*segment, error) {
	f, size, err := x.folder.open(name)
	if err != nil {
		return nil, err
	}
	s, err := readSegment(f, size, x.key())
	if err = cmp.Or(err, f.Close()); err != nil {
		return nil, fmt.Errorf("segment %s: %w", name, err)
	}
	s.name = name
	return s, nil
}

// openAll opens segments for their words; the caller calls shut.
func (x *Index) openAll(segs []*segment) (all []opened, shut func(), err error) {
	var closers []func() error
	shut = func() {
		for _, c := range closers {
			_ = c() // read only
		}
	}
	for _, s := range segs {
		if s.memo != nil {
			all = append(all, opened{s, s.reader()})
			continue
		}
		f, _, err := x.folder.open(s.name)
		if err != nil {
			shut()
			return nil, nil, err
		}
		closers = append(closers, f.Close)
		all = append(all, opened{s, f})
	}
	return all, shut, nil
}
