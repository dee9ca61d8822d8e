package sandbox_test

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/sandbox"
)

func TestB07OnlyTheWorkspaceIsWritten(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		s.works(`mkdir -p a/b && echo x > a/b/c && mv a/b/c d && rm -r a && ln -s d e && cat e && mkfifo f && echo x > "$TMPDIR/t" && echo x > "$HOME/h" && echo x > /dev/null`)
		s.denied(`echo x > "$OUTSIDE/new"`)
		s.denied(`echo x >> "$OUTSIDE/file"`)
		s.denied(`rm "$OUTSIDE/file"`)
		s.denied(`mkdir "$OUTSIDE/dir"`)
		s.denied(`mv d "$OUTSIDE/d"`)
		s.denied(`truncate -s 0 "$OUTSIDE/file"`)
		s.denied(`ln "$OUTSIDE/file" linked`)
		s.denied(`ln -s "$OUTSIDE" way && echo x > way/new`)
		s.denied(`cd .. && echo x > outside/new`)
		s.denied(`mknod dev c 1 3`)
		s.denied(`echo x > /etc/wf-was-here`)
		s.denied(`echo x > /usr/wf-was-here`)
		s.denied(`echo 1 > /proc/sys/vm/drop_caches`)
		s.denied(`echo x > /proc/sys/kernel/core_pattern`)
		s.denied(`echo 0 > /proc/self/oom_score_adj`)
		s.denied(`mkdir /sys/fs/cgroup/wf-was-here`)
		s.denied(`echo $$ > /sys/fs/cgroup/cgroup.procs`)
		s.denied(`: > /dev/kmsg`)
		if s.namespaces {
			s.denied(`chmod 777 "$OUTSIDE/file"`)
			s.denied(`touch -d 2001-01-01 "$OUTSIDE/file"`)
			own := "wf-own-" + rand.Text() // a name that nothing else on the machine has
			s.works(`echo x > /tmp/` + own + ` && echo x > /dev/shm/` + own)
			if s.exists("/tmp/"+own) || s.exists("/dev/shm/"+own) {
				t.Error("/tmp or /dev/shm is that of the machine")
			}
		} else {
			s.denied(`echo x > /tmp/wf-was-here`)
		}
		entries, err := os.ReadDir(s.outside)
		content, err2 := os.ReadFile(filepath.Join(s.outside, "file"))
		if err != nil || err2 != nil || len(entries) != 1 || string(content) != "the secret" {
			t.Errorf("outside there is %v with %q (%v, %v)", entries, content, err, err2)
		}
	})
}

func TestB07NothingPrivateIsRead(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		s.works(`cat /etc/passwd /etc/hosts && ls /usr/bin && cat /proc/self/status && cat /proc/cpuinfo && head -c 8 /dev/urandom`)
		s.denied(`cat "$SSH/id"`)
		s.denied(`ls "$SSH"`)
		s.denied(`cat "$OUTSIDE/file"`)
		s.denied(`ln -s "$OUTSIDE" link && cat link/file`)
		s.denied(`cat /proc/self/root"$OUTSIDE/file"`)
		s.denied(`cat /proc/self/cwd/../outside/file`)
		if s.namespaces {
			if got := s.works(`ls / /var /var/tmp/*`); strings.Contains(got, "outside") {
				t.Errorf("the root holds %s", got)
			}
		} else {
			s.denied(`ls /`)
		}
		s.denied(`ls /run`)
		s.denied(`cat /etc/shadow`)
		s.denied(`cat /proc/1/environ`)
		s.denied(`ls /proc/1/root/`)
		s.denied(`cat /proc/$PPID/fd/3`)
		s.denied(`head -c 1 /proc/$PPID/mem`)
		if s.namespaces {
			if got := s.works(`ls -d /proc/[0-9]* | wc -l`); len(got) > 1 {
				t.Errorf("%s processes are seen", got)
			}
		} else {
			s.denied(fmt.Sprintf(`cat /proc/%d/environ`, os.Getpid()))
			s.denied(fmt.Sprintf(`ls /proc/%d/root/`, os.Getpid()))
		}
	})
}

