package help

import (
	"fmt"
	"strings"
)

// An ExitStatus is a status of the program and what it means.
type ExitStatus struct {
	Status  int
	Meaning string
}

// Exits is the topic about the exit statuses.
func Exits(all []ExitStatus) string {
	var b strings.Builder
	b.WriteString("Exit codes of wf:\n\n")
	for _, e := range all {
		fmt.Fprintf(&b, "  %-4d%s\n", e.Status, e.Meaning)
	}
	b.WriteString("\n" + `With -o json an error is an object too: {"schema":"wf.error/v1","code","message","fix","exit"}.` + "\n")
	return b.String()
}
