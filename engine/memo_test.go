package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// hiding are walls that say they hide files; what commands see in their copy is tested with those of the machine.
type hiding struct {
	roles.Bare
	besides string
}

func (h hiding) Hides() (string, error) { return h.besides, nil }

// lending are such walls that give commands the name of the user, unless they have one.
type lending struct {
	hiding
	user string
}

func (l lending) Lends(c roles.Command) ([]protocol.MemoPart, error) {
	if l.user == "unreadable" {
		return nil, errors.New("the name cannot be read")
	}
	if slices.ContainsFunc(c.Env, func(pair string) bool { return strings.HasPrefix(pair, "V=") }) {
		return []protocol.MemoPart{protocol.NewMemoPart("name", []byte(l.user))}, nil
	}
	return nil, nil
}

// memos is a bench whose commands are reused, with a clock.
type memos struct {
	*bench
	mu      sync.Mutex
	now     time.Time // zero is that of the machine
	command *roles.Run
}

func newMemos(t testing.TB) *memos {
	m := &memos{bench: newBench(t)}
	m.command = &roles.Run{Walls: hiding{Bare: roles.Bare{Name: "a test"}}, Environ: []string{"PATH=" + os.Getenv("PATH"), "CC=cc", "OTHER=x"}}
	m.set()
	return m
}

func (m *memos) set() {
	m.e.Performers[protocol.ActRun] = m.command
	m.e.Scratch = filepath.Join(m.dir, ".wf", "scratch")
	m.e.Now = func() time.Time {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.now.IsZero() {
			return time.Now()
		}
		return m.now
	}
}

func (m *memos) write(path, text string) {
	m.t.Helper()
	path = filepath.Join(m.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		m.t.Fatal(err)
	}
}

