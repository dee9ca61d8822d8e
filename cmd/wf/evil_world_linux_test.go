package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"wf/cmd/internal/screentest"

	"golang.org/x/tools/txtar"
)

// canary begins every text outside of the workspace, so that whatever was read is found wherever it came to.
const canary = "evilcanary"

// forms are those in which the beginning of a canary shows.
var forms = func() map[string][]byte {
	m := map[string][]byte{"as it is": []byte(canary), "in hex": []byte(hex.EncodeToString([]byte(canary))), "backwards": []byte("yranaclive")}
	for shift := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("-", shift) + canary))
		m[fmt.Sprintf("in base64 at %d", shift)] = []byte(text[(shift*8+5)/6 : (shift+len(canary))*8/6])
	}
	return m
}()

// A world is a user with keys, another project, services and processes, and a workspace in which the evil
// repository lies. What is done in there shows: see harm.
type world struct {
	t                                           *testing.T
	dir, home, other, out, runtime, project, wf string

	env      []string
	names    map[string]string // what @NAMES@ stand for
	token    string            // of what outlives a command
	before   map[string]string // what lies outside, by path
	hits     map[string]*atomic.Int32
	open     bool // commands may use the network of the machine
	tests    bool // go test can run
	victim   *exec.Cmd
	mu       sync.Mutex
	shown    []departed // all that was printed and sent
	endpoint string     // of the model
}

