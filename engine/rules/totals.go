package rules

import (
	"strings"

	"wf/protocol"
)

// Totals are sums over the journal.
type Totals struct {
	Steps    int   // visits dispatched
	Active   int64 // µs in which something ran
	Input    int64 // prompt tokens
	Cached   int64 // of Input
	Output   int64 // completion tokens
	Calls    int   // model calls
	Attempts int   // failed attempts
	Scripted int   // model calls answered by a script or a tape

	// Told sums what providers told, apart from what they did not.
	Told Told

	// Models are the tokens by model, which is what a price needs. Every call counts, also
	// those of attempts that failed.
	Models map[string]Tokens
}

// Tokens are sums over calls to one model.
type Tokens struct {
	Calls        int
	Unreported   int   // calls of which the provider told no tokens: most of them failed
	Input        int64 // all prompt tokens
	Cached       int64 // of Input: read from the prefix cache
	CacheWrite5m int64 // of Input: written to a cache of 5 minutes
	CacheWrite1h int64
	Output       int64
}

// Usage is the sums in the form of one call to the model of that name.
func (t Tokens) Usage(model string) protocol.Usage {
	return protocol.Usage{Model: model, Input: &t.Input, Cached: &t.Cached, CacheWrite5m: &t.CacheWrite5m, CacheWrite1h: &t.CacheWrite1h, Output: &t.Output}
}

// add counts one model call.
func (t *Totals) add(u protocol.Usage) {
	t.Calls++
	t.Told.add(u)
	for _, f := range []struct {
		sum *int64
		n   *int64
	}{{&t.Input, u.Input}, {&t.Cached, u.Cached}, {&t.Output, u.Output}} {
		if f.n != nil {
			*f.sum += *f.n
		}
	}
	if strings.HasPrefix(u.Model, "script/") || strings.HasPrefix(u.Model, "tape/") {
		t.Scripted++
	}
	if t.Models == nil {
		t.Models = map[string]Tokens{}
	}
	m := t.Models[u.Model]
	m.add(u)
	t.Models[u.Model] = m
}

func (t *Tokens) add(u protocol.Usage) {
	t.Calls++
	if u.Input == nil && u.Output == nil {
		t.Unreported++
	}
	for _, f := range []struct {
		sum *int64
		n   *int64
	}{
		{&t.Input, u.Input}, {&t.Cached, u.Cached}, {&t.Output, u.Output},
		{&t.CacheWrite5m, u.CacheWrite5m}, {&t.CacheWrite1h, u.CacheWrite1h},
	} {
		if f.n != nil {
			*f.sum += *f.n
		}
	}
}

// Told sums what providers told of model calls; what none of them told is nil.
type Told struct {
	Calls        int    `cbor:"calls"`
	Input        *int64 `cbor:"input"` // prompt tokens
	Cached       *int64 `cbor:"cached"`
	CacheWrite5m *int64 `cbor:"cache_write_5m"`
	CacheWrite1h *int64 `cbor:"cache_write_1h"`
	Output       *int64 `cbor:"output"`
	Reasoning    *int64 `cbor:"reasoning"` // of Output
}

// add counts one call.
func (u *Told) add(x protocol.Usage) {
	u.Calls++
	sum := func(to **int64, n *int64) {
		if n == nil {
			return
		}
		if *to == nil {
			*to = new(int64)
		}
		**to += *n
	}
	sum(&u.Input, x.Input)
	sum(&u.Cached, x.Cached)
	sum(&u.CacheWrite5m, x.CacheWrite5m)
	sum(&u.CacheWrite1h, x.CacheWrite1h)
	sum(&u.Output, x.Output)
	sum(&u.Reasoning, x.Reasoning)
}
