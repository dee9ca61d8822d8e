package metrics

import (
	"bufio"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// ContentType is the media type of the text format.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// ServeHTTP answers with all families.
func (r *Registry) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", ContentType)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = r.WriteTo(w) // a client that is gone hears nothing
}

// Names are the names of the families, sorted.
func (r *Registry) Names() []string {
	var out []string
	for _, f := range r.sorted() {
		out = append(out, f.name)
	}
	return out
}

// WriteTo writes all families in the text format.
func (r *Registry) WriteTo(w io.Writer) (int64, error) {
	t := &text{w: bufio.NewWriter(w)}
	for _, f := range r.sorted() {
		f.write(t)
	}
	t.err(t.w.Flush())
	return t.n, t.failed
}

// text writes until something fails.
type text struct {
	w      *bufio.Writer
	n      int64
	failed error
}

func (t *text) err(err error) {
	if t.failed == nil {
		t.failed = err
	}
}

func (t *text) say(parts ...string) {
	for _, p := range parts {
		n, err := t.w.WriteString(p)
		t.n += int64(n)
		t.err(err)
	}
}

// write writes a family, unless it has no series.
func (f *family) write(t *text) {
	all := f.now()
	if len(all) == 0 {
		return
	}
	t.say("# HELP ", f.name, " ", helpText.Replace(f.help), "\n# TYPE ", f.name, " ", string(f.kind), "\n")
	for _, s := range all {
		if f.kind != histogram {
			t.line(f, s, "", "", s.get())
			continue
		}
		var sum uint64
		for i := range s.counts {
			sum += s.counts[i].Load()
			bound := math.Inf(1)
			if i < len(f.buckets) {
				bound = f.buckets[i]
			}
			t.line(f, s, "_bucket", number(bound), float64(sum))
		}
		t.line(f, s, "_sum", "", s.get())
		t.line(f, s, "_count", "", float64(sum)) // of the buckets just written: others may be counted meanwhile
	}
}

// now are the series of a family, sorted by their labels.
func (f *family) now() []*series {
	if f.ask != nil {
		asked := &family{name: f.name, labels: f.labels, series: map[string]*series{}, seen: make([]map[string]bool, len(f.labels))}
		f.ask(func(value float64, labels ...string) { asked.at(labels).add(value) }) // several may be Other
		f = asked
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := make([]*series, 0, len(f.series))
	for _, key := range slices.Sorted(maps.Keys(f.series)) {
		out = append(out, f.series[key])
	}
	return out
}

func (t *text) line(f *family, s *series, suffix, le string, value float64) {
	t.say(f.name, suffix)
	between := "{"
	for i, l := range f.labels {
		t.say(between, l.Name, `="`, valueText.Replace(s.labels[i]), `"`)
		between = ","
	}
	if le != "" {
		t.say(between, `le="`, le, `"`)
		between = ","
	}
	if between == "," {
		t.say("}")
	}
	t.say(" ", number(value), "\n")
}

var (
	helpText  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	valueText = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func number(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
