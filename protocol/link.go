package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"

	"wf/protocol/dagcbor"
)

// A Link names a block. The zero Link names nothing: it is null in CBOR and JSON.
//
// The CID is hidden on purpose: a bare cid.Cid handed to fxamacker/cbor is written as a
// byte string, and gc, export and verify would lose the target without an error. A Link
// writes tag 42 in every mode (DAG-CBOR specification, "Links").
type Link struct{ c cid.Cid }

// NewLink wraps a CID.
func NewLink(c cid.Cid) Link { return Link{c} }

// RawLink names a block of these bytes as they are: raw, sha2-256.
func RawLink(b []byte) Link {
	c, err := cid.NewPrefixV1(cid.Raw, multihash.SHA2_256).Sum(b)
	if err != nil {
		panic(err) // sha2-256 is always registered
	}
	return Link{c}
}

// ParseLink reads the text form, for example bafyrei….
func ParseLink(s string) (Link, error) {
	c, err := cid.Decode(s)
	if err != nil {
		return Link{}, fmt.Errorf("%q is no CID: %w", s, err)
	}
	return Link{c}, nil
}

// CastLink reads the binary form.
func CastLink(b []byte) (Link, error) {
	c, err := cid.Cast(b)
	return Link{c}, err
}

// CID returns the wrapped CID; cid.Undef for the zero Link.
func (l Link) CID() cid.Cid { return l.c }

// Defined reports whether l names a block.
func (l Link) Defined() bool { return l.c.Defined() }

// Bytes is the binary CID, nil for the zero Link.
func (l Link) Bytes() []byte { return l.c.Bytes() }

// String is the base32 text form, "" for the zero Link.
func (l Link) String() string {
	if !l.c.Defined() {
		return ""
	}
	return l.c.String()
}

// Short is what screens show: the 8 characters that follow bafyrei or bafkrei, since all
// CIDs of a codec begin alike.
func (l Link) Short() string {
	s := l.String()
	if len(s) < 15 {
		return s
	}
	return s[7:15]
}

// MarshalCBOR writes tag 42 over 0x00 and the binary CID, or null.
func (l Link) MarshalCBOR() ([]byte, error) {
	if !l.c.Defined() {
		return l.appendCBOR(nil), nil
	}
	return l.appendCBOR(make([]byte, 0, 41)), nil // a CID of ours has 36 bytes
}

func (l Link) appendCBOR(dst []byte) []byte {
	if !l.c.Defined() {
		return dagcbor.AppendNull(dst)
	}
	return dagcbor.AppendLink(dst, l.c.KeyString()) // Bytes would copy
}

// UnmarshalCBOR reads what MarshalCBOR writes, by hand: a nested decode of each link costs
// more than the record around it.
func (l *Link) UnmarshalCBOR(b []byte) error {
	w := dagcbor.Walk{B: b}
	if w.Is(dagcbor.Simple) {
		if _, info, _ := w.Head(); info == dagcbor.Null || info == dagcbor.Undefined {
			*l = Link{}
			return nil
		}
	}
	*l = ReadLink(&w)
	if !w.Ended() {
		return fmt.Errorf("% x is no link: %w", b[:min(len(b), 8)], w.Err())
	}
	return nil
}

// ReadLink reads the link that is next in a walk. What is none is a fault of it.
func ReadLink(w *dagcbor.Walk) Link {
	b := w.CID()
	if w.Failed() {
		return Link{}
	}
	l, err := CastLink(b)
	if err != nil {
		w.Fail()
	}
	return l
}

// MarshalJSON writes {"/":"<cid>"} (DAG-JSON), or null.
func (l Link) MarshalJSON() ([]byte, error) {
	if !l.c.Defined() {
		return []byte("null"), nil
	}
	return []byte(`{"/":"` + l.c.String() + `"}`), nil
}

// UnmarshalJSON reads {"/":"<cid>"} or null.
func (l *Link) UnmarshalJSON(b []byte) error {
	if bytes.Equal(bytes.TrimSpace(b), []byte("null")) {
		*l = Link{}
		return nil
	}
	var v struct {
		CID string `json:"/"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	got, err := ParseLink(v.CID)
	*l = got
	return err
}
