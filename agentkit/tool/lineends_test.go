package tool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wf/agentkit/tool"
)

// A file keeps its line ends, whichever a model writes.
func TestF17EditsKeepTheLineEndsOfTheFile(t *testing.T) {
	for name, c := range map[string]struct{ before, old, new, after string }{
		"lines of a CRLF file":          {"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\r\n"},
		"one line that becomes two":     {"a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"},
		"the last line, without an end": {"a\r\nb", "b", "x\ny", "a\r\nx\r\ny"},
		"CRLF that was written":         {"a\r\nb\r\nc", "a\r\nb", "x\r\ny", "x\r\ny\r\nc"},
		"CRLF written of an LF file":    {"a\nb\nc\n", "a\r\nb\r\n", "x\n", "x\nc\n"},
		"an LF file":                    {"a\nb\n", "a\nb", "x\ny", "x\ny\n"},
		"mixed, in the CRLF part":       {"a\nb\n1\r\n2\r\n3\r\n", "1\n2\n", "x\ny\n", "a\nb\nx\r\ny\r\n3\r\n"},
		"mixed, in the LF part":         {"a\nb\n1\r\n2\r\n", "a\nb\n", "x\ny\n", "x\ny\n1\r\n2\r\n"},
		"mixed, over both":              {"a\nb\r\nc\r\nd", "a\nb\nc", "x\ny", "x\r\ny\r\nd"},
		"a BOM stays":                   {"\ufeffa\r\nb\r\n", "a\nb\n", "x\n", "\ufeffx\r\n"},
		"a BOM that the file has not":   {"a\r\nb\r\n", "\ufeffa\nb", "x", "x\r\n"},
		"a CR alone is text":            {"a\rb\r\nc\r\n", "a\rb\nc", "x\n", "x\r\n\r\n"},
		"the newline at the end goes":   {"a\r\nb\r\nc", "a\n", "", "b\r\nc"},
		"a line break becomes a space":  {"a\r\nb\r\n", "a\nb", "a b", "a b\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			at := tool.Workspace{Dir: t.TempDir()}
			file := filepath.Join(at.Dir, "f")
			if err := os.WriteFile(file, []byte(c.before), 0o600); err != nil {
				t.Fatal(err)
			}
			if r := call(t, at, "edit_file", args{"path": "f", "old": c.old, "new": c.new}); r.IsError {
				t.Fatal(r.Content)
			}
			got, err := os.ReadFile(file)
			if err != nil || string(got) != c.after {
				t.Errorf("have %q, want %q (%v)", got, c.after, err)
			}
		})
	}
}

// In a file of either kind an edit does what it does to the same text with LF.
func TestF17AnEditDoesTheSameWhateverTheLineEnds(t *testing.T) {
	at := tool.Workspace{Dir: t.TempDir()}
	words := rapid.SampledFrom([]string{"a", "b", "é", "\n", "\n\n", "ab", " "})
	rapid.Check(t, func(rt *rapid.T) {
		part := func(name string) string { return strings.Join(rapid.SliceOfN(words, 0, 6).Draw(rt, name), "") }
		before, old, after, put := part("before"), part("old"), part("after"), part("new")
		edited := func(end string) (string, bool) {
			file := filepath.Join(at.Dir, "f")
			text := strings.ReplaceAll("\n"+before+old+after+"\n", "\n", end)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				rt.Fatal(err)
			}
			r := call(t, at, "edit_file", args{"path": "f", "old": old, "new": put})
			got, err := os.ReadFile(file)
			if err != nil {
				rt.Fatal(err)
			}
			return strings.ReplaceAll(string(got), end, "\n"), r.IsError
		}
		lf, failedLF := edited("\n")
		crlf, failedCRLF := edited("\r\n")
		if lf != crlf || failedLF != failedCRLF || strings.Contains(crlf, "\r") {
			rt.Fatalf("LF %q (%v), CRLF %q (%v)", lf, failedLF, crlf, failedCRLF)
		}
	})
}

func TestF17WhatIsNotThereIsLocated(t *testing.T) {
	at := tool.Workspace{Dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(at.Dir, "f"), []byte("one\r\n\ttwo\r\nthree\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := call(t, at, "edit_file", args{"path": "f", "old": "    two\nthree", "new": "x"})
	if !r.IsError || !strings.Contains(r.Content, "its first line is like line 2") || !strings.Contains(r.Content, "start_line 2") {
		t.Errorf("got %q", r.Content)
	}
	r = call(t, at, "edit_file", args{"path": "f", "old": "four", "new": "x"})
	if !r.IsError || !strings.Contains(r.Content, "read the file again") {
		t.Errorf("got %q", r.Content)
	}
}

func TestF17LinesAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		start   int
		want    string
		isError bool
	}{
		"past the end, ended by a newline": {strings.Repeat("x\n", 49), 50, "error: f has 49 lines", true},
		"further past it":                  {strings.Repeat("x\n", 49), 51, "error: f has 49 lines", true},
		"the last line":                    {strings.Repeat("x\n", 49) + "y\n", 50, "y\n", false},
		"the last line without a newline":  {strings.Repeat("x\n", 49) + "y", 50, "y", false},
		"past a line without a newline":    {strings.Repeat("x\n", 49) + "y", 51, "error: f has 50 lines", true},
		"an empty file":                    {"", 1, "", false},
		"past an empty file":               {"", 2, "error: f has 1 lines", true},
	} {
		t.Run(name, func(t *testing.T) {
			at := tool.Workspace{Dir: t.TempDir()}
			if err := os.WriteFile(filepath.Join(at.Dir, "f"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if r := call(t, at, "read_file", args{"path": "f", "start_line": c.start}); r.Content != c.want || r.IsError != c.isError {
				t.Errorf("have %q (%v), want %q", r.Content, r.IsError, c.want)
			}
		})
	}
}
