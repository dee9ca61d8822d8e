// Package workflows holds the examples: each is a workflow that runs, and its comments teach
// one thing. The binary carries them.
//
//	demo/fix-bug.yaml  an agent is entered again until go test is green; what wf demo runs
//	quality.yaml       a loop of commands, bounded by a limit; any Go module
//	fan-out.yaml       one visit per item, side by side, and a join
//	gate.yaml          a person decides
//	release.yaml       a sub-workflow: checks.yaml
//	tasks/errands.yaml an agent that works on one task at a time
//	cookbook/          ten for real uses; docs/cookbook.md says when to use which
//
// Where there is an agent, its model is a script: they need no key. Agents of the cookbook name no
// model, so that they use the user's own; beside each lies a script, NAME.replies.yaml, for a trial without
// a key. wf init writes those of Examples.
package workflows

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Files are the examples.
//
//go:embed *.yaml demo/*.yaml demo/_project tasks/*.yaml cookbook/*.yaml
var Files embed.FS

// DemoWorkflow is where WriteDemo puts the workflow, relative to the project, with slashes.
const DemoWorkflow = "workflows/fix-bug.yaml"

// project is the Go module of the demo. Its go.mod is kept as go.mod.txt: a module within
// this one could not be embedded.
const project = "demo/_project"

// WriteDemo writes the Go module that the demo repairs, and the workflow that does it, into
// dir, which is made where it is missing. schema is the JSON Schema of workflows, by which editors check it. A file that is there
// already is an error wrapping fs.ErrExist; nothing is replaced.
func WriteDemo(dir string, schema []byte) error {
	if err := WriteNew(filepath.Join(dir, "schema.json"), schema); err != nil {
		return fmt.Errorf("write the demo: %w", err)
	}

	files := []struct{ to, from string }{
		{DemoWorkflow, "demo/fix-bug.yaml"},
		{"workflows/replies.yaml", "demo/replies.yaml"},
	}
	module, err := fs.ReadDir(Files, project)
	if err != nil {
		return fmt.Errorf("write the demo: %w", err)
	}
	for _, e := range module {
		files = append(files, struct{ to, from string }{strings.TrimSuffix(e.Name(), ".txt"), path.Join(project, e.Name())})
	}
	for _, f := range files {
		content, err := Files.ReadFile(f.from)
		if err == nil {
			err = WriteNew(filepath.Join(dir, filepath.FromSlash(f.to)), content)
		}
		if err != nil {
			return fmt.Errorf("write the demo: %w", err)
		}
	}
	return nil
}

// WriteNew writes a file, and the directories it lies in. A file that is there already is an error
// wrapping fs.ErrExist.
func WriteNew(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}
