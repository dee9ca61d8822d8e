package server

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"wf/hub/web"
	"wf/protocol"
)

// No path leads on to another one: not of any route, whatever a client puts into it. Requests for webhooks are let in before anything is
// known of them, so that whatever stands behind them is answered by what asks for a signature.
func TestNoPathIsARedirect(t *testing.T) {
	asked := 0
	s := &Server{Page: web.Handler(), Hooks: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.WriteHeader(http.StatusUnauthorized)
	})}
	h := s.Handler()
	ask := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, "http://wf/", nil)
		u, err := url.ParseRequestURI("http://wf" + path)
		if err != nil {
			t.Fatal(err)
		}
		r.URL, r.RequestURI = u, path
		h.ServeHTTP(w, r)
		return w
	}
	paths := []string{"/", "/index.html", "/runs", "/assets"}
	for _, r := range routes {
		paths = append(paths, strings.NewReplacer("{id}", "R1", "{step}", "a", "{other}", "R2", "{name}", "push", "{memory}", "m", "{table}", "t", "{cid}", "c").Replace(r.path))
	}
	for _, path := range paths {
		first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		for _, p := range []string{path + "/", path + "//", "/" + path, "/x/.." + path, "/." + path, path + "/.", path + "/..", path + "/../v1/runs", "/" + first + "//" + rest, "/" + first, "/" + first + "/../" + rest,
			strings.ReplaceAll(path, "/v1/", "/v1/%2e%2e/v1/"), path + "%2f..", path + "%2F%2F"} {
			for _, method := range []string{"GET", "HEAD", "POST", "DELETE", "PUT", "OPTIONS"} {
				if w := ask(method, p); w.Code >= 300 && w.Code < 400 || w.Header().Get("Location") != "" {
					t.Errorf("%s %s: %d to %s", method, p, w.Code, w.Header().Get("Location"))
				}
			}
		}
	}
	for _, rest := range []string{"../runs", "..", ".", "", "/", "push/", "push//", "push/..", "push/../../runs", "%2e%2e/runs", "a/b", "./push", "../hooks/push"} {
		asked = 0
		if w := ask("POST", protocol.WebhookPath+rest); w.Code != http.StatusUnauthorized || asked != 1 {
			t.Errorf("POST %s%s: %d", protocol.WebhookPath, rest, w.Code)
		}
	}
}
