package protocol

import (
	"fmt"
	"slices"
	"strings"
)

// Appeared is what a command or a tool call left in the workspace on which programs of the user act, outside
// of any sandbox. wf does not act on it.
type Appeared struct {
	Found []Found `cbor:"found" json:"found"`                   // at most FoundMax, sorted by path
	More  int     `cbor:"more,omitempty" json:"more,omitempty"` // further ones of any list
	// Partial says that the workspace holds more than what is looked at, or directories that cannot be
	// read: there may be more.
	Partial bool `cbor:"partial,omitempty" json:"partial,omitempty"`
	// Beside says that other commands ran in the workspace at the same time, which may have made it.
	Beside bool `cbor:"beside,omitempty" json:"beside,omitempty"`
	// Unprotected is how many repositories of the workspace commands can give other settings and hooks,
	// since there are too many of them.
	Unprotected int `cbor:"unprotected,omitempty" json:"unprotected,omitempty"`
	// Left is an alarm: at most FoundMax paths from the workspace on which git acts, and that could not be removed or put back.
	Left []string `cbor:"left,omitempty" json:"left,omitempty"`
	// Undone are at most FoundMax paths from the workspace of what was moved aside, as NAME.removed, and of links that were put back.
	Undone []string `cbor:"undone,omitempty" json:"undone,omitempty"`
}

// FoundMax is how many Found an Appeared lists.
const FoundMax = 20

// Found is a part of a workspace on which other programs act.
type Found struct {
	Kind    FoundKind `cbor:"kind" json:"kind"`
	Path    string    `cbor:"path" json:"path"` // from the workspace, of at most 300 bytes
	Changed bool      `cbor:"changed,omitempty" json:"changed,omitempty"`
	// Link is an alarm: the path of a link of the repository by which git acts on what was changed.
	Link string `cbor:"link,omitempty" json:"link,omitempty"`
}

// FoundKind is what is at a path.
type FoundKind string

// The kinds of what is found, with the program that acts on it.
const (
	FoundRepository FoundKind = "repository" // a directory .git: git
	FoundGitLink    FoundKind = "gitlink"    // a file or link .git, which names a repository: git
	FoundBare       FoundKind = "bare"       // a repository without a worktree: git
	FoundHooks      FoundKind = "hooks"      // what core.hooksPath or include.path of a repository names: git
	FoundRebase     FoundKind = "rebase"     // an unfinished rebase that runs commands: git
	FoundStore      FoundKind = "store"      // a directory .wf: wf
	FoundEnvrc      FoundKind = "envrc"      // a file .envrc: direnv
	FoundTasks      FoundKind = "tasks"      // commands of an editor
	FoundWorkflow   FoundKind = "workflow"   // a workflow where wf serve looks for them
)

// foundWords are the words for one of a kind, and the program.
var foundWords = map[FoundKind][2]string{
	FoundRepository: {"a git repository in", "git"},
	FoundGitLink:    {"a link to a git repository in", "git"},
	FoundBare:       {"a bare git repository in", "git"},
	FoundHooks:      {"what git runs or reads as settings,", "git"},
	FoundRebase:     {"an unfinished rebase that runs commands in", "git"},
	FoundStore:      {"a .wf in", ""}, // wf acts on it itself
	FoundEnvrc:      {"an .envrc in", "direnv"},
	FoundTasks:      {"tasks of an editor,", "editor"},
	FoundWorkflow:   {"a workflow,", "wf serve (once you trust it)"},
}

// List has one of the lists of paths hold as many as it may; the others are counted.
func (a *Appeared) List(list *[]string, paths []string) {
	*list = paths[:min(len(paths), FoundMax)]
	a.More += len(paths) - len(*list)
}

// Clean is the same with paths in which clean has hidden what they must not hold.
func (a *Appeared) Clean(clean func(string) string) *Appeared {
	if a == nil {
		return nil
	}
	out := *a
	out.Found = slices.Clone(a.Found)
	for i := range out.Found {
		out.Found[i].Path, out.Found[i].Link = clean(out.Found[i].Path), clean(out.Found[i].Link)
	}
	for _, paths := range []*[]string{&out.Left, &out.Undone} {
		*paths = slices.Clone(*paths)
		for i := range *paths {
			(*paths)[i] = clean((*paths)[i])
		}
	}
	return &out
}

// Alarm reports whether a program of the user would act, unasked, on what an agent left, so that a person should look first.
func (a *Appeared) Alarm() bool {
	return a != nil && (len(a.Left) > 0 || slices.ContainsFunc(a.Found, func(f Found) bool { return f.Link != "" }))
}

// String is one line for people, without the maker: "made a git repository in sub/: wf does not act on it; your
// git may". nil is "".
func (a *Appeared) String() string {
	if a == nil {
		return ""
	}
	var made, changed, did, programs []string
	store := false
	for _, f := range a.Found {
		words, known := foundWords[f.Kind]
		if !known {
			words = [2]string{string(f.Kind), "programs"}
		}
		what, program := words[0]+" "+f.Path, words[1]
		if f.Link != "" {
			what += " (by the link " + f.Link + ")"
		}
		if f.Changed {
			changed = append(changed, what)
		} else {
			made = append(made, what)
		}
		store = store || f.Kind == FoundStore
		if program != "" && !slices.Contains(programs, program) {
			programs = append(programs, program)
		}
	}
	if len(made) > 0 {
		did = append(did, "made "+strings.Join(made, ", "))
	}
	if len(changed) > 0 {
		did = append(did, "changed "+strings.Join(changed, ", "))
	}
	var parts []string
	if len(a.Left) > 0 {
		parts = append(parts, "left "+strings.Join(a.Left, ", ")+", which git acts on and wf could not remove: do so first")
	}
	if len(a.Undone) > 0 {
		parts = append(parts, "moved aside or put back "+strings.Join(a.Undone, ", ")+": git acts on it")
	}
	if len(did) > 0 {
		text := strings.Join(did, ", ")
		if a.Beside {
			text = "this step, or one beside it, " + text
		}
		var ends []string
		if len(programs) > 0 {
			ends = append(ends, "wf does not act on it; your "+strings.Join(programs, ", ")+" may")
		}
		if store {
			ends = append(ends, "wf trusts nothing in that .wf")
		}
		parts = append(parts, text+": "+strings.Join(ends, "; "))
	}
	if a.More > 0 {
		parts = append(parts, fmt.Sprintf("%d more", a.More))
	}
	if a.Partial {
		parts = append(parts, "the workspace was not looked at as a whole: more may have appeared")
	}
	if a.Unprotected > 0 {
		parts = append(parts, fmt.Sprintf("commands can change the git settings of %d repositories: there are more than are protected", a.Unprotected))
	}
	text := strings.Join(parts, "; ")
	if a.Alarm() {
		text = "ALARM: " + text
	}
	return text
}
