package cas

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// Derived is a value that can be computed again from the head it belongs to. Losing it is
// harmless; one that is damaged, or that another key sealed, is as good as lost.
type Derived struct {
	Key  string
	Head protocol.Link
	Data []byte
}

// StateKey is the key of what is derived from a run. It goes with the run.
func StateKey(run protocol.RunID) string { return statePrefix + string(run) }

// StateOf is the run whose StateKey a key is; false for another key.
func StateOf(key string) (protocol.RunID, bool) {
	run, ok := strings.CutPrefix(key, statePrefix)
	return protocol.RunID(run), ok
}

const statePrefix = "state/"

// Derived reads a derived value. A caller goes on from it where it was sealed with Options.Seal: any program that can
// write the store could have written another; one that is not sealed is given to be compared with what it was made
// from. Where there is none, or only a damaged one, it is not sealed and its Head is not defined. Whether it is out of
// date the caller sees from its Head.
func (s *Store) Derived(ctx context.Context, key string) (d Derived, sealed bool, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		b := sub(tx, indexDerived)
		if b == nil {
			return nil
		}
		d, sealed = ParseDerived(s.opts.Seal, key, b.Get([]byte(key)))
		return nil
	})
	if _, ok := errors.AsType[*panicked](err); ok {
		return Derived{}, false, nil
	}
	return d, sealed, err
}

// DerivedKeys lists the keys of derived values that begin with prefix, sorted.
func (s *Store) DerivedKeys(ctx context.Context, prefix string) (out []string, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		out = nil
		b := sub(tx, indexDerived)
		if b == nil {
			return nil
		}
		c := b.Cursor()
		for k, _ := c.Seek([]byte(prefix)); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, _ = c.Next() {
			out = append(out, string(k))
		}
		return nil
	})
	if _, ok := errors.AsType[*panicked](err); ok {
		return nil, nil // damaged: as good as lost
	}
	return out, err
}

// DerivedReader reads derived values; see Store.Derived.
type DerivedReader interface {
	Derived(ctx context.Context, key string) (d Derived, sealed bool, err error)
}

// ParseDerived reads the stored form of a derived value under a key, and tells whether it was sealed with
// seal. One that is damaged is the zero Derived.
func ParseDerived(seal []byte, key string, v []byte) (d Derived, sealed bool) {
	if len(v) < sumSize {
		return d, false
	}
	r := reader{b: v[sumSize:]}
	head := r.link()
	if r.bad || len(r.b) < sumSize {
		return d, false // that of an older wf has no seal
	}
	by, data := r.b[:sumSize], r.b[sumSize:]
	sum := sumDerived(head, data)
	if !bytes.Equal(sum[:sumSize], v[:sumSize]) {
		return d, false
	}
	return Derived{Key: key, Head: head, Data: bytes.Clone(data)}, hmac.Equal(sealOf(seal, key, sum), by)
}

// Stored is the form of a derived value that ParseDerived reads, sealed with seal.
func (d Derived) Stored(seal []byte) []byte {
	sum := sumDerived(d.Head, d.Data)
	v := append(make([]byte, 0, 2*sumSize+48+len(d.Data)), sum[:sumSize]...)
	v = append(appendLink(v, d.Head), sealOf(seal, d.Key, sum)...)
	return append(v, d.Data...)
}

// sumSize is the length of a checksum, and of a seal.
const sumSize = 16

func sumDerived(head protocol.Link, data []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(appendLink(nil, head))
	h.Write(data)
	return [sha256.Size]byte(h.Sum(nil))
}

// sealOf says by Options.Seal that this value belongs under this key.
func sealOf(seal []byte, key string, sum [sha256.Size]byte) []byte {
	h := hmac.New(sha256.New, seal)
	h.Write(sum[:])
	h.Write([]byte(key))
	return h.Sum(nil)[:sumSize]
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
			err = guard(func() error { return s.setDerived(tx, d) })
		}
		if err != nil {
			return &derivedLost{d.Key, err}
		}
	}
	return nil
}

// setDerived writes a derived value; one without data is removed.
func (s *Store) setDerived(tx *bolt.Tx, d Derived) error {
	b := sub(tx, indexDerived)
	if d.Data == nil {
		return b.Delete([]byte(d.Key))
	}
	if run, ok := StateOf(d.Key); ok && tx.Bucket(bucketRefs).Get([]byte(protocol.DeletedHead(run))) != nil {
		return nil // the run was deleted since it was looked at
	}
	return b.Put([]byte(d.Key), d.Stored(s.opts.Seal))
}
