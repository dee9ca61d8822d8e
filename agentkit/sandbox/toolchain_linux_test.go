package sandbox_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/sandbox"
)

// keepCaches lets the private directories of a test be those of the last one, so that the
// standard library is not compiled each time.
func (s *stage) keepCaches(t *testing.T, cache string) {
	t.Helper()
	s.policy.Private = filepath.Join(cache, "wf-sandbox-test")
}

func program(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skip("no ", name, " here")
	}
}

// moduleCache makes one with example.com/dep, for reading alone.
func moduleCache(t *testing.T, s stage) string {
	t.Helper()
	proxy, cache := filepath.Join(s.outside, "proxy"), filepath.Join(s.outside, "modules")
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range map[string]string{"go.mod": "module example.com/dep\n", "dep.go": "package dep\n\nfunc Word() string { return \"served\" }\n"} {
		w, err := z.Create("example.com/dep@v1.0.0/" + name)
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(proxy, "example.com/dep/@v")
	s.write(at+"/list", "v1.0.0\n")
	s.write(at+"/v1.0.0.info", `{"Version":"v1.0.0"}`)
	s.write(at+"/v1.0.0.mod", "module example.com/dep\n")
	s.write(at+"/v1.0.0.zip", b.String())
	s.write(filepath.Join(s.work, "go.mod"), "module example.com/it\n\ngo 1.24\n\nrequire example.com/dep v1.0.0\n")
	cmd := exec.Command("go", "mod", "download", "example.com/dep")
	cmd.Dir = s.work
	cmd.Env = append(os.Environ(), "GOPROXY=file://"+proxy, "GOMODCACHE="+cache, "GOSUMDB=off", "GOFLAGS=-mod=mod -modcacherw", "GOTOOLCHAIN=local")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return cache
}

const served = `package it

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"example.com/dep"
)

func TestServed(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, dep.Word()) }))
	defer s.Close()
	resp, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "served" {
		t.Error(string(b), err)
	}
}
`

func TestB07GoWorksInside(t *testing.T) {
	program(t, "go")
	if testing.Short() {
		t.Skip("compiles the standard library the first time")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	if !sandbox.Probe().Namespaces {
		t.Skip("httptest needs a loopback: ", sandbox.Probe())
	}
	s := newStage(t, sandbox.Run, true)
	s.keepCaches(t, cache)
	modules := moduleCache(t, s)
	t.Setenv("GOMODCACHE", modules)
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOTOOLCHAIN", "local")
	s.write(filepath.Join(s.work, "it_test.go"), served)
	s.works("go vet ./... && go test ./...")
	s.denied(fmt.Sprintf("echo x > %s/example.com/dep@v1.0.0/dep.go", modules))

	// With the network, downloads go to a cache of the workspace, filled from the user's.
	s.policy.Network = true
	s.works(`go test ./... && test -e "$GOMODCACHE/example.com/dep@v1.0.0/dep.go" && echo x > "$GOMODCACHE/own"`)
	if s.exists(filepath.Join(modules, "own")) {
		t.Error("the user's module cache was written")
	}
}

func TestB07NodeWorksInside(t *testing.T) {
	program(t, "npm")
	onEach(t, func(t *testing.T, s stage) {
		s.write(filepath.Join(s.work, "package.json"), `{"name":"it","version":"1.0.0","scripts":{"test":"node --test"}}`)
		serve := `test('served', async () => {
  const server = http.createServer((_, res) => res.end('served')).listen(0, '127.0.0.1');
  await new Promise(up => server.on('listening', up));
  const res = await fetch('http://127.0.0.1:' + server.address().port);
  assert.equal(await res.text(), 'served');
  server.close(); server.closeAllConnections();
});`
		if !s.namespaces {
			serve = "test('files', () => { fs.writeFileSync('made', 'x'); assert.throws(() => fs.readFileSync(process.env.SSH + '/id'), {code: 'EACCES'}); });"
		}
		s.write(filepath.Join(s.work, "it.test.js"), "const {test} = require('node:test'), assert = require('node:assert'), http = require('node:http'), fs = require('node:fs');\n"+serve)
		if out := s.works("npm test"); strings.Contains(out, "EACCES") || strings.Contains(out, "EROFS") || !strings.Contains(out, "pass 1") {
			t.Errorf("it said %s", out)
		}
	})
}

// Commits inside bear the name of the user, and nothing else of the user's config has an effect.
func TestCommitsBearTheNameOfTheUser(t *testing.T) {
	program(t, "git")
	onEach(t, func(t *testing.T, s stage) {
		s.write(filepath.Join(s.home, ".gitconfig"), "[user]\n\tname = Ann Lee\n\temail = ann@example.com\n[commit]\n\tgpgsign = true\n[core]\n\thooksPath = /evil\n")
		for _, line := range []string{"git init -q .", "git config core.autocrlf false"} {
			cmd := exec.Command("sh", "-c", line)
			cmd.Dir = s.work
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		s.write(filepath.Join(s.work, "file"), "text")
		s.works("git add file && git commit -qm first")
		if got := s.works("git log --format='%an <%ae> %cn %s'"); got != "Ann Lee <ann@example.com> Ann Lee first" {
			t.Errorf("the log is %s", got)
		}
	})
}
