package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"wf/protocol"
)

const maxSize = 220_000 // bytes of all built assets, not compressed

var sources = os.DirFS(".")

func ask(t *testing.T, method, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

// raw is an asset that is not compressed.
func raw(t *testing.T, name string) []byte {
	t.Helper()
	body, err := built()[name].body()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestThePageAndItsAssetsAreServed(t *testing.T) {
	for path, kind := range map[string]string{
		"/":                "text/html; charset=utf-8",
		"/assets/app.js":   "text/javascript; charset=utf-8",
		"/assets/app.css":  "text/css; charset=utf-8",
		"/assets/icon.svg": "image/svg+xml",
	} {
		res := ask(t, "GET", path)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != kind {
			t.Errorf("GET %s: %d %q, want 200 %q", path, res.StatusCode, res.Header.Get("Content-Type"), kind)
		}
		if got := res.Header.Get("Content-Security-Policy"); got != Policy {
			t.Errorf("GET %s: policy %q", path, got)
		}
	}
}

func TestAssetsAreSentCompressed(t *testing.T) {
	app := raw(t, "/assets/app.js")
	if built, err := fs.ReadFile(sources, "dist/assets/app.js"); err != nil || !bytes.Equal(app, built) {
		t.Errorf("app.js is another one than was built: %v", err)
	}
	tags := map[string]string{}
	for header, want := range map[string]string{
		"": "", "identity": "", "gzip": "gzip", "br": "br", "gzip, deflate, br, zstd": "br", "GZIP;q=0.5": "gzip", "br;q=0, gzip": "gzip", "br;q=0.0,gzip;q=0": "", "brotli": "",
	} {
		res := ask(t, "GET", "/assets/app.js", "Accept-Encoding", header)
		if got := res.Header.Get("Content-Encoding"); res.StatusCode != 200 || got != want || res.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding %q: %d, %q, Vary %q; want %q", header, res.StatusCode, got, res.Header.Get("Vary"), want)
		}
		body, err := io.ReadAll(res.Body)
		if err == nil && want == "gzip" {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, err = io.ReadAll(z)
			}
		}
		if err != nil || want != "br" && !bytes.Equal(body, app) || want == "br" && 3*len(body) > len(app) {
			t.Errorf("Accept-Encoding %q: %d bytes that are not the asset: %v", header, len(body), err)
		}
		tags[want] = res.Header.Get("Etag")
	}
	if tags[""] == tags["br"] || tags["br"] == tags["gzip"] || tags[""] == tags["gzip"] {
		t.Errorf("what is sent in several codings has one tag: %v", tags)
	}
	if res := ask(t, "GET", "/assets/app.js", "Accept-Encoding", "br", "If-None-Match", tags["br"]); res.StatusCode != 304 {
		t.Errorf("a compressed asset that did not change: %d", res.StatusCode)
	}
	if res := ask(t, "GET", "/assets/app.js.br"); res.StatusCode != 404 {
		t.Errorf("a compressed file by its own name: %d", res.StatusCode)
	}
}

func TestAnUnchangedAssetIsNotSentAgain(t *testing.T) {
	tag := ask(t, "GET", "/assets/app.js").Header.Get("Etag")
	for _, header := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		if res := ask(t, "GET", "/assets/app.js", "If-None-Match", header); res.StatusCode != 304 {
			t.Errorf("If-None-Match %s: %d, want 304", header, res.StatusCode)
		}
	}
	if res := ask(t, "GET", "/assets/app.js", "If-None-Match", `"other"`); res.StatusCode != 200 {
		t.Errorf("another tag: %d, want 200", res.StatusCode)
	}
}

func TestWhatIsNotThePageIsNotServed(t *testing.T) {
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/index.html", 404},
		{"GET", "/assets/", 404},
		{"GET", "/assets", 404},
		{"GET", "/assets/../web.go", 404},
		{"GET", "/dist/index.html", 404},
		{"POST", "/", 405},
		{"DELETE", "/assets/app.js", 405},
		{"HEAD", "/", 200},
	} {
		if res := ask(t, c.method, c.path); res.StatusCode != c.status {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, res.StatusCode, c.status)
		}
	}
}

func TestTheAssetsStaySmall(t *testing.T) {
	total := 0
	for name := range built() {
		size := len(raw(t, name))
		t.Logf("%7d %s", size, name)
		total += size
	}
	if total > maxSize {
		t.Errorf("%d bytes, at most %d", total, maxSize)
	}
}

