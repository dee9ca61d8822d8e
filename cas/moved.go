package cas

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// headSeen is a head as it is stored.
type headSeen struct{ name, value string }

// seenHeads are all heads as they were read last, to find those that differ since. A list of them is never changed, and
// so all share one. Each look reads the heads anew and compares their bytes: what a look gives is true however the store came to it.
type seenHeads struct {
	mu  sync.Mutex
	all []headSeen // by name

	newest   []Head     // of the runs among of
	newestOf []headSeen // nil before the first time
}

// look reads all heads, by name, in one transaction, which also is given with them.
func (s *Store) look(ctx context.Context, also func(tx *bolt.Tx, now []headSeen) error) (now []headSeen, err error) {
	s.seen.mu.Lock()
	old := s.seen.all
	s.seen.mu.Unlock()
	err = s.view(ctx, func(tx *bolt.Tx) error {
		now = headsOf(tx, old)
		return also(tx, now)
	})
	if err != nil {
		return nil, err
	}
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	s.seen.all = now
	return now, nil
}

// headsOf is old where that is what the heads are, else a list that shares with it what has not changed.
func headsOf(tx *bolt.Tx, old []headSeen) []headSeen {
	var now []headSeen // nil as long as it is old[:i]
	i := 0
	other := func() {
		if now == nil {
			now = append(make([]headSeen, 0, len(old)+1), old[:i]...)
		}
	}
	c := tx.Bucket(bucketRefs).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		for i < len(old) && old[i].name != string(k) && old[i].name < string(k) { // gone
			other()
			i++
		}
		switch {
		case i == len(old) || old[i].name != string(k):
			other()
			now = append(now, headSeen{string(k), string(v)})
			continue
		case old[i].value != string(v):
			other()
			now = append(now, headSeen{old[i].name, string(v)})
		case now != nil:
			now = append(now, old[i])
		}
		i++
	}
	if now == nil {
		return old[:i:i]
	}
	return now
}

// differences calls f for each head that is another, came (was is nil) or went (is is nil).
func differences(old, now []headSeen, f func(was, is *headSeen) error) error {
	if len(old) == len(now) && (len(old) == 0 || &old[0] == &now[0]) {
		return nil
	}
	for len(old) > 0 || len(now) > 0 {
		var was, is *headSeen
		if len(now) == 0 || len(old) > 0 && old[0].name <= now[0].name {
			was = &old[0]
		}
		if len(old) == 0 || len(now) > 0 && now[0].name <= old[0].name {
			is = &now[0]
		}
		if was != nil {
			old = old[1:]
		}
		if is != nil {
			now = now[1:]
		}
		if was != nil && is != nil && was.value == is.value {
			continue
		}
		if err := f(was, is); err != nil {
			return err
		}
	}
	return nil
}

// Moved gives a function that names the heads which moved, came or went since it was called before; see Lists. What a head says is compared and
// not checked: see Heads.
func (s *Store) Moved() func(ctx context.Context) (names []string, known bool, err error) {
	var old []headSeen
	first := true
	return func(ctx context.Context) (names []string, known bool, err error) {
		now, err := s.look(ctx, func(_ *bolt.Tx, now []headSeen) error {
			if names = nil; first {
				return nil
			}
			return differences(old, now, func(was, is *headSeen) error {
				names = append(names, cmp.Or(is, was).name)
				return nil
			})
		})
		if err != nil {
			return nil, false, err
		}
		known, old, first = !first, now, false
		return names, known, nil
	}
}

// Newest lists the heads of all runs, the one that moved last first; see Lists. A head is checked, as Heads does it, when it is another than before.
func (s *Store) Newest(ctx context.Context) (out []Head, err error) {
	s.seen.mu.Lock()
	list, of := s.seen.newest, s.seen.newestOf
	s.seen.mu.Unlock()
	now, err := s.look(ctx, func(tx *bolt.Tx, now []headSeen) error {
		var gone, fresh []Head
		err := differences(of, now, func(was, is *headSeen) error {
			if was != nil && isRun(was.name) {
				h, err := parseHead(was.name, []byte(was.value))
				if err != nil {
					return err
				}
				gone = append(gone, h)
			}
			if is == nil || !isRun(is.name) {
				return nil
			}
			h, err := parseHead(is.name, []byte(is.value))
			if err == nil {
				err = s.checkHead(tx, h)
			}
			fresh = append(fresh, h)
			return err
		})
		out = Rearrange(list, gone, fresh)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	s.seen.newest, s.seen.newestOf = out, now
	return slices.Clone(out), nil
}

func isRun(head string) bool { return strings.HasPrefix(head, protocol.RunHead("")) }
