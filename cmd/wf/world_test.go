package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wf/agentkit/modeltest"
)

// notYet are the scenarios that do not hold yet, by the name of their test. One that holds fails until its line is
// gone.
var notYet = []string{
	"TestF105ALongEdgePromptArrivesWhole/in_the_edge",
	"TestF105ALongEdgePromptArrivesWhole/in_the_role",
}

// scenario is wf with a workflow of its own and a server that refuses what providers refuse. What does not hold of it
// is collected, so that a scenario which is known not to hold can be told from one that does.
type scenario struct {
	place
	s     *modeltest.Server
	wrong []string
}

// inWorld is a scenario with a workflow, w.yaml, whose providers local and ant are the server by either wire.
func inWorld(t *testing.T, s *modeltest.Server, workflow string) *scenario {
	t.Helper()
	w := &scenario{place: newPlace(t), s: s}
	config := filepath.Join(strings.TrimPrefix(w.env[0], "HOME="), ".config/wf")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, config, "config.yaml", fmt.Sprintf("providers:\n  local: {wire: openai, base_url: %q, idle_timeout: 2s}\n  ant: {wire: anthropic, base_url: %q, idle_timeout: 2s}\n", s.URL, s.Root))
	write(t, w.dir, "w.yaml", workflow)
	return w
}

// worldModels are the models of a world, one by each wire.
var worldModels = []struct{ name, model string }{{"OpenAI", "local/m"}, {"Anthropic", "ant/claude-opus-5-5"}}

// try runs a command and gives its exit status and what it wrote.
func (w *scenario) try(args ...string) (exit int, out, said string) {
	w.t.Helper()
	cmd := exec.Command("wf", args...)
	cmd.Dir, cmd.Env = w.dir, append(os.Environ(), w.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// ends claims that a command ends with a status.
func (w *scenario) ends(exit int, args ...string) (out string) {
	w.t.Helper()
	got, out, said := w.try(args...)
	w.claim(got == exit, "wf %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, exit, out, said)
	return out
}

func (w *scenario) claim(holds bool, format string, args ...any) {
	if !holds {
		w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
	}
}

// is claims a value, such as a count.
func (w *scenario) is(what string, got, want any) {
	w.claim(got == want, "%s: %v, want %v", what, got, want)
}

// effects claims what commands wrote, a line each, to a file.
func (w *scenario) effects(name string, want ...string) {
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	w.claim(err == nil && slices.Equal(strings.Fields(string(b)), want), "%s: %v, %d lines %q, want %d %q", name, err, bytes.Count(b, []byte("\n")), b, len(want), want)
}

// over claims that no request was refused for what it is, and that the journal proves itself, and judges the scenario.
func (w *scenario) over() {
	w.t.Helper()
	w.is("refused requests", strings.Join(w.s.Refused(), "\n"), "")
	w.ends(0, "verify", "-1")
	w.ends(0, "replay", "-1", "--check")
	switch expected := slices.Contains(notYet, w.t.Name()); {
	case expected && len(w.wrong) == 0:
		w.t.Error("this holds now: take its line out of notYet")
	case expected:
		w.t.Logf("does not hold yet:\n%s", strings.Join(w.wrong, "\n"))
	case len(w.wrong) > 0:
		w.t.Error(strings.Join(w.wrong, "\n"))
	}
}

// grows claims that each request has all that the one before it had, byte by byte; a request that is sent again is the
// same.
func (w *scenario) grows(requests []modeltest.Request) {
	for i := 1; i < len(requests); i++ {
		before, now := requests[i-1].Messages(), requests[i].Messages()
		w.claim(bytes.HasPrefix(now, before), "request %d does not begin with the %d bytes of the one before:\n%s", i+1, len(before), differ(before, now))
	}
}

// differ is where two texts part.
func differ(a, b []byte) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	cut := func(x []byte) []byte { return x[max(0, i-40):min(len(x), i+40)] }
	return fmt.Sprintf("at byte %d: %q and %q", i, cut(a), cut(b))
}

// overItems are the edges of a fan-out of the role a over items, each of which a request tells with itemOf.
func overItems(t *testing.T, items []string) string {
	t.Helper()
	list, err := json.Marshal(items)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`edges:
  - {from: START, to: a, for_each: '%s', prompt: "ITEM=${{ item }};"}
  - {from: a, to: END}
`, list)
}

func itemOf(r modeltest.Request) string {
	_, item, _ := strings.Cut(string(r.Body), "ITEM=")
	item, _, _ = strings.Cut(item, ";")
	return item
}

// numbers are the texts of 0 to n-1.
func numbers(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(i)
	}
	return all
}
