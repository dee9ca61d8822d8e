package cas

import (
	"encoding/binary"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// setHead puts a head where it was, behind the back of the reflog.
func setHead(t testing.TB, s *Store, h Head) {
	t.Helper()
	err := s.update(t.Context(), func(tx *bolt.Tx) error {
		v := binary.AppendVarint(binary.AppendUvarint(appendLink(nil, h.Link), uint64(h.Seq)), h.TS)
		return tx.Bucket(bucketRefs).Put([]byte(h.Name), v)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func dropReflog(t testing.TB, s *Store) {
	t.Helper()
	err := s.update(t.Context(), func(tx *bolt.Tx) error { return tx.DeleteBucket(bucketReflog) })
	if err != nil {
		t.Fatal(err)
	}
}
