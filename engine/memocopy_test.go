package engine_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// A meeting is a directory beside the workspace, by whose files a command and a test wait for one another.
type meeting struct {
	*memos
	meet string
}

func newMeeting(t testing.TB) *meeting {
	x := &meeting{newMemos(t), t.TempDir()}
	x.command.Environ = append(x.command.Environ, "MEET="+x.meet)
	x.command.System = []string{"PATH", "MEET"}
	return x
}

// tell makes a file that a command waits for.
func (x *meeting) tell(name string) {
	x.t.Helper()
	if err := os.WriteFile(filepath.Join(x.meet, name), nil, 0o666); err != nil {
		x.t.Fatal(err)
	}
}

// await waits for a file of a command.
func (x *meeting) await(name string) {
	x.t.Helper()
	again, late := time.NewTicker(time.Millisecond), time.After(time.Minute)
	defer again.Stop()
	for {
		if _, err := os.Stat(filepath.Join(x.meet, name)); err == nil {
			return
		}
		select {
		case <-again.C:
		case <-late:
			x.t.Fatalf("%s does not come", name)
		}
	}
}

// waits is the part of a command that says that it has begun, and waits until it may go on.
func waits(name string) string {
	return fmt.Sprintf("touch $MEET/%[1]s; while ! test -e $MEET/%[1]s.go; do sleep 0.01; done", name)
}

// process is an engine with a handle of its own on the store, as another process has it.
func (x *meeting) process() *engine.Engine {
	x.t.Helper()
	s, err := cas.Open(context.Background(), filepath.Join(x.dir, ".wf"), cas.Options{})
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { s.Close() })
	return &engine.Engine{Store: s, Performers: x.e.Performers, Scratch: x.e.Scratch, Now: x.e.Now}
}

// drives drives a run until done is called.
func (x *meeting) drives(e *engine.Engine, id protocol.RunID) (done func()) {
	var one sync.WaitGroup
	one.Go(func() {
		if _, err := e.Drive(context.Background(), id, engine.DriveOptions{}); err != nil {
			x.t.Error(err)
		}
	})
	return one.Wait
}

func (x *meeting) gone(names ...string) {
	x.t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(x.dir, name)); err != nil {
			x.t.Fatal(err)
		}
	}
}

// meetings are those who act in a workspace while a command with cache: true works, and what of theirs is left when it has ended.
var meetings = []struct {
	name   string
	before func(x *meeting) (after func()) // before its files are looked at
	during func(x *meeting) (after func()) // while it works
	left   map[string]string
	stays  bool // nothing of it is to be seen at the end
}{
	{"nobody", nil, nil, nil, true},
	{"the user writes a file", nil, func(x *meeting) func() { x.write("other", "mine"); return nil }, map[string]string{"other": "mine"}, false},
	{"the user changes an input", nil, func(x *meeting) func() { x.write("in", "two"); return nil }, map[string]string{"in": "two"}, false},
	{"the user removes a file", nil, func(x *meeting) func() { x.gone("old"); return nil }, nil, false},
	{"the user changes an input, and changes it back", nil, func(x *meeting) func() {
		return func() { x.write("in", "one") }
	}, map[string]string{"in": "one"}, true},
	{"the user makes a directory", nil, func(x *meeting) func() { os.Mkdir(filepath.Join(x.dir, "other"), 0o777); return nil }, nil, false},
	{"another process", nil, func(x *meeting) func() {
		x.drives(x.process(), x.start("wf: 1\nname: two\nroles: {a: {run: printf theirs > other, timeout: 1m}}\n", ""))()
		return nil
	}, map[string]string{"other": "theirs"}, false},
	{"another process that began before", func(x *meeting) func() {
		done := x.drives(x.process(), x.start("wf: 1\nname: two\nroles: {a: {run: '"+waits("theirs")+"; printf theirs > other', timeout: 1m}}\n", ""))
		x.await("theirs")
		return func() { x.tell("theirs.go"); done() }
	}, func(x *meeting) func() { return nil }, map[string]string{"other": "theirs"}, false},
	{"another process that begins meanwhile and ends later", nil, func(x *meeting) func() {
		done := x.drives(x.process(), x.start("wf: 1\nname: two\nroles: {a: {run: 'printf theirs > other; "+waits("theirs")+"', timeout: 1m}}\n", ""))
		x.await("theirs")
		x.t.Cleanup(func() { x.tell("theirs.go"); done() })
		return nil
	}, map[string]string{"other": "theirs"}, false},
	{"another run of the process", nil, func(x *meeting) func() {
		x.drives(x.e, x.start("wf: 1\nname: two\nroles: {a: {run: printf theirs > other, timeout: 1m}}\n", ""))()
		return nil
	}, map[string]string{"other": "theirs"}, false},
	{"what an earlier command left running", func(x *meeting) func() {
		x.drives(x.e, x.start("wf: 1\nname: two\nroles: {a: {run: '("+waits("theirs")+"; printf theirs > other; touch $MEET/wrote) >/dev/null 2>&1 & ', timeout: 1m}}\n", ""))()
		x.await("theirs")
		return nil
	}, func(x *meeting) func() { x.tell("theirs.go"); x.await("wrote"); return nil }, map[string]string{"other": "theirs"}, false},
}