func TestHooksAndSettingsAreProtected(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		if !s.namespaces {
			t.Skip("needs a mount namespace")
		}
		control := []string{"config", "config.worktree", "hooks/sample", "info/exclude", "commondir", "gitdir", "objects/info/alternates"}
		for _, git := range []string{".git", ".git/modules/lib/a", ".git/modules/b", ".git/modules/b/modules/c", ".git/worktrees/w"} {
			s.write(filepath.Join(s.work, git, "HEAD"), "ref: refs/heads/main\n")
			s.write(filepath.Join(s.work, git, "index"), "")
			for _, name := range control {
				if git == ".git" && name == "commondir" {
					continue // of a worktree
				}
				s.write(filepath.Join(s.work, git, name), "#")
			}
		}
		s.write(filepath.Join(s.work, ".wf/config.yaml"), "model: x\n")
		s.write(filepath.Join(s.work, "sub/.git"), "gitdir: ../.git/modules/b")
		s.works(`echo x > .git/index && cat .wf/config.yaml && echo x > .git/modules/b/index && echo x > .git/objects/new && echo x > .git/HEAD.lock && mv .git/HEAD.lock .git/HEAD`)
		for _, git := range []string{".git", ".git/modules/lib/a", ".git/modules/b", ".git/modules/b/modules/c", ".git/worktrees/w"} {
			for _, name := range control[:4] {
				s.denied(`echo x >> ` + git + `/` + name)
			}
			s.denied(`echo x > ` + git + `/objects/info/alternates`)
			s.denied(`echo x > ` + git + `/hooks/pre-commit`)
			s.denied(`mv ` + git + `/hooks ` + git + `/old`)
			s.denied(`rm ` + git + `/config`)
			s.denied(`echo x > new && mv new ` + git + `/config`)
			s.denied(`ln ` + git + `/config hard`)
			s.denied(`mv ` + git + ` git`)
		}
		s.denied(`echo x > .git/worktrees/w/commondir`)
		s.denied(`mv .git/modules .git/m`)
		s.denied(`mv .git/modules/lib .git/modules/l`)
		s.denied(`mv .git/objects .git/o`)
		s.denied(`rm -rf .wf`)
		s.denied(`echo x > .wf/config.yaml`)
		s.denied(`touch .wf/new`)

		// The directory of the command may be a repository of its own, by a file.
		s.policy.Dir = filepath.Join(s.work, "sub")
		s.denied(`echo "gitdir: ../evil" > .git`)
		s.denied(`rm .git`)
		s.denied(`echo x > ../.git/config`)
	})
}

// git has to work in there, but for what changes its settings.
func TestGitWorksInTheSandbox(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	onEach(t, func(t *testing.T, s stage) {
		s.policy.Environ = append(s.policy.Environ, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		s.works(`git init -q -b main . && git commit -q --allow-empty -m one && mkdir -p .git/hooks`)
		for _, worktreeConfig := range []bool{false, true} {
			if worktreeConfig {
				s.write(filepath.Join(s.work, ".git/config.worktree"), "")
			}
			s.works(fmt.Sprintf("N=%v\n", worktreeConfig) + `echo $N > file && git add file && git commit -q -m two && git branch b$N && git checkout -q -b c$N && echo x$N > file && git stash -q && git stash pop -q &&
				git commit -q -a -m three && git checkout -q main && git merge -q --no-ff -m four c$N && git tag t$N && git reset -q --hard HEAD~1 && git rebase -q c$N && git gc -q && git status && git fsck`)
			if s.namespaces {
				s.denied(`git config core.fsmonitor evil`)
				s.denied(`git config core.hooksPath evil`)
				s.denied(`echo evil > .git/hooks/pre-commit`)
			}
		}
	})
}

// A command starts in its workspace. Its directory may be a link that another command has made.
func TestNoDirectoryLeadsOutOfTheWorkspace(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		s.write(filepath.Join(s.work, "real/file"), "x")
		for link, to := range map[string]string{"out": s.outside, "within": "real"} {
			if err := os.Symlink(to, filepath.Join(s.work, link)); err != nil {
				t.Fatal(err)
			}
		}
		s.policy.Dir = filepath.Join(s.work, "within")
		if got := s.works("pwd -P && echo y > file"); got != filepath.Join(s.work, "real") {
			t.Errorf("it works in %s", got)
		}
		for _, dir := range []string{filepath.Join(s.work, "out"), s.outside, filepath.Join(s.work, "..")} {
			s.policy.Dir = dir
			code, err := s.run(t.Context(), s.policy, []string{"sh", "-c", "echo x > evil"}, nil, nil)
			if err == nil || !strings.Contains(err.Error(), "leads outside of the workspace") {
				t.Errorf("in %s: exit %d, %v", dir, code, err)
			}
			if s.exists(filepath.Join(dir, "evil")) {
				t.Errorf("the command wrote in %s", dir)
			}
		}
	})
}

