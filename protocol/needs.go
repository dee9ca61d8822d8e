package protocol

import (
	"fmt"
	"slices"
	"strings"

	"wf/protocol/lazy"
)

// WhatWorkersHave has the form of a name of something that roles need and workers have, such as gpu or docker.
var WhatWorkersHave = lazy.Regexp(`^[a-z0-9][a-z0-9._-]{0,39}$`)

// NeedsMost is how many such names there are at most of one workflow with its sub-workflows, and of one worker.
const NeedsMost = 16

// ParseHas reads what a worker has, names with commas between them, and gives them sorted, each once.
func ParseHas(text string) (out []string, err error) {
	for name := range strings.SplitSeq(text, ",") {
		switch name = strings.TrimSpace(name); {
		case name == "":
			continue
		case !WhatWorkersHave().MatchString(name):
			return nil, fmt.Errorf("%q is no name of what a worker has: small letters, digits, . _ and -, such as gpu", name)
		}
		out = append(out, name)
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) > NeedsMost {
		return nil, fmt.Errorf("a worker has %d things, at most %d can be named", len(out), NeedsMost)
	}
	return out, nil
}

// Lacking are those of needs that are not among has.
func Lacking(needs, has []string) (out []string) {
	for _, n := range needs {
		if !slices.Contains(has, n) {
			out = append(out, n)
		}
	}
	return out
}
