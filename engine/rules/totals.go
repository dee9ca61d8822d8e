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

	Estimated int64 // tokens that no provider reported, by our estimate
	Scripted  int   // model calls answered by a script or a tape

	// Performed are visits that were performed and ended, and Reused those that took an earlier result in place of that.
	// Visits that only take values over, and empty fan-outs, are neither.
	Performed, Reused int

	// Reported sums what providers reported, apart from what they did not.
	Reported protocol.UsageSum `cbor:"Told"`

	// Models are the tokens by model, which is what a price needs. Every call counts, also
	// those of attempts that failed.
	Models map[string]Tokens
}

// Tokens are sums over calls to one model.
type Tokens struct {
	Calls        int
	Unreported   int   // calls of which the provider reported no tokens: most of them failed
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
	t.Reported.Add(u)
	count(&t.Input, u.Input)
	count(&t.Cached, u.Cached)
	count(&t.Output, u.Output)
	if u.Stop != protocol.StopOverflow {
		t.Estimated += u.Held
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
	count(&t.Input, u.Input)
	count(&t.Cached, u.Cached)
	count(&t.Output, u.Output)
	count(&t.CacheWrite5m, u.CacheWrite5m)
	count(&t.CacheWrite1h, u.CacheWrite1h)
}

func count(sum, n *int64) {
	if n != nil {
		*sum += *n
	}
}
