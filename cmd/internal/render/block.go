package render

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/ipfs/go-cid"

	"wf/cas"
	"wf/protocol"
)

// BlockJSON is wf.block/v1. Node is the record, as DAG-JSON; a payload is Text where it is valid
// UTF-8, else Bytes in base64. The answer of cas put has none of them.
type BlockJSON struct {
	Schema string          `json:"schema"`
	CID    string          `json:"cid"`
	Codec  string          `json:"codec"` // dag-cbor or raw
	Size   int             `json:"size"`  // bytes
	Node   json.RawMessage `json:"node,omitempty"`
	Text   *string         `json:"text,omitempty"`
	Bytes  []byte          `json:"bytes,omitempty"`
}

// NewBlockJSON describes a block without its content.
func NewBlockJSON(l protocol.Link, data []byte) BlockJSON {
	out := BlockJSON{Schema: "wf.block/v1", CID: l.String(), Codec: "raw", Size: len(data)}
	if l.CID().Type() == cid.DagCBOR {
		out.Codec = "dag-cbor"
	}
	return out
}

// ShowBlock shows a record as DAG-JSON, a payload as it is; control characters only where
// nobody looks.
func (p *Printer) ShowBlock(l protocol.Link, data []byte) error {
	shown := NewBlockJSON(l, data)
	if shown.Codec == "dag-cbor" {
		node, err := cas.ToJSON(data)
		if err != nil {
			return err
		}
		if !p.AsJSON() {
			_, err = fmt.Fprintf(p.Out, "%s\n", node)
			return err
		}
		shown.Node = node
		return p.Answer(shown)
	}
	switch text := string(data); {
	case p.AsJSON() && utf8.ValidString(text):
		shown.Text = &text
		return p.Answer(shown)
	case p.AsJSON():
		shown.Bytes = data
		return p.Answer(shown)
	case p.Out.TTY:
		_, err := fmt.Fprintln(p.Out, Visible(text))
		return err
	}
	_, err := p.Out.Writer.Write(data)
	return err
}
