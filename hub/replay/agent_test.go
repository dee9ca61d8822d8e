package replay_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"wf/cas"
	"wf/hub/client"
	"wf/hub/replay"
	"wf/protocol"
)

// agent is another process: it serves a store on a socket and writes to it until it is killed.
func agent(dir string) {
	err := func() error {
		ctx := context.Background()
		s, err := cas.Open(ctx, dir, cas.Options{})
		if err != nil {
			return err
		}
		j, err := s.Journal(ctx, "run")
		if err != nil {
			return err
		}
		path := filepath.Join(dir, "sock")
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		l, err := net.Listen("unix", path)
		if err != nil {
			return err
		}
		fmt.Println("it listens")
		server := replay.Server{Feed: s}
		go http.Serve(l, server.WebSocket())
		for n := 0; ; n++ {
			drafts := make([]cas.Draft, 1+n%5)
			for i := range drafts {
				drafts[i] = cas.Draft{Step: "a#1", Data: protocol.TextSaid{Content: protocol.NewText(fmt.Sprint(os.Getpid(), " says ", n, " ", i))}}
			}
			if _, err := j.Append(ctx, time.Now().UnixMicro(), drafts, nil); err != nil {
				return err
			}
		}
	}()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

var errReset = errors.New("history was taken back")

// K-04: an agent is killed again and again while it writes; one client follows all its lives.
// Whatever the client saw is in the store, and at the end it holds the journal.
func TestK04WhatAnyClientSawIsInTheStore(t *testing.T) {
	t.Parallel()
	kills := 200
	if testing.Short() {
		kills = 20
	}
	dir, err := os.MkdirTemp("", "k04") // a short path: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	var seen []protocol.Link
	more := make(chan struct{}, 1)
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(dir, "sock"))
	}}
	follow := func(ctx context.Context, at client.Cursor) error {
		r := client.Replay{URL: "http://agent/v1/replay", HTTP: &http.Client{Transport: transport}, Codec: protocol.CBORFrames, Run: "run", Cursor: at, Live: true, Once: true}
		return r.Follow(ctx, client.Consumer{
			Event: func(e client.Event) error {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, e.CID)
				select {
				case more <- struct{}{}:
				default:
				}
				return nil
			},
			Reset: func(c client.Cursor) error { return fmt.Errorf("to event %d: %w", c.Seq, errReset) },
		})
	}
	random := rand.New(rand.NewPCG(4, 4))
	for life := range kills {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "WF_TEST_AGENT="+dir)
		cmd.Stderr = os.Stderr
		said, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(said).ReadString('\n'); err != nil {
			t.Fatalf("life %d: the agent does not listen: %v", life, err)
		}
		lived, killed := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			for {
				mu.Lock()
				at := client.Cursor{Seq: protocol.Seq(len(seen))}
				if at.Seq > 0 {
					at.CID = seen[at.Seq-1]
				}
				mu.Unlock()
				err := follow(lived, at)
				for _, lost := range []error{errReset, protocol.ErrFutureCursor, protocol.ErrCorrupt, protocol.ErrGap} {
					if errors.Is(err, lost) {
						ended <- err
						return
					}
				}
				if lived.Err() != nil {
					ended <- nil
					return
				}
			}
		}()
		for range 1 + random.IntN(40) {
			select {
			case <-more:
			case err := <-ended:
				t.Fatalf("life %d: %v", life, err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("it ended by itself")
		}
		killed()
		if err := <-ended; err != nil {
			t.Fatalf("life %d: %v", life, err)
		}
	}
	store, err := cas.Open(t.Context(), dir, cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	i := 0
	for e, err := range store.After(t.Context(), "run", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if i < len(seen) && seen[i] != e.CID {
			t.Fatalf("event %d was seen as %s and is %s", e.Seq, seen[i], e.CID)
		}
		i++
	}
	if i < len(seen) {
		t.Errorf("%d events were seen, %d are left", len(seen), i)
	}
	t.Logf("%d kills, %d events seen, %d in the store", kills, len(seen), i)
}
