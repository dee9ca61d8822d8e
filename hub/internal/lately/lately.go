// Package lately keeps what was used last, within bounds.
package lately

import (
	"container/list"
	"sync"
)

// Map keeps values by their keys, those that were used last: of a size of Max together, and one in any case. Max
// is set before use. It is safe for concurrent use.
type Map[K comparable, V any] struct {
	Max int

	mu    sync.Mutex
	by    map[K]*list.Element
	order list.List // of *used[K, V], the newest first
	size  int
}

type used[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// Get gives a value that is kept.
func (l *Map[K, V]) Get(key K) (value V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.by[key]
	if e == nil {
		return value, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*used[K, V]).value, true
}

// Put keeps a value of a size, in the place of another one of its key.
func (l *Map[K, V]) Put(key K, value V, size int) {
	l.Update(key, size, func(V) V { return value })
}

// Update puts what next makes of the value of a key, the zero value where none is kept, in its place, and gives it.
func (l *Map[K, V]) Update(key K, size int, next func(V) V) (value V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.by[key]; e != nil {
		value = e.Value.(*used[K, V]).value
	}
	value = next(value)
	if l.by == nil {
		l.by = map[K]*list.Element{}
	}
	l.remove(l.by[key])
	l.by[key] = l.order.PushFront(&used[K, V]{key, value, size})
	for l.size += size; l.size > l.Max && l.order.Len() > 1; {
		l.remove(l.order.Back())
	}
	return value
}

// Drop forgets the values of the keys that are meant.
func (l *Map[K, V]) Drop(meant func(K) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, e := range l.by {
		if meant(key) {
			l.remove(e)
		}
	}
}

func (l *Map[K, V]) remove(e *list.Element) {
	if e == nil {
		return
	}
	x := l.order.Remove(e).(*used[K, V])
	l.size -= x.size
	delete(l.by, x.key)
}

// Held tells how many values are kept, and their size.
func (l *Map[K, V]) Held() (values, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.order.Len(), l.size
}
