package daemon_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"wf/api"
	"wf/daemon"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
	"wf/service/compose"
	"wf/service/words"
	"wf/store"
)

// talker is a command that says a part of the manual, and a number.
type talker struct {
	text string
	n    atomic.Uint64
	said atomic.Int64
}

func (c *talker) Perform(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error) {
	n := c.n.Add(1)
	rng := rand.New(rand.NewPCG(n, 2))
	size := 300 + rng.IntN(3000)
	at := rng.IntN(len(c.text) - size)
	text := fmt.Sprintf("%s\nbuild %d took %d ms, digest %016x", c.text[at:at+size], n, rng.IntN(90000), rng.Uint64())
	c.said.Add(int64(len(text)))
	return protocol.Conclusion{Text: &text}, nil
}

// BenchmarkFinding lists 10,000 runs in all the ways in which a person looks for one: in process, over HTTP, and by a process that has just
// begun. A list must take 100 ms in process, and 150 ms over HTTP; the index at most 0.7 of what is said.
func BenchmarkFinding(b *testing.B) {
	dir := b.TempDir()
	u, s := opened(b, dir)
	finding(b, u, s, dir, func() (size int64) {
		names, err := os.ReadDir(filepath.Join(s.Beside(), words.Dir))
		if err != nil {
			b.Fatal(err)
		}
		for _, x := range names {
			info, err := x.Info()
			if err != nil {
				b.Fatal(err)
			}
			size += info.Size()
		}
		return size
	})
}

// BenchmarkFindingInADatabase does the same in a database, whose server is on this machine.
func BenchmarkFindingInADatabase(b *testing.B) {
	srv, dsn := postgres(b)
	b.Setenv("XDG_STATE_HOME", filepath.Join(b.TempDir(), "state"))
	s, err := store.Open(b.Context(), dsn, store.Options{State: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	u := &compose.Setup{}
	b.Cleanup(func() {
		u.Close()
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	finding(b, u, s, b.TempDir(), func() (size int64) {
		got, err := srv.Ask(b.Context(), dsn, "select sum(length(body)) from wf.notes where name like 'search.db%'")
		if err == nil {
			size, err = strconv.ParseInt(got[0], 10, 64)
		}
		if err != nil {
			b.Fatal(err)
		}
		return size
	})
}

// finding lists the runs of a store; size is what its index takes.
func finding(b *testing.B, u *compose.Setup, s store.Store, dir string, size func() int64) {
	const runs = 10_000
	var manual strings.Builder
	for _, pattern := range []string{"../docs/*.md", "../engine/*.go", "../agentkit/*/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			b.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				b.Fatal(err)
			}
			manual.Write(text)
		}
	}
	talk := &talker{text: manual.String()}
	source := []byte(`wf: 1
name: talk
inputs: {topic: {type: string}}
roles:
  a: {run: "true"}
  b: {run: "true"}
  c: {run: "true"}
edges:
  - {from: START, to: a, prompt: "Look at ${{ inputs.topic }}"}
  - {from: a, to: b, prompt: "What of ${{ steps.a.text }}"}
  - {from: b, to: c}
  - {from: c, to: END}
`)
	p, diags := lang.Load(source, lang.Options{})
	if p == nil {
		b.Fatal(diags)
	}
	e := u.Engine(s, nil)
	e.Performers[protocol.ActRun] = talk
	began := time.Now()
	var all sync.WaitGroup
	room := make(chan struct{}, 64)
	for i := range runs {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			inputs := fmt.Appendf(nil, `{"topic":"zeppelin%d"}`, i)
			run, _, err := e.Begin(b.Context(), engine.Launch{Program: p, Source: source, Inputs: inputs, Workspace: dir, Title: fmt.Sprint("Talk ", i), Tags: []string{fmt.Sprint("t", i%100)}})
			if err == nil {
				_, err = e.Drive(b.Context(), run, engine.DriveOptions{})
			}
			if err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	b.Logf("%d runs in %v", runs, time.Since(began))
	d, err := daemon.New(u, s, daemon.Options{Dir: dir, Workflows: []string{dir}, Name: "desk", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	began = time.Now()
	if err := d.Service.IndexAll(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	b.Logf("indexed %d MB of answers in %v, in %.2f of them", talk.said.Load()>>20, time.Since(began), float64(size())/float64(talk.said.Load()))
	d.Start()
	b.Cleanup(func() { d.Close() })
	there := behind(b, answering(b, d.Handler()))
	for name, q := range map[string]api.Query{
		"all":           {Limit: 50},
		"rare word":     {Search: "zeppelin4711", Limit: 50},
		"common word":   {Search: "engine", Limit: 50},
		"three words":   {Search: "store engine runs", Limit: 50},
		"prefix":        {Search: "con*", Limit: 50},
		"letter":        {Search: "a*", Limit: 50},
		"absent":        {Search: "unheardof", Limit: 50},
		"tag":           {Tag: "t7", Limit: 50, Counts: true},
		"status":        {Status: protocol.Failed, Limit: 50, Counts: true},
		"text":          {Text: "talk 99", Limit: 50},
		"cost":          {CostMin: new(1.0), Limit: 50},
		"word and more": {Search: "engine", Tag: "t7", Status: protocol.Done, Since: time.Now().Add(-24 * time.Hour).UnixMicro(), Counts: true, Limit: 50},
	} {
		b.Run(name+"/process", func(b *testing.B) { listed(b, d.Service, q) })
		b.Run(name+"/http", func(b *testing.B) { listed(b, there, q) })
	}
	b.Run("rare word/begun", func(b *testing.B) {
		for b.Loop() {
			f := daemon.NewForeground(u, s)
			if _, err := f.List(b.Context(), api.Query{Search: "zeppelin4711", Limit: 50}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func listed(b *testing.B, s interface {
	List(context.Context, api.Query) (*api.Page, error)
}, q api.Query) {
	n, began := 0, processorTime(b)
	for b.Loop() {
		p, err := s.List(b.Context(), q)
		if err != nil {
			b.Fatal(err)
		}
		n = len(p.Items)
	}
	b.ReportMetric(float64(n), "runs")
	b.ReportMetric(float64((processorTime(b)-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// processorTime is what this process has used, which other processes of the machine have no part in.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
