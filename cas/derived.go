package cas

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// Derived is a value that can be computed again from the head it belongs to. Losing it is
// harmless; one that is damaged is as good as lost.
type Derived struct {
	Key  string
	Head protocol.Link
	Data []byte
}

// Derived reads a derived value; false when there is none, or only a damaged one. Whether it
// is out of date the caller sees from its Head.
func (s *Store) Derived(ctx context.Context, key string) (d Derived, ok bool, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		b := sub(tx, indexDerived)
		if b == nil {
			return nil
		}
		v := b.Get([]byte(key))
		if len(v) < 16 {
			return nil
		}
		if sum := sha256.Sum256(v[16:]); !bytes.Equal(sum[:16], v[:16]) {
			return nil
		}
		r := reader{b: v[16:]}
		d = Derived{Key: key, Head: r.link(), Data: bytes.Clone(r.b)}
		ok = !r.bad
		return nil
	})
	var damaged *panicked
	if errors.As(err, &damaged) {
		return Derived{}, false, nil
	}
	return d, ok, err
}

// derivedLost is the failure to write a derived value. It never fails a batch: the transaction
// is made again without what is derived.
type derivedLost struct {
	key string
	err error
}

func (l *derivedLost) Error() string {
	return fmt.Sprintf("%s was not stored, it is made again when it is missed: %v", l.key, l.err)
}

func (l *derivedLost) Unwrap() error { return l.err }

// putDerived writes the derived values of a batch that was applied. Its only error is a
// derivedLost; damage of the pages it would write to is one too.
func (s *Store) putDerived(tx *bolt.Tx, r *request) error {
	if r.err != nil {
		return nil
	}
	for _, d := range r.derived {
		err := s.opts.before(OpDerive)
		if err == nil {
			err = guard(func() error { return setDerived(tx, d) })
		}
		if err != nil {
			return &derivedLost{d.Key, err}
		}
	}
	return nil
}

// setDerived writes a derived value; one without data is removed.
func setDerived(tx *bolt.Tx, d Derived) error {
	b := sub(tx, indexDerived)
	if d.Data == nil {
		return b.Delete([]byte(d.Key))
	}
	v := append(appendLink(make([]byte, 16, 16+48+len(d.Data)), d.Head), d.Data...)
	sum := sha256.Sum256(v[16:])
	copy(v, sum[:16])
	return b.Put([]byte(d.Key), v)
}
