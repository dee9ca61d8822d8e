package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"wf/api"
	"wf/protocol"
	"wf/protocol/tree"
)

// BlameMax is the length in bytes of the longest file whose lines are told apart.
const BlameMax = 4 << 20

// Blame tells of each line of a file which visit wrote it, as far as the looks of a run tell. now is what the file holds, where
// that is not what the newest look has; nil is as it has.
func Blame(read tree.Read, l *api.Looks, path string, now []byte) (*api.Blame, error) {
	span, err := l.Of("")
	if err != nil {
		return nil, err
	}
	b := blamer{out: &api.Blame{Schema: "wf.blame/v1", Run: l.Run, Path: path, Lines: []api.BlamedLine{}}, read: read}
	known := false
	for i := range span.Shots {
		s := &span.Shots[i]
		if i > 0 && s.Root == span.Shots[i-1].Root {
			continue
		}
		e, err := inTree(read, s.Root, path)
		if m := l.OwnOf(s.Step); err == nil && m != nil && len(m.Merged) > 0 && len(s.By) == 1 && s.By[0] == s.Step && !sameFile(e, b.is) {
			err = b.merge(l, m, path)
		}
		if err == nil {
			known = known || e.Mode != ""
			err = b.version(e, s.Look)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", path, api.NotKept(l.Run, s.Root, err))
		}
	}
	switch {
	case !known:
		return nil, protocol.ErrUnknownArtifact.With("wf files "+string(l.Run)+" lists those that it did", "run %s recorded no file %q", l.Run, path)
	case now != nil:
		b.lines(now, api.Look{By: []string{api.Outside}})
	case b.why != "":
		return nil, protocol.ErrUnknownArtifact.With("", "%q: %s", path, b.why)
	}
	if slices.ContainsFunc(b.text, func(line string) bool { return Binary([]byte(line)) }) {
		return nil, protocol.ErrUnknownArtifact.With("", "%q is binary: it has no lines", path)
	}
	for i, line := range b.text {
		x := api.BlamedLine{Line: i + 1, By: []string{api.Outside}, Text: strings.TrimSuffix(line, "\n")}
		if at := b.by[i]; at.Phase != api.LookStart {
			x.By, x.Call, x.Tool, x.Seq, x.Time = at.By, at.Call, at.Tool, at.Seq, at.Time
		}
		b.out.Lines = append(b.out.Lines, x)
	}
	return b.out, nil
}

// A blamer goes through the versions of a file.
type blamer struct {
	out  *api.Blame
	read tree.Read
	is   tree.Entry
	text []string
	by   []api.Look // of each line
	lost []string   // who may have written while the content was not recorded
	why  string     // there are no lines just now
}

// version goes on to what the file is at a look.
func (b *blamer) version(e tree.Entry, at api.Look) error {
	if sameFile(e, b.is) {
		return nil
	}
	b.is = e
	switch {
	case e.Mode == tree.File || e.Mode == tree.Exec:
		b.why = ""
		if e.Size > BlameMax {
			b.why = fmt.Sprintf("it has %d bytes, and lines are told apart up to %d", e.Size, BlameMax)
		}
	case e.Mode == "":
		b.why = "it is no longer there"
	case e.Mode == tree.Omitted:
		b.why = "it is not recorded: " + e.Why
	default:
		b.why = "it is no file"
	}
	if b.why != "" {
		if e.Mode == "" { // what comes anew was written anew
			b.text, b.by = nil, nil
		}
		b.lost = append(b.lost, at.By...)
		return nil
	}
	text, err := textOf(b.read, e)
	if err != nil {
		return err
	}
	if len(b.lost) > 0 && b.text != nil {
		at.By = append(slices.Clone(at.By), b.lost...)
		slices.Sort(at.By)
		at.By, at.Call, at.Tool = slices.Compact(at.By), "", ""
	}
	b.lost = nil
	b.lines(text, at)
	return nil
}

// lines goes on to a text: those that differ were written now.
func (b *blamer) lines(text []byte, at api.Look) {
	if string(text) == strings.Join(b.text, "") {
		return
	}
	after := slices.Collect(strings.Lines(string(text)))
	starts := map[int]int{} // lines of the text before, by their offset
	offset := 0
	for i, line := range b.text {
		starts[offset] = i
		offset += len(line)
	}
	starts[offset] = len(b.text)
	by := make([]api.Look, 0, len(after))
	next := 0
	for _, e := range udiff.Lines(strings.Join(b.text, ""), string(text)) {
		by = append(by, b.by[next:starts[e.Start]]...)
		for range strings.Lines(e.New) {
			by = append(by, at)
		}
		next = starts[e.End]
	}
	by = append(by, b.by[next:]...)
	b.text, b.by = after, by
}
