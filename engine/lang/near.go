package lang

import (
	"fmt"

	"wf/engine/lint"
)

// nearest is the candidate that name was probably meant to be, or "".
func nearest(name string, candidates []string) string { return lint.Nearest(name, candidates, 3) }

// suggest names the candidate that was probably meant in place of the hint, if there is one; in the
// file it then replaces what d is about.
func (d *Diagnostic) suggest(name string, candidates []string) {
	if near := nearest(name, candidates); near != "" {
		d.Hint, d.Fix = fmt.Sprintf("did you mean %q?", near), &Fix{near}
	}
}
