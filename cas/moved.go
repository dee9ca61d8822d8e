package cas

import (
	"context"

	bolt "go.etcd.io/bbolt"
)

// headSeen is a head as it is stored.
type headSeen struct{ name, value string }

// Moved gives a function that names the heads which moved, came or went since it was called before. The first call notes the
// heads that there are: known is false, and any may have moved. The function is not safe for concurrent use. What a head says is compared and
// not checked: see Heads.
func (s *Store) Moved() func(ctx context.Context) (names []string, known bool, err error) {
	var old, spare []headSeen
	first := true
	return func(ctx context.Context) (names []string, known bool, err error) {
		var now []headSeen
		err = s.view(ctx, func(tx *bolt.Tx) error {
			names, now = nil, spare[:0]
			left := old
			gone := func() {
				names, left = append(names, left[0].name), left[1:]
			}
			c := tx.Bucket(bucketRefs).Cursor()
			for k, v := c.First(); k != nil; k, v = c.Next() {
				for len(left) > 0 && left[0].name < string(k) {
					gone()
				}
				switch {
				case len(left) == 0 || left[0].name != string(k):
					now = append(now, headSeen{string(k), string(v)})
					names = append(names, now[len(now)-1].name)
				case left[0].value != string(v):
					now = append(now, headSeen{left[0].name, string(v)})
					gone()
				default:
					now, left = append(now, left[0]), left[1:]
				}
			}
			for len(left) > 0 {
				gone()
			}
			return nil
		})
		if err != nil {
			return nil, false, err
		}
		if known = !first; !known {
			names = nil
		}
		old, spare, first = now, old, false
		return names, known, nil
	}
}
