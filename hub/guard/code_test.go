package guard

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"wf/hub/reply"
	"wf/protocol"
)

// people is a server that two people use, of which Ada is the owner. It makes codes, says who was let in, and has a
// stream.
type people struct {
	*stage
	ada, ben string            // their tokens, as headers
	socket   http.Handler      // where the own user asks
	streams  chan string       // has the name of each client whose stream began
	ended    chan ended        // has each stream that is over
	tokens   *strings.Replacer // puts the tokens into a file: ADA and BEN
}

type ended struct {
	name string
	err  error
}

const (
	adasLine = "ADA # ada\n"
	bensLine = "BEN read admin # ben\n"
)

func newPeople(t *testing.T) *people {
	t.Helper()
	s := newStage(t)
	other := newSecret()
	p := &people{stage: s, ada: "Authorization: Bearer " + s.token, ben: "Authorization: Bearer " + other,
		streams: make(chan string), ended: make(chan ended), tokens: strings.NewReplacer("ADA", s.token, "BEN", other)}
	s.keys.Owner = "root"
	p.write(adasLine + bensLine)
	answers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, _ := Of(r.Context())
		switch r.URL.Path {
		case "/v1/codes":
			code, expires, err := s.keys.NewCode(id)
			if err != nil {
				reply.Error(w, err)
				return
			}
			reply.JSON(w, http.StatusCreated, map[string]string{"code": code, "expires": expires.Format(time.RFC3339)})
		case "/v1/stream":
			p.streams <- id.Name
			<-r.Context().Done()
			p.ended <- ended{id.Name, r.Context().Err()}
		default:
			reply.JSON(w, http.StatusOK, allowed{id.Name, id.Scopes})
		}
	})
	s.handler = s.guard.Wrap(answers)
	own := &Guard{Hosts: []string{here}, Peer: Identity{Name: "root", Scopes: AllScopes}}
	p.socket = own.Wrap(answers)
	return p
}

// allowed is who was let in, and what that one may do.
type allowed struct {
	Name   string  `json:"name"`
	Scopes []Scope `json:"scopes"`
}

// write replaces the file of tokens.
func (p *people) write(file string) {
	p.t.Helper()
	next := p.keys.Path() + ".next"
	err := os.WriteFile(next, []byte(p.tokens.Replace(file)), 0o600)
	if err == nil {
		err = os.Rename(next, p.keys.Path())
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// origin is of the page, without which a login does not write.
const origin = "Origin: http://" + here

// code asks for a code with credentials, and says until when it is good.
func (p *people) code(credentials string) (code, until string) {
	p.t.Helper()
	return p.made(p.ask("POST", "/v1/codes", "", origin, credentials))
}

func (p *people) made(w *httptest.ResponseRecorder) (code, until string) {
	p.t.Helper()
	var got struct{ Code, Expires string }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusCreated {
		p.t.Fatalf("a code: %d %s", w.Code, w.Body)
	}
	return got.Code, got.Expires
}

// atSocket asks for a code as the own user.
func (p *people) atSocket() *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	p.socket.ServeHTTP(w, httptest.NewRequest("POST", "http://"+here+"/v1/codes", http.NoBody))
	return w
}

// redeemed exchanges a code, and gives the header with the login and when that ends.
func (p *people) redeemed(code string) (login, ends string) {
	p.t.Helper()
	w := p.ask("POST", LoginPath, `{"code":"`+code+`"}`, origin)
	var got struct{ Token, Expires string }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		p.t.Fatalf("a login: %d %s", w.Code, w.Body)
	}
	return "Authorization: Bearer " + got.Token, got.Expires
}

// in is a login by a code that was asked for with credentials.
func (p *people) in(credentials string) string {
	p.t.Helper()
	code, _ := p.code(credentials)
	login, _ := p.redeemed(code)
	return login
}

// who is let in with credentials; nobody where they are refused.
func (p *people) who(credentials string) (a allowed) {
	p.t.Helper()
	w := p.ask("GET", "/v1/runs", "", credentials)
	if w.Code == http.StatusUnauthorized {
		return allowed{}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
		p.t.Fatalf("%d %s", w.Code, w.Body)
	}
	return a
}

// over waits for a stream to end.
func (p *people) over() ended {
	p.t.Helper()
	select {
	case e := <-p.ended:
		return e
	case <-time.After(10 * time.Second):
		p.t.Fatal("no stream ends")
		return ended{}
	}
}

