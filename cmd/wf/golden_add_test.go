package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// How goldens are added: never over one that is there.
var (
	addGolden = flag.String("golden.add", "", "add what is missing in testdata/golden: archives, or stores with them")
	goldenBy  = flag.String("golden.by", "", "path of the wf that writes it (default: the one under test)")
	goldenAs  = flag.String("golden.as", "", "what to append to the name of the version, such as -2, where new runs of the same versions have come to differ")
)

const howToAdd = "where that is meant, go test ./cmd/wf -run TestGolden -golden.add archives writes it (see testdata/README.md)"

// add performs the golden and keeps what it led to, unless there is something of its version.
func (g *golden) add(t *testing.T) {
	w := g.workspace(t)
	if *goldenBy != "" {
		w.wf = wfAt(*goldenBy)
	}
	var x goldenExpected
	w.perform(t, g.commands, func() {
		x.Kept = w.concluded(t, "-1", true)
		if *addGolden == "stores" {
			w.must(t, "gc", "--yes")
			if err := os.CopyFS(filepath.Join(w.dir, "kept"), os.DirFS(filepath.Join(w.dir, ".wf"))); err != nil {
				t.Fatal(err)
			}
		}
	})
	x.End = w.concluded(t, "-1", true)
	version := w.version(t) + *goldenAs
	dir := filepath.Join(g.dir, version)
	if err := os.Mkdir(dir, 0o755); errors.Is(err, os.ErrExist) {
		return
	} else if err != nil {
		t.Fatal(err)
	}
	w.must(t, "export", "-1", "-o", "run.car")
	var z bytes.Buffer
	zip, err := gzip.NewWriterLevel(&z, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, err = zip.Write(readGolden(t, filepath.Join(w.dir, "run.car")))
	if err := errors.Join(err, zip.Close()); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "run.car.gz", z.String())
	b, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "expected.json", string(append(b, '\n')))
	if *addGolden == "stores" && slices.Contains(g.commands, keepStore) {
		if err := os.CopyFS(filepath.Join(dir, "store"), os.DirFS(filepath.Join(w.dir, "kept"))); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("added testdata/golden/%s/%s", g.name, version)
}

// wfAt performs command lines by the wf at path.
func wfAt(path string) func(args ...string) (stdout, stderr string, exit int) {
	return func(args ...string) (string, string, int) {
		var out, err bytes.Buffer
		c := exec.Command(path, args...)
		c.Stdout, c.Stderr = &out, &err
		if e := c.Run(); e != nil && !errors.As(e, new(*exec.ExitError)) {
			return "", fmt.Sprint(e), -1
		}
		return out.String(), err.String(), c.ProcessState.ExitCode()
	}
}
