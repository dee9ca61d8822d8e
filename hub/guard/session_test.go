package guard

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// session logs a browser in and gives its cookie as a header says it.
func (s *stage) session() string {
	s.t.Helper()
	code, err := s.keys.NewCode()
	if err != nil {
		s.t.Fatal(err)
	}
	w := s.ask("POST", "/v1/login", `{"code":"`+code+`"}`, "Origin: http://"+here)
	if w.Code != 200 || strings.Contains(s.log.String()+w.Body.String(), code) {
		s.t.Fatalf("login: %d %s", w.Code, w.Body)
	}
	c := w.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || !strings.HasPrefix(c.Name, cookiePrefix) || strings.Contains(c.Value, s.token) {
		s.t.Errorf("cookie %v", c)
	}
	return c.Name + "=" + c.Value
}

func TestACodeIsGoodOnce(t *testing.T) {
	s := newStage(t)
	code, err := s.keys.NewCode()
	if err != nil {
		t.Fatal(err)
	}
	late, err := s.keys.NewCode()
	if err != nil {
		t.Fatal(err)
	}
	login := func(body string, headers ...string) int { return s.ask("POST", "/v1/login", body, headers...).Code }
	for _, test := range []struct {
		name   string
		status int
		got    func() int
	}{
		{"a guess", 401, func() int { return login(`{"code":"` + newSecret() + `"}`) }},
		{"no code", 400, func() int { return login(``) }},
		{"another field", 400, func() int { return login(`{"code":"x","scopes":["admin"]}`) }},
		{"of a foreign page", 403, func() int { return login(`{"code":"`+code+`"}`, "Origin: https://evil.example") }},
		{"by GET", 405, func() int { return s.ask("GET", "/v1/login", "").Code }},
		{"the code", 200, func() int { return login(`{"code":"` + code + `"}`) }},
		{"the code again", 401, func() int { return login(`{"code":"` + code + `"}`) }},
		{"a code that is too old", 401, func() int {
			s.now = s.now.Add(CodeLife + time.Second)
			return login(`{"code":"` + late + `"}`)
		}},
	} {
		if got := test.got(); got != test.status {
			t.Errorf("%s: status %d, want %d", test.name, got, test.status)
		}
	}
	for range 3 * maxCodes {
		if _, err := s.keys.NewCode(); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.keys.codes) > maxCodes {
		t.Errorf("%d codes are open", len(s.keys.codes))
	}
}

// A page of another origin can make a browser send its requests, and with SameSite ignored its
// cookie. None of them does anything.
func TestTheCookieIsNoHelpToOtherPages(t *testing.T) {
	s := newStage(t)
	cookie := "Cookie: " + s.session()
	for _, test := range []struct {
		name    string
		method  string
		headers []string
		status  int
	}{
		{"the page reads", "GET", []string{"Sec-Fetch-Site: same-origin"}, 200},
		{"the page writes", "POST", []string{"Origin: http://" + here, "Sec-Fetch-Site: same-origin"}, 200},
		{"the page opens a WebSocket", "GET", []string{"Origin: http://" + here, "Upgrade: websocket"}, 200},
		{"CSRF by a form", "POST", []string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Content-Type: text/plain"}, 403},
		{"CSRF by a form without an Origin", "POST", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"CSRF of an old browser that says nothing", "POST", nil, 403},
		{"a WebSocket of another page", "GET", []string{"Origin: https://evil.example", "Upgrade: websocket"}, 403},
		{"a WebSocket of a sandboxed page", "GET", []string{"Origin: null", "Upgrade: websocket"}, 403},
		{"a WebSocket without an Origin", "GET", []string{"Upgrade: websocket"}, 403},
		{"a script element of another port", "GET", []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"}, 403},
	} {
		if w := s.ask(test.method, "/v1/runs", "{}", append(test.headers, cookie)...); w.Code != test.status {
			t.Errorf("%s: status %d %s, want %d", test.name, w.Code, w.Body, test.status)
		}
	}
}

// A session outlives the server, since it is kept by the browser alone; it ends with its time.
func TestASessionOutlivesTheServerAndNotItsTime(t *testing.T) {
	s := newStage(t)
	cookie := s.session()
	again, err := OpenKeys(s.keys.Path(), func() time.Time { return s.now })
	if err != nil {
		t.Fatal(err)
	}
	of := func(k *Keys, header string) bool {
		c, err := http.ParseCookie(header)
		if err != nil {
			t.Fatal(err)
		}
		_, ok, _ := k.bySession(c)
		return ok
	}
	if !of(again, cookie) {
		t.Error("after a restart the session is gone")
	}
	name, value, _ := strings.Cut(cookie, "=")
	until, proof, _ := strings.Cut(value, ".")
	for what, forged := range map[string]string{
		"a longer life": name + "=9" + until + "." + proof, "no proof": name + "=" + until + ".",
		"another key": cookiePrefix + "00=" + value, "nothing": name + "=x",
	} {
		if of(again, forged) {
			t.Errorf("a forged session is good: %s", what)
		}
	}
	if !of(again, "wf_session_ff=1.x; "+cookie) {
		t.Error("the session of another server is in the way")
	}
	s.now = s.now.Add(SessionLife)
	if of(again, cookie) {
		t.Error("the session does not end")
	}
}
