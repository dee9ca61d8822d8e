package lint

import (
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
)

// visitBounds warns where a role may be entered less often than its edges promise (WF504).
func (c *check) visitBounds() {
	for i := range c.w.Roles {
		r := &c.w.Roles[i]
		sum := 0
		for k := range c.w.Edges {
			if slices.Contains(c.w.Edges[k].To, r.Name) {
				sum += c.w.Edges[k].Limit
			}
		}
		if r.MaxVisits > 0 && sum > r.MaxVisits {
			c.role(r.Name, "WF504", "roles."+r.Name+".max_visits",
				fmt.Sprintf("max_visits of %s is %d, the limits of the edges to it add up to %d", r.Name, r.MaxVisits, sum),
				"raise max_visits, or lower the limits: the smaller bound is the one that counts")
		}
	}
}

// overlaps warns where two branches can be in one role at once (WF506). What comes after
// such a role overlaps with it and is not named again.
func (c *check) overlaps() {
	var twice []int
	for n := 1; n < len(c.g.nodes); n++ {
		if c.t.pairs[n][n] {
			twice = append(twice, n)
		}
	}
	for _, r := range roots(twice, c.g.back, c.g.forth) {
		name := c.g.nodes[r.node]
		c.role(name, "WF506", "roles."+name,
			fmt.Sprintf("two branches can be in role %q at once: its step ids may swap between runs", name), c.inFront(r.node))
	}
}

// workspaces warns where roles that change files can work at once in one directory (WF503).
func (c *check) workspaces() {
	var writers []int
	for i := range c.w.Roles {
		if r := &c.w.Roles[i]; r.Workspace == nil && writes(r) && c.t.marked[i+1] {
			writers = append(writers, i)
		}
	}
	done := map[int]bool{}
	for _, first := range writers {
		if done[first] {
			continue
		}
		var others []string
		for _, other := range writers {
			a, b := &c.w.Roles[first], &c.w.Roles[other]
			if other != first && !done[other] && a.Dir == b.Dir && c.t.pairs[first+1][other+1] {
				others = append(others, b.Name)
				done[other] = true
			}
		}
		name := c.w.Roles[first].Name
		if len(others) > 0 {
			c.role(name, "WF503", "roles."+name,
				fmt.Sprintf("%s can run at the same time as %s, and they write to one workspace", name, strings.Join(others, ", ")),
				"run them one after the other, or give each its own dir")
		}
	}
	for i := range c.w.Edges {
		e := &c.w.Edges[i]
		if e.ForEach == "" || e.MaxParallel == 1 {
			continue
		}
		for _, to := range e.To {
			if r, ok := c.w.RoleNamed(to); ok && r.Workspace == nil && writes(r) {
				c.edge(i, "WF503", edgePath(i, "for_each"),
					fmt.Sprintf("all items of %s run at once and write to one workspace", to), "set  max_parallel: 1  on the edge, or give each a copy by  workspace: own  and merge them")
			}
		}
	}
}

// lostCopies warns where what a role changes in copies of its own is taken over by none (WF510): no role merges it, and none
// that follows goes on with its copy.
func (c *check) lostCopies() {
	kept := map[string]bool{}
	for i := range c.w.Roles {
		if m := c.w.Roles[i].Merge; m != nil {
			kept[m.Of] = true
		}
	}
	for i := range c.w.Edges {
		for _, to := range c.w.Edges[i].To {
			if r, ok := c.w.RoleNamed(to); ok && r.Workspace != nil && len(c.w.Edges[i].From) == 1 {
				kept[c.w.Edges[i].From[0]] = true
			}
		}
	}
	for i := range c.w.Roles {
		if r := &c.w.Roles[i]; r.Workspace != nil && !kept[r.Name] && writes(r) {
			c.role(r.Name, "WF510", "roles."+r.Name+".workspace",
				fmt.Sprintf("what %s changes in its own workspace is taken over by no role", r.Name), fmt.Sprintf("add a role with  merge: {of: %s}  behind it", r.Name))
		}
	}
}

// writingTools are the tools that can change the workspace.
var writingTools = []string{"edit_file", "shell", "write_file"}

// writes reports whether the role is known to change files. Of a command that is what its
// text shows: checks side by side are common and harmless.
func writes(r *protocol.Role) bool {
	switch r.Action {
	case protocol.ActPrompt:
		return slices.ContainsFunc(r.Tools, func(t string) bool { return slices.Contains(writingTools, t) })
	case protocol.ActRun:
		return commandWrites(r.Run)
	}
	return false
}

// writingWords are commands that serve to change files.
var writingWords = []string{
	"cp", "git add", "git am", "git apply", "git checkout", "git commit", "git merge", "git pull", "git rebase",
	"git reset", "git restore", "git stash", "git switch", "go generate", "go get", "go mod", "gofmt -w", "install",
	"ln", "make", "mkdir", "mv", "npm ci", "patch", "rm", "rmdir", "sed -i", "tee", "touch", "truncate", "unzip",
}

func commandWrites(command string) bool {
	words := strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()", r) })
	line := " " + strings.Join(words, " ") + " "
	if slices.ContainsFunc(writingWords, func(w string) bool { return strings.Contains(line, " "+w+" ") }) {
		return true
	}
	for rest := command; ; {
		_, after, ok := strings.Cut(rest, ">")
		if !ok {
			return false
		}
		after = strings.TrimLeft(strings.TrimPrefix(after, ">"), " \t")
		if !strings.HasPrefix(after, "&") && !strings.HasPrefix(after, "/dev/") {
			return true
		}
		rest = after
	}
}
