// Package web holds the page of wf and serves it from the binary.
//
// The page is TypeScript under src, built by build.mjs into dist, which is committed: the Go
// build needs no Node. CI builds dist again and finds no difference (check.sh).
//
//	src ──npm run build──► dist ──embed──► Handler ──► GET /, /assets/…
//
// # Self-contained
//
// Nothing in dist names another host, and nothing is inline: the page works under
// default-src 'self'. What models, tools and people say reaches the page as JSON and is shown
// as text.
//
// # Not here
//
// The interface that the page speaks (hub/server, hub/replay), and the clients that may use it (hub/guard).
package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// What lies there compressed is in the binary as that alone: few clients want it otherwise.
//
//go:embed dist/index.html dist/assets/*.svg dist/assets/*.br dist/assets/*.gz
var dist embed.FS

// Policy is the Content-Security-Policy that the page is served with, and works under.
const Policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"

// file is a built asset with what HTTP says of it.
type file struct {
	body func() ([]byte, error)
	kind string // media type
	etag string // strong, of the bytes
	// coded are the bytes by the name of a coding that a browser may accept, the shortest first.
	coded []coded
}

type coded struct {
	name string
	body []byte
}

// codings are how files lie compressed, by their extension; all of them, or none, are there. The last one is read for a client
// that accepts none.
var codings = []struct{ ext, name string }{{".br", "br"}, {".gz", "gzip"}}

// Handler serves the page: GET and HEAD of / and of /assets/…; anything else is 404 or 405.
// Browsers ask again each time and get 304 while nothing changed: names hold no hash.
func Handler() http.Handler {
	files := built()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path
		if name == "/" {
			name = "/index.html"
		}
		f, ok := files[name]
		if !ok || r.URL.Path == "/index.html" {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the page can only be read", http.StatusMethodNotAllowed)
			return
		}
		h := w.Header()
		var body []byte
		etag := f.etag
		for _, c := range f.coded {
			h.Set("Vary", "Accept-Encoding")
			if accepts(r.Header.Values("Accept-Encoding"), c.name) {
				h.Set("Content-Encoding", c.name)
				body, etag = c.body, strings.TrimSuffix(f.etag, `"`)+"-"+c.name+`"`
				break
			}
		}
		if body == nil {
			var err error
			if body, err = f.body(); err != nil {
				http.Error(w, "the page in this program is damaged: "+err.Error(), http.StatusInternalServerError)
				return
			}
		}
		h.Set("Content-Type", f.kind)
		h.Set("Cache-Control", "no-cache")
		h.Set("Etag", etag)
		h.Set("Content-Security-Policy", Policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
	})
}

// accepts reports whether a coding is named in Accept-Encoding, and not with a weight of 0 (RFC 9110, 12.5.3).
func accepts(header []string, coding string) bool {
	for one := range strings.SplitSeq(strings.Join(header, ","), ",") {
		name, weight, _ := strings.Cut(one, ";")
		if !strings.EqualFold(strings.TrimSpace(name), coding) {
			continue
		}
		key, q, _ := strings.Cut(strings.TrimSpace(weight), "=")
		return !strings.EqualFold(key, "q") || strings.Trim(q, "0.") != ""
	}
	return false
}

// built reads what is embedded. That cannot fail: the files are part of the binary.
func built() map[string]file {
	files := map[string]file{}
	err := fs.WalkDir(dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		open := func() ([]byte, error) { return body, nil }
		name, ext := strings.CutSuffix(name, codings[len(codings)-1].ext)
		switch {
		case ext:
			open = func() ([]byte, error) { return expanded(body) }
		case slices.ContainsFunc(codings, func(c struct{ ext, name string }) bool { return path.Ext(name) == c.ext }):
			return nil
		}
		sum := sha256.Sum256(body)
		f := file{body: open, kind: kindOf(name), etag: `"` + hex.EncodeToString(sum[:16]) + `"`}
		for _, c := range codings {
			if short, err := dist.ReadFile(name + c.ext); err == nil {
				f.coded = append(f.coded, coded{c.name, short})
			}
		}
		files[strings.TrimPrefix(name, "dist")] = f
		return nil
	})
	if err != nil {
		panic("web: embedded files cannot be read: " + err.Error())
	}
	return files
}

func expanded(body []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// kinds are media types by extension, whatever the machine's tables say.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

func kindOf(name string) string {
	return cmp.Or(kinds[path.Ext(name)], mime.TypeByExtension(path.Ext(name)))
}
