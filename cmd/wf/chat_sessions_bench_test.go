package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/daemon"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

// saying is a command that says the same each time.
type saying struct{ text string }

func (s saying) Perform(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error) {
	return protocol.Conclusion{Text: &s.text}, nil
}

// BenchmarkChatsBehindManyRuns lists the chats of a store of 10,000 runs, of which the first 120 are chats: by a process that has just
// begun, without an index and with one; the next page; and by words that were said in one of them alone.
func BenchmarkChatsBehindManyRuns(b *testing.B) {
	const runs, chats = 10_000, 120
	dir := b.TempDir()
	for name, value := range map[string]string{"HOME": dir, "WF_STORE": dir + "/.wf", "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": ""} {
		b.Setenv(name, value)
	}
	b.Chdir(dir)
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	a.Quiet = true
	s, err := a.OpenStore(b.Context(), false)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	e := a.Engine(s, nil)
	e.Performers[protocol.ActRun] = saying{"a line of what a command prints"}
	load := func(source string) *lang.Program {
		p, diags := lang.Load([]byte(source), lang.Options{})
		if p == nil {
			b.Fatal(diags)
		}
		return p
	}
	const steps = "wf: 1\nname: steps\nroles: {a: {run: \"true\"}, b: {run: \"true\"}}\nedges:\n  - {from: START, to: a}\n  - {from: a, to: b}\n  - {from: b, to: END}\n"
	const talk = "wf: 1\nname: chat\nroles: {you: {ask: \"\"}, bot: {run: \"true\"}}\nedges:\n  - {from: START, to: you}\n  - {from: you, to: END, when: output.text == \"/end\"}\n  - {from: you, to: bot}\n  - {from: bot, to: you, limit: 100}\n"
	var all sync.WaitGroup
	room := make(chan struct{}, 64)
	each := func(source string, l engine.Launch, n int, then func(run protocol.RunID, i int) error) {
		l.Program, l.Source, l.Workspace = load(source), []byte(source), dir
		for i := range n {
			room <- struct{}{}
			all.Go(func() {
				defer func() { <-room }()
				run, _, err := e.Begin(b.Context(), l)
				if err == nil {
					_, err = e.Drive(b.Context(), run, engine.DriveOptions{})
				}
				if err == nil && then != nil {
					err = then(run, i)
				}
				if err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
	}
	each(talk, engine.Launch{Inputs: protocol.JSON("{}"), Title: "chat", Type: protocol.ChatType}, chats, func(run protocol.RunID, i int) error {
		for _, text := range []string{fmt.Sprintf("What of number %d?", i), fmt.Sprintf("And of zeppelin%d?", i)} {
			if _, err := e.Answer(b.Context(), run, engine.Reply{Text: text}); err != nil {
				return err
			}
			if _, err := e.Drive(b.Context(), run, engine.DriveOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	began := time.Now()
	each(steps, engine.Launch{Inputs: protocol.JSON("{}"), Title: "Steps"}, runs-chats, nil)
	b.Logf("%d runs in %v", runs, time.Since(began))

	sessions := func(talk chat.Session) *chat.List {
		out, err := talk.Command(b.Context(), chat.Command{Action: chat.Sessions})
		if err != nil {
			b.Fatal(err)
		}
		return out.List
	}
	measured := func(name string, f func()) {
		began := time.Now()
		f()
		b.ReportMetric(float64(time.Since(began).Microseconds())/1000, name)
	}
	within := func(newest string, f func(d *daemon.Daemon, talk chat.Session)) {
		err := daemon.Private(a.Setup, s, dir, func(d *daemon.Daemon) error {
			var run protocol.RunID
			var err error
			measured(newest, func() { run, err = d.Service.NewestChat(b.Context()) })
			if err != nil {
				return err
			}
			talk, err := chat.Open(b.Context(), a.chatHere(d), run)
			if err == nil {
				f(d, talk)
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		within("first-ms", func(d *daemon.Daemon, talk chat.Session) {
			var l *chat.List
			measured("again-ms", func() { l = sessions(talk) })
			measured("next-ms", func() {
				if _, err := l.Find(b.Context(), "", l.Next); err != nil {
					b.Fatal(err)
				}
			})
			if err := d.Service.IndexAll(b.Context(), nil); err != nil {
				b.Fatal(err)
			}
			measured("said-ms", func() {
				found, err := l.Find(b.Context(), "zeppelin77", "")
				if err != nil || len(found.Rows) != 1 {
					b.Errorf("found %v, %v", found, err)
				}
			})
		})
		within("first-indexed-ms", func(d *daemon.Daemon, talk chat.Session) {
			measured("indexed-ms", func() { sessions(talk) })
			if p, err := d.Service.List(b.Context(), api.Query{Type: protocol.ChatType}); err != nil || len(p.Items) != chats {
				b.Errorf("%d of %d chats are listed: %v", len(p.Items), chats, err)
			}
		})
	}
}