// F-409: what others change while a command with cache: true works is never taken for the command's own: it is not kept, and no
// later visit writes it. The journal says why a result is not kept.
func TestF409WhatOthersChangeIsNotTheCommands(t *testing.T) {
	for _, walls := range []bool{false, true} {
		for _, c := range meetings {
			t.Run(fmt.Sprintf("%s, walls=%t", c.name, walls), func(t *testing.T) {
				x := newMeeting(t)
				x.command.Walls = hiding{Bare: roles.Bare{Name: "a test"}}
				more := []string{}
				if walls {
					more = append(more, "sandbox: on")
				}
				yaml := role("cat in; "+waits("own")+"; cat in; printf made > out; rm -f old", "true", append(more, fmt.Sprintf("env: {MEET: %q}", x.meet))...)
				x.write("in", "one")
				x.write("old", "x")
				var after []func()
				if c.before != nil {
					after = append(after, c.before(x))
				}
				id := x.start(yaml, "")
				done := x.drives(x.e, id)
				x.await("own")
				if c.during != nil {
					if c.stays && c.name != "nobody" {
						x.write("in", "two")
					}
					after = append(after, c.during(x))
				}
				for _, f := range after {
					if f != nil {
						f()
					}
				}
				x.tell("own.go")
				done()
				first := x.view(id)
				want(t, "status", first.Status, protocol.Done)
				stored := first.Steps[0].Reuse.NotStored == ""
				if c.stays && !stored {
					t.Errorf("its result is not kept: %s", how(first))
				}
				if !c.stays && !walls && stored {
					t.Errorf("its result is kept: %s", how(first))
				}
				for name, text := range c.left {
					want(t, "theirs: "+name, x.read(name), text)
				}
				want(t, "its own", x.read("out"), "made")
				if c.before == nil {
					want(t, "it read the files of its key", first.Steps[0].Text, "oneone")
				}
				if _, err := os.Lstat(filepath.Join(x.dir, "old")); err == nil {
					t.Error("what it removed is there")
				}

				// the same files as in the beginning: nothing but its own comes back
				x.gone("out", "other")
				x.write("in", "one")
				x.write("old", "x")
				v := x.drive(x.start(yaml, ""))
				want(t, "reused", how(v) == "reused", stored)
				want(t, "its own again", x.read("out"), "made")
				if _, err := os.Lstat(filepath.Join(x.dir, "other")); err == nil {
					t.Errorf("what others made was written back: %q", x.read("other"))
				}
				want(t, "its input again", x.read("in"), "one")
			})
		}
	}
}

// What another changed of the same file stays, and the command is performed in the workspace.
func TestF409ACommandDoesNotOverwriteWhatOthersChanged(t *testing.T) {
	for _, c := range []struct{ name, run, text string }{
		{"it goes well", "", "made"},
		{"it fails", "; exit 3", "mine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newMeeting(t)
			x.write("in", "one")
			id := x.start(role("echo x >> $MEET/count; "+waits("own")+"; printf made > out; printf also > too"+c.run, "true"), "")
			done := x.drives(x.e, id)
			x.await("own")
			x.write("out", "mine")
			x.tell("own.go")
			done()
			v := x.view(id)
			want(t, "out", x.read("out"), c.text)
			if got := v.Steps[0].Reuse.NotStored; !strings.HasPrefix(got, "out: it was changed in the workspace while the command made it in a copy, and stays") {
				t.Errorf("why: %q", got)
			}
			performed := 2
			if c.run != "" {
				performed = 1
			}
			b, err := os.ReadFile(filepath.Join(x.meet, "count"))
			if err != nil {
				t.Fatal(err)
			}
			want(t, "performances", strings.Count(string(b), "x"), performed)
		})
	}
}

// Two processes that begin a command at once in one workspace, and both change it, keep each what is its own.
func TestF409TwoCommandsOfTwoProcessesKeepTheirOwn(t *testing.T) {
	x := newMeeting(t)
	x.write("in", "one")
	yaml := func(name string) string {
		return strings.Replace(role(waits(name)+"; printf "+name+" > out."+name, "true", "sandbox: on", fmt.Sprintf("env: {MEET: %q}", x.meet)), "name: one", "name: "+name, 1)
	}
	engines := map[string]*engine.Engine{"a": x.e, "b": x.process()}
	var done []func()
	for name, e := range engines {
		done = append(done, x.drives(e, x.start(yaml(name), "")))
	}
	x.await("a")
	x.await("b")
	x.tell("a.go")
	x.tell("b.go")
	for _, f := range done {
		f()
	}
	for name := range engines {
		x.gone("out.a", "out.b")
		x.drive(x.start(yaml(name), ""))
		for other := range engines {
			_, err := os.Lstat(filepath.Join(x.dir, "out."+other))
			want(t, name+": out."+other, err == nil, name == other)
		}
	}
}

