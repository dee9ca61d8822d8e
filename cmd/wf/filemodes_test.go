package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// What wf writes of runs to where a person says is for its user alone, whatever the umask; what is there keeps its mode.
func TestF418WhatARunHoldsIsItsUsersAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	write(t, p.dir, "quick.yaml", "wf: 1\nname: quick\nroles: {quick: {run: echo quick, timeout: 1m}}\n")
	at := func(name string) string { return filepath.Join(p.dir, name) }
	p.wf(0, "run", "quick.yaml", "-q", "--record", "made.tape")
	p.wf(0, "memory", "add", "a note")
	if err := os.WriteFile(at("shared.car"), nil, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(at("shared.car"), 0o640); err != nil { // whatever the umask of this test is
		t.Fatal(err)
	}
	for _, args := range [][]string{{"export", "-1", "-o", "made.car"}, {"export", "-1", "-o", "made.car"}, {"export", "-1", "-o", "shared.car"}, {"memory", "dump", "made.json"}, {"store", "backup", "made"}} {
		p.wf(0, args...)
	}
	for _, name := range []string{"made.car", "made.json", "made.tape", "made"} {
		found := 0
		err := filepath.WalkDir(at(name), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if found++; err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has the mode %v", path, info.Mode())
			}
			return err
		})
		if err != nil || found == 0 {
			t.Errorf("%s: %d, %v", name, found, err)
		}
	}
	if info, err := os.Stat(at("shared.car")); err != nil || info.Mode().Perm() != 0o640 || info.Size() == 0 {
		t.Errorf("a file that was there: %v, %v", info, err)
	}
}
