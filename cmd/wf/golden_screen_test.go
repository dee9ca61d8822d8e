package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"wf/cmd/internal/render"
)

// againAt is a time of today, or a date: which of them depends on when the test runs, and where.
var againAt = regexp.MustCompile(`again at (\d{4}-\d\d-\d\d )?\d\d:\d\d(:\d\d)?`)

// What ls, show and log look like on a terminal of 80 columns, with colours, in their columns: of runs whose
// ids, times and durations are the same for ever, since they come from archives.
func TestScreens(t *testing.T) {
	top := t.TempDir()
	for name, value := range map[string]string{
		"HOME": top, "USER": "ada", "WF_STORE": filepath.Join(top, ".wf"), "XDG_STATE_HOME": "", "XDG_DATA_HOME": "",
		"XDG_CONFIG_HOME": "", "XDG_RUNTIME_DIR": "", "WF_HUB": "", "NO_COLOR": "", "CLICOLOR_FORCE": "", "GITHUB_ACTIONS": "",
	} {
		t.Setenv(name, value)
	}
	for _, name := range []string{"agent", "failures", "ask", "fan-out"} {
		paths, err := filepath.Glob("../../testdata/golden/" + name + "/f2*/run.car.gz")
		if err != nil || len(paths) == 0 {
			t.Fatalf("no archive of %s: %v", name, err)
		}
		z, err := gzip.NewReader(bytes.NewReader(readGolden(t, paths[0])))
		if err != nil {
			t.Fatal(err)
		}
		car, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		write(t, top, name+".car", string(car))
		if got := wfMain("import", filepath.Join(top, name+".car"), "--run", name); got.exit != 0 {
			t.Fatalf("import of %s: %s", name, got)
		}
	}
	m := newMask(top)
	for _, b := range books(t, "screen") {
		t.Run(b.name, func(t *testing.T) {
			got := &book{name: b.name, path: b.path}
			for _, p := range b.pages {
				_, args := parseCommand(p.command)
				seen := wfOn(&render.Screen{TTY: true, Width: 80}, append([]string{"--color", "always"}, args...)...)
				if args[0] == "ls" { // how long ago a run was
					seen.stdout = m.text(seen.stdout)
				}
				seen.stdout = againAt.ReplaceAllString(seen.stdout, "again at TIME")
				seen.stdout = strings.ReplaceAll(seen.stdout, "\x1b", "␛")
				seen.stderr = strings.ReplaceAll(strings.ReplaceAll(seen.stderr, "\x1b", "␛"), top, "/TOP")
				got.pages = append(got.pages, page{p.note, p.command, seen})
			}
			b.compare(t, got)
		})
	}
}

// Every command has its help in a golden.
func TestHelpIsWhole(t *testing.T) {
	t.Parallel()
	have := map[string]bool{}
	for _, b := range books(t, "alone") {
		for _, p := range b.pages {
			have[p.command] = true
		}
	}
	each(newRoot(newApp(os.Stdin, os.Stdout, os.Stderr)), func(cmd *cobra.Command) {
		if command := cmd.CommandPath() + " --help"; !cmd.Hidden && !have[command] {
			t.Errorf("testdata/commands/alone/help.txt has no  $ %s", command)
		}
	})
}

// compare holds a book against what its commands led to now, or writes it anew.
func (b *book) compare(t *testing.T, got *book) {
	t.Helper()
	if *update {
		if err := os.WriteFile(b.path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(b.String(), got.String()); diff != "" {
		t.Errorf("%s (-want +got); -update writes it anew:\n%s", b.name, diff)
	}
}