func (m *memos) read(path string) string {
	b, err := os.ReadFile(filepath.Join(m.dir, path))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// start starts a run of a workflow, with the mode of reusing results.
func (m *memos) start(yaml, mode string) protocol.RunID {
	m.t.Helper()
	p := m.load(yaml)
	raw, err := p.Inputs(nil)
	if err != nil {
		m.t.Fatal(err)
	}
	id, _, err := m.e.Begin(context.Background(), engine.Launch{Program: p, Source: []byte(yaml), Inputs: raw, Workspace: m.dir, Cache: mode})
	if err != nil {
		m.t.Fatal(err)
	}
	return id
}

// did runs a workflow, and tells of each step whether it was reused, or else why it was not.
func (m *memos) did(yaml string) string {
	m.t.Helper()
	return how(m.drive(m.start(yaml, "")))
}

func how(v *api.Run) string {
	var out []string
	for _, s := range v.Steps {
		switch r := s.Reuse; {
		case r == nil:
			out = append(out, "plain")
		case r.From != "":
			out = append(out, "reused")
		default:
			out = append(out, strings.TrimSpace(r.Why+" "+r.Part))
		}
		if s.Reuse != nil && s.Reuse.NotStored != "" {
			out = append(out, "not stored: "+s.Reuse.NotStored)
		}
	}
	if v.Status != protocol.Done {
		out = append(out, string(v.Status)+" "+v.Reason)
	}
	return strings.Join(out, "; ")
}

// role is a workflow of one command.
func role(run, cache string, more ...string) string {
	return "wf: 1\nname: one\nroles:\n  build:\n    timeout: 1m\n    run: " + fmt.Sprintf("%q", run) + "\n    cache: " + cache + "\n    " + strings.Join(more, "\n    ") + "\n"
}

const building = "mkdir -p dist; cat src/* > dist/out; echo built; echo x >> $COUNT"

// count counts performances in a file beside the workspace, which no key knows.
func (m *memos) counting() (of func() int) {
	path := filepath.Join(m.t.TempDir(), "count")
	m.command.Environ = append(m.command.Environ, "COUNT="+path)
	m.command.System = []string{"PATH", "COUNT"}
	return func() int {
		b, _ := os.ReadFile(path) // none yet
		return bytes.Count(b, []byte("x"))
	}
}

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestM01AResultIsReused(t *testing.T) {
	m := newMemos(t)
	performed := m.counting()
	m.write("src/a", "one")
	yaml := role(building, "{inputs: [src/**], outputs: [dist/**]}")
	first := m.drive(m.start(yaml, ""))
	want(t, "first", how(first), "none")
	for range 2 {
		if err := os.RemoveAll(filepath.Join(m.dir, "dist")); err != nil {
			t.Fatal(err)
		}
		again := m.drive(m.start(yaml, ""))
		want(t, "again", how(again), "reused")
		want(t, "file", m.read("dist/out"), "one")
		want(t, "record", *again.Steps[0].CID, *first.Steps[0].CID)
		want(t, "result", *again.Result, *first.Result)
		want(t, "from", again.Steps[0].Reuse.From, string(first.ID)+":build#1")
		want(t, "text", again.Steps[0].Text, "built")
		if rep, err := m.e.Check(t.Context(), again.ID, nil); err != nil || !rep.OK() {
			t.Fatalf("%v %+v", err, rep)
		} else {
			want(t, "results proved", rep.Results, engine.Tally{Checked: 1, Equal: 1})
		}
	}
	want(t, "performances", performed(), 1)
}

// A memo that is not of its key is found.
func TestM01AKeyIsMadeAgain(t *testing.T) {
	for name, change := range map[string]func(*protocol.Memo){
		"a part that is gone": func(x *protocol.Memo) { x.Parts = x.Parts[1:] },
		"a part that differs": func(x *protocol.Memo) { x.Parts[len(x.Parts)-1].Digest = x.Parts[0].Digest },
		"a part that is none": func(x *protocol.Memo) { x.Parts[0].Digest = "x" },
	} {
		m := newMemos(t)
		yaml := role("echo x", "{inputs: []}")
		key := m.drive(m.start(yaml, "")).Steps[0].Reuse.Key
		stored, _, err := cas.FindMemo(t.Context(), m.e.Store, key)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := m.e.Store.Block(t.Context(), stored.Memo)
		if err != nil {
			t.Fatal(err)
		}
		var memo protocol.Memo
		if err := cas.Decode(raw, &memo); err != nil {
			t.Fatal(err)
		}
		change(&memo)
		block, err := cas.Encode(&memo)
		if err != nil {
			t.Fatal(err)
		}
		stored.Memo = block.Link
		if err := m.e.Store.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{block}, Derived: []cas.Derived{cas.PutMemo(key, stored)}}); err != nil {
			t.Fatal(err)
		}
		v := m.drive(m.start(yaml, ""))
		rep, err := m.e.Check(t.Context(), v.ID, nil)
		if err != nil || len(rep.Findings) != 1 || rep.Findings[0].Kind != "result" || rep.Results.Equal != 0 {
			t.Errorf("%s: %v %+v", name, err, rep)
		}
	}
}