// A login has the name and the scopes of the token that asked for its code, and no others.
func TestACodeBelongsToTheTokenThatAskedForIt(t *testing.T) {
	p := newPeople(t)
	ada, ben := allowed{"ada", AllScopes}, allowed{"ben", []Scope{Read, Admin}}
	for _, test := range []struct {
		name  string
		login func() string
		want  allowed
	}{
		{"the owner asks", func() string { return p.in(p.ada) }, ada},
		{"another token with the scope admin asks", func() string { return p.in(p.ben) }, ben},
		{"a login of the owner asks", func() string { return p.in(p.in(p.ada)) }, ada},
		{"a login of another token asks", func() string { return p.in(p.in(p.ben)) }, ben},
		{"a login asks that a login asked for", func() string { return p.in(p.in(p.in(p.ben))) }, ben},
		{"the own user asks at the socket", func() string {
			code, _ := p.made(p.atSocket())
			login, _ := p.redeemed(code)
			return login
		}, ada},
		{"the server asks at its start", func() string {
			code, _, err := p.keys.OwnerCode()
			if err != nil {
				t.Fatal(err)
			}
			login, _ := p.redeemed(code)
			return login
		}, ada},
	} {
		if got := p.who(test.login()); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: the login is %+v, want %+v", test.name, got, test.want)
		}
	}
}

// What a token asked for ends with it: its codes, its logins and their streams, and those of no other token.
func TestACodeAndItsLoginEndWithTheirToken(t *testing.T) {
	for _, test := range []struct {
		name, file string
		out, stays string
	}{
		{"another token is taken out", adasLine, "ben", "ada"},
		{"the owner's token is taken out", bensLine, "ada", "ben"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPeople(t)
			p.guard.recheck = time.Millisecond
			tokens := map[string]string{"ada": p.ada, "ben": p.ben}
			codes, logins := map[string]string{}, map[string]string{}
			for name, token := range tokens {
				codes[name], _ = p.code(token)
				logins[name] = p.in(token)
				go p.ask("GET", "/v1/stream", "", logins[name])
				<-p.streams
			}
			p.write(test.file)
			if over := p.over(); over.name != test.out {
				t.Errorf("the stream of %s ended: %v", over.name, over.err)
			}
			if w := p.ask("POST", LoginPath, `{"code":"`+codes[test.out]+`"}`, origin); w.Code != http.StatusUnauthorized {
				t.Errorf("a code of the token that was taken out: %d %s", w.Code, w.Body)
			}
			if got := p.who(logins[test.out]); got.Name != "" {
				t.Errorf("a login of the token that was taken out is %+v", got)
			}
			if w := p.ask("POST", "/v1/codes", "", origin, logins[test.out]); w.Code != http.StatusUnauthorized {
				t.Errorf("such a login asks for a code: %d", w.Code)
			}
			fresh, _ := p.redeemed(codes[test.stays])
			for what, login := range map[string]string{"the login": logins[test.stays], "the code": fresh} {
				if got := p.who(login); got.Name != test.stays {
					t.Errorf("%s of the token that stays is %+v", what, got)
				}
			}
			select {
			case over := <-p.ended:
				t.Errorf("the stream of %s ended too: %v", over.name, over.err)
			case <-time.After(20 * time.Millisecond): // it was looked at again meanwhile
			}
			p.write("BEN metrics\n") // which ends the other stream too
			p.over()
		})
	}
}

// A code and a login are worth what their token is worth when they are used.
func TestACodeIsWorthWhatItsTokenIsWorth(t *testing.T) {
	p := newPeople(t)
	code, _ := p.code(p.ben)
	login := p.in(p.ben)
	for _, test := range []struct {
		name, file string
		want       allowed
	}{
		{"it may only read", adasLine + "BEN read # ben\n", allowed{"ben", []Scope{Read}}},
		{"it is called otherwise", adasLine + "BEN read # benjamin\n", allowed{"benjamin", []Scope{Read}}},
		{"it may do everything", adasLine + "BEN # ben\n", allowed{"ben", AllScopes}},
	} {
		p.write(test.file)
		if code != "" {
			fresh, _ := p.redeemed(code)
			code = ""
			if got := p.who(fresh); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%s: the login by a code of before is %+v", test.name, got)
			}
		}
		if got := p.who(login); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: the login is %+v", test.name, got)
		}
	}
}

