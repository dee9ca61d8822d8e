package wire

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A name goes back as servers take it, and as it was where they do.
func TestANameIsOneThatServersTake(t *testing.T) {
	for called, want := range map[string]string{"read_file": "read_file", "": "unnamed", "functions.Read": "functions_Read", "läs fil": "l_s_fil", strings.Repeat("x", 70): strings.Repeat("x", 64)} {
		if got := Name(called); got != want {
			t.Errorf("%q goes back as %q, want %q", called, got, want)
		}
	}
	taken := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	rapid.Check(t, func(t *rapid.T) {
		called := rapid.String().Draw(t, "called")
		if got := Name(called); !taken.MatchString(got) || taken.MatchString(called) && got != called {
			t.Fatalf("%q goes back as %q", called, got)
		}
	})
}