// departed is something that left wf.
type departed struct {
	where, what string
	screen      bool // made for a terminal
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: it takes long")
	}
	for _, program := range []string{"git", "bash", "perl", "make", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("skipped: an attack needs it: ", err)
		}
	}
	dir, err := os.MkdirTemp("/var/tmp", "wf-evil-")
	if err != nil {
		t.Skip("skipped: no /var/tmp: ", err)
	}
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), other: filepath.Join(dir, "other"), out: filepath.Join(dir, "out"),
		runtime: filepath.Join(dir, "run"), project: filepath.Join(dir, "project"), token: "evil-outlives-" + random(), hits: map[string]*atomic.Int32{}}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	shared, temporary := filepath.Join("/dev/shm", filepath.Base(dir)), filepath.Join("/tmp", filepath.Base(dir))
	for _, name := range []string{shared, temporary} {
		w.put(name, "/tmp/"+canary+random())
		t.Cleanup(func() {
			if err := os.Remove(name); err != nil {
				t.Error(err)
			}
		})
	}
	for _, name := range []string{".ssh/id_ed25519", ".ssh/authorized_keys", ".aws/credentials", ".netrc", ".git-credentials", ".npmrc", ".docker/config.json",
		".kube/config", ".bashrc", ".config/gh/hosts.yml", ".config/wf/hub-token", ".gnupg/private-keys-v1.d/key"} {
		w.put(filepath.Join(w.home, name), "PRIVATE "+canary+" of "+name+" "+random())
	}
	w.put(filepath.Join(w.home, ".gitconfig"), "[user]\n\tname = Ada\n\temail = ada@example.com\n[url \"https://"+canary+random()+"@example.com\"]\n\tinsteadOf = x:\n")
	w.put(filepath.Join(w.home, ".npm/_cacache/index"), "of the user")
	w.put(filepath.Join(w.home, "go/pkg/mod/file"), "of the user")
	tools, cargo := filepath.Join(dir, "tools"), filepath.Join(dir, "cargo")
	for name, text := range map[string]string{"tools/bin/ruby": "#!/bin/sh\n", "tools/lib/file": "of the tool", "tools/.env": "KEY=" + canary + random(), "tools/etc/npmrc": canary + random(),
		"cargo/bin/cargo": "#!/bin/sh\n", "cargo/credentials.toml": canary + random(), "cargo/config.toml": "[registry]\ntoken = \"" + canary + random() + "\"\n"} {
		w.put(filepath.Join(dir, name), text)
	}
	w.put(filepath.Join(w.other, "secret"), "evilfound "+canary+random())
	w.put(filepath.Join(w.other, ".git/config"), "[core]\n")
	w.put(filepath.Join(w.other, ".git/objects/pack/pack-1.pack"), canary+random())
	for _, dir := range []string{w.out, w.runtime, w.project} {
		w.must(os.Mkdir(dir, 0o700))
	}

	w.victim = exec.Command("sleep", "1000")
	w.victim.Env = []string{"VICTIM=" + canary + random()}
	w.victim.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	w.must(w.victim.Start())
	t.Cleanup(func() {
		_ = w.victim.Process.Kill() // an attack may have ended it
		_ = w.victim.Wait()
	})
	key := canary + "/+" + random()
	w.names = map[string]string{
		"HOME": w.home, "OTHER": w.other, "OUT": w.out, "PROJECT": w.project, "EVIL": filepath.Join(w.project, "evil.sh"), "SHM": shared, "TMP": temporary, "TOOLS": tools, "CARGO": cargo,
		"PID": strconv.Itoa(w.victim.Process.Pid), "OUTLIVES": w.token, "SOCKET": filepath.Join(w.runtime, "agent.sock"), "ABSTRACT": w.token,
		"KEY": key, "KEY_HEX": hex.EncodeToString([]byte(key)), "KEY_BASE64": base64.StdEncoding.EncodeToString([]byte(key)), "KEY_URL": url.QueryEscape(key),
		"SPACES": strings.Repeat(" ", 1990), "LONG": strings.Repeat("a line of text, ", 5000), "PEM": "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH",
	}
	w.listen("tcp", "127.0.0.1:0")
	w.listen("unix", w.names["SOCKET"])
	w.listen("unix", "@"+w.names["ABSTRACT"])
	w.hear()
	w.env = append([]string{"HOME=" + w.home, "USER=ada", "XDG_RUNTIME_DIR=" + w.runtime, "TMPDIR=/tmp", "EVIL_KEY=" + key, "LANG=C",
		"AWS_SECRET_ACCESS_KEY=" + canary + random(), "GITHUB_TOKEN=" + canary + random(), "SSH_AUTH_SOCK=" + w.names["SOCKET"], "DOCKER_HOST=unix://" + w.names["SOCKET"],
		"VIRTUAL_ENV=" + filepath.Join(w.project, "venv"), "npm_config_cache=" + filepath.Join(w.home, ".npm"),
		"CARGO_HOME=" + cargo, "PATH=" + filepath.Join(w.project, "bin") + ":" + tools + "/bin:" + cargo + "/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "GORACE=" + os.Getenv("GORACE")}, w.env...)
	w.tests = w.giveGo()
	w.clone()
	w.nest()
	return w
}

// giveGo gives the user Go, with a cache in which it finds the standard library: else its tests would take long.
func (w *world) giveGo() bool {
	program, err := exec.LookPath("go")
	cache := os.Getenv("GOCACHE")
	if dir, known := os.UserCacheDir(); cache == "" && known == nil {
		cache = filepath.Join(dir, "go-build")
	}
	if built, _ := filepath.Glob(filepath.Join(cache, "0*/*-d")); err != nil || len(built) == 0 {
		return false
	}
	w.env = append(w.env, "GOCACHE="+cache, "GOPROXY=off", "GOTOOLCHAIN=local")
	for i, v := range w.env {
		if strings.HasPrefix(v, "PATH=") {
			w.env[i] += ":" + filepath.Dir(program)
		}
	}
	return true
}

func random() string { return rand.Text() }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(path, text string) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(path), 0o700))
	w.must(os.WriteFile(path, []byte(text), 0o700))
}

var placeholder = regexp.MustCompile(`@[A-Z0-9_]+@`)

// fill writes out what @NAMES@ stand for.
func (w *world) fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(name string) string {
		value, ok := w.names[strings.Trim(name, "@")]
		if !ok {
			w.t.Fatalf("%s is no name", name)
		}
		return value
	})
}

