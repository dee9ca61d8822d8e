package relay

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"wf/hub/reply"
	"wf/protocol"
)

// block serves GET /v1/blocks/{cid} from any worker that has the block. The hub hashes what comes: an
// worker that does not have a block cannot answer for one that does.
func (h *Hub) block(w http.ResponseWriter, r *http.Request) error {
	l, err := protocol.ParseLink(r.PathValue("cid"))
	if err != nil {
		return reply.Badf("%v", err)
	}
	payload, err := wantsPayload(r)
	if err != nil {
		return err
	}
	var body []byte
	tag, media := `"`+l.String()+`"`, "application/vnd.ipld.raw"
	switch {
	case payload:
		tag = `"` + l.String() + `.payload"`
		body, err = h.payload(r.Context(), l)
	case l.CID().Prefix().Codec == codecCBOR:
		media = "application/vnd.ipld.dag-cbor"
		fallthrough
	default:
		body, err = blocks{h}.Block(r.Context(), l)
	}
	if err != nil {
		return err
	}
	head := w.Header()
	head.Set("ETag", tag)
	head.Set("Cache-Control", "private, max-age=31536000, immutable") // a block never changes
	head.Set("Content-Security-Policy", sandboxed)
	for held := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if held = strings.TrimPrefix(strings.TrimSpace(held), "W/"); held == tag || held == "*" {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	reply.Bytes(w, http.StatusOK, media, body)
	return nil
}

// maxPayload is how much of a payload the hub puts together, in bytes. More is read by its blocks.
const maxPayload = 64 << 20

// payload reads all of a payload that lies in chunks.
func (h *Hub) payload(ctx context.Context, l protocol.Link) ([]byte, error) {
	read := func(l protocol.Link) ([]byte, error) { return blocks{h}.Block(ctx, l) }
	p, err := protocol.OpenPayload(read, l)
	if err != nil {
		return nil, err
	}
	if p.Size > maxPayload {
		return nil, fmt.Errorf("the payload %s has %d bytes, a hub passes on %d at most: %w", l, p.Size, maxPayload, protocol.ErrTooLarge)
	}
	return p.Bytes(read)
}

// codecCBOR is DAG-CBOR in a CID.
const codecCBOR = 0x71

func wantsPayload(r *http.Request) (payload bool, err error) {
	for name, values := range r.URL.Query() {
		if name != "payload" || len(values) > 1 || values[0] != "true" && values[0] != "false" {
			return false, reply.Badf("%s=%.100q: only payload=true or payload=false is known here", name, strings.Join(values, ","))
		}
		payload = values[0] == "true"
	}
	return payload, nil
}

// blocks are those of all workers.
type blocks struct{ h *Hub }

// Block reads a block from the first worker that gives its bytes, as their hash says. One that no
// connected worker has is an error wrapping protocol.ErrNotFound.
func (b blocks) Block(ctx context.Context, l protocol.Link) ([]byte, error) {
	reading, done := context.WithCancel(ctx)
	defer done()
	asking, cancel := context.WithTimeout(reading, b.h.Asking)
	defer cancel()
	path := "/v1/blocks/" + escape(l.String())
	links := b.h.all()
	found := make(chan []byte, len(links))
	var all sync.WaitGroup
	for _, worker := range links {
		all.Go(func() {
			if !worker.has(asking, path) {
				return
			}
			got, err := worker.get(reading, path)
			if err != nil || got.status != http.StatusOK {
				return // another may have it, and was faster
			}
			if sum, err := l.CID().Prefix().Sum(got.body); err != nil || !bytes.Equal(sum.Bytes(), l.Bytes()) {
				b.h.Log.Warn("a worker gives other bytes for a block", "worker", worker.id, "cid", l)
				return
			}
			found <- got.body
			done()
		})
	}
	all.Wait()
	close(found)
	if body, ok := <-found; ok {
		return body, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("no worker that is connected has the block %s: %w", l, protocol.ErrNotFound)
}
