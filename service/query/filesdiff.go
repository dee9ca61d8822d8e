package query

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"wf/api"
	"wf/protocol"
	"wf/protocol/tree"
)

// How much is compared line by line: bytes of a file, and bytes of the answer.
const (
	diffFileMax  = 1 << 20
	diffTotalMax = 4 << 20
)

// FilesDiff tells in what the files of two looks differ. by tells which visits changed a path; nil is not known.
func FilesDiff(read tree.Read, left, right api.FilesSide, by func(path string) []string) (*api.FilesDiff, error) {
	out := &api.FilesDiff{Schema: "wf.filesdiff/v1", Left: left, Right: right, Files: []api.FileDiff{}}
	var roots [2]protocol.Link
	for i, side := range []api.FilesSide{left, right} {
		var err error
		if roots[i], err = protocol.ParseLink(side.Tree); err != nil {
			return nil, err
		}
		if _, err := read(roots[i]); err != nil {
			return nil, api.NotKept(side.Run, roots[i], err)
		}
	}
	size := 0
	for c, err := range api.Changes(read, roots[0], roots[1]) {
		if err != nil {
			return nil, api.NotKept(right.Run, roots[1], err)
		}
		d := api.FileDiff{Path: c.Path, Change: api.How(c), Before: fileState(c.Before), After: fileState(c.After)}
		if by != nil {
			d.By = by(c.Path)
		}
		if err := unified(read, c, &d, diffTotalMax-size); err != nil {
			return nil, fmt.Errorf("%q: %w", c.Path, api.NotKept(right.Run, roots[1], err))
		}
		out.Cut = out.Cut || d.Note == noteCut
		size += len(d.Unified)
		out.Added, out.Removed = out.Added+d.Added, out.Removed+d.Removed
		out.Files = append(out.Files, d)
	}
	out.Equal = len(out.Files) == 0
	return out, nil
}

func fileState(e tree.Entry) *api.FileState {
	if e.Mode == "" {
		return nil
	}
	out := &api.FileState{Mode: string(e.Mode), Size: e.Size, Why: e.Why}
	if e.Link.Defined() {
		out.CID = e.Link.String()
	}
	return out
}

// Why a FileDiff has no text.
const (
	noteBinary  = "binary"
	noteLarge   = "large"
	noteOmitted = "omitted"
	noteCut     = "cut"
	noteMode    = "mode"
)

// unified compares two texts, of which as much is told as there is room for.
func unified(read tree.Read, c tree.Change, d *api.FileDiff, room int) error {
	switch {
	case c.Before.Mode == tree.Omitted || c.After.Mode == tree.Omitted:
		d.Note = noteOmitted
	case c.Before.Link == c.After.Link:
		d.Note = noteMode
	case c.Before.Size > diffFileMax || c.After.Size > diffFileMax:
		d.Note = noteLarge
	case room <= 0:
		d.Note = noteCut
	}
	if d.Note != "" {
		return nil
	}
	was, err := textOf(read, c.Before)
	if err != nil {
		return err
	}
	is, err := textOf(read, c.After)
	if err != nil {
		return err
	}
	if Binary(was) || Binary(is) {
		d.Note = noteBinary
		return nil
	}
	text := udiff.Unified(diffName("a/", c.Path, c.Before), diffName("b/", c.Path, c.After), string(was), string(is))
	d.Added, d.Removed = counts(text)
	if len(text) > room {
		d.Note = noteCut
		return nil
	}
	d.Unified = text
	return nil
}

// textOf is all of a file; nothing of one that is not there.
func textOf(read tree.Read, e tree.Entry) ([]byte, error) {
	if e.Mode == "" {
		return nil, nil
	}
	r, err := tree.Open(read, e)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Binary reports whether content is not to be shown as lines.
func Binary(b []byte) bool { return bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b) }

// diffName is a path in the head of a diff, quoted where a line could not hold it.
func diffName(side, path string, e tree.Entry) string {
	if e.Mode == "" {
		return "/dev/null"
	}
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '"' || r == '\\' }) {
		return strconv.Quote(side + path)
	}
	return side + path
}
