package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"wf/api"
	"wf/files/filestest"
)

const namedYAML = `wf: 1
name: named
workspace: {track: true, exclude: [named, .wf, state]}
roles: {make: {run: 'touch "$(cat named)"'}}
`

// What is deleted has its files' names taken along, from the state of the user too, whichever way it is deleted.
func TestF415NamesOfFilesGoWithTheirRun(t *testing.T) {
	t.Parallel()
	config := func(text string) func(t *testing.T, dir, run string) {
		return func(t *testing.T, dir, _ string) {
			home := t.TempDir() // one that lies in a workspace is not taken
			if err := os.Mkdir(filepath.Join(home, "wf"), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, home, filepath.Join("wf", "config.yaml"), text)
			serve := wfIn(dir, "serve", "-o", "json", "--listen", "unix")
			serve.Env = append(serve.Env, "XDG_CONFIG_HOME="+home)
			servedBy(t, dir, serve)
		}
	}
	for name, remove := range map[string]func(t *testing.T, dir, run string){
		"rm": func(t *testing.T, dir, run string) {
			if out, err := wfIn(dir, "rm", "--yes", run).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		},
		"rm at a server": func(t *testing.T, dir, run string) {
			s := startServe(t, dir)
			if out, err := wfIn(dir, "rm", "--yes", run, "--hub", s.said.Listen[0].URL).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		},
		"retention":          config("retention: {done: 0.000001h, floor: 0.000001h}\n"),
		"retention of files": config("retention: {files: 0.000001h, floor: 0.000001h}\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "named.yaml", namedYAML)
			write(t, dir, "named", "letter-of-resignation")
			out, err := wfIn(dir, "run", "named.yaml", "-o", "json").Output()
			var run api.Run
			if err == nil {
				err = json.Unmarshal(out, &run)
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			named := func() (in []string) {
				err := filepath.WalkDir(filepath.Join(dir, "state"), func(path string, e fs.DirEntry, err error) error {
					if err != nil || !e.Type().IsRegular() {
						return err
					}
					b, err := os.ReadFile(path)
					if bytes.Contains(b, []byte("letter-of-resignation")) {
						in = append(in, path)
					}
					return err
				})
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				return in
			}
			if len(named()) == 0 {
				t.Fatal("the state names no file of the run: the test looks in the wrong place")
			}
			remove(t, dir, string(run.ID))
			if name == "rm" || name == "rm at a server" {
				if in := named(); len(in) > 0 {
					t.Errorf("%v name a file of a run that is deleted", in)
				}
				return
			}
			filestest.Until(t, "the names are gone", func() bool { return len(named()) == 0 }, nil)
		})
	}
}
