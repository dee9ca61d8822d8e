package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"wf/agentkit/modeltest"
	"wf/api"
)

// worldWorks is a role that does something with each call.
const worldWorks = `wf: 1
name: works
limits: {tokens: 90000000}
defaults: {model: %s, timeout: 2m}
roles: {a: {prompt: You work., tools: [{shell: auto}], max_turns: 60}}
`

// nextEffect calls for the effect of that number, a line of its own.
func nextEffect(n int, file string) modeltest.Answer {
	args, err := json.Marshal(map[string]string{"command": fmt.Sprintf("echo %d >>%s", n, file)})
	if err != nil {
		panic(err) // of texts
	}
	return modeltest.Calls(modeltest.Call{ID: fmt.Sprintf("call_%d", n), Name: "shell", Args: string(args)})
}

// An outage behind twenty calls: whether it is waited out, or ends the attempt and wf resume goes on, each call is
// made once, and no request is other than the one before with what came since.
func TestF102AnOutageBehindTwentyCalls(t *testing.T) {
	t.Parallel()
	for _, m := range worldModels {
		for name, c := range map[string]struct {
			down     int32 // requests behind call 20 that are refused, if not all until it is resumed
			args     []string
			exit     int
			requests int
		}{
			"waited out": {3, nil, 0, 26},
			"resumed":    {1 << 30, []string{"--patience", "0"}, 1, 24},
		} {
			t.Run(m.name+" "+name, func(t *testing.T) {
				t.Parallel()
				var down atomic.Int32 // requests that it is still down for
				down.Store(c.down)
				s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
					switch n := r.Results(); {
					case n == 20 && down.Add(-1) >= 0:
						return modeltest.Answer{Status: 503, Header: map[string]string{"Retry-After-Ms": "20"}, Body: `{"error":{"message":"overloaded"}}`}
					case n < 22:
						return nextEffect(n, "effects")
					}
					return modeltest.Text("All done.")
				})
				w := inWorld(t, s, fmt.Sprintf(worldWorks, m.model))
				w.ends(c.exit, append([]string{"run", "w.yaml", "-q"}, c.args...)...)
				if c.exit != 0 {
					down.Store(0)
					w.ends(0, "resume", "-1", "-q")
				}
				w.effects("effects", numbers(22)...)
				w.is("requests", len(s.Requests()), c.requests)
				w.grows(s.Requests())
				w.over()
			})
		}
	}
}

// outages are the ways in which a provider fails; none is the model's or the workflow's fault.
func outages() map[string]modeltest.Answer {
	const reason = `{"error":{"message":"not now","type":"x_error"}}`
	half := []modeltest.Piece{{Text: "I would say"}}
	kinds := map[string]modeltest.Answer{
		"in_seconds":   {Status: 429, Header: map[string]string{"Retry-After": "2"}, Body: reason},
		"in_ms":        {Status: 429, Header: map[string]string{"Retry-After-Ms": "1500"}, Body: reason},
		"in_an_hour":   {Status: 429, Header: map[string]string{"Retry-After": "3600"}, Body: reason},
		"on_a_date":    {Status: 429, Header: map[string]string{"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"}, Body: reason},
		"no_money":     {Status: 429, Body: `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`},
		"cut":          {Say: half, Cut: true},
		"no_end":       {Say: half, End: true},
		"nothing":      {End: true},
		"gone":         {Raw: []byte{}},
		"no_http":      {Raw: []byte("garbage\r\n\r\n")},
		"bad_chunks":   {Raw: []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\nsix\r\ndata: \r\n")},
		"a_page":       {Header: map[string]string{"Content-Type": "text/html"}, Body: "<html><title>Sign in</title></html>"},
		"a_502_page":   {Status: 502, Header: map[string]string{"Content-Type": "text/html"}, Body: "<html><head><title>502 Bad Gateway</title></head></html>"},
		"bad_json":     {Events: []string{"{not json}"}},
		"a_text":       {Header: map[string]string{"Content-Type": "application/json"}, Body: "hello"},
		"an_object":    {Header: map[string]string{"Content-Type": "application/json"}, Body: "{}"},
		"a_huge_error": {Status: 400, Header: map[string]string{"Content-Type": "text/plain"}, Body: strings.Repeat("x", 8<<20)},
		"elsewhere":    {Status: 302, Header: map[string]string{"Location": "http://127.0.0.1:1/elsewhere"}},
		"silence":      {Say: half, Stall: true},
	}
	for _, status := range []int{400, 401, 402, 403, 404, 408, 409, 422, 425, 429, 500, 503, 529} {
		kinds[fmt.Sprint("status_", status)] = modeltest.Answer{Status: status, Body: reason}
	}
	return kinds
}

// forAPerson are the outages that wait for a key, for money or for another model.
var forAPerson = []string{"a_page", "no_money", "status_401", "status_402", "status_403", "status_404"}

// Whatever ends an attempt for reasons of the provider leaves the visit where it is: three calls that were made are
// made once, and one request more than what was asked before ends it.
func TestF102AnOutageOfAnyKind(t *testing.T) {
	t.Parallel()
	kinds := outages()
	fail := slices.Collect(maps.Keys(kinds))
	fail = slices.DeleteFunc(fail, func(kind string) bool { return slices.Contains(forAPerson, kind) })
	slices.Sort(fail)
	for _, m := range worldModels {
		for exit, names := range map[int][]string{1: fail, 4: forAPerson} {
			t.Run(fmt.Sprint(m.name, " exit ", exit), func(t *testing.T) {
				t.Parallel()
				var healthy atomic.Bool
				var again atomic.Int32 // requests once the provider is up
				s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
					kind, n, up := itemOf(r), r.Results(), healthy.Load()
					if up {
						again.Add(1)
					}
					switch {
					case n < 3:
						return nextEffect(n, kind)
					case up:
						return modeltest.Text("All done.")
					}
					return kinds[kind]
				})
				w := inWorld(t, s, fmt.Sprintf(worldWorks, m.model)+overItems(t, names))
				w.ends(exit, "run", "w.yaml", "-q", "--patience", "0")
				healthy.Store(true)
				w.ends(0, "resume", "-1", "-q")
				for _, kind := range names {
					w.effects(kind, "0", "1", "2")
				}
				w.is("requests once the provider is up", int(again.Load()), len(names))
				w.over()
			})
		}
	}
}

