package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/store"
)

// A house is a user with workflows and a store in which there is a run of every kind. It is made once, by
// the lines of testdata/commands/store/commands, and kept: every place begins with a copy, at the same path.
type house struct {
	top  string // of all that is below
	dir  string // the home of the user, the workspace, and .wf
	runs map[string]protocol.RunID
	mask *mask
	hub  api.HubServing

	store string // its name
}

// newHouse makes the store with everything.
func newHouse(t *testing.T) *house {
	t.Helper()
	top := filepath.Join(realTemp(t), fmt.Sprintf("wf-%08x", rand.Uint32())) // texts are cut by length: all have the same
	h := &house{top: top, dir: filepath.Join(top, "house", "work"), runs: map[string]protocol.RunID{}, mask: newMask(top)}
	h.store = filepath.Join(h.dir, ".wf")
	t.Cleanup(func() {
		if err := os.RemoveAll(top); err != nil {
			t.Error(err)
		}
	})
	if err := os.MkdirAll(filepath.Join(h.dir, ".wf"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(h.dir, os.DirFS("testdata/commands/store")); err != nil {
		t.Fatal(err)
	}
	write(t, h.dir, "big-replies.yaml", "big#1: [{text: \""+bigText()+"\", usage: {input: 10, output: 300000}}]\n")
	config := filepath.Join(h.dir, ".config", "wf")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, config, "config.yaml", string(readGolden(t, "testdata/commands/store/config.yaml")))
	lines := string(readGolden(t, "testdata/commands/store/commands"))

	for name, value := range map[string]string{
		"HOME": h.dir, "USER": "ada", "WF_STORE": filepath.Join(h.dir, ".wf"), "XDG_STATE_HOME": filepath.Join(h.dir, "state"),
		"XDG_DATA_HOME": "", "XDG_CONFIG_HOME": "", "XDG_RUNTIME_DIR": "", "WF_HUB": "", "WF_HUB_TOKEN_FILE": "", "WF_TRUST": "",
		"NO_COLOR": "", "CLICOLOR_FORCE": "", "GITHUB_ACTIONS": "", "TERM": "dumb", "COLUMNS": "",
	} {
		t.Setenv(name, value)
	}
	t.Chdir(h.dir)
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			h.begin(t, line)
		}
	}
	t.Chdir(top)
	h.copy(t, "house", "kept")
	return h
}

// realTemp is the directory of temporary files as programs see it.
func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// begin performs a line of the commands that make the store.
func (h *house) begin(t *testing.T, line string) {
	t.Helper()
	words := shellWords(line)
	want, err := strconv.Atoi(words[1])
	if err != nil {
		t.Fatalf("%q has no exit status", line)
	}
	args, err := h.real(words[2:])
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if got := wfMain(args...); got.exit != want {
		t.Fatalf("wf %s: exit %d, want %d\n%s%s", words[2:], got.exit, want, got.stdout, got.stderr)
	}
	var names []string
	if words[0] != "-" {
		for _, short := range strings.Split(words[0], ",") {
			names = append(names, runName(short))
		}
	}
	if err := h.learn(t.Context(), names); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
}

// runName is the name of a run, as long as its id: RUN_LOOP__.
func runName(short string) string { return (("RUN_" + short) + "______")[:10] }

// open restores the store as it was when it was made, and goes there.
func (h *house) open(t *testing.T) {
	t.Helper()
	t.Chdir(h.top)
	if err := os.RemoveAll(filepath.Join(h.top, "house")); err != nil {
		t.Fatal(err)
	}
	h.copy(t, "kept", "house")
	t.Chdir(h.dir)
}

func (h *house) copy(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", filepath.Join(h.top, from), filepath.Join(h.top, to)).CombinedOutput(); err != nil {
		t.Fatalf("copy of the store: %v\n%s", err, out)
	}
}

// fork is h with names of its own for what comes to be in one place.
func (h *house) fork() *house {
	f := &house{top: h.top, dir: h.dir, runs: map[string]protocol.RunID{}, mask: h.mask.fork(), hub: h.hub, store: h.store}
	for name, run := range h.runs {
		f.runs[name] = run
	}
	return f
}

