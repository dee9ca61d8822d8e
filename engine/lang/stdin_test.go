package lang

import (
	"strings"
	"testing"
)

func TestTheStdinOfACommandIsATextOrAFile(t *testing.T) {
	for stdin, wrong := range map[string]string{
		`""`: "", `"${{ inputs.n }}\n"`: "", "{file: a/b}": "", `{file: "${{ inputs.n }}"}`: "",
		"{file: /etc/hosts}":        "wants a path in the workspace",
		"{file: ~/x}":               "wants a path in the workspace",
		`{file: ""}`:                "wants a path in the workspace",
		"{}":                        "file",
		"[a]":                       "stdin wants",
		`"${{ secrets.TOKEN }}"`:    "secret",
		`"${{ steps.other.text }}"`: "other",
	} {
		p, ds := Load([]byte("wf: 1\nname: t\nsecrets: [TOKEN]\ninputs: {n: {type: string, required: true}}\nroles: {a: {run: cat, timeout: 1m, stdin: "+stdin+"}}"), Options{})
		if wrong == "" {
			if p == nil {
				t.Errorf("%s: %v", stdin, ds)
			}
			continue
		}
		if p != nil || !strings.Contains(ds[0].Message, wrong) {
			t.Errorf("%s: have %v, want an error with %q", stdin, ds, wrong)
		}
	}
}