// A provider that asks for more patience than half a minute gets it: the wait is shown, a kill in it loses nothing,
// and each call is made once.
func TestF102ALongRetryAfterIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, m := range worldModels {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			var refused atomic.Int32
			s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
				switch n := r.Results(); {
				case n == 3 && refused.Add(1) == 1:
					return modeltest.Answer{Status: 429, Header: map[string]string{"Retry-After": "40"}, Body: `{"error":{"message":"Too many requests in this minute."}}`}
				case n < 4:
					return nextEffect(n, "effects")
				}
				return modeltest.Text("All done.")
			})
			w := inWorld(t, s, fmt.Sprintf(worldWorks, m.model))
			cmd, ended := w.begin("run", "w.yaml", "-q")
			waits := false
			await(t, "the wait is shown, or the run has ended", func() bool {
				var list struct{ Items []api.Row }
				if w.read(&list, "ls"); len(list.Items) > 0 {
					var v api.Run
					w.read(&v, "show", "-1")
					a := stepOf(&v, "a")
					waits = a != nil && strings.Contains(a.Held, "429")
				}
				select {
				case <-ended:
					return true
				default:
					return waits
				}
			})
			w.claim(waits, "the run ends instead of waiting")
			if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			<-ended
			w.ends(0, "resume", "-1", "-q")
			w.effects("effects", numbers(4)...)
			w.is("requests", len(s.Requests()), 6)
			w.grows(s.Requests())
			w.over()
		})
	}
}

// In a chat the words that are said after an outage are read behind what was done, and nothing is done again.
func TestF102WordsAfterAnOutageOfAChat(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	refused := make(chan struct{}, 1000)
	s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		switch n := r.Results(); {
		case n == 3 && !up.Load():
			refused <- struct{}{}
			return modeltest.Answer{Status: 529, Body: `{"error":{"message":"Overloaded"}}`}
		case n < 4:
			return nextEffect(n, "effects")
		}
		return modeltest.Text("It is finished.")
	})
	w := inWorld(t, s, strings.Replace(fmt.Sprintf(worldWorks, "local/m"), "roles: {", `roles: {you: {ask: ""}, `, 1)+`edges:
  - {from: START, to: you}
  - {from: you, to: END, when: 'output.text == "/end"'}
  - {from: you, to: a, prompt: "${{ output.text }}"}
  - {from: a, to: you, limit: 100}
`)
	w.wf(0, "trust", "w.yaml", "--yes")
	p := inTmux(t, w.dir, "wf chat w.yaml; echo left with $?; cat", w.env...)
	p.shows("your turn")
	p.press("do the work", "Enter")
	<-refused
	p.shows("529")
	up.Store(true)
	p.press("please go on", "Enter")
	p.shows("It is finished.", "your turn")
	p.leave()
	p.shows("left with 0")
	w.effects("effects", numbers(4)...)
	for _, r := range s.Requests() {
		w.claim(!strings.Contains(string(r.Body), "please go on") || r.Results() >= 3, "the words stand without what was done in\n%s", r.Body)
	}
	w.over()
}
