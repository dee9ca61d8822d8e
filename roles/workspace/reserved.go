package workspace

import (
	"fmt"
	"strings"

	"wf/protocol/tree"
)

// Access is what a caller wants of a file.
type Access int

// Read leaves files as they are; Write makes, changes or replaces them.
const (
	Read Access = iota
	Write
)

// A ReservedError refuses a path that leads to what programs outside of the sandbox act on.
type ReservedError struct {
	Name string // ".git" or ".wf"
}

// Error tells a model what is refused, why, and what it can do.
func (e *ReservedError) Error() string {
	if e.Name == ".wf" {
		return "refused: .wf belongs to wf and to people, with its runs and access keys; a person can change what is in it"
	}
	return "refused: git runs what the files of .git name, outside of any sandbox; git commands such as git add and git commit " +
		"change it where there is a shell, and a person can change its settings and hooks"
}

// Reserved reports which directory a name stands for, ".git" or ".wf"; see tree.Reserved.
func Reserved(name string) string { return tree.Reserved(name) }

// allowed checks one part of a path. A backslash separates parts on some systems.
func (a Access) allowed(part string) error {
	for _, name := range strings.Split(part, `\`) {
		if found := Reserved(name); found == ".wf" || found != "" && a == Write {
			return &ReservedError{found}
		}
	}
	return nil
}

// errMoved says that a file is not the one that was looked at.
type errMoved string

func (e errMoved) Error() string {
	return fmt.Sprintf("%s was replaced while it was opened; try again", string(e))
}
