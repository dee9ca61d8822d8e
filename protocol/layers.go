package protocol

import "maps"

// Layers is a map that never changes: With makes a larger one that shares what it holds. Of n
// keys that were added one by one a look-up goes through log n layers at most. nil is empty.
type Layers[K comparable, V any] struct {
	top   map[K]V
	below *Layers[K, V]
}

// With lays values over those of the same keys. It takes over more, which must not be altered then.
func (l *Layers[K, V]) With(more map[K]V) *Layers[K, V] {
	if len(more) == 0 {
		return l
	}
	for l != nil && len(l.top) <= len(more) {
		both := make(map[K]V, len(l.top)+len(more))
		maps.Copy(both, l.top)
		maps.Copy(both, more)
		l, more = l.below, both
	}
	return &Layers[K, V]{more, l}
}

// Get finds the value of a key.
func (l *Layers[K, V]) Get(key K) (v V, ok bool) {
	for ; l != nil; l = l.below {
		if v, ok = l.top[key]; ok {
			return v, true
		}
	}
	return v, false
}

// All is a copy of what it holds.
func (l *Layers[K, V]) All() map[K]V {
	out := map[K]V{}
	for ; l != nil; l = l.below {
		for key, v := range l.top {
			if _, covered := out[key]; !covered {
				out[key] = v
			}
		}
	}
	return out
}
