package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"wf/agentkit/modeltest"
)

// F-09: several screens of one chat. What is said after Esc is heard by the agent that goes on,
// what is said on another screen while it works is answered, live text is on both screens, and
// the death of the process that drives the run is seen on the other, which goes on with it.
func TestTheScreensOfOneChat(t *testing.T) {
	t.Parallel()
	half := modeltest.Answer{Say: []modeltest.Piece{{Text: "Half an answer\n"}}, Stall: true}
	working := make(chan struct{})
	slow := modeltest.Text("Counted to ten.")
	slow.Before = func() { <-working }
	answers := map[string][]modeltest.Answer{ // by what was said last; the last one is given again
		"count to a million": {half, slow},
		"now the moon":       {modeltest.Text("The moon is round.")},
		"and the sun":        {half, modeltest.Text("The sun is hot.")},
	}
	s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		body, last, at := string(r.Body), "", -1
		for said := range answers {
			if i := strings.LastIndex(body, said); i > at {
				last, at = said, i
			}
		}
		if strings.Contains(body, "only to ten") && last == "count to a million" {
			return slow
		}
		a := answers[last]
		if len(a) > 1 {
			if strings.Contains(body, "go on, please") || last != "and the sun" && strings.Contains(body, "only to ten") {
				return a[1]
			}
		}
		return a[0]
	})
	dir := t.TempDir()
	env := []string{"OPENAI_BASE_URL=" + s.URL, "OPENAI_API_KEY=k"}
	one := inTmux(t, dir, "sh -c 'echo $$ >pid; exec wf chat --model openai/test'; cat", env...)
	one.shows("your turn")
	one.press("count to a million", "Enter")
	one.shows("Half an answer", "Esc stops")
	one.press("Escape")
	one.shows("suspended (interrupt)")
	one.press("only to ten", "Enter")
	one.shows("you only to ten", "Esc stops")

	two := inTmux(t, dir, "wf chat --continue --model openai/test; echo left with $?; cat", env...)
	two.shows("you only to ten")
	two.press("now the moon", "Enter")
	one.shows("you now the moon")
	close(working)
	for _, p := range []*pane{one, two} {
		p.shows("Counted to ten.", "The moon is round.", "your turn")
	}

	one.press("and the sun", "Enter")
	two.shows("you and the sun", "Half an answer", "in another process")
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	two.shows("no process drives it · /resume goes on")
	two.press("go on, please", "Enter")
	two.shows("The sun is hot.", "your turn")
	two.leave()
	two.shows("left with 0")

	place := place{t, dir, append(two.env, env...)}
	place.wf(0, "verify", "--all")
	place.wf(0, "replay", "-1", "--check")
}