// The names of XML vocabularies look like addresses and are never asked for.
var (
	address   = regexp.MustCompile(`(?i)(?:https?|wss?|ftp):\\?/\\?/[^\s"'` + "`" + `)<>]*`)
	namespace = regexp.MustCompile(`^http://www\.w3\.org/(?:2000/svg|1999/xhtml|1998/Math/MathML|1999/xlink)$`)
	// An address that the code puts together from its own host, such as ws://${location.host}.
	own = regexp.MustCompile(`^(?:wss?|https?)://\$\{`)
)

func TestTheAssetsNameNoOtherHost(t *testing.T) {
	for name := range built() {
		for _, a := range address.FindAllString(string(raw(t, name)), -1) {
			if !namespace.MatchString(a) && !own.MatchString(a) {
				t.Errorf("%s names %q", name, a)
			}
		}
	}
}

func TestNothingIsInline(t *testing.T) {
	page := raw(t, "/index.html")
	for what, bad := range map[string]string{
		"a style attribute": `(?i)\sstyle\s*=`,
		"a style element":   `(?i)<style`,
		"a handler":         `(?i)\son[a-z]+\s*=`,
		"a script's text":   `(?i)<script[^>]*>[^<]`,
		"a javascript: URL": `(?i)javascript:`,
	} {
		if m := regexp.MustCompile(bad).Find(page); m != nil {
			t.Errorf("index.html holds %s: %q", what, m)
		}
	}
	app := raw(t, "/assets/app.js")
	for _, bad := range []string{"eval(", "new Function("} {
		if bytes.Contains(app, []byte(bad)) {
			t.Errorf("app.js holds %q", bad)
		}
	}
}

// Text of models must not become HTML: the sources use nothing that could make it so.
func TestTheSourcesInterpretNoText(t *testing.T) {
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|parseFromString\([^)]*"text/html"`)
	err := fs.WalkDir(sources, "src", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "ts") && !strings.HasSuffix(name, "tsx") {
			return err
		}
		text, err := fs.ReadFile(sources, name)
		if m := forbidden.Find(text); m != nil {
			t.Errorf("%s uses %s", name, m)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Where packages come from is a matter of whoever installs them; what they are is pinned.
func TestTheLockPinsPackagesAndNamesNoRegistry(t *testing.T) {
	text, err := fs.ReadFile(sources, "package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(`"resolved"`)) {
		t.Error("package-lock.json names where packages were downloaded: .npmrc leaves that out")
	}
	var lock struct {
		Packages map[string]struct {
			Version, Integrity string
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	for name, p := range lock.Packages {
		if name != "" && (p.Version == "" || p.Integrity == "") {
			t.Errorf("%s has no version or no hash", name)
		}
	}
}

// eventTypes finds where the sources of the page list event types: a block, and the names in it.
var eventTypes = []struct {
	file        string
	block, name *regexp.Regexp
}{
	{"src/model/fold.ts", regexp.MustCompile(`(?s)\nconst folds:.*?\n};`), regexp.MustCompile(`\n  (\w+)\(`)},
	{"src/model/live.ts", regexp.MustCompile(`(?s)\nconst settles:.*?\n};`), regexp.MustCompile(`\n  (\w+): `)},
	{"src/state/run.ts", regexp.MustCompile(`(?s)\nconst moving = .*?\]\);`), regexp.MustCompile(`"(\w+)"`)},
	{"src/ui/activity.tsx", regexp.MustCompile(`(?s)\nconst shownTypes = .*?\]\);`), regexp.MustCompile(`"(\w+)"`)},
	{"src/ui/activity.tsx", regexp.MustCompile(`(?s).*`), regexp.MustCompile(`\be\.type [!=]== "(\w+)"`)},
	{"src/ui/events.tsx", regexp.MustCompile(`(?s)\n  switch \(e\.type\).*?\n  }\n.*`), regexp.MustCompile(`(?:case|\be\.type ===) "(\w+)"`)},
	{"src/style/app.css", regexp.MustCompile(`(?s).*`), regexp.MustCompile(`\.ty-(\w+)`)},
}

// A type that is renamed, or mistyped, would be passed over without a word.
func TestThePageNamesTypesOfEventsThatAreStored(t *testing.T) {
	for _, where := range eventTypes {
		source, err := fs.ReadFile(sources, where.file)
		if err != nil {
			t.Fatal(err)
		}
		names := where.name.FindAllSubmatch(where.block.Find(source), -1)
		if len(names) == 0 {
			t.Errorf("%s: no event types were found by %s", where.file, where.name)
		}
		for _, m := range names {
			if spec := protocol.EventNamed(m[1]); spec == nil || spec.Memory {
				t.Errorf("%s names %q, which is no event type of a run", where.file, m[1])
			}
		}
	}
}
