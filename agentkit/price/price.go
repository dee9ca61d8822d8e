// Package price tells what model calls cost.
//
// A Table holds prices as data with a date; one built from the config takes precedence entry
// by entry. What a call costs is exact: tokens times micro-dollars per million tokens are
// whole pico-dollars, so that sums over any grouping agree.
//
//	1 µ$ per million tokens × 1 token = 10⁻¹² $ = 1 pico-dollar
//
// # Unknown
//
// A model without an entry has no price, which is not a price of 0: Cost says nil.
//
// # Not here
//
// Prices that depend on the length of a prompt, batches, storage fees, taxes.
package price

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"wf/protocol"
	"wf/protocol/lazy"
	"wf/roles/frontmatter"
)

// PerMicro is how many pico-dollars a micro-dollar has.
const PerMicro = 1_000_000

// Price is what a million tokens cost, in micro-dollars. What is nil costs what input does.
type Price struct {
	Input   int64  `json:"input"`
	Cached  *int64 `json:"cached,omitempty"`   // read from the prefix cache
	Write5m *int64 `json:"write_5m,omitempty"` // written to a cache of 5 minutes
	Write1h *int64 `json:"write_1h,omitempty"`
	Output  int64  `json:"output"`
}

// Table is prices by model. A key is a whole name, provider included, which also stands for
// dated versions of the model, or a prefix that ends with *.
type Table struct {
	Date   string           `json:"date"`   // of the prices, 2006-01-02
	Source string           `json:"source"` // where they were read
	Prices map[string]Price `json:"prices"`
}

//go:embed prices.yaml
var embedded string

// Standard is the table that wf comes with. It is shared and must not be altered.
var Standard = sync.OnceValue(func() Table {
	t, err := Parse(embedded)
	if err != nil {
		panic(fmt.Sprintf("prices.yaml: %v", err)) // part of the binary, read in a test
	}
	return t
})

// Parse reads a table from YAML.
func Parse(text string) (Table, error) {
	raw, err := frontmatter.Fields(text)
	if err != nil {
		return Table{}, err
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	var t Table
	if err := dec.Decode(&t); err != nil {
		return Table{}, fmt.Errorf("prices: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Prices)) {
		if err := t.Prices[name].Check(); err != nil {
			return t, fmt.Errorf("prices: %s: %w", name, err)
		}
	}
	return t, nil
}

// Check refuses what is no price.
func (p Price) Check() error {
	for _, n := range []*int64{&p.Input, p.Cached, p.Write5m, p.Write1h, &p.Output} {
		if n != nil && (*n < 0 || *n > 1_000_000_000_000) {
			return fmt.Errorf("%d is no price in micro-dollars per million tokens", *n)
		}
	}
	return nil
}

// With is the table with the prices of another put over it.
func (t Table) With(over map[string]Price) Table {
	out := Table{Date: t.Date, Source: t.Source, Prices: make(map[string]Price, len(t.Prices)+len(over))}
	maps.Copy(out.Prices, t.Prices)
	maps.Copy(out.Prices, over)
	return out
}

// version is what may follow the name of a model without making it another one.
var version = lazy.Regexp(`^([-@:](20[0-9]{2}.*|[0-9]{4,8}|latest|v[0-9].*))?$`)

// Of is the price of a model: of the longest entry that fits its name, and of two of one length
// the one without a *.
func (t Table) Of(model string) (p Price, ok bool) {
	best := -1
	for name, candidate := range t.Prices {
		prefix, open := strings.CutSuffix(name, "*")
		rest, fits := strings.CutPrefix(model, prefix)
		fit := 2 * len(prefix)
		if !open {
			fit++
		}
		if fits && (open || version().MatchString(rest)) && fit > best {
			p, ok, best = candidate, true, fit
		}
	}
	return p, ok
}

// Cost is what the tokens of a call, or of many calls to one model, cost in pico-dollars; nil
// where the price is unknown, or where the provider told no tokens.
func (t Table) Cost(u protocol.Usage) *int64 {
	p, ok := t.Of(u.Model)
	if !ok || u.Input == nil && u.Output == nil {
		return nil
	}
	or := func(n *int64, otherwise int64) int64 {
		if n == nil {
			return otherwise
		}
		return *n
	}
	cached, m5, h1 := or(u.Cached, 0), or(u.CacheWrite5m, 0), or(u.CacheWrite1h, 0)
	fresh := max(0, or(u.Input, 0)-cached-m5-h1)
	cost := fresh*p.Input + cached*or(p.Cached, p.Input) + m5*or(p.Write5m, p.Input) + h1*or(p.Write1h, p.Input) + or(u.Output, 0)*p.Output
	return &cost
}
