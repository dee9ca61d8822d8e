package replay

import (
	"container/list"
	"sync"
)

// lately keeps values by their keys, those that were used last: up to max bytes, and one in any case.
type lately[K comparable, V any] struct {
	max int

	mu    sync.Mutex
	by    map[K]*list.Element
	order list.List // of *used[K, V], the newest first
	bytes int
}

type used[K comparable, V any] struct {
	key   K
	value V
	bytes int
}

// get gives a value that is kept.
func (l *lately[K, V]) get(key K) (value V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.by[key]
	if e == nil {
		return value, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*used[K, V]).value, true
}

// put keeps a value of so many bytes, in the place of another one of its key.
func (l *lately[K, V]) put(key K, value V, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[K]*list.Element{}
	}
	l.remove(l.by[key])
	l.by[key] = l.order.PushFront(&used[K, V]{key, value, bytes})
	for l.bytes += bytes; l.bytes > l.max && l.order.Len() > 1; {
		l.remove(l.order.Back())
	}
}

// drop forgets the values of the keys that are meant.
func (l *lately[K, V]) drop(meant func(K) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, e := range l.by {
		if meant(key) {
			l.remove(e)
		}
	}
}

func (l *lately[K, V]) remove(e *list.Element) {
	if e == nil {
		return
	}
	x := l.order.Remove(e).(*used[K, V])
	l.bytes -= x.bytes
	delete(l.by, x.key)
}
