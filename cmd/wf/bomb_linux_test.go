package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"
)

func init() { programs["weighed"] = weighed }

// weighed is peak for a program that may fail: it ends as that one does.
func weighed() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(125)
	}
	most := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	if err := os.WriteFile(os.Getenv("WF_PEAK"), strconv.AppendInt(nil, most, 10), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(125)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// bombMost is how many bytes of memory a reader of something hostile may take beyond what it takes for a small run.
const bombMost = 100 << 20

const victimYAML = `
wf: 1
name: victim
workspace: {track: true, exclude: ["*.car", "*.yaml", "*.state", ".*", peak, got, back, backup, empty, hostile]}
defaults: {timeout: 1m}
inputs: {topic: {type: string, default: bees}}
roles:
  first: {run: 'mkdir -p work/d; echo one > work/d/f; echo said', artifacts: {paths: [work/**]}}
  each: {set: {value: "${{ item }}"}}
  agent: {prompt: You write., tools: [read_file], model: script/replies.yaml}
edges:
  - {from: START, to: first}
  - {from: first, to: each, for_each: "1..8"}
  - {from: each, to: agent}
  - {from: agent, to: END}
outputs: {said: "${{ steps.agent.text }}"}
`

// victim is a directory with a small run, and its archive.
type victim struct {
	t   *testing.T
	dir string
	run string
	car []byte
}

func newVictim(t *testing.T) *victim {
	v := &victim{t: t, dir: t.TempDir()}
	write(t, v.dir, "victim.yaml", victimYAML)
	write(t, v.dir, "replies.yaml", "agent#1:\n  - {tools: [{tool: read_file, args: {path: work/d/f}}]}\n  - {text: \""+strings.Repeat("All is well. ", 2000)+"\"}\n")
	v.must(".wf", "run", "victim.yaml", "-q")
	var list struct{ Items []struct{ ID string } }
	if err := json.Unmarshal([]byte(v.must(".wf", "ls", "-o", "json")), &list); err != nil || len(list.Items) != 1 {
		t.Fatal(err, list)
	}
	v.run = list.Items[0].ID
	v.must(".wf", "export", v.run, "--files", "-o", "victim.car")
	car, err := os.ReadFile(filepath.Join(v.dir, "victim.car"))
	if err != nil {
		t.Fatal(err)
	}
	v.car = car
	return v
}

// wf performs a command at a store, and says what it took.
func (v *victim) wf(store string, args ...string) (out string, exit int, peak int64) {
	v.t.Helper()
	cmd := exec.Command("weighed", append([]string{"wf"}, args...)...)
	cmd.Dir = v.dir
	cmd.Env = append(os.Environ(), "WF_PEAK="+filepath.Join(v.dir, "peak"), "HOME="+v.dir, "WF_STORE="+filepath.Join(v.dir, store), "XDG_STATE_HOME="+filepath.Join(v.dir, store+".state"), "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "XDG_RUNTIME_DIR=")
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 125 {
		v.t.Fatalf("wf %s: %v\n%s", strings.Join(args, " "), err, b.String())
	}
	text, err := os.ReadFile(filepath.Join(v.dir, "peak"))
	if err == nil {
		peak, err = strconv.ParseInt(string(text), 10, 64)
	}
	if err != nil {
		v.t.Fatal(err)
	}
	return b.String(), cmd.ProcessState.ExitCode(), peak
}

func (v *victim) must(store string, args ...string) string {
	v.t.Helper()
	out, exit, _ := v.wf(store, args...)
	if exit != 0 {
		v.t.Fatalf("wf %s: exit %d\n%.3000s", strings.Join(args, " "), exit, out)
	}
	return out
}

// hostileStore is a store to which an archive was brought past all that wf checks: a copy of that of the victim, with
// the blocks in packs, and heads that name others. An index is made anew when it is opened.
func (v *victim) hostileStore(name string, f *forge, packs ...[]byte) {
	v.t.Helper()
	err := os.CopyFS(filepath.Join(v.dir, name), os.DirFS(filepath.Join(v.dir, ".wf")))
	if err != nil {
		v.t.Fatal(err)
	}
	db, err := bolt.Open(filepath.Join(v.dir, name, "store.db"), 0o600, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	r := f.decode(f.roots[len(f.roots)-1]).(record)["runs"].([]any)[0].(record)
	heads := map[string]any{"run/" + v.run: r["head"], "files/" + v.run: r["files"]}
	err = db.Update(func(tx *bolt.Tx) error {
		blocks := tx.Bucket([]byte("blocks"))
		last, _ := blocks.Cursor().Last()
		next := binary.BigEndian.Uint64(append(make([]byte, 3), last...))
		for _, p := range append(packs, f.packs()...) {
			next++
			if err := blocks.Put(binary.BigEndian.AppendUint64(nil, next)[3:], p); err != nil {
				return err
			}
		}
		for name, l := range heads {
			to, ok := linked(l)
			old := tx.Bucket([]byte("refs")).Get([]byte(name))
			if !ok || len(old) < 38 || old[0] != 36 {
				return fmt.Errorf("head %s: %x", name, old)
			}
			if err := tx.Bucket([]byte("refs")).Put([]byte(name), slices.Concat([]byte{36}, []byte(to), old[37:])); err != nil {
				return err
			}
		}
		meta := tx.Bucket([]byte("meta"))
		return errors.Join(meta.Delete([]byte("late")), meta.Delete([]byte("kin")), tx.DeleteBucket([]byte("index")))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		v.t.Fatal(err)
	}
}

// planted puts a payload in every place of a run that has one.
func planted(place string, make func(f *forge) string) func(f *forge, kind string, r record) {
	return func(f *forge, kind string, r record) {
		at := make
		switch {
		case place == "output" && kind == "step" && (r["role"] == "first" || r["role"] == "agent"):
			r["output"] = link(at(f))
		case place == "items" && kind == "step" && r["role"] == "each":
			r["output"] = link(at(f))
		case place == "data" && kind == "step" && r["role"] == "first":
			r["data"] = link(at(f))
		case place == "inputs" && kind == "start":
			r["inputs"] = link(at(f))
		case place == "source" && kind == "event" && r["type"] == "run_started":
			r["data"].(record)["source"] = link(at(f))
		case place == "item" && kind == "step" && r["item"] != nil:
			r["item"].(record)["value"] = link(at(f))
		case place == "text" && kind == "event":
			for key, x := range r["data"].(record) {
				if _, long := linked(x); long && (key == "text" || key == "content") {
					r["data"].(record)[key] = link(at(f))
				}
			}
		case place == "artifacts" && kind == "step" && r["role"] == "first":
			r["artifacts"] = link(at(f))
		case place == "files" && kind == "files":
			r["tree"] = link(at(f))
		case place == "files" && kind == "event":
			if d, ok := r["data"].(record); ok && d["tree"] != nil { // events name trees by text
				d["tree"] = cidText(at(f))
			}
		}
	}
}

// bombs are what small archives can say.
var bombs = []struct {
	name   string
	places []string
	words  string // of the error of verify
	make   func(f *forge) string
}{
	{"a chunk 1,500 times", []string{"output", "data", "inputs", "text", "source", "item"}, "at most 67108864", func(f *forge) string {
		return f.chunks(1500<<20, slices.Repeat([]string{f.megabyte()}, 1500)...)
	}},
	{"a chunk 65 times", []string{"output"}, "at most 67108864", func(f *forge) string {
		return f.chunks(65<<20, slices.Repeat([]string{f.megabyte()}, 65)...)
	}},
	{"chunks that say 2^40 bytes", []string{"output"}, "at most 67108864", func(f *forge) string { return f.chunks(1<<40, f.megabyte(), f.raw([]byte("x"))) }},
	{"chunks that say 2^53 bytes", []string{"output"}, "", func(f *forge) string { return f.chunks(1<<53, f.megabyte(), f.raw([]byte("x"))) }},
	{"chunks that say 2^63 bytes", []string{"output"}, "", func(f *forge) string { return f.chunks(math.MaxInt64, f.megabyte(), f.raw([]byte("x"))) }},
	{"chunks that say −1 bytes", []string{"output"}, "cannot be", func(f *forge) string { return f.chunks(-1, f.megabyte(), f.raw([]byte("x"))) }},
	{"64 MiB in chunks of a byte", []string{"output"}, "bytes", func(f *forge) string { return f.chunks(64<<20, slices.Repeat([]string{f.raw([]byte("x"))}, 64)...) }},
	{"more in chunks than is said", []string{"output"}, "bytes", func(f *forge) string { return f.chunks(1<<20+1, f.megabyte(), f.megabyte()) }},
	{"500,000 chunks of nothing", []string{"output"}, "", func(f *forge) string { return f.chunks(2<<20, slices.Repeat([]string{f.raw(nil)}, 500_000)...) }},
	{"chunks of chunks", []string{"output"}, "raw block", func(f *forge) string {
		at := f.chunks(64<<20, slices.Repeat([]string{f.megabyte()}, 64)...)
		for range 5 {
			at = f.chunks(64<<20, slices.Repeat([]string{at}, 64)...)
		}
		return at
	}},
	{"a tree of 20 × 12", []string{"artifacts", "files"}, "1000000", func(f *forge) string { return f.dagTree(20, 12) }},
	{"a tree of 2 × 40", []string{"artifacts", "files"}, "1000000", func(f *forge) string { return f.dagTree(2, 40) }},
	{"a tree of 1 × 20,000", []string{"artifacts", "files"}, "128", func(f *forge) string { return f.dagTree(1, 20_000) }},
	{"a file that says 2^40 bytes", []string{"artifacts", "files"}, "file", func(f *forge) string {
		part := f.raw(bytes.Repeat([]byte("x"), 64<<10))
		file := f.cbor(record{"kind": "file", "v": 1, "size": 1 << 40, "parts": []any{link(part), link(part)}})
		return f.tree(record{"link": link(file), "mode": "file", "name": "f", "size": 1 << 40})
	}},
	{"lists within lists", []string{"output", "data"}, "", func(f *forge) string {
		return f.put(0x71, append(bytes.Repeat([]byte{0x81}, 1_000_000), 0x80))
	}},
	{"a list of 2^40", []string{"output", "artifacts"}, "", func(f *forge) string { return f.put(0x71, binary.BigEndian.AppendUint64([]byte{0x9b}, 1<<40)) }},
	{"a map of 2^62", []string{"output", "artifacts"}, "", func(f *forge) string { return f.put(0x71, binary.BigEndian.AppendUint64([]byte{0xbb}, 1<<62)) }},
	{"a text of 2^40", []string{"output", "artifacts"}, "", func(f *forge) string { return f.put(0x71, binary.BigEndian.AppendUint64([]byte{0x7b}, 1<<40)) }},
	{"bytes of 2^63", []string{"output", "artifacts"}, "", func(f *forge) string { return f.put(0x71, binary.BigEndian.AppendUint64([]byte{0x5b}, 1<<63)) }},
	{"a key of 10 MB", []string{"output", "artifacts"}, "", func(f *forge) string {
		return f.cbor(record{"kind": "chunks", "v": 1, "size": 1, "parts": []any{}, strings.Repeat("k", 10_000_000): nil})
	}},
}

// No reader of an archive or a store takes memory for what a few blocks only say, and each says what is wrong.
func TestF408ABombIsAnError(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the memory of the race detector is no measure")
	}
	v := newVictim(t)
	bases := map[string]int64{}
	readers := v.readers()
	for name, args := range readers {
		out, exit, peak := v.wf(".wf", args...)
		if bases[name] = peak; exit != 0 && name != "diff files" { // which says by 1 that there are some
			t.Errorf("%s of a sound run: exit %d\n%.2000s", name, exit, out)
		}
	}
	// Shapes that are refused where a block is decoded are not tried with all readers.
	core := []string{"show json", "show step", "artifacts", "files", "export", "verify", "gc", "backup"}
	most := []string{"a chunk 1,500 times", "500,000 chunks of nothing", "a tree of 20 × 12", "a tree of 1 × 20,000", "a file that says 2^40 bytes"}
	v.must("empty", "import", "victim.car", "--run", "other")
	v.kept("empty") // notes which heads were seen
	for _, b := range bombs {
		for _, place := range b.places {
			t.Run(b.name+" as "+place, func(t *testing.T) {
				v := &victim{t, v.dir, v.run, v.car}
				f := forgeOf(t, v.car).edited(planted(place, b.make))
				car := f.car()
				if place != "output" && bytes.Equal(car, v.car) {
					t.Fatalf("the run has no %s", place)
				}
				write(t, v.dir, "bomb.car", string(car))
				t.Logf("an archive of %d bytes", len(car))
				// An archive.
				out, exit, peak := v.wf("empty", "verify", "bomb.car")
				v.light("verify bomb.car", peak, bases["verify"])
				if exit != 7 || !strings.Contains(out, b.words) {
					t.Errorf("verify: exit %d, %q is not in\n%.2000s", exit, b.words, out)
				}
				before := v.kept("empty")
				out, exit, peak = v.wf("empty", "import", "bomb.car")
				v.light("import", peak, bases["verify"])
				if exit == 0 || !strings.Contains(out, b.words) {
					t.Errorf("import: exit %d, %q is not in\n%.2000s", exit, b.words, out)
				}
				if now := v.kept("empty"); now != before {
					t.Errorf("import left something:\n%s\nbefore:\n%s", now, before)
				}
				// A store.
				store := "hostile"
				v.hostileStore(store, f)
				defer os.RemoveAll(filepath.Join(v.dir, store))
				every := os.Getenv("WF_FAULTS") != "" || slices.Contains(most, b.name) && place == b.places[0] // of all places with WF_FAULTS=1
				for name, args := range readers {
					if !slices.Contains(core, name) && !every {
						continue
					}
					out, exit, peak := v.wf(store, args...)
					v.light(name, peak, bases[name])
					if strings.Contains(out, "goroutine ") || strings.Contains(out, "panic") || exit < 0 {
						t.Errorf("%s: exit %d\n%.3000s", name, exit, out)
					}
					if name == "verify" && exit != 7 {
						t.Errorf("%s: exit %d\n%.3000s", name, exit, out)
					}
					t.Logf("%s: exit %d, %d MB", name, exit, peak>>20)
				}
			})
		}
	}
}

// A stored pack that unpacks to much more than a block can be is damage, as one of a length that no block has.
func TestF408APackThatUnpacksToTooMuchIsDamage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the memory of the race detector is no measure")
	}
	v := newVictim(t)
	for _, size := range []int64{40 << 20, 200 << 20, 1 << 30, 8 << 30} {
		store := fmt.Sprintf("packs%d", size>>20)
		v.hostileStore(store, forgeOf(t, v.car), segmentOf(1, 1, zstdBomb(size)))
		for _, args := range [][]string{{"ls"}, {"show", v.run, "-o", "json"}, {"verify", "--all"}, {"gc", "--dry-run"}, {"store", "backup", store + ".backup"}, {"export", v.run, "-o", "pack.car"}} {
			_, _, base := v.wf(".wf", args...)
			out, exit, peak := v.wf(store, args...)
			v.light(strings.Join(args, " "), peak, base)
			if args[0] == "verify" && exit != 7 || args[0] == "show" && exit != 0 || strings.Contains(out, "goroutine ") {
				t.Errorf("%d bytes: %s: exit %d\n%.2000s", size, args, exit, out)
			}
		}
	}
}

// A server answers for a hostile store with errors, and takes no memory for it.
func TestF408AServerAnswersForABombWithAnError(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the memory of the race detector is no measure")
	}
	for _, b := range bombs[:1] {
		for _, place := range b.places {
			t.Run(place, func(t *testing.T) {
				v := newVictim(t)
				var bomb string
				f := forgeOf(t, v.car).edited(planted(place, func(f *forge) string { bomb = b.make(f); return bomb }))
				v.bombed(f, bomb)
			})
		}
	}
	t.Run("a tree", func(t *testing.T) {
		v := newVictim(t)
		var bomb string
		f := forgeOf(t, v.car).edited(planted("artifacts", func(f *forge) string { bomb = f.dagTree(20, 12); return bomb }))
		v.bombed(f, bomb)
	})
}

