package replay

import (
	"container/list"
	"sync"

	"wf/protocol"
)

// cacheBytes bounds the events that are kept encoded.
const cacheBytes = 16 << 20

// cache keeps the JSON of events that several clients read, so that the tail of a run is encoded
// once for all of them. It goes by the CID of the event: no fork can make it wrong.
type cache struct {
	mu    sync.Mutex
	max   int
	bytes int
	by    map[protocol.Link]*list.Element
	order list.List // of cached, the newest first
}

type cached struct {
	name protocol.Link
	json []byte
}

// add appends the JSON of an event to dst, if it is held.
func (c *cache) add(dst []byte, name protocol.Link) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.by[name]
	if e == nil {
		return dst, false
	}
	c.order.MoveToFront(e)
	return append(dst, e.Value.(*cached).json...), true
}

// keep holds a copy of the JSON of an event.
func (c *cache) keep(name protocol.Link, json []byte) {
	if len(json) > c.max/16 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[protocol.Link]*list.Element{}
	}
	if c.by[name] != nil {
		return
	}
	c.by[name] = c.order.PushFront(&cached{name, append([]byte(nil), json...)})
	for c.bytes += len(json); c.bytes > c.max; {
		old := c.order.Remove(c.order.Back()).(*cached)
		c.bytes -= len(old.json)
		delete(c.by, old.name)
	}
}

// forget drops everything: a redaction took a text away that it may hold.
func (c *cache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by, c.bytes = nil, 0
	c.order.Init()
}