// real replaces names in the arguments of a command by what they stand for: RUN_LOOP__ by the id of a run,
// HEAD.RUN_LOOP__ by the CID of its newest event, DEF.RUN_LOOP__ by that of its definition.
func (h *house) real(words []string) ([]string, error) {
	out := make([]string, len(words))
	for i, word := range words {
		var missing error
		out[i] = runNames().ReplaceAllStringFunc(word, func(name string) string {
			kind, run, found := strings.Cut(name, ".")
			if !found {
				run = name
			}
			id, ok := h.runs[run]
			if !ok {
				missing = fmt.Errorf("there is no %s here", run)
				return name
			}
			switch kind {
			case "HEAD":
				return h.mask.heads[id]
			case "DEF":
				return h.mask.definitions[id]
			}
			return string(id)
		})
		if missing != nil {
			return nil, missing
		}
	}
	return out, nil
}

// errNotBegun is a command that should have begun a run.
var errNotBegun = errors.New("no run was begun")

// learn names what has come to be in the store: runs, as they are told, and events of all runs.
func (h *house) learn(ctx context.Context, names []string) error {
	s, err := store.Open(ctx, h.store, store.Options{MustExist: true, State: filepath.Join(h.dir, "state")})
	if err != nil {
		return err
	}
	defer s.Close()
	heads, err := s.Heads(ctx, protocol.RunHead(""))
	if err != nil {
		return err
	}
	var fresh []protocol.RunID
	began := map[protocol.RunID]int64{}
	for _, head := range heads {
		run := protocol.RunOf(head.Name)
		if h.mask.names[string(run)] != "" {
			continue
		}
		for e, err := range s.After(ctx, run, 0) {
			if err != nil {
				return err
			}
			began[run] = e.TS
			break
		}
		fresh = append(fresh, run)
	}
	slices.SortFunc(fresh, func(a, b protocol.RunID) int { return cmp.Compare(began[a], began[b]) })
	if len(fresh) == 0 && len(names) > 0 {
		return errNotBegun
	}
	if len(fresh) != len(names) {
		return fmt.Errorf("%d runs were begun, and %d names are given", len(fresh), len(names))
	}
	for i, run := range fresh {
		h.runs[names[i]] = run
		h.mask.names[string(run)] = names[i]
	}
	for _, head := range heads {
		if err := h.mask.learn(ctx, s, head); err != nil {
			return err
		}
	}
	return h.mask.learnMemories(ctx, s)
}

// learnMemories names the events of what agents remember.
func (m *mask) learnMemories(ctx context.Context, s store.Store) error {
	heads, err := s.Heads(ctx, "")
	for _, head := range heads {
		if strings.HasPrefix(head.Name, protocol.RunHead("")) {
			continue
		}
		for l := head.Link; l.Defined() && m.names[l.String()] == ""; {
			b, err := s.Block(ctx, l)
			if err != nil {
				return err
			}
			var event struct {
				Seq  protocol.Seq  `cbor:"seq"`
				Prev protocol.Link `cbor:"prev"`
			}
			if err := cas.Decode(b, &event); err != nil {
				return fmt.Errorf("head %s: %w", head.Name, err)
			}
			m.names[l.String()] = fmt.Sprintf("EVENT.%s.%d", head.Name, event.Seq)
			l = event.Prev
		}
	}
	return err
}

// learn names the events of a run that are new.
func (m *mask) learn(ctx context.Context, s store.Store, head cas.Head) error {
	run := protocol.RunOf(head.Name)
	if m.heads[run] == head.Link.String() {
		return nil
	}
	for e, err := range s.After(ctx, run, m.seen[run]) {
		if err != nil {
			return err
		}
		m.event(run, e)
		if e.Type == protocol.EvRunStarted && m.definitions[run] == "" {
			var data protocol.RunStarted
			if err := cas.Decode(e.Data, &data); err != nil {
				return err
			}
			b, err := s.Block(ctx, data.Start)
			if err != nil {
				return err
			}
			var start protocol.Start
			if err := cas.Decode(b, &start); err != nil {
				return err
			}
			m.definitions[run] = start.Workflow.String()
		}
	}
	m.heads[run] = head.Link.String()
	return nil
}