// bombed asks a server of a hostile store for all that it has of the run.
func (v *victim) bombed(f *forge, bomb string) {
	v.hostileStore("served", f)
	dir := filepath.Join(v.dir, "at")
	err := errors.Join(os.MkdirAll(dir, 0o755), os.Rename(filepath.Join(v.dir, "served"), filepath.Join(dir, ".wf")))
	if err != nil {
		v.t.Fatal(err)
	}
	s := startServe(v.t, dir)
	s.ready()
	base := highWater(v.t, s.cmd.Process.Pid)
	run := "/v1/runs/" + v.run
	for _, path := range []string{"/v1/runs", run, run + "/steps/first%231", run + "/steps/agent%231", run + "/steps/agent%231/messages", run + "/steps/first%231/artifacts", run + "/files", run + "/export",
		"/v1/blocks/" + cidText(bomb), "/v1/blocks/" + cidText(bomb) + "?payload=true", "/v1/runs?q=well", run + "/cost"} {
		resp, err := s.client.Get("http://wf" + path)
		if err != nil {
			v.t.Errorf("%s: %v", path, err)
			continue
		}
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
		if err := resp.Body.Close(); err != nil {
			v.t.Error(err)
		}
		if resp.StatusCode == 500 && (!bytes.Contains(body, []byte("corrupt")) && !bytes.Contains(body, []byte("invalid_block"))) {
			v.t.Errorf("%s: %d %.500s", path, resp.StatusCode, body)
		}
		if strings.HasSuffix(path, "payload=true") && resp.StatusCode == 200 {
			v.t.Errorf("%s: %d bytes", path, len(body))
		}
		v.t.Logf("%s: %d", path, resp.StatusCode)
	}
	if now := highWater(v.t, s.cmd.Process.Pid); now > base+bombMost {
		v.t.Errorf("the server takes %d MB, and took %d", now>>20, base>>20)
	}
}

