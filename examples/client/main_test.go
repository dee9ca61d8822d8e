package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const greet = `
wf: 1
name: greet
inputs:
  name: {type: string, required: true}
roles:
  greet: {set: {text: "Hello, ${{ inputs.name }}."}}
outputs:
  text: ${{ steps.greet.output.text }}
`

// serve builds wf and starts its daemon with a workflow; it gives the address.
func serve(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "wf-client") // shorter than t.TempDir: the path of a socket has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "wf")
	if out, err := exec.Command("go", "build", "-o", program, "wf/cmd/wf").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "greet.yaml"), []byte(greet), 0o644); err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command(program, "serve", "--listen", "unix:"+filepath.Join(dir, "s.sock"), "--workflows", dir, "-o", "json", "-q")
	daemon.Dir, daemon.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + dir}
	daemon.Stderr = os.Stderr
	stdout, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		daemon.Wait() // 143: it was terminated
	})
	said, err := bufio.NewReader(stdout).ReadBytes('\n') // it listens now
	var serving struct{ Listen []struct{ URL string } }
	if err != nil || json.Unmarshal(said, &serving) != nil || len(serving.Listen) != 1 {
		t.Fatalf("wf serve says %q: %v", said, err)
	}
	return serving.Listen[0].URL
}

func TestAWorkflowIsStartedAndFollowed(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds wf")
	}
	address := serve(t)
	var out bytes.Buffer
	if err := start(t.Context(), address, "greet", []string{"name=Ada"}, &out); err != nil {
		t.Fatal(err)
	}
	want := "1 run_started\n2 step_started greet#1\n3 step_completed greet#1\n4 done\ndone {\"text\":\"Hello, Ada.\"}\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	if err := start(t.Context(), address, "nothing", nil, &out); err == nil || out.Len() > 0 {
		t.Errorf("an unknown workflow was started: %v, %s", err, &out)
	}
}
