package metrics

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// MaxSeries is how many series a family has at most; what would be one more is counted under Other in all
// its labels.
const MaxSeries = 2000

// Other stands for the values that a label does not have of its own.
const Other = "other"

// maxValue is the length of the value of a label at most, in bytes; a longer one is Other.
const maxValue = 200

// kind is the type of a family, as the text format names it.
type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// A Label is a dimension of a family, with the values that it may have.
type Label struct {
	Name string
	// Values are all that there are; nil is any.
	Values []string
	// Max bounds how many values there are, the first that come; 0 is 50. It is for labels without Values.
	Max int
	// In decides on the values instead, for several families alike.
	In *Names
}

// defaultValues is how many values a label has that says nothing else.
const defaultValues = 50

// Names are the values of labels that become known while the process runs: the first Max of those that were
// allowed. It is safe for concurrent use.
type Names struct {
	Max int

	mu    sync.RWMutex
	known map[string]bool
}

// Allow adds names, as long as there is room.
func (n *Names) Allow(names ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[string]bool{}
	}
	for _, name := range names {
		if len(n.known) >= n.Max {
			return
		}
		if name != Other && plain(name) {
			n.known[name] = true
		}
	}
}

// Of is the value for a name: itself where it was allowed, else Other.
func (n *Names) Of(name string) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.known[name] {
		return name
	}
	return Other
}

// plain reports whether a text can be the value of a label.
func plain(s string) bool { return s != "" && len(s) <= maxValue && utf8.ValidString(s) }

// A Registry is the families of a process. The zero value has none; it is safe for concurrent use.
type Registry struct {
	mu       sync.Mutex
	families map[string]*family
}

// family is the series of one name.
type family struct {
	name, help string
	kind       kind
	labels     []Label
	buckets    []float64                                        // of a histogram: upper bounds, ascending
	ask        func(emit func(value float64, labels ...string)) // of a Func

	mu     sync.RWMutex
	series map[string]*series // by the values of their labels
	seen   []map[string]bool  // the values so far, of labels that are bounded by Max
}