// However often a login asks for a code, what comes of it ends when the first login does.
func TestALoginCannotProlongItself(t *testing.T) {
	p := newPeople(t)
	began := p.now
	end := began.Add(LoginLife)
	code, until := p.code(p.ben)
	login, ends := p.redeemed(code)
	if got, want := until+" "+ends, began.Add(CodeLife).Format(time.RFC3339)+" "+end.Format(time.RFC3339); got != want {
		t.Fatalf("a token gives a code and a login until %s, want %s", got, want)
	}
	for _, test := range []struct {
		name string
		at   time.Duration
		code time.Time // is good until
	}{
		{"at once", 0, began.Add(CodeLife)},
		{"in the middle, by the login that came of that", 6 * time.Hour, began.Add(6*time.Hour + CodeLife)},
		{"five minutes before the end", LoginLife - 5*time.Minute, end},
		{"a second before the end", LoginLife - time.Second, end},
	} {
		p.now = began.Add(test.at)
		code, until := p.code(login)
		if want := test.code.Format(time.RFC3339); until != want {
			t.Errorf("%s: the code is good until %s, want %s", test.name, until, want)
		}
		if login, ends = p.redeemed(code); ends != end.Format(time.RFC3339) {
			t.Errorf("%s: the login ends at %s", test.name, ends)
		}
	}
	late, _ := p.code(login)
	p.now = end
	if got := p.who(login); got.Name != "" {
		t.Errorf("after the end it is %+v", got)
	}
	if w := p.ask("POST", LoginPath, `{"code":"`+late+`"}`, origin); w.Code != http.StatusUnauthorized {
		t.Errorf("a code of a login that is over: %d %s", w.Code, w.Body)
	}
}

// What needs no token at this machine belongs to the owner's, and to no other where there is none.
func TestACodeOfTheOwnUserBelongsToTheOwner(t *testing.T) {
	for _, test := range []struct {
		name, file string
		want       string // "" is none
	}{
		{"the token with all scopes comes first", adasLine + bensLine, "ada"},
		{"another token comes first", bensLine + adasLine, "ada"},
		{"its scopes are written out", bensLine + "ADA read run admin # ada\n", "ada"},
		{"two tokens have all scopes, and none the owner's name", "BEN # ben\n" + adasLine, "ben"},
		{"two tokens have all scopes, and the later one no name", "BEN # ben\nADA\n", "root"},
		{"two tokens have all scopes, and the later one the owner's name", "BEN # ben\nADA # root\n", "root"},
		{"a later line takes scopes away", "ADA\nBEN # ben\nADA read\n", "ben"},
		{"no token has all scopes", bensLine + "ADA run # ada\n", ""},
		{"a later line takes all scopes away", "ADA\nADA read\n", ""},
	} {
		p := newPeople(t)
		p.write(test.file)
		w := p.atSocket()
		_, _, err := p.keys.OwnerCode()
		if test.want == "" {
			hint := protocol.HintOf(err)
			if !errors.Is(err, protocol.ErrForbidden) || !strings.Contains(err.Error(), p.keys.Path()) || !strings.Contains(hint, p.keys.Path()) || !strings.Contains(hint, "a token alone") {
				t.Errorf("%s: %v, hint %q", test.name, err, hint)
			}
			if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "all scopes") {
				t.Errorf("%s: %d %s", test.name, w.Code, w.Body)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: at the start: %v", test.name, err)
		}
		code, _ := p.made(w)
		login, _ := p.redeemed(code)
		if got := p.who(login); got.Name != test.want || !reflect.DeepEqual(got.Scopes, AllScopes) {
			t.Errorf("%s: the login is %+v, want %s", test.name, got, test.want)
		}
	}
}

// Whom another server introduces has shown no token here, whatever it may do: a hub has none of the codes of its workers.
func TestWhoIsIntroducedGetsNoCode(t *testing.T) {
	p := newPeople(t)
	for _, id := range []Identity{{}, {Name: "ada", Scopes: AllScopes}, {Name: "root", Scopes: AllScopes}, {Name: "desk", Scopes: []Scope{Worker}, Worker: "desk"}} {
		got, ok := Of(With(t.Context(), id))
		code, _, err := p.keys.NewCode(got)
		if id.Name != "" && !ok || code != "" || !errors.Is(err, protocol.ErrForbidden) || !strings.Contains(err.Error(), id.Name+" came without a token") {
			t.Errorf("%+v: %q, %v", id, code, err)
		}
	}
	if len(p.keys.codes) > 0 {
		t.Errorf("%d codes were made", len(p.keys.codes))
	}
}

// A token that stands in two lines and its logins agree on the line that counts.
func TestATokenInTwoLinesIsOne(t *testing.T) {
	for _, test := range []struct {
		name, file string
		want       allowed
	}{
		{"fewer scopes below", "ADA # ada\n" + bensLine + "ADA read admin # less\n", allowed{"less", []Scope{Read, Admin}}},
		{"more scopes below", "ADA read admin # less\n" + bensLine + "ADA # ada\n", allowed{"ada", AllScopes}},
	} {
		p := newPeople(t)
		p.write(test.file)
		for what, credentials := range map[string]string{"the token": p.ada, "its login": p.in(p.ada), "a login of that": p.in(p.in(p.ada))} {
			if got := p.who(credentials); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%s: %s is %+v, want %+v", test.name, what, got, test.want)
			}
		}
	}
}
