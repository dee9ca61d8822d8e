package daemon_test

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/daemon"
	"wf/engine"
	"wf/engine/lang"
	"wf/metrics"
	"wf/protocol"
	"wf/service/compose"
)

// BenchmarkStepMeasured drives the cheapest steps that there are, of a role that only takes values over, without and
// with all that is counted and logged of them, in turn on one disk. of_a_step is the share of the time of a step that
// is spent on counting; with/without has the noise of the disk in it.
func BenchmarkStepMeasured(b *testing.B) {
	const steps = 100
	var text strings.Builder
	text.WriteString("wf: 1\nname: chain\nroles:\n")
	for i := range steps {
		fmt.Fprintf(&text, "  r%d: {set: {x: %d}}\n", i, i)
	}
	text.WriteString("edges:\n  - {from: START, to: r0}\n")
	for i := range steps - 1 {
		fmt.Fprintf(&text, "  - {from: r%d, to: r%d}\n", i, i+1)
	}
	fmt.Fprintf(&text, "  - {from: r%d, to: END}\n", steps-1)
	p, diags := lang.Load([]byte(text.String()), lang.Options{})
	if p == nil {
		b.Fatal(diags)
	}
	inputs, err := p.Inputs(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Setenv("XDG_STATE_HOME", filepath.Join(b.TempDir(), "state"))
	s, err := cas.Open(b.Context(), filepath.Join(b.TempDir(), ".wf"), cas.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	u := &compose.Setup{}
	defer u.Close()
	notice := daemon.Notice(new(metrics.Registry), slog.New(slog.NewJSONHandler(io.Discard, nil)), func(protocol.Usage) *int64 { return nil }, "chain")
	var counting time.Duration
	bare, measured := u.Engine(s, func(api.Update) {}), u.Engine(s, func(n api.Update) {
		began := time.Now()
		notice(n)
		counting += time.Since(began)
	})
	drive := func(e *engine.Engine) time.Duration {
		run, _, err := e.Begin(b.Context(), engine.Launch{Program: p, Source: []byte(text.String()), Inputs: inputs, Workspace: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		if _, err := e.Drive(b.Context(), run, engine.DriveOptions{}); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	drive(bare)
	var with, without time.Duration
	n := 0
	for b.Loop() {
		without += drive(bare)
		with += drive(measured)
		n++
	}
	b.ReportMetric(float64(without.Nanoseconds())/float64(n*steps), "ns/bare-step")
	b.ReportMetric(float64(with)/float64(without), "with/without")
	b.ReportMetric(float64(counting)/float64(with), "of_a_step")
}
