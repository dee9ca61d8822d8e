package server

import (
	"context"
	"net/http"

	"wf/hub/reply"
	"wf/protocol"
)

// Media types of blocks: https://www.iana.org/assignments/media-types, vnd.ipld.
const (
	mediaCBOR = "application/vnd.ipld.dag-cbor"
	mediaRaw  = "application/vnd.ipld.raw"
)

// codecCBOR is DAG-CBOR in a CID.
const codecCBOR = 0x71

// A BlockReader gives the bytes that a link names; where there are none the error wraps protocol.ErrNotFound.
type BlockReader func(context.Context, protocol.Link) ([]byte, error)

// ServeBlock answers GET /v1/blocks/{cid}: with what block gives, or for payload=true with what payload gives of
// a text that lies in chunks.
func ServeBlock(w http.ResponseWriter, r *http.Request, block, payload BlockReader) error {
	p, err := Query(r, "payload")
	if err != nil {
		return err
	}
	whole, err := p.yes("payload")
	if err != nil {
		return err
	}
	l, err := protocol.ParseLink(r.PathValue("cid"))
	if err != nil {
		return reply.Badf("%v", err)
	}
	read, tag, media := block, l.String(), mediaRaw
	switch {
	case whole:
		read, tag = payload, tag+".payload"
	case l.CID().Prefix().Codec == codecCBOR:
		media = mediaCBOR
	}
	b, err := read(r.Context(), l)
	// A block never changes; it is shown to nobody else, and never as a page of its own.
	if err != nil || unchanged(w, r, tag, "private, max-age=31536000, immutable") {
		return err
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	reply.Bytes(w, http.StatusOK, media, b)
	return nil
}

func (s *Server) block(c *call) (any, error) {
	return nil, ServeBlock(c.w, c.Request, s.Feed.Block, func(ctx context.Context, l protocol.Link) ([]byte, error) {
		return protocol.ReadPayload(ctx, s.Feed, l)
	})
}
