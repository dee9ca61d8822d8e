package roles_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"wf/roles"
	"wf/roles/workspace"
)

// layering is how a test mounts.
type layering func(lower, upper, work string) (*workspace.View, error)

func (l layering) Overlay(lower, upper, work string) (*workspace.View, error) {
	return l(lower, upper, work)
}

// madeBase is a base that is whole, and closed.
func madeBase(t *testing.T) (root string, base *roles.OwnCopy) {
	t.Helper()
	root = t.TempDir()
	base, _, err := roles.OpenOwnCopy(root, "run", roles.BaseKey("k"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(base.Ready("tree 1 2"), base.Close()); err != nil {
		t.Fatal(err)
	}
	return root, base
}

// Commands that a killed process has left behind may still work in the layers: until Overlay has waited for them nothing is removed.
func TestC04WhatTheKernelKeepsIsThereUntilLayersAreFree(t *testing.T) {
	root, _ := madeBase(t)
	o, _, err := roles.OpenOwnCopy(root, "run", "k")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	kept := filepath.Join(filepath.Dir(o.Files()), "work", "work")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	tried := errors.New("a test does not mount")
	_, err = o.Mount(layering(func(_, _, work string) (*workspace.View, error) {
		if _, err := os.Stat(filepath.Join(work, "work")); err != nil {
			t.Error(err)
		}
		return nil, tried
	}), roles.BaseKey("k"), "tree")
	if !errors.Is(err, tried) {
		t.Error(err)
	}
}

// A base whose files were removed, but for its mark, is none: it is made anew.
func TestC04ABaseWithoutFilesIsNone(t *testing.T) {
	root, base := madeBase(t)
	if mark, err := roles.ReadyOwnCopy(root, "run", roles.BaseKey("k")); err != nil || mark != "tree 1 2" {
		t.Errorf("whole: %q, %v", mark, err)
	}
	if err := os.Remove(base.Files()); err != nil {
		t.Fatal(err)
	}
	if mark, err := roles.ReadyOwnCopy(root, "run", roles.BaseKey("k")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without files: %q, %v", mark, err)
	}
}
