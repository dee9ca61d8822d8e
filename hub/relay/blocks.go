package relay

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"

	"wf/hub/server"
	"wf/protocol"
)

// block serves GET /v1/blocks/{cid} from any worker that has the block.
func (h *Hub) block(w http.ResponseWriter, r *http.Request) error {
	return server.ServeBlock(w, r, h.readBlock, h.readPayload)
}

// readPayload reads all of a payload that lies in chunks.
func (h *Hub) readPayload(ctx context.Context, l protocol.Link) ([]byte, error) {
	return protocol.PayloadBytes(func(l protocol.Link) ([]byte, error) { return h.readBlock(ctx, l) }, l)
}

// readBlock reads a block from the first worker that gives its bytes, as their hash says: a worker that does not
// have a block cannot answer for one that does. One that no connected worker has is an error wrapping
// protocol.ErrNotFound.
func (h *Hub) readBlock(ctx context.Context, l protocol.Link) ([]byte, error) {
	reading, done := context.WithCancel(ctx)
	defer done()
	asking, cancel := context.WithTimeout(reading, h.Asking)
	defer cancel()
	path := "/v1/blocks/" + escape(l.String())
	links := h.all()
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
				h.Log.Warn("a worker gives other bytes for a block", "worker", worker.id, "cid", l)
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
