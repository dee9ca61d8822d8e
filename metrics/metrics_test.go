package metrics

import (
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// read has Prometheus's own parser read what a registry writes: name{labels} → value.
func read(t *testing.T, r *Registry) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	r.ServeHTTP(w, nil)
	if got := w.Header().Get("Content-Type"); got != ContentType || expfmt.ResponseFormat(w.Header()).FormatType() != expfmt.TypeTextPlain {
		t.Fatalf("the media type is %q", got)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for name, f := range families {
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", name)
		}
		for _, m := range f.Metric {
			labels := ""
			for _, l := range m.Label {
				labels += fmt.Sprintf("|%s=%s", l.GetName(), l.GetValue())
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				out[name+labels] = m.Counter.GetValue()
			case dto.MetricType_GAUGE:
				out[name+labels] = m.Gauge.GetValue()
			case dto.MetricType_HISTOGRAM:
				out[name+"_sum"+labels], out[name+"_count"+labels] = m.Histogram.GetSampleSum(), float64(m.Histogram.GetSampleCount())
				for _, b := range m.Histogram.Bucket {
					out[fmt.Sprintf("%s_bucket%s|le=%v", name, labels, b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
			default:
				t.Errorf("%s is a %s", name, f.GetType())
			}
		}
	}
	return out
}

func TestPrometheusReadsWhatIsWritten(t *testing.T) {
	r := new(Registry)
	runs := r.Counter("wf_runs_total", "Runs; a \\ and\na line.", Label{Name: "workflow"}, Label{Name: "status", Values: []string{"done", "failed"}})
	runs.Inc("hello", "done")
	runs.Inc("hello", "done")
	runs.Add(0.25, "a \"b\"\\c\nd é", "failed")
	runs.Add(-3, "hello", "done") // counters do not fall
	runs.Add(math.NaN(), "hello", "done")
	open := r.Gauge("wf_open", "Open.")
	open.Add(3)
	open.Add(-1)
	r.Counter("wf_none_total", "There from the start.")
	r.Counter("wf_absent_total", "Has no series yet.", Label{Name: "status"})
	h := r.Histogram("wf_step_seconds", "Seconds.", []float64{.1, 1, 10}, Label{Name: "class"})
	for _, v := range []float64{.05, .1, .2, 1, 10, 11, math.NaN()} {
		h.Observe(v, "run")
	}
	r.GaugeFunc("wf_asked", "Asked.", func(emit func(float64, ...string)) { emit(7, "a"); emit(1e15, "b"); emit(math.Inf(1), "c") }, Label{Name: "class"})
	r.CounterFunc("wf_elsewhere_total", "Counted elsewhere.", func(emit func(float64, ...string)) { emit(9) })
	want := map[string]float64{
		"wf_runs_total|workflow=hello|status=done":             2,
		"wf_runs_total|workflow=a \"b\"\\c\nd é|status=failed": .25,
		"wf_open":                                  2,
		"wf_none_total":                            0,
		"wf_step_seconds_sum|class=run":            22.35,
		"wf_step_seconds_count|class=run":          6,
		"wf_step_seconds_bucket|class=run|le=0.1":  2,
		"wf_step_seconds_bucket|class=run|le=1":    4,
		"wf_step_seconds_bucket|class=run|le=10":   5,
		"wf_step_seconds_bucket|class=run|le=+Inf": 6,
		"wf_asked|class=a":                         7,
		"wf_asked|class=b":                         1e15,
		"wf_asked|class=c":                         math.Inf(1),
		"wf_elsewhere_total":                       9,
	}
	if diff := cmp.Diff(want, read(t, r)); diff != "" {
		t.Error(diff)
	}
	var again [2]strings.Builder
	for i := range again {
		if n, err := r.WriteTo(&again[i]); err != nil || int(n) != again[i].Len() {
			t.Fatalf("%d bytes are told of, %d were written: %v", n, again[i].Len(), err)
		}
	}
	if again[0].String() != again[1].String() {
		t.Error("the same values give other bytes")
	}
	if _, err := r.WriteTo(brokenPipe{}); err != io.ErrClosedPipe {
		t.Errorf("a reader that is gone: %v", err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestTheSeriesOfAFamilyAreBounded(t *testing.T) {
	for _, c := range []struct {
		name        string
		label       Label
		most, given int
	}{
		{"by default", Label{Name: "class"}, 50, 51},
		{"below", Label{Name: "class", Max: 200}, 200, 200},
		{"at", Label{Name: "class", Max: 200}, 200, 201},
		{"beyond", Label{Name: "class", Max: 200}, 200, 5000},
		{"fixed", Label{Name: "class", Values: []string{"0", "1"}}, 2, 9},
		{"of names", Label{Name: "class", In: namesOf(200, 300)}, 200, 300},
		{"of fewer names", Label{Name: "class", In: namesOf(200, 199)}, 199, 300},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := new(Registry)
			f := r.Counter("wf_x_total", "X.", c.label)
			for range 2 {
				for i := range c.given {
					f.Inc(fmt.Sprint(i))
				}
			}
			got := read(t, r)
			others := got["wf_x_total|class=other"]
			if want := 2 * float64(max(0, c.given-c.most)); others != want {
				t.Errorf("%v are counted under other, want %v", others, want)
			}
			delete(got, "wf_x_total|class=other")
			if len(got) != min(c.given, c.most) {
				t.Errorf("%d series, want %d", len(got), min(c.given, c.most))
			}
		})
	}
}

func namesOf(limit, n int) *Names {
	names := &Names{Max: limit}
	for i := range n {
		names.Allow(fmt.Sprint(i), fmt.Sprint(i))
	}
	return names
}

func TestAFamilyWithManyLabelsIsBounded(t *testing.T) {
	r := new(Registry)
	f := r.Counter("wf_x_total", "X.", Label{Name: "workflow", Max: 200}, Label{Name: "model", Max: 200})
	sum := 0
	for a := range 60 {
		for b := range 60 {
			f.Inc(fmt.Sprint(a), fmt.Sprint(b))
			sum++
		}
	}
	got := read(t, r)
	if len(got) != MaxSeries {
		t.Errorf("%d series, want %d", len(got), MaxSeries)
	}
	total := 0.0
	for _, v := range got {
		total += v
	}
	if total != float64(sum) || got["wf_x_total|workflow=other|model=other"] != float64(sum-MaxSeries+1) {
		t.Errorf("%v are counted of %d, %v of them as others", total, sum, got["wf_x_total|workflow=other|model=other"])
	}
}

// What is known before anything happens is there at 0.
func TestKnownSeriesBeginAtZero(t *testing.T) {
	r := new(Registry)
	status, class := Label{Name: "status", Values: []string{"done", "failed"}}, Label{Name: "class", Values: []string{"a", "b"}}
	r.Counter("wf_fixed_total", "X.", status, class)
	later := r.Counter("wf_later_total", "X.", Label{Name: "workflow"}, status)
	r.Gauge("wf_gauge", "X.", status)
	if diff := cmp.Diff(map[string]float64{"wf_fixed_total|status=done|class=a": 0, "wf_fixed_total|status=done|class=b": 0,
		"wf_fixed_total|status=failed|class=a": 0, "wf_fixed_total|status=failed|class=b": 0}, read(t, r)); diff != "" {
		t.Error(diff)
	}
	later.Inc("w", "done")
	later.Zero("w")
	later.Zero("x")
	(*Counter)(nil).Zero("y")
	got := read(t, r)
	for name, want := range map[string]float64{"wf_later_total|workflow=w|status=done": 1, "wf_later_total|workflow=w|status=failed": 0,
		"wf_later_total|workflow=x|status=done": 0, "wf_later_total|workflow=x|status=failed": 0} {
		if v, there := got[name]; !there || v != want {
			t.Errorf("%s is %v, %v", name, v, there)
		}
	}
	if len(got) != 8 {
		t.Errorf("%v", got)
	}
}

func TestOddValuesAreOthers(t *testing.T) {
	r := new(Registry)
	f := r.Counter("wf_x_total", "X.", Label{Name: "class"})
	f.Inc("")
	f.Inc("\xff\xfe")
	f.Inc(strings.Repeat("a", maxValue))
	f.Inc(strings.Repeat("a", maxValue+1))
	want := map[string]float64{"wf_x_total|class=other": 3, "wf_x_total|class=" + strings.Repeat("a", maxValue): 1}
	if diff := cmp.Diff(want, read(t, r)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNotMeasuredCostsNothing(*testing.T) {
	var c *Counter
	var g *Gauge
	var h *Histogram
	c.Inc("a")
	g.Set(1, "b")
	g.Add(1)
	h.Observe(1)
}

func TestMistakesOfTheProgramAreFound(t *testing.T) {
	r := new(Registry)
	c := r.Counter("wf_x_total", "X.", Label{Name: "class"})
	for name, f := range map[string]func(){
		"twice":         func() { r.Gauge("wf_x_total", "X.") },
		"no name":       func() { r.Gauge("wf x", "X.") },
		"no label":      func() { r.Gauge("wf_y", "Y.", Label{Name: "0"}) },
		"labels":        func() { c.Inc() },
		"more labels":   func() { c.Inc("a", "b") },
		"no bucket":     func() { r.Histogram("wf_h", "H.", nil) },
		"not ascending": func() { r.Histogram("wf_h", "H.", []float64{1, 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it is not refused")
				}
			}()
			f()
		})
	}
}

// Readers and writers at once; what was counted is all there.
func TestManyCountAtOnce(t *testing.T) {
	r := new(Registry)
	c := r.Counter("wf_x_total", "X.", Label{Name: "class", Max: 10})
	h := r.Histogram("wf_x_seconds", "X.", Seconds, Label{Name: "class", Max: 10})
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 500 {
				c.Inc(fmt.Sprint((i + n) % 20))
				h.Observe(float64(i), fmt.Sprint((i+n)%20))
				if i%100 == 0 {
					_, _ = r.WriteTo(io.Discard)
				}
			}
		})
	}
	all.Wait()
	var counted, observed float64
	for name, v := range read(t, r) {
		switch {
		case strings.HasPrefix(name, "wf_x_total"):
			counted += v
		case strings.HasPrefix(name, "wf_x_seconds_count"):
			observed += v
		}
	}
	if counted != 4000 || observed != 4000 {
		t.Errorf("%v are counted and %v observed, want 4000 of each", counted, observed)
	}
}

func TestAProcessIsMeasured(t *testing.T) {
	r := new(Registry)
	r.Process("1.2.3")
	got := read(t, r)
	for _, name := range []string{"process_start_time_seconds", "go_goroutines", "go_memory_bytes", "go_heap_bytes"} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	built := false
	for name := range got {
		built = built || strings.HasPrefix(name, "wf_build_info|version=1.2.3|goversion=go")
	}
	if !built {
		t.Error("wf_build_info is not there")
	}
}

func BenchmarkCounter(b *testing.B) {
	c := new(Registry).Counter("wf_x_total", "X.", Label{Name: "workflow", Max: 200}, Label{Name: "status", Values: []string{"done", "failed"}})
	b.ReportAllocs()
	for b.Loop() {
		c.Inc("hello", "done")
	}
}

func BenchmarkHistogram(b *testing.B) {
	h := new(Registry).Histogram("wf_x_seconds", "X.", Seconds, Label{Name: "class", Max: 200})
	b.ReportAllocs()
	for b.Loop() {
		h.Observe(.3, "run")
	}
}
