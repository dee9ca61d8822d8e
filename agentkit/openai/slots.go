package openai

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"wf/agentkit/internal/wire"
	"wf/agentkit/ratelimit"
)

// A slotCache keeps the prefixes of many conversations in the few slots of one llama-server, which
// must have been started with --slot-save-path.
//
//	take: a slot that holds a prefix of the request ─► use it
//	      else the slot used least recently ─► restore the longest prefix that was saved
//	give: save the slot under the digest of its prompt, once
//
// Names of saved slots follow from the prompt alone, so that another process, or a server that
// was restarted, finds them again. The server offers no way to delete them: its operator
// empties its directory.
type slotCache struct {
	root string // base URL without /v1
	key  string

	account *ratelimit.Account

	mu   sync.Mutex
	all  []slot
	tick int64
	off  bool // the server has no slots to save
}

// slot is what is known of one slot of the server.
type slot struct {
	holds string // digest of the prompt that it read last, "" is not known
	busy  bool
	used  int64 // tick of the last use
}

// held is a slot in use by one call.
type held struct {
	id     int
	digest string // of the prompt
	saved  bool   // under digest already
}

// tries is how many saved prefixes are asked for, the longest first.
const tries = 4

// slotPatience bounds one save or restore.
const slotPatience = 30 * time.Second

// take finds a slot for a prompt; prefixes are the digests of what it begins with, itself
// first, then ever shorter ones. nil is that the server may choose.
func (s *slotCache) take(ctx context.Context, prefixes []string) *held {
	s.mu.Lock()
	h, fits := s.pick(prefixes)
	s.mu.Unlock()
	if h == nil || fits {
		return h
	}
	for i, digest := range prefixes[:min(len(prefixes), tries)] {
		switch s.act(ctx, h.id, "restore", digest) {
		case http.StatusOK:
			h.saved = i == 0
			return h
		case 0:
			return h
		}
	}
	return h
}

// pick chooses a slot that is free; fits is that it holds one of the prefixes.
func (s *slotCache) pick(prefixes []string) (h *held, fits bool) {
	if s.off || len(prefixes) == 0 {
		return nil, false
	}
	at := -1
	for _, p := range prefixes {
		for i := range s.all {
			if !s.all[i].busy && s.all[i].holds == p && at < 0 {
				at, fits = i, true
			}
		}
	}
	for i := range s.all {
		if !fits && !s.all[i].busy && (at < 0 || s.all[i].used < s.all[at].used) {
			at = i
		}
	}
	if at < 0 {
		return nil, false
	}
	s.tick++
	saved := s.all[at].holds == prefixes[0]
	s.all[at] = slot{busy: true, used: s.tick}
	return &held{id: at, digest: prefixes[0], saved: saved}, fits
}

// give returns a slot. After a call that worked it holds the prompt, and is saved under its
// digest; after a failed one it is unknown what the slot holds.
func (s *slotCache) give(ctx context.Context, h *held, worked bool) {
	if h == nil {
		return
	}
	if worked && !h.saved {
		s.act(ctx, h.id, "save", h.digest)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[h.id].busy = false
	if worked {
		s.all[h.id].holds = h.digest
	}
}

// act saves or restores a slot and gives the status, 0 where no other will be given now. What goes
// wrong costs time, never an answer: the server then reads the prompt anew. One that has no slots is
// not asked again; a moment's failure does not end that.
func (s *slotCache) act(ctx context.Context, id int, action, digest string) (status int) {
	ctx, cancel := context.WithTimeout(ctx, slotPatience)
	defer cancel()
	body, err := wire.Encode(map[string]string{"filename": "wf-" + digest + ".kv"})
	if err != nil {
		return 0
	}
	call := wire.Call{URL: fmt.Sprintf("%s/slots/%d?action=%s", s.root, id, action), Body: body, Account: s.account,
		Header: map[string]string{"Authorization": wire.Bearer(s.key), "Idempotency-Key": action + "-" + digest}}
	res, done, err := call.Post(ctx)
	if err != nil {
		return 0
	}
	defer done(ratelimit.Result{}) // no tokens are used
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, wire.MaxRefusal))
	if res.StatusCode == http.StatusNotImplemented || res.StatusCode == http.StatusNotFound {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.off = true
		return 0
	}
	if err != nil {
		return 0
	}
	return res.StatusCode
}

// prefixesOf are the digests of a prompt and of the prompts it goes on from: those that end
// with an earlier message of the user. The newest comes first.
func prefixesOf(id string, tools any, prompt []message) ([]string, error) {
	head, err := wire.Encode(tools)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	h.Write(append([]byte(id+"\n"), head...))
	var out []string
	for _, m := range prompt {
		b, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		h.Write(append([]byte{'\n'}, b...))
		if m.Role == "user" {
			out = append([]string{hex.EncodeToString(h.Sum(nil)[:16])}, out...)
		}
	}
	return out, nil
}