// highWater is how many bytes of memory a process had at most.
func highWater(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kB int64
	if _, err := fmt.Sscan(after, &kB); err != nil {
		t.Fatal(err)
	}
	return kB << 10
}

// Each of eight texts is as long as a text may be, and the archive is of a megabyte: it is taken, and an answer with all of
// them is refused before they are read.
func TestF408ManyTextsAreTooMuchForOneAnswer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the memory of the race detector is no measure")
	}
	v := newVictim(t)
	readers := v.readers()
	bases := map[string]int64{}
	for name, args := range readers {
		_, _, bases[name] = v.wf(".wf", args...)
	}
	f := forgeOf(t, v.car).edited(planted("items", func(f *forge) string {
		return f.chunks(64<<20, slices.Repeat([]string{f.megabyte()}, 64)...)
	}))
	write(t, v.dir, "many.car", string(f.car()))
	together := []string{"messages", "explain", "trace", "replay check"} // they put together what visits said before
	v.must("many", "verify", "many.car")
	v.must("many", "import", "many.car")
	for name, args := range readers {
		if name == "show item" || slices.Contains(together, name) { // one text of 64 MiB is an answer
			continue
		}
		out, exit, peak := v.wf("many", args...)
		v.light(name, peak, bases[name])
		if name == "show json" && (exit == 0 || !strings.Contains(out, "too much for one answer")) {
			t.Errorf("%s: exit %d\n%.2000s", name, exit, out)
		}
		t.Logf("%s: exit %d, %d MB", name, exit, peak>>20)
	}
	if out := v.must("many", "show", v.run+":each#1[0]", "-o", "json"); len(out) < 64<<20 {
		t.Errorf("a text of 64 MiB is shown with %d bytes", len(out))
	}
}