// add registers a family. A name that is none, or is there already, is a mistake of the program: it panics.
func (r *Registry) add(f *family) *family {
	names := []string{f.name}
	for _, l := range f.labels {
		names = append(names, l.Name)
	}
	for _, n := range names {
		if n == "" || n[0] >= '0' && n[0] <= '9' || strings.Trim(n, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			panic(fmt.Sprintf("metrics: %q of %s is no name", n, f.name))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.families[f.name] != nil {
		panic("metrics: " + f.name + " is there twice")
	}
	if r.families == nil {
		r.families = map[string]*family{}
	}
	f.series, f.seen = map[string]*series{}, make([]map[string]bool, len(f.labels))
	if f.ask == nil && f.kind != gauge || len(f.labels) == 0 && f.ask == nil {
		f.zero(nil)
	}
	r.families[f.name] = f
	return f
}

// zero has the series of all values that are fixed there from the start: the first step of one that appears at 1 is
// none that Prometheus sees. given are values of the first labels.
func (f *family) zero(given []string) {
	if len(given) == len(f.labels) {
		f.at(given)
		return
	}
	for _, v := range f.labels[len(given)].Values {
		f.zero(append(slices.Clone(given), v))
	}
}

// sorted are the families by name.
func (r *Registry) sorted() []*family {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*family, 0, len(r.families))
	for _, name := range slices.Sorted(maps.Keys(r.families)) {
		out = append(out, r.families[name])
	}
	return out
}

// sep is between the values of a key: no UTF-8 has it.
const sep = "\xff"

// at finds or makes the series of label values as they are given.
func (f *family) at(given []string) *series {
	if len(given) != len(f.labels) {
		panic(fmt.Sprintf("metrics: %s has %d labels, not %d", f.name, len(f.labels), len(given)))
	}
	var fixed [4]string
	values := append(fixed[:0], given...)
	f.mu.RLock()
	for i := range values {
		values[i] = f.bound(i, values[i])
	}
	s := f.series[strings.Join(values, sep)]
	f.mu.RUnlock()
	if s != nil {
		return s
	}
	return f.make(values)
}

// make makes the series of values that were held against their bounds.
func (f *family) make(values []string) *series {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, l := range f.labels {
		if values[i] = f.bound(i, values[i]); l.Values != nil || l.In != nil || values[i] == Other {
			continue // bounded again: another one may have come first
		}
		if f.seen[i] == nil {
			f.seen[i] = map[string]bool{}
		}
		f.seen[i][values[i]] = true
	}
	key := strings.Join(values, sep)
	if s := f.series[key]; s != nil {
		return s
	}
	if len(f.series) >= MaxSeries-1 { // the last is for the others
		for i := range values {
			values[i] = Other
		}
		key = strings.Join(values, sep)
	}
	s := f.series[key]
	if s == nil {
		s = newSeries(slices.Clone(values), f.buckets)
		f.series[key] = s
	}
	return s
}

// bound is the value that a label may have; the caller holds mu.
func (f *family) bound(i int, value string) string {
	l := &f.labels[i]
	switch {
	case l.In != nil:
		return l.In.Of(value)
	case l.Values != nil:
		if slices.Contains(l.Values, value) {
			return value
		}
		return Other
	case !plain(value):
		return Other
	case f.seen[i][value]:
		return value
	case len(f.seen[i]) >= max(l.Max, 0) && l.Max != 0, len(f.seen[i]) >= defaultValues && l.Max == 0:
		return Other
	}
	return value
}

// A Counter only grows.
type Counter struct{ f *family }

// Counter registers a counter; its name ends with _total.
func (r *Registry) Counter(name, help string, labels ...Label) *Counter {
	return &Counter{r.add(&family{name: name, help: help, kind: counter, labels: labels})}
}

// Add adds to the series of the values of its labels, in their order. What is not more than 0 is left out.
func (c *Counter) Add(by float64, labels ...string) {
	if c != nil && by > 0 {
		c.f.at(labels).add(by)
	}
}

// Zero has the series of the values of its first labels there, at 0, with all values that the others may have. For
// those that are known before anything happens: an increase from nothing to 1 is none that Prometheus sees.
func (c *Counter) Zero(labels ...string) {
	if c != nil {
		c.f.zero(labels)
	}
}

// Inc adds 1.
func (c *Counter) Inc(labels ...string) { c.Add(1, labels...) }

// A Gauge goes up and down.
type Gauge struct{ f *family }

// Gauge registers a gauge.
func (r *Registry) Gauge(name, help string, labels ...Label) *Gauge {
	return &Gauge{r.add(&family{name: name, help: help, kind: gauge, labels: labels})}
}

// Set sets the series of the values of its labels.
func (g *Gauge) Set(to float64, labels ...string) {
	if g != nil {
		g.f.at(labels).set(to)
	}
}

// Add changes it by an amount, which may be below 0.
func (g *Gauge) Add(by float64, labels ...string) {
	if g != nil {
		g.f.at(labels).add(by)
	}
}

// A Histogram counts values by size.
type Histogram struct{ f *family }

// Seconds are bounds for what takes from a thousandth of a second to an hour.
var Seconds = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}

// Histogram registers a histogram with the upper bounds of its buckets, ascending; one without a bound follows.
func (r *Registry) Histogram(name, help string, buckets []float64, labels ...Label) *Histogram {
	for i := range buckets {
		if i > 0 && buckets[i] <= buckets[i-1] {
			panic("metrics: the buckets of " + name + " do not ascend")
		}
	}
	if len(buckets) == 0 {
		panic("metrics: " + name + " has no buckets")
	}
	return &Histogram{r.add(&family{name: name, help: help, kind: histogram, labels: labels, buckets: buckets})}
}

// Observe counts a value in the series of the values of its labels.
func (h *Histogram) Observe(value float64, labels ...string) {
	if h != nil && !math.IsNaN(value) {
		h.f.at(labels).observe(value, h.f.buckets)
	}
}

// GaugeFunc registers a gauge that is asked for when the metrics are read: ask calls emit for each series.
// ask must be quick, and may be called by several goroutines at once.
func (r *Registry) GaugeFunc(name, help string, ask func(emit func(value float64, labels ...string)), labels ...Label) {
	r.add(&family{name: name, help: help, kind: gauge, labels: labels, ask: ask})
}

// CounterFunc is GaugeFunc for what only grows, and is counted elsewhere.
func (r *Registry) CounterFunc(name, help string, ask func(emit func(value float64, labels ...string)), labels ...Label) {
	r.add(&family{name: name, help: help, kind: counter, labels: labels, ask: ask})
}
