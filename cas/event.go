package cas

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"

	"wf/protocol"
)

// encodeEvent writes an event as Encode does, whose data was checked (checkData): by hand, since
// the data is most of it, and would be looked at three times more.
func encodeEvent(e *protocol.Event) ([]byte, error) {
	if !safe(int64(e.Seq)) || !safe(e.TS) {
		return nil, fmt.Errorf("event %d of %d µs: integers of records lie within ±(2^53−1): %w", e.Seq, e.TS, protocol.ErrInvalidBlock)
	}
	if !utf8.ValidString(e.StepName()) {
		return nil, fmt.Errorf("step %q: text must be valid UTF-8: %w", e.StepName(), protocol.ErrInvalidBlock)
	}
	b := make([]byte, 0, 144+len(e.StepName())+len(e.Type)+len(e.Data))
	b = appendInt(append(b, "\xa8\x61v"...), int64(e.V))
	b = appendInt(append(b, "\x62ts"...), e.TS)
	b = appendInt(append(b, "\x63seq"...), int64(e.Seq))
	b = append(append(b, "\x64data"...), e.Data...)
	prev, err := e.Prev.MarshalCBOR()
	if err != nil {
		return nil, err
	}
	b = append(append(b, "\x64kind\x65event\x64prev"...), prev...)
	b = append(b, "\x64step"...)
	if e.Step == nil {
		b = append(b, 0xf6)
	} else {
		b = appendText(b, *e.Step)
	}
	return appendText(append(b, "\x64type"...), string(e.Type)), nil
}

// safe reports whether records may hold an integer.
func safe(n int64) bool { return n >= -protocol.MaxSafeInt && n <= protocol.MaxSafeInt }

func appendInt(b []byte, n int64) []byte {
	if n < 0 {
		return appendHead(b, 1, uint64(-1-n))
	}
	return appendHead(b, 0, uint64(n))
}

// decodeEvent reads an event. Data shares raw. The form that this version writes is read by
// hand, ten times as fast as by reflection, since a run is resumed and replayed by it; any
// other form (unknown keys of a later version) goes the general way.
func decodeEvent(raw []byte, e *protocol.Event) error {
	if decodeOwnEvent(raw, e) {
		return nil
	}
	*e = protocol.Event{}
	if err := Decode(raw, e); err != nil {
		return err
	}
	if e.Kind != protocol.KindEvent {
		return fmt.Errorf("a %q record where an event should be: %w", e.Kind, protocol.ErrCorrupt)
	}
	return nil
}

// decodeOwnEvent reads exactly the eight fields of an event, in DAG-CBOR order.
func decodeOwnEvent(raw []byte, e *protocol.Event) bool {
	c := cursor{b: raw}
	c.want("\xa8\x61v")
	v := c.number()
	c.want("\x62ts")
	ts := c.number()
	c.want("\x63seq")
	seq := c.number()
	c.want("\x64data")
	data := c.item()
	c.want("\x64kind\x65event\x64prev")
	prev := c.item()
	c.want("\x64step")
	step := c.item()
	c.want("\x64type")
	kind := c.item()
	if c.bad || len(c.b) != 0 || len(kind) == 0 || kind[0]>>5 != 3 {
		return false
	}
	e.Kind, e.V, e.TS, e.Seq, e.Data = protocol.KindEvent, int(v), ts, protocol.Seq(seq), cbor.RawMessage(data)
	if err := e.Prev.UnmarshalCBOR(prev); err != nil {
		return false
	}
	e.Step = nil
	switch s, ok := stringItem(step); {
	case ok:
		name := string(s)
		e.Step = &name
	case !bytes.Equal(step, []byte{0xf6}):
		return false
	}
	s, ok := stringItem(kind)
	if !ok {
		return false
	}
	if known := protocol.EventNamed(s); known != nil {
		e.Type = known.Type // no allocation
	} else {
		e.Type = protocol.EventType(s)
	}
	return true
}

// stringItem is the content of a text string item.
func stringItem(item []byte) ([]byte, bool) {
	if len(item) == 0 || item[0]>>5 != 3 {
		return nil, false
	}
	c := cursor{b: item}
	c.head()
	return c.b, !c.bad
}

// cursor walks over CBOR that was scanned before; the first surprise sticks.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) want(s string) {
	if len(c.b) < len(s) || string(c.b[:len(s)]) != s {
		c.bad, c.b = true, nil
		return
	}
	c.b = c.b[len(s):]
}

// head reads the head of an item.
func (c *cursor) head() (major byte, arg uint64) {
	if len(c.b) == 0 {
		c.bad = true
		return 0, 0
	}
	major, info := c.b[0]>>5, c.b[0]&31
	c.b = c.b[1:]
	if info < 24 {
		return major, uint64(info)
	}
	n := 1 << (info - 24)
	if info > 27 || len(c.b) < n {
		c.bad, c.b = true, nil
		return 0, 0
	}
	switch n {
	case 1:
		arg = uint64(c.b[0])
	case 2:
		arg = uint64(binary.BigEndian.Uint16(c.b))
	case 4:
		arg = uint64(binary.BigEndian.Uint32(c.b))
	default:
		arg = binary.BigEndian.Uint64(c.b)
	}
	c.b = c.b[n:]
	return major, arg
}

func (c *cursor) number() int64 {
	major, arg := c.head()
	if major > 1 || arg > protocol.MaxSafeInt {
		c.bad = true
	}
	if major == 1 {
		return -1 - int64(arg)
	}
	return int64(arg)
}

// item steps over one item and returns its bytes.
func (c *cursor) item() []byte {
	start := c.b
	for open := uint64(1); open > 0 && !c.bad; open-- {
		switch major, arg := c.head(); major {
		case 2, 3:
			if arg > uint64(len(c.b)) {
				c.bad, c.b = true, nil
				return nil
			}
			c.b = c.b[arg:]
		case 4, 5:
			if arg > uint64(len(c.b)) {
				c.bad, c.b = true, nil
				return nil
			}
			open += arg << (major - 4)
		case 6:
			open++
		}
	}
	if c.bad {
		return nil
	}
	n := len(start) - len(c.b)
	return start[:n:n]
}