// A command leaves in the workspace what it would have left had it worked there: files of any size and number, modes, times, links,
// directories without files, and what a failure had made.
func TestF409ACommandInACopyLeavesWhatItMade(t *testing.T) {
	script := "mkdir -p d/empty && printf x > d/f && chmod 600 d/f && touch -d 2001-02-03T04:05:06Z d/f && ln -s f d/l && ln -s /etc/hostname d/abs && " +
		"printf '#!/bin/sh\\n' > d/run && chmod 755 d/run && rm -r gone && rm was && mkdir was && printf y > was/f && rmdir bare && head -c 3000000 /dev/zero > big && chmod 640 kept"
	lay := func(x *memos) {
		for _, name := range []string{"gone/a", "gone/b/c", "was", "kept"} {
			x.write(name, "x")
		}
		if err := os.Mkdir(filepath.Join(x.dir, "bare"), 0o777); err != nil {
			x.t.Fatal(err)
		}
	}
	for _, end := range []string{"", "; exit 3"} {
		plain, copied := newMemos(t), newMemos(t)
		lay(plain)
		lay(copied)
		for m, cache := range map[*memos]string{plain: "", copied: "cache: true"} {
			v := m.drive(m.start("wf: 1\nname: one\nroles: {a: {timeout: 1m, run: "+fmt.Sprintf("%q", script+end)+", "+cache+"}}\n", ""))
			want(t, "done", v.Status == protocol.Done, end == "")
		}
		if got, want := listing(t, copied.dir), listing(t, plain.dir); got != want {
			t.Errorf("in a copy:\n%s\nin the workspace:\n%s", got, want)
		}
	}
}

// listing tells of all that lies in a directory, but for times of this test.
func listing(t testing.TB, dir string) string {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() == ".wf" {
			return cmpOr(err, fs.SkipDir)
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "%s %s", name, info.Mode())
		if info.Mode().IsRegular() {
			fmt.Fprintf(&b, " %d", info.Size())
			if time.Since(info.ModTime()) > time.Hour {
				fmt.Fprintf(&b, " %s", info.ModTime().UTC())
			}
		}
		if text, err := os.Readlink(path); err == nil {
			b.WriteString(" " + text)
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func cmpOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// copying has f called once, with the directory of the visit, when the key of its files is made and they are not copied yet.
func (m *memos) copying(f func(spot string)) {
	var once sync.Once
	m.e.Now = func() time.Time {
		if spots, _ := filepath.Glob(filepath.Join(m.e.Scratch, "*", "work")); len(spots) == 1 {
			once.Do(func() { f(filepath.Dir(spots[0])) })
		}
		return time.Now()
	}
}

// What cannot be copied, or moves meanwhile, is no reason to fail: the command works in the workspace, and its result is not kept.
func TestF409WhatCannotBeCopiedIsNotKept(t *testing.T) {
	for _, c := range []struct {
		name, why string
		lay       func(m *memos)
	}{
		{"a link that leads out", "l: it is a link that leads out of the workspace, and of no copy", func(m *memos) {
			if err := os.Symlink("../x", filepath.Join(m.dir, "l")); err != nil {
				m.t.Fatal(err)
			}
		}},
		{"no room", "the files cannot be copied: ", func(m *memos) {
			m.copying(func(spot string) {
				if err := os.RemoveAll(spot); err != nil {
					m.t.Error(err)
				}
			})
		}},
		{"files that move", "the files changed while they were copied", func(m *memos) {
			m.copying(func(string) { m.write("in", "two") })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMemos(t)
			m.write("in", "one")
			c.lay(m)
			got := m.did(role("printf x > out", "true", "sandbox: on"))
			if !strings.HasPrefix(got, "none; not stored: "+c.why) {
				t.Error(got)
			}
			want(t, "out", m.read("out"), "x")
		})
	}
}

// At and beyond the bounds of a result: all of it is in the workspace, and beyond them nothing is kept.
func TestF409ResultsAtTheirBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 100,000 files")
	}
	for _, c := range []struct {
		files int
		kept  bool
	}{{49_999, true}, {50_000, false}} {
		m := newMemos(t) // the file of its input is one of 50,000
		m.write("in", "one")
		got := m.did(role(fmt.Sprintf("mkdir d && cd d && seq %d | xargs touch", c.files), "true"))
		if kept := got == "none"; kept != c.kept {
			t.Errorf("%d files: %s", c.files, got)
		}
		made, err := os.ReadDir(filepath.Join(m.dir, "d"))
		if err != nil {
			t.Fatal(err)
		}
		want(t, "files in the workspace", len(made), c.files)
	}
}
