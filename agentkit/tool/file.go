package tool

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"wf/files"
	"wf/protocol"
	"wf/roles"
	"wf/roles/workspace"
	"wf/roles/workspace/appear"
)

// ReadMax is how many bytes of a file one call of read_file gives.
const ReadMax = 50_000

// editMax is how long a file may be, in bytes, to be edited.
const editMax = 16 << 20

// listMax is how many names one call of list_files gives.
const listMax = 1_000

// inRoot finds a path of a call in the workspace and hands it over with its name in messages. An
// absolute path is accepted where it lies below the directory of the agent.
func inRoot(at Workspace, name string, access workspace.Access, do func(p *workspace.Place, name string) Result) (Result, error) {
	if rest, ok := at.given(name); ok {
		if access != workspace.Read {
			return Failed("%s can only be read", name), nil
		}
		p, err := workspace.Find(at.Artifacts, "", rest, access)
		if err != nil {
			return why(name, err), nil
		}
		defer p.Close()
		return do(p, name), nil
	}
	name, ok := inside(at, name)
	if !ok {
		return Failed("%s lies outside of the workspace; use paths relative to it", name), nil
	}
	dir, err := at.below()
	if err != nil {
		return Result{}, err
	}
	p, err := workspace.Find(at.root(), dir, name, access)
	if err != nil {
		return why(name, err), nil
	}
	defer p.Close()
	return do(p, name), nil
}

// writing is inRoot for a file that is written, and tells what appears by it.
func writing(at Workspace, name string, do func(p *workspace.Place, name string) Result) (Result, error) {
	below, ok := inside(at, name)
	if _, given := at.given(name); given || !ok {
		return inRoot(at, name, workspace.Write, do) // says what is wrong
	}
	watch, err := appear.Of(at.root())
	if err != nil {
		return why(name, err), nil
	}
	dir, err := workspace.Real(at.Dir)
	if err != nil {
		return why(name, err), nil
	}
	w := watch.Writing(filepath.Join(dir, below))
	return inRoot(at, name, workspace.Write, func(p *workspace.Place, name string) Result {
		w.Found(filepath.Join(dir, p.Path))
		r := do(p, name)
		r.Appeared = w.End()
		return r
	})
}

// given is a path of a call relative to the files that the visit is given; ok is false where it does not lead there. The
// variable is what a prompt names them by, since the directory has another name each time.
func (w Workspace) given(name string) (rest string, ok bool) {
	const variable = "$" + roles.ArtifactsVar
	if w.Artifacts == "" {
		return "", false
	}
	rest, ok = strings.CutPrefix(strings.Replace(name, "${"+roles.ArtifactsVar+"}", variable, 1), variable)
	if !ok {
		rest, ok = strings.CutPrefix(name, w.Artifacts)
	}
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return path.Clean(strings.TrimLeft(rest, "/")), true
}

// inside is a path of a call relative to the directory of the agent; ok is false where it lies elsewhere.
func inside(at Workspace, name string) (local string, ok bool) {
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(at.Dir, name)
		if (err != nil || !filepath.IsLocal(rel)) && at.At != "" { // as commands name it
			var below string
			if below, err = at.below(); err == nil {
				rel, err = filepath.Rel(filepath.Join(at.At, below), name)
			}
		}
		if err != nil || !filepath.IsLocal(rel) {
			return name, false
		}
		name = rel
	}
	name = cmp.Or(name, ".")
	name = path.Clean(filepath.ToSlash(name))
	return name, filepath.IsLocal(name)
}

// why is an error without the path of the machine.
func why(name string, err error) Result {
	if workspace.Outside(err) {
		return Failed("%s leads outside of the workspace", name)
	}
	var p *fs.PathError
	switch {
	case errors.As(err, &p):
		err = p.Err
	case errors.Is(err, files.ErrOdd):
		return Failed("%s %v; change it by a command", name, err)
	}
	return Failed("%s: %v", name, err)
}

type readArgs struct {
	Path  string `json:"path"`
	Start int    `json:"start_line"`
	End   int    `json:"end_line"`
}

func readFile() Tool {
	return reading(Tool{
		Name: "read_file",
		Parameters: protocol.JSON(`{"type":"object","required":["path"],"additionalProperties":false,"properties":{` +
			`"path":{"type":"string","description":"file, relative to the workspace"},` +
			`"start_line":{"type":"integer","minimum":1,"description":"first line, from 1"},` +
			`"end_line":{"type":"integer","minimum":1,"description":"last line, included"}}}`),
		ReadOnly: true,
	}, func(_ context.Context, at Workspace, args readArgs) (Result, error) {
		return inRoot(at, args.Path, workspace.Read, func(p *workspace.Place, name string) Result {
			start := max(args.Start, 1)
			if args.End != 0 && args.End < start {
				return Failed("end_line %d is before start_line %d; no lines are between them", args.End, start)
			}
			return readLines(p, name, start, args.End, at)
		})
	}, nil, "path")
}

