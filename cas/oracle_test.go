package cas

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOthersWalkAnExportFromRootToTheFirstEvent exports a run and lets readers of the IPLD
// project walk it: testdata/oracle is a module of its own, built with the Go command. It runs
// when WF_ORACLE is set, since it fetches their modules.
func TestOthersWalkAnExportFromRootToTheFirstEvent(t *testing.T) {
	if os.Getenv("WF_ORACLE") == "" {
		t.Skip("set WF_ORACLE=1 to walk an archive with go-car and go-ipld-prime")
	}
	bin := filepath.Join(t.TempDir(), "oracle")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".")
	build.Dir = filepath.Join("testdata", "oracle")
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the oracle: %v\n%s", err, out)
	}
	walk := func(archive []byte) (string, error) {
		var out, said bytes.Buffer
		cmd := exec.CommandContext(t.Context(), bin)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(archive), &out, &said
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("%w: %s", err, said.String())
		}
		return out.String(), nil
	}

	s := openSample(t)
	sampleRun(t, s, "one", 5)
	archive, _ := exported(t, s, "one")
	got, err := walk(archive)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for e, err := range s.After(t.Context(), "one", 0) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintln(e.Seq, e.Type, e.CID))
	}
	slices.Reverse(want)
	if got != strings.Join(want, "") {
		t.Errorf("they read\n%s\nwant\n%s", got, strings.Join(want, ""))
	}
	archive[len(archive)/2] ^= 1
	if _, err := walk(archive); err == nil {
		t.Error("they accept a flipped byte")
	}
}
