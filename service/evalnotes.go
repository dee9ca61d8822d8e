package service

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"wf/api"
	"wf/engine/lang"
	"wf/files"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace"
)

// evalNotes are what an evaluation keeps between calls, in a notebook that is named by suite and store. It also has:
//
//	id           of the evaluation, and the digest of what its runs follow from
//
// The runs noted were judged, or came as far as the note says; the workspaces I-K-A are of runs that are not over, and of those that
// did not pass.
type evalNotes struct {
	notebook
	id string

	before map[string]api.EvalRun // of earlier calls, as they were left; it does not change
	known  map[string]api.EvalRun // of those, what is not run again
}

// evalNote is a line of runs.jsonl.
type evalNote struct {
	Name string      `json:"name"`
	Run  api.EvalRun `json:"run"`
}

// openNotes opens the notes of the suite: those of the last call to go on, else new ones.
func (e *Evaluator) openNotes(def protocol.Link) (*evalNotes, error) {
	of, err := e.digest(def)
	if err != nil {
		return nil, err
	}
	n := &evalNotes{known: map[string]api.EvalRun{}, before: map[string]api.EvalRun{}}
	n.notebook, err = openNotebook("eval", []byte(e.Store.Dir()+"\x00"+filepath.Join(e.Dir, filepath.Base(e.File))), func(cache string) error {
		if !lies(cache, e.Dir) {
			return nil
		}
		return protocol.ErrUsage.With("move the suite into a directory of its own, or name another place for copies with XDG_CACHE_HOME",
			"each run works in a copy of the files of its case, and the place for copies lies in the directory of the suite, %s: %s", e.Dir, cache)
	}, fmt.Sprintf("another process evaluates %s with this store", e.File))
	if err != nil {
		return nil, err
	}
	if e.GoesOn {
		err = n.goOn(of, e.File)
	} else {
		err = n.begin(of)
	}
	if err != nil {
		return nil, errors.Join(err, n.close(false))
	}
	return n, nil
}

// digest is of what the runs of an evaluation follow from.
func (e *Evaluator) digest(def protocol.Link) (string, error) {
	b, err := json.Marshal(struct {
		Suite, Definition string
		Models            map[string][]string
		Live, Record      bool
		Sandbox           string
		Context           protocol.ContextMode
	}{string(e.Source), def.String(), e.Models, e.Live, e.Record, e.Sandbox, e.Launch.Context})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), err
}

// begin forgets the evaluation of before.
func (n *evalNotes) begin(of string) error {
	n.id = rand.Text()
	return errors.Join(remove(n.file("id")), n.clear(), files.Replace(n.file("id"), []byte(n.id+" "+of)))
}

// goOn reads what was noted.
func (n *evalNotes) goOn(of, suite string) error {
	text, err := files.Read(n.file("id"), 1000)
	if errors.Is(err, fs.ErrNotExist) {
		return protocol.ErrUsage.With("leave --continue out", "there is no evaluation of %s with this store to go on with", suite)
	}
	if err != nil {
		return err
	}
	id, was, _ := bytes.Cut(text, []byte(" "))
	if string(was) != of {
		return protocol.ErrUsage.With("leave --continue out to begin anew, or put back what changed", "the suite, its workflow, or what was asked for is another than in the evaluation of %s to go on with", suite)
	}
	n.id = string(id)
	return n.lines(func(line []byte) {
		var x evalNote
		if json.Unmarshal(line, &x) != nil || x.Name == "" {
			return
		}
		n.before[x.Name] = x.Run
		if v := x.Run.Verdict; v == api.EvalPassed || v == api.EvalFailed {
			n.known[x.Name] = x.Run
		}
	})
}

// place finds or makes the workspace of a run. A run that is known and whose copy is gone is not gone on with, nor is one that
// a tape answers, whose answers are counted from the beginning: another one takes its place.
func (x *evaluation) place(ctx context.Context, j job) (dir, request string, err error) {
	for attempt := 0; ; attempt++ {
		name := fmt.Sprintf("%s-%d", j.name, attempt)
		dir, request = x.notes.file(filepath.Join("work", name)), "eval/"+x.notes.id+"/"+name
		_, _, err := x.Store.Tip(ctx, x.Engine.RequestRun(request))
		begun := err == nil
		switch {
		case errors.Is(err, protocol.ErrRunDeleted), begun && x.taped(j.c), begun && x.Record:
			continue
		case err != nil && !errors.Is(err, protocol.ErrUnknownRun):
			return "", "", err
		case begun && files.Exists(dir):
			return dir, request, nil
		case begun:
			continue
		}
		return dir, request, fillPlace(ctx, dir, func(ctx context.Context, to string) error { return x.copyFiles(ctx, j.c, to) })
	}
}

// copyFiles copies the files of a case. Links that lead out of the directory of the suite, or of the copy, are refused.
func (x *evaluation) copyFiles(ctx context.Context, c *lang.SuiteCase, to string) error {
	if c.Files == "" {
		return nil
	}
	refused := func(hint, format string, args ...any) error {
		return protocol.ErrUsage.With(hint, "the files of case %q, %s: %s", c.Name, c.Files, fmt.Sprintf(format, args...))
	}
	from := files.Real(filepath.Join(x.Dir, filepath.FromSlash(c.Files)))
	if rel, err := filepath.Rel(x.Dir, from); err != nil || !filepath.IsLocal(rel) {
		return refused("copy them into the directory of the suite", "a link leads out of the directory of the suite")
	}
	if info, err := os.Stat(from); err != nil || !info.IsDir() {
		return refused("name a directory beside the suite", "there is no such directory")
	}
	all, err := tree.NewGlobs([]string{"**"})
	if err != nil {
		return err
	}
	_, err = workspace.Copy(ctx, from, to, workspace.Copying{Choose: all.Top(), Max: trialMaxSize, MaxFiles: trialMaxFiles, Inward: true})
	if limit, ok := errors.AsType[*workspace.CopyError](err); ok {
		return refused("name a smaller directory", "%s", limit)
	}
	if err != nil {
		return err
	}
	return inward(to, func(link string) error {
		return refused("copy what it leads to into its place", "the link %s leads out of them", link)
	})
}

// inward refuses a link of a directory that leads out of it.
func inward(dir string, refused func(link string) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return err
		}
		if _, err := root.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return refused(path)
		}
		return nil
	})
}
