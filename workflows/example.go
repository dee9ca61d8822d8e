package workflows

import (
	"fmt"
	"path"
	"strings"
)

// An Example is a workflow to begin with, and the files that it needs.
type Example struct {
	Name  string   // of the workflow, as its file is called
	About string   // what it shows, in one line
	files []string // in Files; the first is the workflow
}

// Examples are all but that of the demo, which wants a module to repair.
var Examples = []Example{
	{"gate", "a person decides, however late", []string{"gate.yaml"}},
	{"offers", "a command offers choices, a person picks one, and the pick starts the next visit", []string{"offers.yaml"}},
	{"quality", "a loop of format, vet and test over a Go module, without a model", []string{"quality.yaml"}},
	{"fan-out", "one visit per item, side by side, and a join", []string{"fan-out.yaml"}},
	{"release", "a sub-workflow, and a person who decides", []string{"release.yaml", "checks.yaml"}},
	{"errands", "an agent that works on one task at a time, its model a script", []string{"tasks/errands.yaml", "tasks/replies.yaml"}},
	{"chat", "what wf chat runs: a person and an agent in turn", []string{"chat.yaml"}},
	cooked("review-loop", "a text is written and reviewed until the review approves it", "review-loop.replies.yaml"),
	cooked("summarise-files", "an agent for each file of a directory, and one page from all", "summarise-files.replies.yaml"),
	cooked("deploy-approval", "build, ask a person, deploy, roll back what failed"),
	cooked("timed-approval", "a question with a time, reminders, further people and an end"),
	cooked("secret-webhook", "a command that gets a secret"),
	cooked("retry-fallback", "retry with backoff, a second model, a result whatever fails", "retry-fallback.replies.yaml"),
	cooked("nightly-check", "a schedule: checks every night"),
	cooked("push-check", "a webhook: each push to GitHub is checked"),
	cooked("build-matrix", "a sub-workflow for each target, side by side", "build-one.yaml"),
	cooked("intake-form", "a form that a person fills in"),
	cooked("research", "an agent that works on one question at a time, and a report", "research.replies.yaml"),
	cooked("release-notes", "an output contract: notes from the commits since a tag", "release-notes.replies.yaml"),
}

// cooked is an example of the cookbook, with the files beside it that it needs.
func cooked(name, about string, beside ...string) Example {
	e := Example{Name: name, About: about}
	for _, file := range append([]string{name + ".yaml"}, beside...) {
		e.files = append(e.files, "cookbook/"+file)
	}
	return e
}

// File is a file of an example: where it goes, relative to a project, and what is in it.
type File struct {
	Name    string
	Content []byte
}

// Load reads the files of an example as they go into one directory; schema is the path of the
// JSON Schema from there.
func (e Example) Load(schema string) ([]File, error) {
	paths := strings.NewReplacer("../schema.json", schema, "./schema.json", schema, "workflows/tasks/", "", "workflows/cookbook/", "", "workflows/cookbook", ".", "workflows/", "")
	var out []File
	for _, name := range e.files {
		content, err := Files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("example %s: %w", e.Name, err)
		}
		out = append(out, File{path.Base(name), []byte(paths.Replace(string(content)))})
	}
	return out, nil
}
