package config

import (
	"os"
	"path/filepath"
	"testing"

	"wf/protocol"
)

// A file under the name of a grant is none: only what says itself what is trusted with which power.
func TestOnlyAWholeGrantTrusts(t *testing.T) {
	cid, err := protocol.ParseLink("bafyreihsi3kj3qafaptezoj4kpzgy43dxznjv244rrh2cqfzckptsrrhxe")
	if err != nil {
		t.Fatal(err)
	}
	other, err := protocol.ParseLink("bafyreicuvczkpouw76qgo76mduw3jlzm2xqmmwzu7cwouifgblm6gpor5m")
	if err != nil {
		t.Fatal(err)
	}
	g := GrantsIn(t.TempDir(), nil)
	has := func(power Power, want bool) {
		t.Helper()
		if got, err := g.Has(power, cid); got != want || err != nil {
			t.Errorf("%s: %v (%v), want %v", power, got, err, want)
		}
	}
	if err := g.Add(Grant{Power: Serve, CID: cid, Name: "a"}); err != nil {
		t.Fatal(err)
	}
	has(Serve, true)
	has(Unconfined, false)
	grant, err := os.ReadFile(g.path(Serve, cid))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Add(Grant{Power: Unconfined, CID: other, Name: "b"}); err != nil {
		t.Fatal(err)
	}
	foreign, err := os.ReadFile(g.path(Unconfined, other))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{}", string(grant), string(foreign)} {
		if err := os.WriteFile(filepath.Join(g.Dir, string(Unconfined), cid.String()+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		has(Unconfined, false)
	}
}
