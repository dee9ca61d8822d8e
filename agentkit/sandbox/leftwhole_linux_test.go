package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/agentkit/sandbox"
	"wf/files/filestest"
	"wf/protocol"
	"wf/roles/workspace"
)

// remains are what lies in the cache of runs, and of what is gone, once nothing does or it was waited for.
func (s stage) remains() []string {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), time.Minute)
	defer stop()
	var left []string
	root := filepath.Join(s.outside, "cache/wf/sandbox")
	if err := filestest.Await(ctx, root, func() bool {
		var err error
		if left, err = filepath.Glob(filepath.Join(root, "*-*")); err != nil {
			s.t.Fatal(err)
		}
		return len(left) == 0
	}); err != nil && ctx.Err() == nil {
		s.t.Fatal(err)
	}
	return left
}

// caching has the commands of a stage keep what they keep in a directory of its own, which goes whatever they did to it.
func (s stage) caching() {
	s.t.Helper()
	s.t.(*testing.T).Setenv("XDG_CACHE_HOME", filepath.Join(s.outside, "cache"))
	s.t.Cleanup(func() {
		dirs, err := filepath.Glob(filepath.Join(s.outside, "cache/wf/sandbox/*"))
		if err != nil {
			s.t.Error(err)
		}
		for _, dir := range dirs {
			if err := os.Chmod(dir, 0o700); err != nil {
				s.t.Error(err)
			}
			if err := workspace.RemoveAll(dir); err != nil {
				s.t.Error(err)
			}
		}
	})
}

// Whatever a command leaves in HOME, TMPDIR and caches, the next command of the run starts, and what belongs to the run goes with
// it as a whole; nothing to which it leads does.
func TestWhatARunLeavesGoesWhole(t *testing.T) {
	const deep = `cd "$HOME" && exec perl -e 'for (1..400) { mkdir "aaaaaaaaaaaaaaaaaaaa"; chdir "aaaaaaaaaaaaaaaaaaaa" or die }`
	for name, line := range map[string]string{
		"modes":             `for d in "$HOME" "$TMPDIR" "$GOCACHE" "$XDG_CACHE_HOME"; do mkdir -p "$d/a/b/c"; touch "$d/a/b/c/f"; chmod 0000 "$d/a/b/c" "$d/a/b" "$d/a" "$d"; done`,
		"modes_around":      `for d in "$HOME" "$GOCACHE"; do chmod 0000 "$(dirname "$d")"; done 2>/dev/null; true`,
		"modes_of_a_run":    `chmod 0000 "$(dirname "$(dirname "$HOME")")" 2>/dev/null; true`,
		"another_home":      `rm -rf "$HOME" "$TMPDIR"; ln -s "$WORK" "$HOME"; mv "$HOME" "$HOME.2"; ln -s "$WORK" "$TMPDIR"; true`,
		"links":             `ln -s "$WORK" "$HOME/dir"; ln -s "$WORK/kept" "$HOME/file"; ln -s / "$HOME/root"; ln "$WORK/kept" "$HOME/hard"; true`,
		"links_and_modes":   `mkdir -p "$HOME/a/b"; ln -s "$WORK" "$HOME/a/b/l"; ln -s "$WORK/kept" "$HOME/a/b/k"; chmod 0000 "$HOME/a/b" "$HOME/a"`,
		"pipes":             `mkfifo "$HOME/p" "$TMPDIR/p"`,
		"a_deep_tree":       deep + `'`,
		"a_deep_closed_one": deep + ` mkdir "x"; chmod 0500, ".", ".."; chmod 0, "../.."'`,
		"odd_names":         `cd "$HOME" && mkdir -- -rf "$(printf 'a\nb')" "$(printf '\377')" && touch -- "-rf/x" "$(printf 'a\nb')/y"`,
		"attributes":        `touch "$HOME/i"; chattr +i "$HOME/i" 2>/dev/null; chattr +a "$TMPDIR" 2>/dev/null; true`,
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s stage) {
				s.caching()
				kept := filepath.Join(s.work, "kept")
				s.write(kept, "kept")
				s.policy.Environ = append(s.policy.Environ, "WORK="+s.work)
				s.policy.Trust = protocol.Trust{Run: "run1", Workflow: "w"}
				s.sh(line)
				if code, out := s.sh(`echo it > "$HOME/next" && echo it > "$TMPDIR/next" && echo it > "$GOCACHE/next" && echo it > "$XDG_CACHE_HOME/next"`); code != 0 {
					t.Errorf("the next command: %s", out)
				}
				s.sh(line)
				if err := sandbox.Forget("run1"); err != nil {
					t.Error(err)
				}
				if left := s.remains(); len(left) > 0 {
					t.Errorf("it leaves %v", left)
				}
				if _, _, _, err := sandbox.Sweep(time.Now().Add(time.Hour), true); err != nil {
					t.Errorf("the sweep: %v", err)
				}
				if b, err := os.ReadFile(kept); err != nil || string(b) != "kept" {
					t.Errorf("the workspace has %q (%v)", b, err)
				}
				for path, mode := range map[string]os.FileMode{s.work: 0o755, kept: 0o644} {
					if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
						t.Errorf("%s has another mode: %v (%v)", path, info.Mode(), err)
					}
				}
			})
		})
	}
}

