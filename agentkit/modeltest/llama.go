package modeltest

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Llama starts a real llama-server on a free port of this machine and gives its base URL, with
// /v1, when it is ready; it ends with the test. The test is skipped where WF_LLAMA_SERVER and
// WF_LLAMA_MODEL name none.
func Llama(t testing.TB, args ...string) (base string) {
	t.Helper()
	server, gguf := os.Getenv("WF_LLAMA_SERVER"), os.Getenv("WF_LLAMA_MODEL")
	if server == "" || gguf == "" {
		t.Skip("WF_LLAMA_SERVER and WF_LLAMA_MODEL name no server")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, server, append([]string{"-m", gguf, "--host", "127.0.0.1", "--port", port, "-np", "2", "-c", "65536", "--jinja"}, args...)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if res, err := http.Get("http://127.0.0.1:" + port + "/health"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return "http://127.0.0.1:" + port + "/v1"
			}
		}
		select {
		case <-tick.C:
		case err := <-ended:
			ended <- err
			t.Fatalf("the server ended: %v\n%s", err, log.String())
		}
	}
}
