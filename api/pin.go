package api

import (
	"strings"

	"wf/protocol"
)

// Pinned names a workflow as it is defined, for Start: NAME@CID starts that definition and no other one of the name.
func Pinned(name string, definition CID) string { return name + "@" + definition }

// Unpinned is the name, or file, in the name of a workflow, and the definition that it must have; "" is any.
func Unpinned(workflow string) (name string, definition CID) {
	if i := strings.LastIndexByte(workflow, '@'); i > 0 {
		if _, err := protocol.ParseLink(workflow[i+1:]); err == nil {
			return workflow[:i], workflow[i+1:]
		}
	}
	return workflow, ""
}
