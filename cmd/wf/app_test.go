package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"wf/protocol"
)

// Every sentinel of protocol has one exit status.
func TestEveryErrorHasItsExitStatus(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../../protocol/error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]int{}
	for _, e := range exits {
		for _, code := range e.Codes {
			listed[code]++
		}
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok || len(lit.Elts) != 3 {
			return true
		}
		named, ok := lit.Elts[0].(*ast.BasicLit)
		if !ok { // made of another error, whose code it has
			return true
		}
		code, err := strconv.Unquote(named.Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if listed[code] != 1 {
			t.Errorf("code %s stands %d times in the table of exit statuses", code, listed[code])
		}
		return true
	})
	if found < 15 {
		t.Errorf("found only %d sentinels in protocol/error.go", found)
	}
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		err  error
		want int
	}{
		{"no error", nil, 0},
		{"an error without a code", errors.New("x"), 1},
		{"a wrapped sentinel", fmt.Errorf("run x: %w", protocol.ErrBusy), 5},
		{"a sentinel with another message", protocol.ErrWaiting.With("", "waits"), 8},
		{"an error that the answer has told", silent{protocol.ErrVerify}, 7},
		{"Ctrl-C", signalled{2}, 130},
		{"SIGHUP", interrupted{errRunSuspended.With("", "x"), signalled{1}}, 129},
		{"SIGTERM", interrupted{errRunSuspended.With("", "x"), signalled{15}}, 143},
		{"a cancelled context", fmt.Errorf("x: %w", context.Canceled), 130},
	} {
		if got := statusOf(test.err); got != test.want {
			t.Errorf("%s: exit %d, want %d", test.name, got, test.want)
		}
	}
}

func TestEveryCommandShowsAnExample(t *testing.T) {
	t.Parallel()
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() && c.Example == "" && c.Name() != "help" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		if c.Short == "" {
			t.Errorf("%s says nothing about itself", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(newApp(os.Stdin, os.Stdout, os.Stderr)))
}

func TestReferencesToTheLatestRunAreNoFlags(t *testing.T) {
	t.Parallel()
	root := newRoot(newApp(os.Stdin, os.Stdout, os.Stderr))
	for _, test := range []struct{ in, want string }{
		{"show -1", "show @-1"},
		{"show -12:coder#2 -o json", "show @-12:coder#2 -o json"},
		{"replay -1 --from -1", "replay @-1 --from -1"},
		{"ls -n -1", "ls -n -1"},
		{"log -f -1", "log -f @-1"},
		{"answer -1 -- -1", "answer @-1 -- -1"},
		{"show -1x", "show -1x"},
	} {
		got := strings.Join(latestRefs(root, strings.Fields(test.in)), " ")
		if got != test.want {
			t.Errorf("%s: have %q, want %q", test.in, got, test.want)
		}
	}
	if written("@-1:a#1") != "-1:a#1" || written("@home") != "@home" {
		t.Error("a rewritten argument does not come back as it was")
	}
}
