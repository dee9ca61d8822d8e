package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/api"
	"wf/engine"
	"wf/hub/client"
	"wf/hub/queue"
	"wf/protocol"
)

// kills are how many jobs go through a hub, and how often the hub or a worker is killed meanwhile: WF_HUB_KILLS=500/50, with
// WF_HUB_KILLS_SEED for other victims.
func kills(t *testing.T) (jobs, kills int) {
	given := os.Getenv("WF_HUB_KILLS")
	if given == "" {
		return 30, 6
	}
	a, b, _ := strings.Cut(given, "/")
	jobs, err := strconv.Atoi(a)
	kills, err2 := strconv.Atoi(b)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return jobs, kills
}

// Jobs go through a hub while it and its workers are killed, by chance: each becomes one run at the worker that the hub
// names, none is forgotten or given up, and the queue never says of a job what is not so. No client waits for them: once
// submitted they are the hub's (O-09). A marker in their inputs is in no file of the hub, at any time (K-09).
func TestO09JobsSurviveKills(t *testing.T) {
	if testing.Short() {
		t.Skip("kills daemons")
	}
	t.Parallel()
	jobs, kills := kills(t)
	seed := uint64(1)
	if given := os.Getenv("WF_HUB_KILLS_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	chance := rand.New(rand.NewPCG(seed, seed))
	const marker = "zebra-crossing-marker"
	root := t.TempDir()
	data := filepath.Join(root, "hub", "data")
	names := []string{"ada", "bob", "cid"}
	for _, name := range append([]string{"hub"}, names...) {
		if err := os.Mkdir(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if name != "hub" {
			write(t, filepath.Join(root, name), "job.yaml", "wf: 1\nname: job\ninputs: {n: {type: string, required: true}}\nroles:\n  only: {run: 'sleep 0.05; echo done'}\n")
			trustAll(t, filepath.Join(root, name))
		}
	}
	address := "127.0.0.1:0"
	var said api.HubServing
	startHub := func() *process {
		p := startProcess(t, filepath.Join(root, "hub"), "hub", "--listen", address, "--data", data)
		if err := json.Unmarshal(p.line, &said); err != nil {
			t.Fatal(err)
		}
		address = strings.TrimPrefix(said.Listen[0].URL, "http://")
		return p
	}
	running := map[string]*process{"hub": startHub()}
	startWorker := func(name string) {
		running[name] = startProcess(t, filepath.Join(root, name), "serve", "--name", name, "--listen", "unix", "--hub", said.Listen[0].URL,
			"--hub-token-file", said.AgentToken, "--capacity", "3")
	}
	for _, name := range names {
		startWorker(name)
	}
	hub := ofHub(t, said)

	id := func(n int) string { return fmt.Sprint("job-", n) }
	// hand submits a job until the hub has it, and no longer.
	hand := func(id string) error {
		for t.Context().Err() == nil {
			s := &api.Start{Workflow: "job", RequestID: id, Inputs: map[string]json.RawMessage{"n": json.RawMessage(strconv.Quote(marker + id))}}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			_, _, err := hub.Submit(ctx, s, nil)
			cancel()
			if err == nil || !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			raw, err := hub.Queue(t.Context())
			if err == nil && strings.Contains(string(raw), strconv.Quote(id)) {
				return nil
			}
		}
		return t.Context().Err()
	}
	ids := make(chan string, jobs)
	for n := range jobs {
		ids <- id(n)
	}
	close(ids)
	var handing sync.WaitGroup
	for range 8 {
		handing.Go(func() {
			for id := range ids {
				if err := hand(id); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			}
		})
	}
	known := map[string]bool{}
	for n := range jobs {
		known[id(n)] = true
	}
	// watch reads the queue, and holds what it says against what must be.
	watch := func() (waiting int) {
		raw, err := hub.Queue(t.Context())
		if err != nil {
			return -1 // it is being killed
		}
		var list struct{ Items []queue.Entry }
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			switch {
			case !known[e.ID]:
				t.Errorf("the queue has %s, which was not submitted", e.ID)
			case e.State == queue.Dead:
				t.Errorf("%s is dead, after %d attempts: %s", e.ID, e.Attempts, e.Why)
			case e.Run != "":
				t.Errorf("%s is %s, and is said to be run %s", e.ID, e.State, e.Run)
			}
		}
		for _, path := range contains(t, data, marker) {
			t.Errorf("the content of a job is in %s", path)
		}
		return len(list.Items)
	}
	const looks = 100 // at the queue and the disk before a process is killed, at most
	for n := range kills {
		for range chance.IntN(looks) {
			watch()
		}
		victim := append([]string{"hub"}, names...)[chance.IntN(1+len(names))]
		running[victim].kill()
		if victim == "hub" {
			running["hub"] = startHub()
		} else {
			startWorker(victim)
		}
		t.Logf("kill %d: %s", n+1, victim)
	}
	handing.Wait()
	for deadline := time.Now().Add(5 * time.Minute); watch() != 0; time.Sleep(20 * time.Millisecond) { // no client hears of the queue
		if time.Now().After(deadline) {
			raw, _ := hub.Queue(t.Context())
			t.Fatalf("jobs wait still: %s", raw)
		}
	}
	there := client.Service{API: hub, Name: "hub"}
	for n := range jobs { // each is one run, done, at the worker that the hub names
		run := engine.RequestRun(id(n))
		if err := there.Follow(t.Context(), run, api.Following{Until: api.Ended}, func(api.Update) error { return nil }); err != nil {
			t.Errorf("%s: %v", id(n), err)
		}
		row, err := there.Run(t.Context(), run, api.Window{Limit: 1})
		if err != nil || row.Status != protocol.Done {
			t.Errorf("%s is run %s: %v, %v", id(n), run, row, err)
		}
	}
	list, err := there.List(t.Context(), api.Query{Limit: 2 * jobs})
	if err != nil || len(list.Items) != jobs {
		t.Errorf("the hub lists %d runs of %d jobs, %v", len(list.Items), jobs, err)
	}
}

// contains are the files below a directory that hold a text.
func contains(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), text) {
			found = append(found, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	return found
}
