package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/daemon"
	"wf/protocol"
)

// cpu is what this process has used of the processor so far.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A turn of a long chat costs what one at its beginning does: what is compared is the time of the
// processor, of the daemon, of the agent and of what the screen reads, in turns 10 to 40 and 290 to 320.
func BenchmarkTurnOfALongChat(b *testing.B) {
	const early, late, window = 10, 290, 30
	dir := b.TempDir()
	for name, value := range map[string]string{"HOME": dir, "WF_STORE": dir + "/.wf", "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": ""} {
		b.Setenv(name, value)
	}
	b.Chdir(dir)
	var replies strings.Builder
	for i := range late + window + 1 {
		fmt.Fprintf(&replies, "wf#%d: [{tool: list_files, args: {path: .}}, {text: \"Answer %d: the directory holds a script, and nothing that was asked for.\", usage: {input: 400, output: 20}}]\n", i+1, i)
	}
	write(b, dir, "replies.yaml", replies.String())
	var first, last time.Duration
	turns := 0
	for b.Loop() {
		b.Setenv("WF_STORE", fmt.Sprint(dir, "/", turns, ".wf"))
		a := newApp(os.Stdin, os.Stdout, os.Stderr)
		a.Quiet = true
		s, err := a.OpenStore(b.Context(), false)
		if err != nil {
			b.Fatal(err)
		}
		err = daemon.Private(a.Setup, s, dir, func(d *daemon.Daemon) error {
			run, _, err := a.chatRun(b.Context(), d, "", chatFlags{run: runFlags{models: []string{"script/" + dir + "/replies.yaml"}}})
			if err != nil {
				return err
			}
			ctx, stop := context.WithCancel(b.Context())
			defer stop()
			talk, err := chat.Open(ctx, a.chatHere(d), run)
			if err != nil {
				return err
			}
			yours, ended := make(chan string, 1), make(chan error, 1)
			go func() {
				ended <- talk.Follow(ctx, 0, func(u api.Update) {
					if _, waits := u.Data.(protocol.WaitingFor); waits {
						yours <- u.Step
					}
				})
			}()
			var marks [late + window]time.Duration
			for i := range marks {
				select {
				case step := <-yours:
					marks[i] = cpu(b)
					if err := talk.Answer(ctx, api.Answer{Step: step, Text: "And what else is there?"}); err != nil {
						return err
					}
				case err := <-ended:
					return fmt.Errorf("turn %d: the chat ended: %w", i, err)
				}
			}
			first += marks[early+window-1] - marks[early]
			last += marks[late+window-1] - marks[late]
			turns += window - 1
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(first.Microseconds())/float64(turns)/1000, "early-ms/turn")
	b.ReportMetric(float64(last.Microseconds())/float64(turns)/1000, "late-ms/turn")
	b.ReportMetric(float64(last)/float64(first), "late/early")
}
