package guard

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// login logs a browser in and gives the header with its login.
func (s *stage) login() string {
	s.t.Helper()
	code, _, err := s.keys.OwnerCode()
	if err != nil {
		s.t.Fatal(err)
	}
	w := s.ask("POST", "/v1/login", `{"code":"`+code+`"}`, "Origin: http://"+here)
	if w.Code != 200 || strings.Contains(s.log.String()+w.Body.String(), code) {
		s.t.Fatalf("login: %d %s", w.Code, w.Body)
	}
	if len(w.Result().Cookies()) > 0 {
		s.t.Errorf("a login sets %v", w.Result().Cookies())
	}
	var got struct{ Token, Expires string }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Token == "" || got.Token == s.token {
		s.t.Fatalf("login: %s, %v", w.Body, err)
	}
	if want := s.now.Add(12 * time.Hour).Format(time.RFC3339); got.Expires != want {
		s.t.Errorf("the login ends at %s, want %s", got.Expires, want)
	}
	return "Authorization: Bearer " + got.Token
}

func TestACodeIsGoodOnce(t *testing.T) {
	s := newStage(t)
	code, _, err := s.keys.OwnerCode()
	if err != nil {
		t.Fatal(err)
	}
	late, _, err := s.keys.OwnerCode()
	if err != nil {
		t.Fatal(err)
	}
	login := func(body string, headers ...string) int {
		if len(headers) == 0 {
			headers = []string{"Origin: http://" + here}
		}
		return s.ask("POST", "/v1/login", body, headers...).Code
	}
	for _, test := range []struct {
		name   string
		status int
		got    func() int
	}{
		{"a guess", 401, func() int { return login(`{"code":"` + newSecret() + `"}`) }},
		{"no code", 400, func() int { return login(``) }},
		{"another field", 400, func() int { return login(`{"code":"x","scopes":["admin"]}`) }},
		{"of a foreign page", 403, func() int { return login(`{"code":"`+code+`"}`, "Origin: https://evil.example") }},
		{"of a program", 403, func() int { return s.ask("POST", "/v1/login", `{"code":"`+code+`"}`).Code }},
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
		if _, _, err := s.keys.OwnerCode(); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.keys.codes) > maxCodes {
		t.Errorf("%d codes are open", len(s.keys.codes))
	}
}

// A login holds for the page that logged in, by the same name of the server. Pages of other origins
// do nothing with it, nor does a program that does not say where it comes from.
func TestALoginIsBoundToItsPage(t *testing.T) {
	s := newStage(t)
	login := s.login()
	for _, test := range []struct {
		name    string
		method  string
		headers []string
		status  int
	}{
		{"the page reads", "GET", []string{"Sec-Fetch-Site: same-origin"}, 200},
		{"the page writes", "POST", []string{"Origin: http://" + here, "Sec-Fetch-Site: same-origin"}, 200},
		{"the page opens a WebSocket", "GET", []string{"Origin: http://" + here, "Upgrade: websocket"}, 200},
		{"another page of ours", "POST", []string{"Origin: https://wf.example.org"}, 403},
		{"another page of ours reads", "GET", []string{"Origin: https://wf.example.org"}, 403},
		{"by another name of the server", "GET", []string{"Host: localhost:8765"}, 403},
		{"by another name, of a page there", "POST", []string{"Host: localhost:8765", "Origin: http://localhost:8765"}, 403},
		{"CSRF by a form", "POST", []string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Content-Type: text/plain"}, 403},
		{"CSRF by a form without an Origin", "POST", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"a program that says nothing", "POST", nil, 403},
		{"a WebSocket of another page", "GET", []string{"Origin: https://evil.example", "Upgrade: websocket"}, 403},
		{"a WebSocket of a sandboxed page", "GET", []string{"Origin: null", "Upgrade: websocket"}, 403},
		{"a WebSocket without an Origin", "GET", []string{"Upgrade: websocket"}, 403},
		{"a script element of another port", "GET", []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"}, 403},
	} {
		if w := s.ask(test.method, "/v1/runs", "{}", append(test.headers, login)...); w.Code != test.status {
			t.Errorf("%s: status %d %s, want %d", test.name, w.Code, w.Body, test.status)
		}
	}
	_, token, _ := strings.Cut(login, "Bearer ")
	if w := s.ask("GET", "/v1/runs", "", "Origin: http://"+here, "Upgrade: websocket", "Sec-WebSocket-Protocol: wf.replay.v1, wf.token."+token); w.Code != 200 || strings.Contains(w.Body.String(), token) {
		t.Errorf("a WebSocket with the subprotocol: %d %s", w.Code, w.Body)
	}
	if w := s.ask("GET", "/v1/runs?x="+token, "", login); w.Code != 400 {
		t.Errorf("a login in an address: %d", w.Code)
	}
}

// Browsers send cookies to every port of a machine, and a program there can send them on with any
// Origin. None opens anything: not the login under any name, nor one as earlier versions made it.
func TestNoCookieIsAccepted(t *testing.T) {
	s := newStage(t)
	_, token, _ := strings.Cut(s.login(), "Bearer ")
	until := strconv.FormatInt(s.now.Add(time.Hour).Unix(), 10)
	mac := hmac.New(sha256.New, []byte(s.token))
	mac.Write([]byte("wf session\x00" + until))
	old := "wf_session_" + keyID(s.token) + "=" + until + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	for _, cookie := range []string{old, "wf_session_" + keyID(s.token) + "=" + token, "session=" + token, "Authorization=Bearer " + token} {
		for _, method := range []string{"GET", "POST"} {
			if w := s.ask(method, "/v1/runs", "{}", "Cookie: "+cookie, "Origin: http://"+here); w.Code != 401 {
				t.Errorf("%s with the cookie %s: status %d", method, cookie, w.Code)
			}
		}
	}
}

// A login ends with its time, with its key and with its server.
func TestALoginEnds(t *testing.T) {
	for name, end := range map[string]func(*stage) *Keys{
		"its time is over": func(s *stage) *Keys {
			s.now = s.now.Add(LoginLife)
			return s.keys
		},
		"its key is taken out": func(s *stage) *Keys {
			if err := os.WriteFile(s.keys.Path(), []byte(newSecret()+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return s.keys
		},
		"the server starts again": func(s *stage) *Keys {
			again, err := OpenKeys(s.keys.Path(), func() time.Time { return s.now })
			if err != nil {
				t.Fatal(err)
			}
			return again
		},
	} {
		s := newStage(t)
		_, token, _ := strings.Cut(s.login(), "Bearer ")
		if _, _, ok := s.keys.byLogin(token); !ok {
			t.Errorf("%s: there was no login", name)
		}
		if _, _, ok := end(s).byLogin(token); ok {
			t.Errorf("%s: the login is good", name)
		}
	}
	s := newStage(t)
	for range 3 * maxLogins {
		s.login()
	}
	if len(s.keys.logins) > maxLogins {
		t.Errorf("%d logins are open", len(s.keys.logins))
	}
}
