package query

import (
	"fmt"
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
)

// C-3: of what a commit adds, the runs tell which visits wrote it, the newest run first; what none of them tells a user wrote.
func TestC03WhatIsCommittedHasAuthors(t *testing.T) {
	long := strings.Repeat("0123456789abcde\n", BlameMax/16)
	for i, x := range []struct {
		was, now string     // "" is none
		runs     [][]string // versions of each run, the newest run first
		want     string
		told     bool
	}{
		{"a\n", "a\nb\n", [][]string{{"a\n", "a\nb\n"}}, "R0:s#1", true},
		{"a\n", "a\nb\n", [][]string{{"a\nb\n", "a\nb\n"}}, "", false},                                      // it was there before the run
		{"a\n", "a\nb\nc\n", [][]string{{"a\nb\n", "a\nb\nc\n"}, {"a\n", "a\nb\n"}}, "R0:s#1 R1:s#1", true}, // of two runs
		{"a\n", "a\nb\nc\n", [][]string{{"a\n", "a\nb\n"}}, "R0:s#1", false},                                // c by a user
		{"", "a\n", [][]string{{"", "a\n"}}, "R0:s#1", true},
		{"a\n", "", [][]string{{"a\n", ""}}, "R0:s#1", true},                        // removed
		{"a\n", "", [][]string{{"a\n", "b\n"}, {"a\n", ""}}, "R1:s#1", true},        // the newest one has another state of it
		{"a\n", "", [][]string{{"", ""}}, "", false},                                // it was gone before the run
		{"a\nb\n", "a\n", [][]string{{"a\nb\n", "a\n"}}, "R0:s#1", true},            // a line removed
		{"a\nb\n", "a\n", [][]string{{"a\nb\n", "a\nb\nc\n"}}, "", false},           // by a user
		{"\x00a", "\x00b", [][]string{{"\x00a", "\x00c", "\x00b"}}, "R0:s#2", true}, // binary: whole
		{"\x00a", "\x00b", [][]string{{"\x00a", "\x00c"}}, "", false},
		{"a\n", "a\nkey\n", [][]string{{"a\n", "!secret"}}, "", false},
		{"a\n", "a\nb\n", [][]string{{}, {"a\n", "a\nb\n"}}, "R1:s#1", true}, // a run that recorded nothing
		{long[:len(long)-16], long, [][]string{{long[:len(long)-16], long}}, "R0:s#1", true},
	} {
		c := &Committed{Path: "top/f"}
		if x.was != "" {
			c.Was = []byte(x.was)
		}
		if x.now != "" {
			c.Now = []byte(x.now)
		}
		for n, texts := range x.runs {
			l, read := versions(t, texts...)
			l.Run = protocol.RunID(fmt.Sprint("R", n))
			if err := Authors(read, l, "f", c); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
		var got []string
		for _, a := range c.By {
			got = append(got, strings.TrimPrefix(a.Trailer(), api.StepTrailer+": "))
		}
		if strings.Join(got, " ") != x.want || c.Told() != x.told {
			t.Errorf("%d: %q, told %t; want %q, %t", i, got, c.Told(), x.want, x.told)
		}
	}
}

func TestC03TrailersNameStepsOfAllRuns(t *testing.T) {
	a := api.Author{Run: "R", By: []string{"a#1[2]", "Q:b#1", "outside", "7 others"}}
	if got, want := a.Trailer(), "Wf-Step: R:a#1[2] or Q:b#1 or outside or 7 others"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
