package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/hub/guard"
	"wf/hub/reply"
	"wf/protocol"
	"wf/protocol/tree"
)

func (s *shop) dir(t *testing.T, entries ...tree.Entry) protocol.Link {
	t.Helper()
	slices.SortFunc(entries, func(a, b tree.Entry) int { return strings.Compare(a.Name, b.Name) })
	blocks, err := tree.Encode(entries)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		s.blocks[b.Link] = b.Data
	}
	return blocks[len(blocks)-1].Link
}

func (s *shop) file(t *testing.T, name, content string) tree.Entry {
	t.Helper()
	l, err := tree.Content(strings.NewReader(content), int64(len(content)), func(b tree.Block) error {
		s.blocks[b.Link] = b.Data
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree.Entry{Name: name, Mode: tree.File, Size: int64(len(content)), Link: l}
}

// empty is a shop to make files in.
func empty() *shop { return &shop{blocks: map[protocol.Link][]byte{}} }

func (s *shop) keepsAll(t *testing.T, entries ...tree.Entry) *shop {
	t.Helper()
	s.keeps = new(s.dir(t, entries...).String())
	return s
}

const keptAt = "/v1/runs/R/steps/build%231/artifact"

func fetched(s *shop, path string, headers ...string) *httptest.ResponseRecorder {
	return ask(s, guard.AllScopes, "GET", keptAt+"?path="+url.QueryEscape(path), "", headers...)
}

// hostile are names that an agent may give to files to be more than a name.
var hostile = []string{
	"<img src=x onerror=alert(1)>.html", "a\r\nSet-Cookie: a=b", `x"; filename=evil.sh`, `..\..\x`, "%2e%2e", "\u202egpj.sh", "a b&c=d#e?f", "-rf", "\x1b[31mred",
}

// Whatever a file is called and holds, a browser saves it and shows nothing of it.
func TestAFileThatARunKeepsIsNoPage(t *testing.T) {
	s := empty()
	var entries []tree.Entry
	for i, name := range hostile {
		entries = append(entries, s.file(t, name, fmt.Sprint("<script>alert(", i, ")</script>")))
	}
	s.keepsAll(t, tree.Entry{Name: "sub", Mode: tree.Dir, Link: s.dir(t, entries...)})
	for i, name := range hostile {
		w := fetched(s, "sub/"+name)
		want := http.Header{"Accept-Ranges": {"bytes"}, "Cache-Control": {"private, no-cache"}, "Content-Disposition": {"attachment"}, "Content-Length": {"25"},
			"Content-Security-Policy": {"default-src 'none'; frame-ancestors 'none'; sandbox"}, "Content-Type": {"application/octet-stream"},
			"Etag": {`"` + entryOf(entries, name).Link.String() + `"`}}
		if d := cmp.Diff(want, w.Header()); d != "" || w.Code != 200 || w.Body.String() != fmt.Sprint("<script>alert(", i, ")</script>") {
			t.Errorf("%q: %d %s\n%s", name, w.Code, w.Body, d)
		}
	}
}

func entryOf(entries []tree.Entry, name string) tree.Entry {
	return entries[slices.IndexFunc(entries, func(e tree.Entry) bool { return e.Name == name })]
}

func TestAPartOfAFileIsSent(t *testing.T) {
	s := empty()
	text := strings.Repeat("0123456789", 20_000) // in several blocks
	s.keepsAll(t, s.file(t, "empty", ""), s.file(t, "long", text))
	for _, test := range []struct {
		asked  string
		status int
		first  int
		last   int // behind the part
	}{
		{"bytes=0-0", 206, 0, 1}, {"bytes=5-9", 206, 5, 10}, {"bytes=150000-", 206, 150_000, 200_000}, {"bytes=-7", 206, 199_993, 200_000},
		{"bytes=199999-", 206, 199_999, 200_000}, {"bytes=199999-300000", 206, 199_999, 200_000}, {"bytes=-300000", 206, 0, 200_000},
		// What it does not have, or what is no one part of it, is all of it.
		{"bytes=200000-", 200, 0, 200_000}, {"bytes=9-5", 200, 0, 200_000}, {"bytes=0-1,5-6", 200, 0, 200_000}, {"bytes=-0", 200, 0, 200_000},
		{"lines=1-2", 200, 0, 200_000}, {"bytes=x-", 200, 0, 200_000}, {"bytes=-", 200, 0, 200_000}, {"bytes=9223372036854775808-", 200, 0, 200_000}, {"", 200, 0, 200_000},
	} {
		w := fetched(s, "long", "Range: "+test.asked)
		said := ""
		if test.status == 206 {
			said = fmt.Sprintf("bytes %d-%d/200000", test.first, test.last-1)
		}
		if w.Code != test.status || w.Body.String() != text[test.first:test.last] || w.Header().Get("Content-Range") != said {
			t.Errorf("%q: %d, %d bytes, %q", test.asked, w.Code, w.Body.Len(), w.Header().Get("Content-Range"))
		}
	}
	for _, asked := range []string{"bytes=0-", "bytes=-1"} {
		if w := fetched(s, "empty", "Range: "+asked); w.Code != 200 || w.Body.Len() > 0 {
			t.Errorf("%s of nothing: %d", asked, w.Code)
		}
	}
	tag := fetched(s, "long").Header().Get("ETag")
	if w := fetched(s, "long", "If-None-Match: "+tag); w.Code != 304 || w.Body.Len() > 0 {
		t.Errorf("the client has it: %d, %d bytes", w.Code, w.Body.Len())
	}
	if w := fetched(s, "long", `If-Match: "other"`); w.Code != 200 {
		t.Errorf("a condition for what is not written: %d", w.Code)
	}
	if w := ask(s, guard.AllScopes, "HEAD", keptAt+"?path=long", ""); w.Code != 200 || w.Body.Len() > 0 || w.Header().Get("Content-Length") != "200000" {
		t.Errorf("its headers: %d %v", w.Code, w.Header())
	}
}

// code is that of a refusal, which says nothing of an attachment.
func code(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var f reply.Failure
	if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || w.Header().Get("Content-Disposition") != "" || w.Header().Get("ETag") != "" {
		t.Errorf("%v in %s with %v", err, w.Body, w.Header())
	}
	return fmt.Sprint(w.Code, " ", f.Code)
}

func TestWhatARunDoesNotKeepIsSaid(t *testing.T) {
	s := empty()
	link := s.file(t, "link", "/etc/passwd")
	link.Mode = tree.Link
	s.keepsAll(t, s.file(t, "a", "x"), link, tree.Entry{Name: "dir", Mode: tree.Dir, Link: s.dir(t, s.file(t, "b", "y"))},
		tree.Entry{Name: "key", Mode: tree.Omitted, Size: 7, Why: tree.WhySecret})
	for _, path := range []string{"none", "dir", "dir/none", "dir/", "/a", "a/", "./a", "dir/../a", "../a", "a/b", "link", "key", "\x00"} {
		if got := code(t, fetched(s, path)); got != "404 unknown_artifact" {
			t.Errorf("%q: %s", path, got)
		}
	}
	if got := code(t, fetched(&shop{}, "a")); got != "404 unknown_artifact" {
		t.Errorf("a step that keeps nothing: %s", got)
	}
	if w := ask(&shop{}, guard.AllScopes, "GET", keptAt+"s", ""); w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"schema":"wf.artifacts/v1","run":"R","artifacts":[]}` {
		t.Errorf("what it keeps: %d %s", w.Code, w.Body)
	}
	s.err = protocol.ErrRunDeleted
	for _, target := range []string{keptAt + "?path=a", keptAt + "s"} {
		if got := code(t, ask(s, guard.AllScopes, "GET", target, "")); got != "410 run_deleted" {
			t.Errorf("%s of a deleted run: %s", target, got)
		}
	}
}

// Blocks that are no longer there are an error, or the end of the connection: never a file that looks whole.
func TestAFileWithoutItsBlocksIsNotSent(t *testing.T) {
	text := strings.Repeat("0123456789", 20_000)
	s := empty()
	long := s.file(t, "long", text)
	_, parts, err := tree.DecodeFile(s.blocks[long.Link])
	if err != nil || len(parts) < 3 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	s.keepsAll(t, long)
	root, err := protocol.ParseLink(*s.keeps)
	if err != nil {
		t.Fatal(err)
	}
	for _, missing := range []protocol.Link{root, long.Link, parts[0]} {
		data := s.blocks[missing]
		delete(s.blocks, missing)
		if got := code(t, fetched(s, "long")); got != "404 not_found" {
			t.Errorf("without %s: %s", missing, got)
		}
		s.blocks[missing] = data
	}
	delete(s.blocks, parts[len(parts)-1])
	server := &Server{Service: s, Feed: s}
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.Handler().ServeHTTP(w, r.WithContext(guard.With(r.Context(), guard.Identity{Scopes: guard.AllScopes})))
	}))
	defer at.Close()
	got, err := http.Get(at.URL + keptAt + "?path=long")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if b, err := io.ReadAll(got.Body); err == nil || len(b) >= len(text) || !bytes.HasPrefix([]byte(text), b) {
		t.Errorf("without its end: %d bytes, %v", len(b), err)
	}
}

func TestWhatAStepKeepsIsListedInParts(t *testing.T) {
	s := empty()
	var entries []tree.Entry
	one := s.file(t, "", "x")
	var want []string
	for i := range api.MaxPart + 1 {
		one.Name = fmt.Sprintf("%05d", i)
		entries, want = append(entries, one), append(want, "d/"+one.Name)
	}
	s.keepsAll(t, tree.Entry{Name: "d", Mode: tree.Dir, Link: s.dir(t, entries...)}, tree.Entry{Name: "e", Mode: tree.Omitted, Size: 9, Why: tree.WhySecret})
	want = append(want, "e")
	for _, test := range []struct{ query, pages string }{
		{"", "5000 2"}, {"limit=5000", "5000 2"}, {"limit=4999", "4999 3"}, {"limit=2501", "2501 2501"}, {"limit=2500", "2500 2500 2"},
	} {
		var got, pages []string
		for after := ""; ; {
			var list api.Artifacts
			w := ask(s, guard.AllScopes, "GET", keptAt+"s?"+test.query+"&after="+url.QueryEscape(after), "")
			if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 || len(pages) > 5 {
				t.Fatalf("%s: %d, %v", test.query, w.Code, err)
			}
			for _, x := range list.Artifacts {
				got = append(got, x.Path)
			}
			pages = append(pages, fmt.Sprint(len(list.Artifacts)))
			if after = list.Next; after == "" {
				last := list.Artifacts[len(list.Artifacts)-1]
				if d := cmp.Diff(api.Artifact{Step: "build#1", Path: "e", Mode: "omitted", Size: 9, Why: "secret"}, last); d != "" {
					t.Error(d)
				}
				break
			}
		}
		if p := strings.Join(pages, " "); p != test.pages || !slices.Equal(got, want) {
			t.Errorf("%s: %d files in parts of %s, want %s", test.query, len(got), p, test.pages)
		}
	}
	if got := code(t, ask(s, guard.AllScopes, "GET", keptAt+"s?after=none", "")); got != "400 bad_request" {
		t.Errorf("behind what is not there: %s", got)
	}
}