// readLines streams over the lines, so that the end of a huge file can be read too.
func readLines(p *workspace.Place, name string, start, end int, at Workspace) Result {
	f, err := p.Open()
	if err != nil {
		return why(name, err)
	}
	defer f.Close()

	var out bytes.Buffer
	lines := bufio.NewReaderSize(f, 64<<10)
	line, left := 1, int64(0)
	ended := 0 // 1 where the newest line has not begun: what was read last ended one
	var key keyLines
	above := false // a private key that began before start has not ended
	for end == 0 || line <= end {
		part, err := lines.ReadSlice('\n')
		inKey := key.hold(part)
		switch {
		case line < start:
			above = key.open
		case above && inKey:
			if out.Len() == 0 {
				out.WriteString(keyMark)
			}
		default:
			above = false
			keep := min(len(part), 4*ReadMax-out.Len()) // room for what Clean takes away
			out.Write(part[:keep])
			left += int64(len(part) - keep)
		}
		if len(part) > 0 {
			ended = 0
			if part[len(part)-1] == '\n' {
				line, ended = line+1, 1
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return why(name, err)
		}
	}
	if bytes.IndexByte(out.Bytes(), 0) >= 0 {
		return Failed("%s is binary", name)
	}
	if start > 1 && start > line-ended {
		return Failed("%s has %d lines", name, line-ended)
	}
	s := at.clean(strings.ToValidUTF8(out.String(), "�"))
	if cut := roles.CutRunes(s, ReadMax); cut < len(s) || left > 0 {
		next, how := start+strings.Count(s[:cut], "\n"), "go on with start_line %d"
		if next == start {
			how = "line %d is longer than one call gives, search shows parts of it"
		}
		s = fmt.Sprintf("%s\n…[%d more bytes; "+how+"]", s[:cut], left+int64(len(s)-cut), next)
	}
	return Result{Content: s}
}

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func writeFile() Tool {
	return reading(Tool{
		Name: "write_file",
		Parameters: protocol.JSON(`{"type":"object","required":["path","content"],"additionalProperties":false,"properties":{` +
			`"path":{"type":"string","description":"file, relative to the workspace"},` +
			`"content":{"type":"string","description":"the whole content"}}}`),
	}, func(_ context.Context, at Workspace, args writeArgs) (Result, error) {
		return writing(at, args.Path, func(p *workspace.Place, name string) Result {
			if r := overHidden(p, at, name, args.Content); r.IsError {
				return r
			}
			if err := p.Replace(args.Content); err != nil {
				return why(name, err)
			}
			return Result{Content: fmt.Sprintf("wrote %d bytes to %s", len(args.Content), name)}
		})
	}, showWrite, "path", "content")
}

type editArgs struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

func editFile() Tool {
	return reading(Tool{
		Name: "edit_file",
		Parameters: protocol.JSON(`{"type":"object","required":["path","old","new"],"additionalProperties":false,"properties":{` +
			`"path":{"type":"string","description":"file, relative to the workspace"},` +
			`"old":{"type":"string","description":"text that occurs exactly once"},` +
			`"new":{"type":"string","description":"what takes its place"}}}`),
	}, func(_ context.Context, at Workspace, args editArgs) (Result, error) {
		return writing(at, args.Path, func(p *workspace.Place, name string) Result {
			if r := overHidden(p, at, name, args.New); r.IsError {
				return r
			}
			return edit(p, name, args.Old, args.New)
		})
	}, showEdit, "path", "old", "new")
}

func edit(p *workspace.Place, name, old, new string) Result {
	before, err := read(p, editMax)
	if err != nil {
		return why(name, err)
	}
	after, wrong := edited(before, name, old, new)
	if wrong.IsError {
		return wrong
	}
	if err := p.Replace(after); err != nil {
		return why(name, err)
	}
	return Result{Content: "edited " + name}
}

// read is the text of a file of at most so many bytes; a longer one is an error wrapping files.ErrOdd.
func read(p *workspace.Place, most int64) (string, error) {
	f, err := p.Open()
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := files.Bounded(f, most)
	return string(b), err
}

// edited is a text with new in place of old, or why there is none.
func edited(text, name, old, new string) (after string, wrong Result) {
	if old == "" {
		return "", Failed("old is empty; write_file creates files")
	}
	from, to, n := place(text, old)
	switch {
	case n == 0 && roles.HasMark(old):
		return "", Failed("%s does not hold the text of old: [redacted:…] and [secret:…] stand for other text that you cannot see; take the lines around it", name)
	case n == 0:
		return "", Failed("%s does not hold the text of old; %s", name, nearest(text, old))
	case n > 1:
		return "", Failed("%s holds the text of old %d times; take more lines around it", name, n)
	}
	if after = text[:from] + withLineEnds(text, from, to, new) + text[to:]; after == text {
		return "", Failed("%s is not changed: new is the same text as old", name)
	}
	return after, Result{}
}

type listArgs struct {
	Path string `json:"path"`
}

func listFiles() Tool {
	return reading(Tool{
		Name: "list_files",
		Parameters: protocol.JSON(`{"type":"object","required":["path"],"additionalProperties":false,"properties":{` +
			`"path":{"type":"string","description":"directory, relative to the workspace; . is the workspace"}}}`),
		ReadOnly: true,
	}, func(_ context.Context, at Workspace, args listArgs) (Result, error) {
		return inRoot(at, args.Path, workspace.Read, func(p *workspace.Place, name string) Result {
			d, err := p.OpenDir()
			if err != nil {
				return why(name, err)
			}
			defer d.Close()
			entries, err := d.ReadDir(-1)
			if err != nil {
				return why(name, err)
			}
			slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
			return Result{Content: at.clean(names(entries))}
		})
	}, nil, "path")
}

func names(entries []fs.DirEntry) string {
	if len(entries) == 0 {
		return "(empty)"
	}
	var b strings.Builder
	for i, e := range entries {
		if i == listMax {
			fmt.Fprintf(&b, "…[%d more]\n", len(entries)-i)
			break
		}
		mark := ""
		switch {
		case e.IsDir():
			mark = "/"
		case e.Type()&fs.ModeSymlink != 0:
			mark = "@"
		}
		b.WriteString(strings.ToValidUTF8(e.Name(), "�") + mark + "\n")
	}
	return b.String()
}
