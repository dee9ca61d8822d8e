package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/ipfs/go-cid"
)

// A Link names a block. The zero Link names nothing: it is null in CBOR and JSON.
//
// The CID is hidden on purpose: a bare cid.Cid handed to fxamacker/cbor is written as a
// byte string, and gc, export and verify would lose the target without an error. A Link
// writes tag 42 in every mode (DAG-CBOR specification, "Links").
type Link struct{ c cid.Cid }

// NewLink wraps a CID.
func NewLink(c cid.Cid) Link { return Link{c} }

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
	if err != nil {
		return Link{}, err
	}
	return Link{c}, nil
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
		return []byte{0xf6}, nil
	}
	b := l.c.KeyString() // Bytes would copy
	n := len(b) + 1
	out := make([]byte, 0, n+5)
	out = append(out, 0xd8, 0x2a)
	switch {
	case n < 24:
		out = append(out, 0x40|byte(n))
	case n < 256:
		out = append(out, 0x58, byte(n))
	case n < 65536:
		out = append(out, 0x59, byte(n>>8), byte(n))
	default:
		return nil, fmt.Errorf("CID of %d bytes is too long for a link", len(b))
	}
	return append(append(out, 0), b...), nil
}

// UnmarshalCBOR reads what MarshalCBOR writes, by hand: a nested decode of each link costs
// more than the record around it.
func (l *Link) UnmarshalCBOR(b []byte) error {
	if len(b) == 1 && (b[0] == 0xf6 || b[0] == 0xf7) {
		*l = Link{}
		return nil
	}
	if len(b) < 4 || b[0] != 0xd8 || b[1] != 0x2a {
		return fmt.Errorf("link: want tag 42, have % x", b[:min(len(b), 3)])
	}
	b = b[2:]
	switch {
	case b[0]>>5 == 2 && b[0]&31 < 24:
		b = b[1:]
	case b[0] == 0x58 && len(b) > 2:
		b = b[2:]
	case b[0] == 0x59 && len(b) > 3:
		b = b[3:]
	default:
		return fmt.Errorf("link: tag 42 must hold a byte string")
	}
	if len(b) == 0 || b[0] != 0 {
		return fmt.Errorf("link: first byte must be the identity multibase 0x00")
	}
	c, err := cid.Cast(b[1:])
	if err != nil {
		return fmt.Errorf("link: %w", err)
	}
	l.c = c
	return nil
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