// listen counts who comes.
func (w *world) listen(network, address string) {
	w.t.Helper()
	l, err := net.Listen(network, address)
	w.must(err)
	n := w.hits[network+" "+address]
	if n == nil {
		n = new(atomic.Int32)
		w.hits[network+" "+address] = n
	}
	if network == "tcp" {
		w.names["TCP"] = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	var all sync.WaitGroup
	w.t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			conn.Close()
		}
	})
}

// hear counts what comes by UDP.
func (w *world) hear() {
	w.t.Helper()
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	w.must(err)
	w.names["UDP"] = strconv.Itoa(l.LocalAddr().(*net.UDPAddr).Port)
	n := new(atomic.Int32)
	w.hits["udp"] = n
	var all sync.WaitGroup
	w.t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			if _, _, err := l.ReadFrom(make([]byte, 1)); err != nil {
				return
			}
			n.Add(1)
		}
	})
}

// clone lays the evil repository out.
func (w *world) clone() {
	w.t.Helper()
	archive, err := txtar.ParseFile("testdata/evil/repository.txtar")
	w.must(err)
	git := func(args ...string) {
		w.t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "core.hooksPath=/dev/null", "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Dir, cmd.Env = w.project, []string{"PATH=/usr/bin:/bin", "HOME=" + w.out, "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	w.put(filepath.Join(w.project, "README.md"), "A project.")
	git("init", "-q", "-b", "main")
	git("add", "README.md")
	git("commit", "-q", "-m", "one")
	var evil string
	for _, f := range archive.Files {
		name := f.Name
		if below, ok := strings.CutPrefix(name, "git/"); ok {
			name = ".git/" + below
		}
		if name == "evil.sh" {
			evil = w.fill(string(f.Data))
		}
		w.put(filepath.Join(w.project, name), w.fill(string(f.Data)))
	}
	for _, name := range []string{"git", "sh", "go", "node", "npm", "make", "less", "stty", "tput", "wf", "xdg-open", "ldd", "getent", "unshare", "newuidmap", "bwrap", "locale", "cat"} {
		w.put(filepath.Join(w.project, "bin", name), evil)
	}
}

// nest lays out a repository of the user within the project, whose hooks are a link, and a socket at which a service listens.
func (w *world) nest() {
	w.t.Helper()
	cmd := exec.Command("git", "init", "-q", "-b", "main", "--template=", "tool")
	cmd.Dir, cmd.Env = w.project, []string{"PATH=/usr/bin:/bin", "HOME=" + w.out, "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	w.put(filepath.Join(w.project, "tool/scripts/README"), "Hooks.")
	w.must(os.Symlink("../scripts", filepath.Join(w.project, "tool/.git/hooks")))
	w.must(os.Mkdir(filepath.Join(w.project, "run"), 0o755))
	w.listen("unix", filepath.Join(w.project, "run/dev.sock"))
}

// own are the directories below home in which wf itself writes.
var own = []string{".local/share/wf", ".local/state/wf", ".cache/wf"}

// outside is what lies outside of the workspace, with modes and content.
func (w *world) outside() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, root := range []string{w.home, w.other, w.out, w.names["SHM"], w.names["TMP"]} {
		w.must(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if name, err := filepath.Rel(w.home, path); err == nil && (slices.Contains(own, name) || name == ".local" || name == ".cache" || filepath.Dir(name) == ".local") {
				if slices.Contains(own, name) {
					return fs.SkipDir
				}
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			said := info.Mode().String()
			switch {
			case info.Mode().IsRegular():
				b, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				said += fmt.Sprintf(" %x", sha256.Sum256(b))
			case info.Mode()&fs.ModeSymlink != 0:
				to, err := os.Readlink(path)
				if err != nil {
					return err
				}
				said += " " + to
			}
			all[path] = said
			return nil
		}))
	}
	return all
}

// note keeps a text that left wf.
func (w *world) note(where, what string, screen bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shown = append(w.shown, departed{where, what, screen})
}

