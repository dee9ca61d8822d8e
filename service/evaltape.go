package service

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"wf/agentkit/tape"
	"wf/api"
	"wf/engine/lang"
	"wf/files"
	"wf/protocol"
	"wf/roles/workspace"
	"wf/service/compose"
)

// How the requests of a run were answered by a tape.
const (
	tapeRequest  = "request"
	tapeSequence = "sequence"
)

// told puts how a tape answered into a run. A tape that lacks an answer is an error.
func (x *evaluation) told(r *api.EvalRun, j job, n tape.Count) error {
	r.Tape = &api.EvalTape{File: j.c.Tape, Match: tapeRequest, Requests: n.Requests, Differed: n.Differed, Missed: n.Missed}
	if n.Differed > 0 {
		r.Tape.Match = tapeSequence
	}
	if n.Missed == 0 {
		return nil
	}
	return protocol.ErrModel.With(fmt.Sprintf("record it again: wf eval %s --case %s --record", protocol.ShellWord(x.File), protocol.ShellWord(j.c.Name)),
		"the tape %s lacks an answer: %s", j.c.Tape, firstLines(n.Miss, 12))
}

// firstLines is a text without the advice that its last line is.
func firstLines(s string, most int) string {
	if i := strings.LastIndex(s, "\nFix: "); i >= 0 {
		s = s[:i]
	}
	lines := strings.Split(s, "\n")
	return strings.TrimRight(strings.Join(lines[:min(len(lines), most)], "\n"), "\n")
}

// recording is what the models of a run answer, in a file beside its workspace.
type recording struct {
	*tape.Recorder
	file string
}

func newRecording(file string) (*recording, error) {
	if err := remove(file); err != nil {
		return nil, err
	}
	f, err := files.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &recording{tape.Record(f), file}, nil
}

// drop removes it, kept or not.
func (r *recording) drop() {
	_ = r.Close() // that of one that is kept was looked at
	_ = remove(r.file)
}

// keep makes a recording the tape of a case: whole, or the old one stays.
func (x *evaluation) keep(r *recording, c *lang.SuiteCase) error {
	if err := r.Close(); err != nil {
		return err
	}
	text, err := files.Read(r.file, mostOfATape)
	if err != nil {
		return err
	}
	at, err := workspace.Find(x.Dir, "", filepath.FromSlash(c.Tape), workspace.Write)
	if err == nil {
		err = at.Replace(string(text))
		at.Close()
	}
	if err != nil {
		return protocol.ErrUsage.With("a tape is a file within the directory of the suite", "the tape of case %q, %s, was not written: %v", c.Name, c.Tape, err)
	}
	return nil
}

// tapeShelf are the tapes of the cases that are under way.
type tapeShelf struct {
	x     *evaluation
	mu    sync.Mutex
	cases map[string]int // that are not decided, by their tape
	open  map[string]*shelved
}

type shelved struct {
	once     sync.Once
	name     string
	giveBack func()
	err      error
}

// model opens the tape of a case, once, and gives the name of the model that answers from it.
func (s *tapeShelf) model(file string) (string, error) {
	s.mu.Lock()
	t := s.open[file]
	if t == nil {
		t = &shelved{}
		s.open[file] = t
	}
	s.mu.Unlock()
	t.once.Do(func() { t.name, t.giveBack, t.err = s.read(file) })
	return t.name, t.err
}

// drop forgets a tape when the last case with it is decided.
func (s *tapeShelf) drop(file string) {
	s.mu.Lock()
	if s.cases[file]--; s.cases[file] > 0 {
		s.mu.Unlock()
		return
	}
	t := s.open[file]
	delete(s.open, file)
	s.mu.Unlock()
	if t != nil && t.giveBack != nil {
		t.giveBack()
	}
}

// mostOfATape bounds a tape, in bytes: it is held in memory.
const mostOfATape = 256 << 20

func (s *tapeShelf) read(file string) (name string, giveBack func(), err error) {
	refused := func(err error) error {
		hint := "a tape is a file within the directory of the suite"
		if errors.Is(err, fs.ErrNotExist) {
			hint = "record it: wf eval " + protocol.ShellWord(s.x.File) + " --record"
		}
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err
		}
		return protocol.ErrModel.With(hint, "the tape %s cannot be read: %v", file, err)
	}
	at, err := workspace.Find(s.x.Dir, "", filepath.FromSlash(file), workspace.Read)
	if err != nil {
		return "", nil, refused(err)
	}
	defer at.Close()
	f, err := at.Open()
	if err != nil {
		return "", nil, refused(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() > mostOfATape {
		err = fmt.Errorf("it has %d bytes, and may have %d", info.Size(), mostOfATape)
	}
	if err != nil {
		return "", nil, refused(err)
	}
	name = compose.TapeName(filepath.Join(s.x.Dir, filepath.FromSlash(file)))
	m, err := tape.Read(name, io.LimitReader(f, mostOfATape))
	if err != nil {
		return "", nil, refused(err)
	}
	return name, s.x.Lend(name, m), nil
}
