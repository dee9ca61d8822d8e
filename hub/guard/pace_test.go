package guard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"wf/hub/reply"
	"wf/protocol"
)

// A token with a rate makes so many requests, its logins included, and other tokens as many as they like.
func TestF415ATokenHasARate(t *testing.T) {
	s := newStage(t)
	ci, slow := newSecret(), newSecret()
	file := s.token + "\n" + ci + " run rate:3/m # ci\n" + slow + " rate:1/h\n"
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(s.keys.Path(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file)
	ask := func(token string, want int) http.Header {
		t.Helper()
		w := s.ask("GET", "/v1/runs", "", "Authorization: Bearer "+token)
		if w.Code != want {
			t.Errorf("%d %s, want %d", w.Code, w.Body, want)
		}
		var f reply.Failure
		if want == http.StatusTooManyRequests {
			if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || f.Code != protocol.ErrRateLimited.Code || !strings.Contains(f.Message, "3/m") && !strings.Contains(f.Message, "1/h") || !strings.Contains(f.Fix, "try again in ") {
				t.Errorf("%v %+v", err, f)
			}
		}
		return w.Header()
	}
	for range 3 {
		ask(ci, http.StatusOK)
	}
	for range 5 { // what is refused costs nothing
		if after := ask(ci, http.StatusTooManyRequests).Get("Retry-After"); after != "20" {
			t.Errorf("Retry-After: %s", after)
		}
	}
	for range 100 {
		ask(s.token, http.StatusOK)
	}
	s.now = s.now.Add(20 * time.Second)
	ask(ci, http.StatusOK)
	ask(ci, http.StatusTooManyRequests)

	id, ok := s.keys.byToken(slow)
	if !ok || fmt.Sprint(id.Scopes) != fmt.Sprint(AllScopes) {
		t.Errorf("a token with a rate alone has %v", id.Scopes)
	}
	code, _, err := s.keys.NewCode(id)
	if err != nil {
		t.Fatal(err)
	}
	w := s.ask("POST", LoginPath, fmt.Sprintf(`{"code":%q}`, code), "Origin: http://"+here, "Content-Type: application/json")
	var l Login
	if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil || l.Token == "" {
		t.Fatalf("%v %d %s", err, w.Code, w.Body)
	}
	if got := s.ask("GET", "/v1/runs", "", "Authorization: Bearer "+l.Token, "Origin: http://"+here).Code; got != http.StatusOK {
		t.Errorf("the login: %d", got)
	}
	ask(slow, http.StatusTooManyRequests)

	for _, bad := range []string{"rate:", "rate:0/s", "rate:-1/s", "rate:5", "rate:5/d", "rate:1.5/s", "rate:9999999/s", "rate:5/s/m", "rates:5/s"} {
		if _, err := parseKeys([]byte(ci + " run " + bad + "\n")); err == nil || !strings.Contains(err.Error(), "rate:N/") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