// light holds what a reader took.
func (v *victim) light(what string, peak, base int64) {
	v.t.Helper()
	if peak > base+bombMost {
		v.t.Errorf("%s takes %d MB, %d MB for a small run", what, peak>>20, base>>20)
	}
}

// kept is what a store has, as its commands tell it.
func (v *victim) kept(store string) string {
	v.t.Helper()
	return v.must(store, "ls", "-o", "json") + v.must(store, "verify", "--all")
}

// readers are the commands that read a run, by name.
func (v *victim) readers() map[string][]string {
	return map[string][]string{
		"show":            {"show", v.run},
		"show json":       {"show", v.run, "-o", "json"},
		"show step":       {"show", v.run + ":first#1"},
		"show item":       {"show", v.run + ":each#1[0]"},
		"show agent json": {"show", v.run + ":agent#1", "-o", "json"},
		"messages":        {"messages", v.run + ":agent#1"},
		"explain":         {"explain", v.run + ":agent#1"},
		"log":             {"log", v.run},
		"log step":        {"log", v.run + ":first#1"},
		"log json":        {"log", v.run, "-o", "jsonl"},
		"replay":          {"replay", v.run},
		"replay check":    {"replay", v.run, "--check"},
		"files":           {"files", v.run},
		"files json":      {"files", v.run + ":first#1", "-o", "json"},
		"file":            {"files", v.run + ":first#1", "work/d/f"},
		"artifacts":       {"artifact", v.run},
		"artifacts json":  {"artifact", v.run, "-o", "json"},
		"artifact to":     {"artifact", v.run, "--to", "got", "--force"},
		"restore":         {"restore", v.run + ":first#1", "--dry-run"},
		"restore to":      {"restore", v.run + ":first#1", "--to", "back", "--force"},
		"export":          {"export", v.run, "--files", "-o", "again.car"},
		"diff":            {"diff", v.run, v.run},
		"diff files":      {"diff", v.run + ":first#1", "--files"},
		"blame":           {"blame", "work/d/f", "--run", v.run},
		"trace":           {"trace", v.run, "--prompts"},
		"ls":              {"ls"},
		"search":          {"ls", "--search", "well"},
		"verify":          {"verify"},
		"gc":              {"gc", "--dry-run"},
		"cost":            {"cost", v.run},
		"backup":          {"store", "backup", "backup"},
	}
}