// sweeping reports whether a process works that this one has started to remove what is gone.
func sweeping(t *testing.T) bool {
	t.Helper()
	all, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		children, _ := os.ReadFile(path) // the thread may have ended
		for _, pid := range strings.Fields(string(children)) {
			if line, _ := os.ReadFile("/proc/" + pid + "/cmdline"); strings.HasPrefix(string(line), "wf:sweep\x00") {
				return true
			}
		}
	}
	return false
}

// A run that another process ends under a command leaves nothing either, however much there is, once the command has ended.
func TestWhatARunLeavesThatEndsUnderItsCommandGoes(t *testing.T) {
	for _, n := range []int{1, 600} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			onEach(t, func(t *testing.T, s stage) {
				s.caching()
				s.policy.Trust = protocol.Trust{Run: "run1"}
				out, in := io.Pipe()
				ended := make(chan error, 1)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go func() {
					line := fmt.Sprintf(`i=0; while [ $i -lt %d ]; do mkdir "$HOME/$i"; i=$((i+1)); done; echo began; while sleep 0.01; do touch "$HOME/late" "$TMPDIR/late" 2>/dev/null; done`, n)
					_, err := s.run(ctx, s.policy, []string{"sh", "-c", line}, in, io.Discard)
					in.Close()
					ended <- err
				}()
				if _, err := out.Read(make([]byte, 8)); err != nil {
					t.Fatal(err)
				}
				if err := sandbox.Forget("run1"); err != nil {
					t.Error(err)
				}
				filestest.Until(t, "what removes it has found the command at work", func() bool { return !sweeping(t) }, nil)
				stop()
				<-ended
				if left := s.remains(); len(left) > 0 {
					t.Errorf("it leaves %v", left)
				}
			})
		})
	}
}

