package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const askOnce = `
wf: 1
name: ask
roles: {gate: {ask: Which database?}}
`

func TestCtrlCAtAQuestionSuspendsTheRunAndLeavesTheTerminalAsItWas(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "ask.yaml", askOnce)
	p := atTerminal(t, dir, "wf", "run", "ask.yaml")
	p.shows("gate#1 asks: Which database?\r\n> ")
	p.press("\x03")
	if got := p.ends(); got != 130 {
		t.Errorf("exit %d, want 130:\n%s", got, p.all())
	}
	p.shows("waits, nothing is lost\r\nfix:   wf answer")
	if all := p.all(); strings.Contains(all, "\x1b") {
		t.Errorf("the terminal was asked something, or coloured: %q", all)
	}
	if d := cmp.Diff(p.asked, p.settings()); d != "" {
		t.Errorf("the terminal has other settings than before:\n%s", d)
	}
}

func TestAWrongCommandLineDoesNotAskTheTerminal(t *testing.T) {
	dir := t.TempDir()
	p := atTerminal(t, dir, "wf", "run", "--no-such-flag")
	if got := p.ends(); got != 2 {
		t.Errorf("exit %d, want 2:\n%s", got, p.all())
	}
	p.shows("--no-such-flag")
	if all := p.all(); strings.Contains(all, "\x1b") {
		t.Errorf("the terminal was asked something: %q", all)
	}
}
