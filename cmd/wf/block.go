package main

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/ipfs/go-cid"

	"wf/cas"
	"wf/protocol"
)

// blockJSON is wf.block/v1. Node is the record, as DAG-JSON; a payload is Text where it is valid
// UTF-8, else Bytes in base64. The answer of cas put has none of them.
type blockJSON struct {
	Schema string          `json:"schema"`
	CID    string          `json:"cid"`
	Codec  string          `json:"codec"` // dag-cbor or raw
	Size   int             `json:"size"`  // bytes
	Node   json.RawMessage `json:"node,omitempty"`
	Text   *string         `json:"text,omitempty"`
	Bytes  []byte          `json:"bytes,omitempty"`
}

func newBlockJSON(l protocol.Link, data []byte) blockJSON {
	out := blockJSON{Schema: "wf.block/v1", CID: l.String(), Codec: "raw", Size: len(data)}
	if l.CID().Type() == cid.DagCBOR {
		out.Codec = "dag-cbor"
	}
	return out
}

// writeBlock shows a record as DAG-JSON, a payload as it is; control characters only where
// nobody looks.
func (a *app) writeBlock(l protocol.Link, data []byte) error {
	shown := newBlockJSON(l, data)
	if shown.Codec == "dag-cbor" {
		node, err := cas.ToJSON(data)
		if err != nil {
			return err
		}
		if !a.asJSON() {
			_, err = fmt.Fprintf(a.out, "%s\n", node)
			return err
		}
		shown.Node = node
		return a.answer(shown)
	}
	switch text := string(data); {
	case a.asJSON() && utf8.ValidString(text):
		shown.Text = &text
		return a.answer(shown)
	case a.asJSON():
		shown.Bytes = data
		return a.answer(shown)
	case a.out.tty:
		_, err := fmt.Fprintln(a.out, visible(text))
		return err
	}
	_, err := a.out.Writer.Write(data)
	return err
}