// Two policies have the same name of trust where they are equal in all that can be done and read, whatever the order in which it
// is said, and only there, whatever the names are.
func TestTheNameOfATrustIsThatOfItsPowers(t *testing.T) {
	policy := func(secrets, hosts, devices []string, network, agent bool) sandbox.Policy {
		return sandbox.Policy{Trust: protocol.Trust{Secrets: secrets}, Hosts: hosts, Network: network, Grants: sandbox.Grants{Devices: devices, SSHAgent: agent}}
	}
	list := func(of ...string) []string { return of }
	names := map[string]string{}
	for i, same := range [][]sandbox.Policy{
		{policy(nil, nil, nil, false, false), policy(list(), list(), list(), false, false)},
		{policy(list("A"), nil, nil, false, false), policy(list("A", "A"), nil, nil, false, false)},
		{policy(list("A", "B"), nil, nil, false, false), policy(list("B", "A"), nil, nil, false, false), policy(list("B", "A", "B"), nil, nil, false, false)},
		{policy(list(`A" "B`), nil, nil, false, false)},
		{policy(list("A B"), nil, nil, false, false)},
		{policy(list("A,B"), nil, nil, false, false)},
		{policy(list("A\x00B"), nil, nil, false, false)},
		{policy(list(""), nil, nil, false, false)},
		{policy(list(`"] false ["`), nil, nil, false, false)},
		{policy(nil, list("A"), nil, false, false)},
		{policy(nil, list("a:443", "b:443"), nil, false, false), policy(nil, list("b:443", "a:443", "b:443"), nil, false, false)},
		{policy(nil, nil, list("A"), false, false)},
		{policy(nil, nil, list("/dev/a", "/dev/b"), false, false), policy(nil, nil, list("/dev/b", "/dev/a"), false, false)},
		{policy(nil, nil, nil, true, false), policy(nil, list("a:443"), nil, true, false)},
		{policy(nil, nil, nil, false, true)},
	} {
		for _, p := range same {
			name := sandbox.TrustOf(p)
			if was, ok := names[name]; ok && was != fmt.Sprint(i) {
				t.Errorf("policies %s and %d have the same trust", was, i)
			}
			names[name] = fmt.Sprint(i)
		}
	}
	if len(names) != 15 {
		t.Errorf("%d names of 15 trusts: equal ones differ", len(names))
	}
}

// Commands of many runs work while runs end, are begun anew and old directories are swept: each starts, and none finds what one of
// another run or trust left.
func TestRunsEndWhileOthersWork(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		s.caching()
		const runs, commands = 4, 8
		done := make(chan struct{})
		var sweeps, works sync.WaitGroup
		sweeps.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, _, _, err := sandbox.Sweep(time.Now().Add(time.Hour), true); err != nil {
					t.Errorf("a sweep: %v", err)
				}
				if err := sandbox.Forget("none"); err != nil {
					t.Error(err)
				}
			}
		})
		for r := range runs {
			works.Go(func() {
				for c := range commands {
					p := s.policy
					name := fmt.Sprintf("run%d.%d", r, c/2) // an end between any two
					p.Trust = protocol.Trust{Run: protocol.RunID(name), Workflow: "w", Secrets: []string{fmt.Sprint("S", c%2)}}
					if c%4 == 3 {
						p.Trust.Run = ""
					}
					var out bytes.Buffer
					code, err := s.run(t.Context(), p, []string{"sh", "-c", `for d in "$HOME" "$TMPDIR"; do ls -A "$d"; mkdir "$d/a" "$d/b" && echo ` + name + ` > "$d/a/left" && cat "$d/a/left" > "$d/b/again" || exit 7; done`}, &out, &out)
					if err != nil || code != 0 || strings.TrimSpace(out.String()) != "" {
						t.Errorf("a command of %s ends with %d (%v) and finds %q", name, code, err, out.String())
					}
					if c%2 == 1 {
						if err := sandbox.Forget(protocol.RunID(name)); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		works.Wait()
		close(done)
		sweeps.Wait()
		if left := s.remains(); len(left) > 0 {
			t.Errorf("they leave %v", left)
		}
	})
}

// What a command leaves in the kernel goes with its namespace. Where there is none, docs/security.md says that it stays.
func TestWhatIsLeftInTheKernel(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		s.caching()
		s.policy.Trust = protocol.Trust{Run: "run1"}
		if got := s.works(`WF_ATTACK="leaves in the kernel" "$SELF"`); got != "shared memory: ok" {
			t.Errorf("nothing is left: %s", got)
		}
		s.policy.Trust.Secrets = []string{"TOKEN"}
		if got := s.works(`WF_ATTACK="finds in the kernel" "$SELF"`); (got == "shared memory: ok") == s.namespaces {
			t.Errorf("a command of other trust finds: %s", got)
		}
	})
}