// Each thing that a result follows from makes another key, and is named.
func TestM02TheFirstThingThatDiffersIsNamed(t *testing.T) {
	lend := func(m *memos, user string) {
		m.command.Walls = lending{hiding{Bare: roles.Bare{Name: "a test"}}, user}
	}
	base := role("cat src/a; echo $CC", "{inputs: [src/**], env: [CC], toolchain: [\"echo $CC\"]}", "env: {V: \"1\"}")
	for _, c := range []struct {
		name, want string
		change     func(m *memos) string
	}{
		{"nothing", "reused", func(m *memos) string { return base }},
		{"an undeclared variable", "reused", func(m *memos) string { m.command.Environ[2] = "OTHER=y"; return base }},
		{"an undeclared file", "reused", func(m *memos) string { m.write("README", "x"); return base }},
		{"what no result follows from", "reused", func(m *memos) string { return strings.Replace(base, "{inputs", "{for: 7d, inputs", 1) }},
		{"a file", "differs file src/a", func(m *memos) string { m.write("src/a", "two"); return base }},
		{"a new file", "differs file src/b/c", func(m *memos) string { m.write("src/b/c", "two"); return base }},
		{"a removed file", "differs file src/gone", func(m *memos) string { os.Remove(filepath.Join(m.dir, "src/gone")); return base }},
		{"the mode of a file", "differs file src/a", func(m *memos) string { os.Chmod(filepath.Join(m.dir, "src/a"), 0o755); return base }},
		{"a link", "differs file src/a", func(m *memos) string {
			os.Remove(filepath.Join(m.dir, "src/a"))
			os.Symlink("gone", filepath.Join(m.dir, "src/a"))
			return base
		}},
		{"the command", "differs role", func(m *memos) string { return strings.Replace(base, "cat", "cat -u", 1) }},
		{"the inputs", "differs role", func(m *memos) string { return strings.Replace(base, "src/**", "src/*", 1) }},
		{"the scope", "differs role", func(m *memos) string { return strings.Replace(base, "{inputs", "{scope: workflow, inputs", 1) }},
		{"env", "differs env CC", func(m *memos) string { m.command.Environ[1] = "CC=gcc"; return base }},
		{"the search path", "differs env PATH", func(m *memos) string { m.command.Environ[0] += ":/nowhere"; return base }},
		{"a tool", "differs toolchain tool", func(m *memos) string { return strings.Replace(base, "echo $CC\"]", "tool\"]", 1) }},
		{"a variable less", "differs env CC", func(m *memos) string { m.command.Environ = m.command.Environ[:1]; return base }},
		{"what is lent", "differs name", func(m *memos) string { lend(m, "Ann"); return base }},
		{"what cannot be told", "cannot", func(m *memos) string { lend(m, "unreadable"); return base }},
		{"the walls", "differs sandbox", func(m *memos) string {
			m.command.Walls = hiding{Bare: roles.Bare{Name: "a test"}, besides: "/opt"}
			return base
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMemos(t)
			m.write("src/a", "one")
			m.write("src/gone", "one")
			tool := filepath.Join(t.TempDir(), "tool")
			if err := os.WriteFile(tool, []byte("#!/bin/sh\necho 1.0\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			m.command.Environ[0] += ":" + filepath.Dir(tool)
			first := base
			if strings.HasPrefix(c.want, "differs toolchain") {
				first = c.change(m)
				c.change = func(m *memos) string {
					if err := os.WriteFile(tool, []byte("#!/bin/sh\necho 2.0\n"), 0o755); err != nil {
						t.Fatal(err)
					}
					return first
				}
			}
			want(t, "first", m.did(first), "none")
			want(t, "then", m.did(c.change(m)), c.want)
		})
	}
}

// What walls lend to a command is a part of the key, and named also where it was not there before, or is no more.
func TestM01WhatWallsLendIsAPartOfTheKey(t *testing.T) {
	m := newMemos(t)
	m.write("src/a", "one")
	y := role("cat src/a", "{inputs: [src/**]}", "env: {V: \"1\"}")
	bare := hiding{Bare: roles.Bare{Name: "a test"}}
	for _, c := range []struct {
		walls roles.Walls
		want  string
	}{
		{bare, "none"},
		{lending{bare, "Ann"}, "differs name"},
		{lending{bare, "Ann"}, "reused"},
		{lending{bare, "Bo"}, "differs name"},
		{bare, "reused"},
	} {
		m.command.Walls = c.walls
		want(t, "then", m.did(y), c.want)
	}
	m.write("src/a", "two")
	m.command.Walls = lending{bare, "Ann"}
	want(t, "other files", m.did(y), "differs file src/a")
	m.command.Walls = bare
	want(t, "no more", m.did(y), "differs name")
}

// The turn is a part of the key: what came before, and not which run or records it has.
func TestM02TheTurnIsAPartOfTheKey(t *testing.T) {
	yaml := func(input, item, edge string) string {
		return `wf: 1
name: turns
inputs: {n: {type: string, default: ` + input + `}}
roles:
  a: {set: {v: ` + item + `}}
  b: {run: "echo \"$V\"", timeout: 1m, env: {V: "${{ steps.a.output.v }}"}, cache: {inputs: []}}
edges:
  - {from: START, to: a}
  - {from: a, to: b, prompt: "` + edge + `"}
  - {from: b, to: END}
`
	}
	m := newMemos(t)
	want(t, "first", m.did(yaml("x", "1", "go")), "plain; none")
	want(t, "a comment", m.did("# one\n"+yaml("x", "1", "go")), "plain; reused")
	want(t, "inputs", m.did(yaml("y", "1", "go")), "plain; differs inputs of the run")
	want(t, "edge prompt", m.did(yaml("y", "1", "stop")), "plain; differs edge prompt")
	want(t, "env of the role", m.did(yaml("y", "2", "stop")), "plain; differs env V of the role")
	want(t, "all of them again", m.did(yaml("x", "1", "go")), "plain; reused")
}

// A chain of twelve steps of which the ninth changes: with another outcome four are performed, with the same one.
func TestM02AChainIsPerformedFromWhereItsOutcomeChanges(t *testing.T) {
	m := newMemos(t)
	var b strings.Builder
	b.WriteString("wf: 1\nname: chain\nroles:\n")
	for i := 1; i <= 12; i++ {
		fmt.Fprintf(&b, "  s%d: {run: \"head -c 3 in%d\", timeout: 1m, cache: {inputs: [in%d]}}\n", i, i, i)
		m.write(fmt.Sprint("in", i), "abcdef")
	}
	performed := func() int {
		n := 0
		for h := range strings.SplitSeq(m.did(b.String()), "; ") {
			if h != "reused" {
				n++
			}
		}
		return n
	}
	want(t, "first", performed(), 12)
	want(t, "again", performed(), 0)
	m.write("in9", "abcxyz")
	want(t, "the same outcome", performed(), 1)
	m.write("in9", "xyz")
	want(t, "another outcome", performed(), 4)
}

func TestM01WhatIsInTheWayIsLeftAlone(t *testing.T) {
	m := newMemos(t)
	m.write("src/a", "one")
	yaml := role(building, "{inputs: [src/**], outputs: [dist/**], env: [COUNT]}")
	m.counting()
	want(t, "first", m.did(yaml), "none")
	m.write("dist/out", "mine")
	want(t, "a file of the user's", m.did(yaml), "conflict dist/out")
	want(t, "what was performed", m.did(yaml), "reused")
	if err := os.RemoveAll(filepath.Join(m.dir, "dist")); err != nil {
		t.Fatal(err)
	}
	m.write("dist", "a file")
	v := m.drive(m.start(yaml, ""))
	if v.Status == protocol.Done || m.read("dist") != "a file" {
		t.Errorf("%s, %q", how(v), m.read("dist"))
	}
}

// What a command wrote beside its outputs is there, and its result is not kept.
func TestM01WritesBesideTheOutputsPreventStoring(t *testing.T) {
	for _, c := range []struct{ name, run, not string }{
		{"a new file", "echo x > other", "other: it is written and not among the outputs"},
		{"an input that is replaced", "rm src/a; echo x > src/a", "src/a: it is written and not among the outputs"},
		{"an input that is removed", "rm src/a", "src/a: it is written and not among the outputs"},
		{"a pipe", "mkdir dist; mkfifo dist/p", "dist/p: it cannot be kept: special"},
		{"a link that leads out", "mkdir dist; ln -s /etc/passwd dist/p", "dist/p: it is a link that leads out of the workspace"},
		{"a link that climbs out", "mkdir dist; ln -s ../../x dist/p", "dist/p: it is a link that leads out of the workspace"},
		{"a name that is none", "mkdir dist; touch dist/$(printf '\\377')", `dist/\xff: it cannot be kept: name`},
		{"a key", "mkdir dist; echo AKIA''IOSFODNN7EXAMPLQ ghp_''aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5 > dist/k", "dist/k: it cannot be kept: secret"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMemos(t)
			m.write("src/a", "one")
			yaml := role(c.run, "{inputs: [src/**], outputs: [dist/**]}")
			v := m.drive(m.start(yaml, ""))
			want(t, "first", how(v), "none; not stored: "+c.not)
			want(t, "status", v.Status, protocol.Done)
		})
	}
	m := newMemos(t)
	m.write("src/a", "one")
	want(t, "first", m.did(role("echo x > other; mkdir -p dist; cp src/a dist/a", "{inputs: [src/**], outputs: [dist/**]}")), "none; not stored: other: it is written and not among the outputs")
	want(t, "it is there all the same", m.read("other")+m.read("dist/a"), "x\none")
	want(t, "git's and wf's files are no outputs", m.did(role("mkdir .git dist; echo x > .git/config; echo y > dist/y", "{inputs: [src/**], outputs: [\"**\"]}")), "none")
	if _, err := os.Stat(filepath.Join(m.dir, ".git")); err == nil {
		t.Error("there is a .git")
	}
}

// The inputs cannot be written, and nothing else is there.
func TestM01ACommandSeesItsInputsAlone(t *testing.T) {
	m := newMemos(t)
	m.write("src/a", "one")
	m.write("src/run", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(m.dir, "src/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	m.write("secret", "two")
	m.write("dist/old", "three")
	v := m.drive(m.start(role("find . -type f | sort; stat -c %a src/a src/run; cat secret 2>&1", "{inputs: [src/**], outputs: [dist/**]}", "continue_on_error: true"), ""))
	if text := v.Steps[0].Text; !strings.HasPrefix(text, "./src/a\n./src/run\n444\n555\n") || strings.Contains(text, "two") {
		t.Errorf("it sees %s", text)
	}
}

func TestM01AResultIsReusedForATime(t *testing.T) {
	m := newMemos(t)
	yaml := role("echo x", "{inputs: [], for: 7d}")
	m.now = time.Now()
	want(t, "first", m.did(yaml), "none")
	m.now = m.now.Add(7*24*time.Hour - time.Microsecond)
	want(t, "just before", m.did(yaml), "reused")
	m.now = m.now.Add(time.Microsecond)
	want(t, "then", m.did(yaml), "expired")
	want(t, "from then on", m.did(yaml), "reused")
}

// Runs of other workflows share results, unless the role says otherwise.
func TestM01TheScopeOfResults(t *testing.T) {
	for scope, other := range map[string]string{protocol.CacheStore: "reused", protocol.CacheWorkflow: "none"} {
		m := newMemos(t)
		yaml := role("echo x", "{inputs: [], scope: "+scope+"}")
		want(t, "first", m.did(yaml), "none")
		want(t, "the same workflow", m.did(yaml), "reused")
		want(t, "another one, "+scope, m.did(strings.Replace(yaml, "name: one", "name: two", 1)), other)
	}
}

func TestM02ARunSaysWhetherItReuses(t *testing.T) {
	m := newMemos(t)
	m.write("src/a", "one")
	yaml := role("cat src/a", "{inputs: [src/**]}")
	v := m.drive(m.start(yaml, protocol.CacheOffline))
	want(t, "offline without a result", string(v.Status)+" "+v.Code, "suspended cache_miss")
	want(t, "off", how(m.drive(m.start(yaml, protocol.CacheOff))), "off")
	want(t, "off again", how(m.drive(m.start(yaml, protocol.CacheOff))), "off")
	want(t, "what it performed is kept", m.did(yaml), "reused")
	want(t, "offline", how(m.drive(m.start(yaml, protocol.CacheOffline))), "reused")
	m.write("src/a", "two")
	v = m.drive(m.start(yaml, protocol.CacheOffline))
	if !strings.Contains(v.Reason, "file src/a differs from that of ") || v.Status != protocol.Suspended {
		t.Errorf("offline: %s %s", v.Status, v.Reason)
	}
	want(t, "resumed it is offline still", string(m.drive(v.ID).Status), "suspended")
	if _, _, err := m.e.Begin(t.Context(), engine.Launch{Program: m.load(yaml), Inputs: protocol.JSON("{}"), Workspace: m.dir, Cache: "maybe"}); err == nil {
		t.Error("an unknown mode is taken")
	}
}

// The whole workspace is the input of a role that says no more, and it works there.
func TestM01TheWholeWorkspace(t *testing.T) {
	m := newMemos(t)
	performed := m.counting()
	m.write("src/a", "one")
	m.write("old", "x")
	yaml := role(building+"; rm -f old", "true")
	want(t, "first", m.did(yaml), "none")
	m.write("old", "x")
	os.RemoveAll(filepath.Join(m.dir, "dist"))
	want(t, "again", m.did(yaml), "reused")
	if got := m.read("dist/out"); got != "one" {
		t.Error(got)
	}
	if _, err := os.Stat(filepath.Join(m.dir, "old")); err == nil {
		t.Error("what the command removed is there")
	}
	want(t, "performances", performed(), 1)
	m.write("anything", "x")
	m.write("old", "x")
	os.RemoveAll(filepath.Join(m.dir, "dist"))
	want(t, "another file", m.did(yaml), "differs file anything")
	if err := os.WriteFile(filepath.Join(m.dir, "pipe"), nil, 0); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		want(t, "what cannot be read", m.did(yaml), "cannot")
	}
}

// Of visits that overlap in a workspace none tells what it changed.
func TestM01OverlappingVisitsAreNotStored(t *testing.T) {
	m := newMeeting(t)
	yaml := `wf: 1
name: two
roles:
  s: {set: {x: 1}}
  a: {run: "touch $MEET/a; while ! test -e $MEET/b; do sleep 0.01; done", timeout: 1m, cache: true}
  b: {run: "touch $MEET/b; while ! test -e $MEET/a; do sleep 0.01; done", timeout: 1m, cache: true}
  e: {set: {x: 1}}
edges:
  - {from: START, to: s}
  - {from: s, to: [a, b]}
  - {from: [a, b], to: e}
  - {from: e, to: END}
`
	got := m.did(yaml)
	want(t, "both", strings.Count(got, "not stored: another visit acted in the workspace meanwhile"), 2)
}

// An attempt that follows on another takes no result, and leaves none.
func TestM01AFurtherAttemptIsNotReused(t *testing.T) {
	m := newMemos(t)
	state := filepath.Join(t.TempDir(), "tried")
	m.command.Environ = append(m.command.Environ, "STATE="+state)
	yaml := role("test -e $STATE || { touch $STATE; exit 1; }; echo ok", "{inputs: [], env: [STATE]}", "retry: {attempts: 2, delay: 1ms}")
	v := m.drive(m.start(yaml, ""))
	want(t, "first", how(v), "cannot")
	want(t, "why", v.Steps[0].Reuse.Reason, "it is a further attempt")
	want(t, "its result was not kept", m.did(yaml), "none")
	want(t, "that of a first attempt is", m.did(yaml), "reused")
}

func TestM01AFailureIsNotReused(t *testing.T) {
	m := newMemos(t)
	yaml := role("exit 3", "{inputs: []}")
	for range 2 {
		v := m.drive(m.start(yaml, ""))
		want(t, "failed", strings.HasPrefix(how(v), "none"), true)
	}
	data := role("exit 3", "{inputs: []}", "continue_on_error: true")
	first := m.drive(m.start(data, ""))
	again := m.drive(m.start(data, ""))
	want(t, "as data", how(again), "reused")
	want(t, "record", *again.Steps[0].CID, *first.Steps[0].CID)
}

// A process that ends anywhere leaves a run that ends in the same records.
func TestM01AKillAnywhereEndsInTheSameRecords(t *testing.T) {
	m := newMemos(t)
	m.write("src/a", "one")
	m.write("gone", "x")
	yaml := role("mkdir -p dist/deep; cp src/a dist/deep/a; ln -s deep/a dist/l; cat src/a", "{inputs: [src/**], outputs: [dist/**]}")
	first := m.drive(m.start(yaml, ""))
	crashed, reused := 0, 0
	for n := 0; n < 14; n++ {
		os.RemoveAll(filepath.Join(m.dir, "dist"))
		id := m.start(yaml, "")
		m.crashing(n)
		m.set()
		if _, err := m.e.Drive(t.Context(), id, engine.DriveOptions{}); err != nil {
			crashed++
		}
		m.open()
		m.set()
		v := m.drive(id)
		want(t, fmt.Sprint("record after ", n), *v.Steps[0].CID, *first.Steps[0].CID)
		want(t, fmt.Sprint("file after ", n), m.read("dist/l"), "one")
		if how(v) == "reused" {
			reused++
		}
		if rep, err := m.e.Check(t.Context(), id, nil); err != nil || !rep.OK() {
			t.Fatalf("%v %+v", err, rep)
		}
	}
	if crashed < 3 || reused < 8 { // what was cut off before it took a result is performed
		t.Errorf("%d crashes, %d reused", crashed, reused)
	}
}

// A visit that had taken a result when its process ended goes on with it, whether its files were there or not; where the
// result is lost meanwhile it is performed.
func TestM01AVisitThatHadTakenAResultGoesOn(t *testing.T) {
	for _, lost := range []bool{false, true} {
		m := newMemos(t)
		performed := m.counting()
		m.write("src/a", "one")
		yaml := role(building, "{inputs: [src/**], outputs: [dist/**]}")
		first := m.drive(m.start(yaml, ""))
		os.RemoveAll(filepath.Join(m.dir, "dist"))
		id := m.start(yaml, "")
		ctx, stop := context.WithCancel(t.Context())
		m.e.Watch = func(u api.Update) {
			if _, ok := u.Data.(protocol.Reused); ok {
				stop()
			}
		}
		_, err := m.e.Drive(ctx, id, engine.DriveOptions{})
		stop()
		if err == nil {
			t.Fatal("it was not interrupted")
		}
		m.e.Watch = nil
		os.RemoveAll(filepath.Join(m.dir, "dist"))
		if lost {
			if err := m.e.Store.Commit(t.Context(), cas.Batch{Derived: []cas.Derived{cas.DropMemo(m.view(id).Steps[0].Reuse.Key)}}); err != nil {
				t.Fatal(err)
			}
			if _, err := cas.GC(t.Context(), inDir(m.e), cas.GCOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		v := m.drive(id)
		want(t, "record", *v.Steps[0].CID, *first.Steps[0].CID)
		want(t, "file", m.read("dist/out"), "one")
		want(t, "attempts", len(v.Steps[0].Attempts), 1)
		if lost {
			want(t, "performances", performed(), 2)
		} else {
			want(t, "performances", performed(), 1)
		}
	}
}

// A collection keeps what memos lead to, and one without a block is not taken.
func TestM01ACollectionKeepsResults(t *testing.T) {
	m := newMemos(t)
	m.write("src/a", "one")
	yaml := role("mkdir -p dist; head -c 5000000 /dev/zero > dist/big; cat src/a > dist/out", "{inputs: [src/**], outputs: [dist/**]}")
	want(t, "first", m.did(yaml), "none")
	os.RemoveAll(filepath.Join(m.dir, "dist"))
	if _, err := cas.GC(t.Context(), inDir(m.e), cas.GCOptions{}); err != nil {
		t.Fatal(err)
	}
	want(t, "after a collection", m.did(yaml), "reused")
	want(t, "5 MB", len(m.read("dist/big")), 5_000_000)
	os.RemoveAll(filepath.Join(m.dir, "dist"))
	v := m.drive(m.start(yaml, ""))
	stored, ok, err := cas.FindMemo(t.Context(), m.e.Store, v.Steps[0].Reuse.Key)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	stored.Memo = cas.Raw([]byte("gone")).Link
	if err := m.e.Store.Commit(t.Context(), cas.Batch{Derived: []cas.Derived{cas.PutMemo(v.Steps[0].Reuse.Key, stored)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := cas.GC(t.Context(), inDir(m.e), cas.GCOptions{}); err != nil {
		t.Fatalf("a memo of which a part is missing harms a collection: %v", err)
	}
	want(t, "one that is lost", m.did(yaml), "lost")
	want(t, "it is stored anew", m.did(yaml), "reused")
}

// A memo that another user, or a program, wrote into the store is none.
func TestM01AMemoOfAnotherUserIsNone(t *testing.T) {
	m := newMemos(t)
	yaml := role("echo x", "{inputs: []}")
	want(t, "first", m.did(yaml), "none")
	want(t, "again", m.did(yaml), "reused")
	inDir(m.e).Close()
	s, err := cas.Open(t.Context(), filepath.Join(m.dir, ".wf"), cas.Options{Seal: []byte("another key")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	m.e.Store = s
	want(t, "of another user", m.did(yaml), "none")
	want(t, "own", m.did(yaml), "reused")
}

// An archive holds no memos: what was performed elsewhere is not reused.
func TestM01AnImportIsNotReused(t *testing.T) {
	m, other := newMemos(t), newMemos(t)
	yaml := role("echo x", "{inputs: []}")
	v := m.drive(m.start(yaml, ""))
	again := m.drive(m.start(yaml, ""))
	want(t, "here", how(again), "reused")
	var car bytes.Buffer
	for _, run := range []protocol.RunID{v.ID, again.ID} {
		car.Reset()
		if _, err := cas.Export(t.Context(), &car, inDir(m.e), cas.ExportOptions{}, run); err != nil {
			t.Fatal(err)
		}
		if _, err := cas.Import(t.Context(), &car, inDir(other.e), cas.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if rep, err := other.e.Check(t.Context(), again.ID, nil); err != nil || !rep.OK() {
		t.Fatalf("%v %+v", err, rep)
	}
	want(t, "it is shown", how(other.view(again.ID)), "reused")
	want(t, "there", other.did(yaml), "none")
}

// A fork redoes a step, which is reused.
func TestM01AForkReuses(t *testing.T) {
	m := newMemos(t)
	m.write("src/a", "one")
	v := m.drive(m.start(role("cat src/a", "{inputs: [src/**]}"), ""))
	fork, err := m.e.Fork(t.Context(), v.ID, engine.ForkOptions{At: 1, By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	f := m.drive(fork)
	want(t, "fork", how(f), "reused")
	want(t, "record", *f.Steps[0].CID, *v.Steps[0].CID)
}

// Two processes that begin the same at once perform it once.
func TestM01TwoAtOncePerformOnce(t *testing.T) {
	m := newMemos(t)
	performed := m.counting()
	m.write("src/a", "one")
	yaml := role("sleep 0.2; "+building, "{inputs: [src/**], outputs: [dist/**]}")
	ids := []protocol.RunID{m.start(yaml, ""), m.start(yaml, "")}
	s, err := cas.Open(t.Context(), filepath.Join(m.dir, ".wf"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	other := &engine.Engine{Store: s, Performers: m.e.Performers, Scratch: m.e.Scratch, Now: m.e.Now}
	var both sync.WaitGroup
	for i, e := range []*engine.Engine{m.e, other} {
		both.Go(func() {
			if _, err := e.Drive(t.Context(), ids[i], engine.DriveOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	got := []string{how(m.view(ids[0])), how(m.view(ids[1]))}
	slices.Sort(got)
	want(t, "both", strings.Join(got, ", "), "none, reused")
	want(t, "performances", performed(), 1)
}

// What visits write and read may be long.
func TestM01LongTexts(t *testing.T) {
	m := newMemos(t)
	yaml := `wf: 1
name: long
roles:
  a: {run: "head -c 200000 /dev/zero | tr '\\0' x", timeout: 1m, cache: {inputs: []}}
  b: {run: "wc -c", timeout: 1m, stdin: "${{ steps.a.output.text }}", cache: {inputs: []}}
edges:
  - {from: START, to: a}
  - {from: a, to: b, prompt: "${{ output.text }}"}
  - {from: b, to: END}
`
	want(t, "first", m.did(yaml), "none; none")
	v := m.drive(m.start(yaml, ""))
	want(t, "again", how(v), "reused; reused")
	want(t, "text", len(v.Steps[0].Text), 200_000)
}

// On a machine that hides no files a role that says what it reads is performed as without cache.
func TestM01WithoutWallsNothingIsReused(t *testing.T) {
	m := newMemos(t)
	m.command.Walls = roles.Bare{Name: "a test"}
	m.write("other", "seen")
	yaml := role("cat other", "{inputs: []}")
	for range 2 {
		v := m.drive(m.start(yaml, ""))
		want(t, "why", v.Steps[0].Reuse.Reason, "nothing here hides files from commands")
		want(t, "text", v.Steps[0].Text, "seen")
	}
	want(t, "the whole workspace", m.did(role("cat other", "true")), "none")
	want(t, "again", m.did(role("cat other", "true")), "reused")
}

// What a command is told of its run is made of the key.
func TestM01IdsComeFromTheKey(t *testing.T) {
	m := newMemos(t)
	yaml := role("echo $WF_RUN_ID $WF_STEP_KEY $WF_ATTEMPT $TRACEPARENT $PWD; grep -o '\"run\":\"[^\"]*\"' $WF_TURN", "{inputs: []}")
	v := m.drive(m.start(yaml, protocol.CacheOff))
	again := m.drive(m.start(yaml, protocol.CacheOff))
	key := again.Steps[0].Reuse.Key
	want(t, "text", again.Steps[0].Text, v.Steps[0].Text)
	id := strings.ToUpper(key[:10])
	if runtime.GOOS == "linux" {
		want(t, "told", again.Steps[0].Text, fmt.Sprintf("%s %s 1 %s\n\"run\":\"%s\"", id, key, filepath.Join(m.e.Scratch, key[:32], "work"), id))
	}
}
