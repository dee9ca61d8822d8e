package lang

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"wf/protocol"
)

// family is what the files of one Load share: each sub-workflow is read once.
type family struct {
	loaded map[string]*relative
	stack  []string // files under way, outermost first
}

type relative struct {
	program *Program // nil where the file has errors
	link    protocol.Link
}

// subWorkflows reads the files that workflow roles name and links their definitions (WF031).
func (l *loader) subWorkflows() {
	for i := range l.w.Roles {
		r := &l.w.Roles[i]
		n := l.roleNodes[r.Name].Get("workflow")
		if !l.good(n) || l.str(n) == "" {
			continue
		}
		rel, d := l.sub(n.Value)
		if d != nil {
			d.Code = "WF031"
			l.report(n, *d)
			continue
		}
		r.Workflow = rel.link
		l.children[rel.link] = rel.program
	}
}

// sub reads the sub-workflow of a relative path.
func (l *loader) sub(name string) (*relative, *Diagnostic) {
	file := path.Join(path.Dir(slashed(l.o.File)), slashed(name))
	if strings.HasPrefix(slashed(name), "/") {
		file = path.Clean(slashed(name))
	}
	stack := append(slices.Clone(l.fam.stack), path.Clean(slashed(l.o.File)))
	if slices.Contains(stack, file) {
		return nil, &Diagnostic{Message: fmt.Sprintf("sub-workflow %s contains itself: %s", name, strings.Join(append(stack[slices.Index(stack, file):], file), " → ")),
			Hint: "a workflow cannot be part of itself; loop with an edge and a limit"}
	}
	if rel, ok := l.fam.loaded[file]; ok {
		if rel.program == nil {
			return nil, &Diagnostic{Message: fmt.Sprintf("sub-workflow %s has errors", file)}
		}
		return rel, nil
	}
	if len(stack) > maxNesting {
		return nil, &Diagnostic{Message: fmt.Sprintf("sub-workflows nest deeper than %d", maxNesting)}
	}
	if l.o.Read == nil {
		return nil, &Diagnostic{Message: fmt.Sprintf("cannot read sub-workflow %s: no files can be read here", file)}
	}
	src, err := l.o.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Diagnostic{Message: fmt.Sprintf("there is no file %s", file), Hint: "the path is relative to " + l.o.File}
	}
	if err != nil {
		return nil, &Diagnostic{Message: fmt.Sprintf("cannot read sub-workflow %s: %v", file, err)}
	}
	o := l.o
	o.File = file
	was := l.fam.stack
	l.fam.stack = stack
	p, ds := load(src, o, l.fam)
	l.fam.stack = was
	apart := l.o.Apart != nil && l.o.Apart(file)
	if !apart {
		l.ds = append(l.ds, ds...)
	}
	rel := &relative{program: p}
	l.fam.loaded[file] = rel
	if p == nil && apart {
		return nil, &Diagnostic{Message: fmt.Sprintf("sub-workflow %s has errors", file), Hint: "it lies outside of the project, so that its text is not shown here: wf validate " + protocol.ShellWord(file)}
	}
	if p == nil {
		return nil, &Diagnostic{Message: fmt.Sprintf("sub-workflow %s has errors", file), Hint: "they are listed under " + file}
	}
	b, err := p.Block()
	if err != nil {
		return nil, &Diagnostic{Message: err.Error()}
	}
	rel.link = b.Link
	return rel, nil
}

func slashed(p string) string { return strings.ReplaceAll(p, `\`, "/") }