func TestB07Sockets(t *testing.T) {
	const no = "operation not permitted"
	loopback := map[string]string{"udp": "ok", "udp6": "ok", "tcp": "ok", "tcp named": "ok", "tcp6": "ok", "netlink route": "ok", "unix": "ok", "unix datagram": "ok", "unix pair": "ok"}
	for name, c := range map[string]struct {
		network    bool
		namespaces map[string]string
		none       map[string]string
	}{
		"no network": {false, loopback, map[string]string{"unix pair": "ok"}},
		"network":    {true, loopback, without(loopback, "unix", "unix datagram")},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s stage) {
				s.policy.Network = c.network
				want := c.none
				switch {
				case s.namespaces:
					want = c.namespaces
				case sandbox.Probe().ABI >= 9:
					want = with(want, "unix", "unix datagram")
				}
				got := said(s.works(`WF_ATTACK=sockets "$SELF"`))
				for _, kind := range append(socketKinds, struct {
					name                   string
					family, kind, protocol int
				}{name: "unix pair"}) {
					expect := want[kind.name]
					if expect == "" {
						expect = no
					}
					if strings.HasSuffix(kind.name, "6") && got[kind.name] == "address family not supported by protocol" {
						continue // a kernel without IPv6
					}
					if got[kind.name] != expect {
						t.Errorf("%s: %s, want %s", kind.name, got[kind.name], expect)
					}
				}
			})
		})
	}
}

func with(m map[string]string, names ...string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = v
	}
	for _, name := range names {
		out[name] = "ok"
	}
	return out
}

func without(m map[string]string, names ...string) map[string]string {
	out := with(m)
	for _, name := range names {
		delete(out, name)
	}
	return out
}

// said reads what attack says.
func said(out string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(out) {
		if name, result, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			m[name] = result
		}
	}
	return m
}

func TestB07SystemCalls(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		s.policy.Environ = append(s.policy.Environ, fmt.Sprintf("HOST_PID=%d", os.Getpid()))
		got := said(s.works(`: > own; LAUNCHER_PID=$PPID WF_ATTACK=calls "$SELF"`))
		s.works("chmod 755 own && install -m 700 own copied && mkdir -m 1777 open") // other modes are theirs to set
		for _, c := range calls() {
			want := []string{"operation not permitted"}
			switch c.name {
			case "trace wf", "signal wf", "read wf's memory":
				if s.namespaces {
					want = []string{"no such process"} // its pid means nothing there
				}
			case "trace the launcher", "trace the init":
				want = append(want, "no such process", "permission denied")
			case "become another":
				want = append(want, "invalid argument")
			}
			ok := false
			for _, w := range want {
				ok = ok || got[c.name] == w
			}
			if !ok {
				t.Errorf("%s: %q, want one of %q", c.name, got[c.name], want)
			}
		}
	})
}

// A 32-bit program that exits with 0 has its own numbers of system calls.
func TestB07TheOtherABIIsClosed(t *testing.T) {
	exit := []byte("\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x03\x00\x01\x00\x00\x00" +
		"\x54\x80\x04\x08\x34\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x34\x00\x20\x00\x01\x00\x00\x00\x00\x00\x00\x00" +
		"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x80\x04\x08\x00\x80\x04\x08\x5d\x00\x00\x00\x5d\x00\x00\x00\x05\x00\x00\x00\x00\x10\x00\x00" +
		"\x31\xdb\xb8\x01\x00\x00\x00\xcd\x80")
	onEach(t, func(t *testing.T, s stage) {
		if err := os.WriteFile(filepath.Join(s.work, "exit32"), exit, 0o755); err != nil {
			t.Fatal(err)
		}
		if code, out := s.sh("./exit32"); code != 159 && code != 126 { // SIGSYS, or no such ABI here
			t.Errorf("exit %d: %s", code, out)
		}
	})
}

