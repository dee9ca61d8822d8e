package protocol

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// wireFrame is every frame as it is written. Pointers tell what is absent from what is zero.
type wireFrame struct {
	Type      FrameType `json:"type" cbor:"type"`
	ID        string    `json:"id,omitempty" cbor:"id,omitempty"`
	SessionID RunID     `json:"sessionId,omitempty" cbor:"sessionId,omitempty"`
	FromSeq   *number   `json:"fromSeq,omitempty" cbor:"fromSeq,omitempty"`
	ToSeq     *number   `json:"toSeq,omitempty" cbor:"toSeq,omitempty"`
	Limit     *number   `json:"limit,omitempty" cbor:"limit,omitempty"`
	Live      bool      `json:"live,omitempty" cbor:"live,omitempty"`
	Batch     bool      `json:"batch,omitempty" cbor:"batch,omitempty"`
	placed
	Events    []eventFrame `json:"events,omitempty" cbor:"events,omitempty"`
	LastSeq   *Seq         `json:"lastSeq,omitempty" cbor:"lastSeq,omitempty"`
	LastCID   *plainLink   `json:"lastCid,omitempty" cbor:"lastCid,omitempty"`
	AfterSeq  *Seq         `json:"afterSeq,omitempty" cbor:"afterSeq,omitempty"`
	Step      *string      `json:"step,omitempty" cbor:"step,omitempty"`
	N         *int64       `json:"n,omitempty" cbor:"n,omitempty"`
	Kind      string       `json:"kind,omitempty" cbor:"kind,omitempty"`
	Text      *string      `json:"text,omitempty" cbor:"text,omitempty"`
	Dropped   int64        `json:"dropped,omitempty" cbor:"dropped,omitempty"`
	Reason    string       `json:"reason,omitempty" cbor:"reason,omitempty"`
	CommonSeq *Seq         `json:"commonSeq,omitempty" cbor:"commonSeq,omitempty"`
	CommonCID *plainLink   `json:"commonCid,omitempty" cbor:"commonCid,omitempty"`
	HeadSeq   *Seq         `json:"headSeq,omitempty" cbor:"headSeq,omitempty"`
	Code      string       `json:"code,omitempty" cbor:"code,omitempty"`
	Message   string       `json:"message,omitempty" cbor:"message,omitempty"`
	Offset    *int64       `json:"offset,omitempty" cbor:"offset,omitempty"`
	Size      *int64       `json:"size,omitempty" cbor:"size,omitempty"`
	Bytes     []byte       `json:"bytes,omitempty" cbor:"bytes,omitempty"`
	Lists     []List       `json:"lists,omitempty" cbor:"lists,omitempty"`
	List      List         `json:"list,omitempty" cbor:"list,omitempty"`
	Runs      []RunID      `json:"runs,omitempty" cbor:"runs,omitempty"`
	All       bool         `json:"all,omitempty" cbor:"all,omitempty"`
}

// placed is an event with its place, alone or within a batch.
type placed struct {
	Seq   *Seq       `json:"seq,omitempty" cbor:"seq,omitempty"`
	CID   *plainLink `json:"cid,omitempty" cbor:"cid,omitempty"`
	Prev  *plainLink `json:"prev,omitempty" cbor:"prev,omitempty"`
	TS    string     `json:"ts,omitempty" cbor:"ts,omitempty"`
	Event *wireBody  `json:"event,omitempty" cbor:"event,omitempty"`
}

// eventFrame is an event within a batch.
type eventFrame struct {
	placed
	Size *int64 `json:"size,omitempty" cbor:"size,omitempty"`
}

// wireBody is the event itself: an object in JSON, the stored bytes in CBOR.
type wireBody struct {
	Type EventType `json:"type"`
	Step *string   `json:"step"`
	Data JSON      `json:"data"`
	raw  []byte
}

func (b *wireBody) MarshalCBOR() ([]byte, error) { return cbor.Marshal(b.raw) }

func (b *wireBody) UnmarshalCBOR(data []byte) error { return cbor.Unmarshal(data, &b.raw) }

// plainLink is a CID as plain text in JSON, and as a link in CBOR.
type plainLink struct{ Link }

func (l plainLink) MarshalJSON() ([]byte, error) {
	if !l.Defined() {
		return []byte("null"), nil
	}
	return []byte(`"` + l.String() + `"`), nil
}

func (l *plainLink) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil || s == "" {
		l.Link = Link{}
		return err
	}
	got, err := ParseLink(s)
	l.Link = got
	return err
}

// number takes what a client gives for a cursor, so that what is none can be named.
type number struct {
	n   Seq
	bad string
}

func (n *number) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(n.n), 10), nil }

func (n *number) UnmarshalJSON(b []byte) error {
	i, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || i < 0 || i > MaxSafeInt {
		n.bad = string(b[:min(len(b), 40)])
		return nil
	}
	n.n = Seq(i)
	return nil
}

func (n *number) MarshalCBOR() ([]byte, error) { return cbor.Marshal(int64(n.n)) }

func (n *number) UnmarshalCBOR(b []byte) error {
	var i int64
	if err := cbor.Unmarshal(b, &i); err != nil || i < 0 || i > MaxSafeInt {
		var shown any
		if cbor.Unmarshal(b, &shown) != nil {
			shown = "?"
		}
		n.bad = fmt.Sprintf("%.40v", shown)
		return nil
	}
	n.n = Seq(i)
	return nil
}

// frameOut writes frames as DAG-CBOR; frameIn reads them within limits. Frames are no blocks:
// nothing of them is ever hashed.
var (
	frameOut = mustMode(cbor.EncOptions{Sort: cbor.SortLengthFirst, IndefLength: cbor.IndefLengthForbidden}.EncMode())
	frameIn  = mustMode(cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden,
		MaxNestedLevels: 16, MaxMapPairs: 1 << 10, FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
	}.DecMode())
)

func mustMode[T any](mode T, err error) T {
	if err != nil {
		panic("protocol: " + err.Error())
	}
	return mode
}

func (w *wireFrame) encode(c Codec) ([]byte, error) {
	if c == CBORFrames {
		return frameOut.Marshal(w)
	}
	return PlainJSON(w)
}

func (w *wireFrame) decode(c Codec, b []byte) error {
	if c == CBORFrames {
		return frameIn.Unmarshal(b, w)
	}
	return json.Unmarshal(b, w)
}

// wireTime is how the wire shows a time.
const wireTime = "2006-01-02T15:04:05.000000Z"

// AppendTime appends unix µs as JSON frames show it: RFC 3339 in UTC, with µs.
func AppendTime(dst []byte, us int64) []byte {
	return time.UnixMicro(us).UTC().AppendFormat(dst, wireTime)
}

func parseTime(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return t.UnixMicro(), err
}