// wfCommand is wf as the user of the world starts it in the project.
func (w *world) wfCommand(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.t.Context(), w.wf, args...)
	cmd.Dir, cmd.Env = w.project, append([]string{"WF_EVIL=" + w.endpoint}, w.env...)
	return cmd
}

// run is wf: its exit status, and all that it said.
func (w *world) run(args ...string) (int, string) {
	w.t.Helper()
	out, err := w.wfCommand(args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("wf %v: %v", args, err)
	}
	w.note("wf "+strings.Join(args, " "), string(out), true)
	if exit != nil {
		return exit.ExitCode(), string(out)
	}
	return 0, string(out)
}

// harm is what came to the world: what ran outside, was changed, connected to, ended, left behind, read, or
// acts on a terminal. It is said once.
func (w *world) harm() []string {
	w.t.Helper()
	var harm []string
	if b, err := os.ReadFile(filepath.Join(w.out, "pwned")); err == nil {
		harm = append(harm, "ran outside: "+string(b))
	}
	now := w.outside()
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if was, ok := w.before[path]; !ok || was != now[path] {
			harm = append(harm, fmt.Sprintf("changed: %s, from %q to %q", path, was, now[path]))
		}
	}
	for path := range w.before {
		if _, ok := now[path]; !ok {
			harm = append(harm, "removed: "+path)
		}
	}
	w.before = now
	for name, n := range w.hits {
		if n := n.Swap(0); n > 0 && !(w.open && !strings.HasPrefix(name, "unix")) {
			harm = append(harm, fmt.Sprintf("reached: %s, %d times", name, n))
		}
	}
	if state, err := os.ReadFile("/proc/" + w.names["PID"] + "/stat"); err != nil || bytes.Contains(state, []byte(") Z ")) {
		harm = append(harm, "ended: a process of the user")
	}
	for _, pid := range w.left() {
		harm = append(harm, fmt.Sprint("left behind: process ", pid))
	}
	w.mu.Lock()
	texts := w.shown
	w.shown = nil
	w.mu.Unlock()
	for _, x := range texts {
		harm = append(harm, leaks(x.where, []byte(x.what))...)
		if x.screen {
			if what := screentest.Acts(x.what, false); what != "" {
				harm = append(harm, "on the screen: "+x.where+": "+what)
			}
		}
	}
	roots, err := filepath.Glob(w.project + "*") // and the copies that wf makes beside it
	w.must(err)
	cache := filepath.Join(w.home, ".cache")
	for _, root := range append(roots, filepath.Join(w.home, ".local"), cache) {
		w.must(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || root == cache && errors.Is(err, fs.ErrPermission) {
				return nil // a daemon is at work; or it is the kernel's own, in a layer of a cache
			}
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) || root == cache && errors.Is(err, fs.ErrPermission) {
				return nil
			}
			harm = append(harm, leaks(path, b)...)
			return err
		}))
	}
	return harm
}

// leaks are the canaries in a text.
func leaks(where string, b []byte) []string {
	var out []string
	for name, form := range forms {
		if at := bytes.Index(b, form); at >= 0 {
			out = append(out, fmt.Sprintf("read: %s holds a canary %s: %q", where, name, b[max(0, at-80):min(len(b), at+40)]))
		}
	}
	slices.Sort(out)
	return out
}

// left are the processes that an attack left behind, each by its id.
func (w *world) left() []int {
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	w.must(err)
	var out []int
	for _, name := range names {
		// One that has ended meanwhile is not left.
		if line, err := os.ReadFile(name); err == nil && bytes.Contains(line, []byte(w.token)) && bytes.Contains(line, []byte("while")) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			w.must(err)
			out = append(out, pid)
		}
	}
	return out
}

// endWhatIsLeft ends what an attack without walls left behind.
func (w *world) endWhatIsLeft() {
	for left := w.left(); len(left) > 0; left = w.left() {
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}

// unharmed is asked for after each act.
func (w *world) unharmed(t *testing.T) {
	t.Helper()
	for _, harm := range w.harm() {
		t.Error(harm)
	}
}