func TestB07TheMachineIsOutOfReach(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	go echoPackets(udp)
	for _, network := range []bool{false, true} {
		t.Run(fmt.Sprint("network ", network), func(t *testing.T) {
			onEach(t, func(t *testing.T, s stage) {
				path := filepath.Join(s.outside, "socket")
				listener, err := net.Listen("unix", path)
				if err != nil {
					t.Fatal(err)
				}
				defer listener.Close()
				s.policy.Network = network
				s.policy.Environ = append(s.policy.Environ, "HOST_TCP="+tcp.Addr().String(), "HOST_UDP="+udp.LocalAddr().String(), "HOST_UNIX="+path)
				got := said(s.works(`WF_ATTACK=dial "$SELF"`))
				for name, result := range got {
					if want := network && name != "unix"; (result == "ok") != want {
						t.Errorf("%s: %s", name, result)
					}
				}
				if len(got) != 3 {
					t.Errorf("it said %v", got)
				}
			})
		})
	}
}

func TestTheOwnLoopbackWorks(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		if !s.namespaces {
			t.Skip("needs a network namespace")
		}
		if d := cmp.Diff(map[string]string{"http": "ok", "interfaces": "ok", "udp": "ok"}, said(s.works(`WF_ATTACK=loopback "$SELF"`))); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(map[string]string{"listen": "ok", "dial": "ok"}, said(s.works(`WF_ATTACK=unix "$SELF"`))); d != "" {
			t.Error(d)
		}
	})
}

// A command without a network may ask for names, and there is no answer.
func TestNoNameIsResolvedWithoutANetwork(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		got := said(s.works(`WF_ATTACK=names "$SELF"`))
		if result := got["example.com"]; result == "" || result == "ok" {
			t.Errorf("example.com: %q", result)
		}
		want := "operation not permitted"
		if s.namespaces {
			want = "network is unreachable"
		}
		for _, address := range []string{"192.0.2.1:53", "255.255.255.255:53", "224.0.0.251:5353"} {
			if got[address] != want {
				t.Errorf("%s: %q, want %q", address, got[address], want)
			}
		}
	})
}

// A workspace in shared memory is the one that commands write to, and nothing else there is seen.
func TestAWorkspaceInSharedMemory(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		dir := s.workBelow("/dev/shm")
		s.works("cat file && echo y > file && ! cat ../secret && (echo z > ../beside || true)")
		if got, err := os.ReadFile(filepath.Join(dir, "work/file")); err != nil || string(got) != "y\n" {
			t.Errorf("the file of the workspace holds %q (%v)", got, err)
		}
		if s.exists(filepath.Join(dir, "beside")) {
			t.Error("a command wrote beside the workspace")
		}
	})
}

// A workspace in /tmp is as closed as any other: the /tmp around it holds nothing else.
func TestB07AWorkspaceInTmp(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		dir := s.workBelow("/tmp")
		path := filepath.Join(dir, "socket")
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		s.works("echo y > file && cat file")
		s.denied("cat ../secret")
		s.denied("echo x > ../outside")
		if !s.namespaces {
			s.denied("ls /tmp")
		} else if got := s.works("ls /tmp"); got != filepath.Base(dir) {
			t.Errorf("in /tmp there is %q", got)
		}
		if s.exists(filepath.Join(dir, "outside")) {
			t.Error("a command wrote beside the workspace")
		}
		s.policy.Environ = append(s.policy.Environ, "HOST_TCP=127.0.0.1:1", "HOST_UDP=127.0.0.1:1", "HOST_UNIX="+path)
		if got := said(s.works(`WF_ATTACK=dial "$SELF"`)); got["unix"] == "ok" || got["unix"] == "" {
			t.Errorf("the socket answers: %v", got)
		}
	})
}
