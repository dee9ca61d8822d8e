package relay_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/hub/guard"
	"wf/hub/queue"
)

// A worker answers with headers of its own, with HTML, with a redirect, with an encoding, and with
// an answer before the answer. What reaches the client has the headers of the hub alone.
func TestAWorkerSaysNothingToTheBrowser(t *testing.T) {
	h := newHouse(t)
	h.shut()
	h.wrap = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			(&guard.Guard{Peer: everyone, Hosts: []string{r.Host}}).Wrap(next).ServeHTTP(w, r)
		})
	}
	h.open()
	evil := newDesk(h, "evil")
	var media, encoding string
	var status int
	honest := evil.worker.Handler
	evil.worker.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/runs/run1" || r.Header.Get("If-None-Match") == "*" {
			honest.ServeHTTP(w, r)
			return
		}
		for name, value := range map[string]string{
			"Content-Security-Policy": "default-src * 'unsafe-inline'", "X-Content-Type-Options": "sniff", "X-Frame-Options": "ALLOWALL",
			"Cross-Origin-Resource-Policy": "cross-origin", "Cross-Origin-Opener-Policy": "unsafe-none", "Referrer-Policy": "unsafe-url",
			"Set-Cookie": "a=b", "Access-Control-Allow-Origin": "*", "Link": "</v1/blocks/x>; rel=preload", "Refresh": "0; url=https://evil.example",
			"Clear-Site-Data": `"*"`, "Service-Worker-Allowed": "/", "Location": "https://evil.example", "Cache-Control": "public, max-age=9", "Trailer": "X-Late",
			"Content-Disposition": `inline; filename="evil.html"`, "Accept-Ranges": "pages", "Content-Range": "bytes 1-2/9; evil", "Www-Authenticate": "Basic", "Strict-Transport-Security": "max-age=0", "Alt-Svc": `h3="evil.example:443"`, "X-Late": "x",
		} {
			w.Header().Set(name, value)
		}
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Content-Type", media)
		if encoding != "" {
			w.Header().Set("Content-Encoding", encoding)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<script>alert(1)</script>")
	})
	evil.say("run1", "x")
	evil.arrive()
	h.pointed("run1", func(p queue.Pointer) bool { return p.Worker == "evil" })
	for _, test := range []struct {
		media, encoding string
		status, want    int
		policy          string
	}{
		{"application/json", "", 200, 200, "default-src 'none'; frame-ancestors 'none'; sandbox"},
		{"application/json", "", 404, 404, "default-src 'none'; frame-ancestors 'none'; sandbox"},
		{"application/vnd.ipld.raw", "", 200, 200, "default-src 'none'; frame-ancestors 'none'; sandbox"},
		{"image/svg+xml", "", 200, 200, "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"},
		{"application/octet-stream", "", 200, 200, "default-src 'none'; frame-ancestors 'none'; sandbox"},
		{"application/octet-stream", "", 206, 206, "default-src 'none'; frame-ancestors 'none'; sandbox"},
		{"text/html", "", 200, 502, "default-src 'none'; frame-ancestors 'none'; sandbox"},
		{"text/html; charset=utf-8", "", 404, 502, "default-src 'none'; frame-ancestors 'none'; sandbox"},
		{"application/xhtml+xml", "", 200, 502, "default-src 'none'; frame-ancestors 'none'; sandbox"},
		{"text/javascript", "", 200, 502, "default-src 'none'; frame-ancestors 'none'; sandbox"},
		{"", "", 200, 502, "default-src 'none'; frame-ancestors 'none'; sandbox"},
		{"application/json", "", 302, 502, "default-src 'none'; frame-ancestors 'none'; sandbox"},
		{"application/json", "br", 200, 502, "default-src 'none'; frame-ancestors 'none'; sandbox"},
	} {
		media, encoding, status = test.media, test.encoding, test.status
		res := must(h.api.HTTP().Get("http://" + h.addr + "/v1/runs/run1"))(t)
		res.Body.Close()
		if res.StatusCode != test.want || len(res.Trailer) > 0 {
			t.Errorf("%+v: status %d, trailers %v", test, res.StatusCode, res.Trailer)
		}
		want := http.Header{"Content-Security-Policy": {test.policy}, "X-Content-Type-Options": {"nosniff"}, "X-Frame-Options": {"DENY"},
			"Cross-Origin-Resource-Policy": {"same-origin"}, "Cross-Origin-Opener-Policy": {"same-origin"}, "Referrer-Policy": {"no-referrer"},
			"Cache-Control": {"no-store"}, "Content-Type": {"application/json"}}
		if test.want != 502 {
			want.Set("Content-Type", test.media)
		}
		if test.media == "application/octet-stream" { // a file of a run is saved, and not shown
			want.Set("Content-Disposition", "attachment")
			want.Set("Accept-Ranges", "bytes")
		}
		if test.status == 206 {
			want.Set("Content-Range", "bytes 1-2/9")
		}
		res.Header.Del("Date")
		res.Header.Del("Content-Length")
		if d := cmp.Diff(want, res.Header); d != "" {
			t.Errorf("%+v: %s", test, d)
		}
	}
}

// A list of a worker may hold null where an object is due: it is passed over, and what the others list is shown.
func TestNullInTheListOfAWorkerIsPassedOver(t *testing.T) {
	h := newHouse(t)
	odd := newDesk(h, "odd")
	odd.worker.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items":[null,{"id":"run1","name":"flow"}]}`) // a hub that has gone needs no answer
	})
	odd.arrive()
	h.await(1)
	for _, path := range []string{"/v1/runs", "/v1/workflows"} {
		var list struct{ Items []struct{ ID string } }
		if status := h.get(path, &list); status != http.StatusOK || len(list.Items) != 1 || list.Items[0].ID != "run1" {
			t.Errorf("%s: status %d, %+v", path, status, list)
		}
	}
}
