package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"wf/cas"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles"
)

// Results that are reused. A visit of a role that says cache goes this way:
//
//	what it follows from ─► key ─► memo? ─yes─► reused durable ─► files change ─► files durable ─► step_completed
//	                                 └─no─► not_reused ─► performed ─► files change ─► memo stored ─► step_completed
//
// A role that says what it reads is performed in a copy that has nothing else (memostage.go), any other in the workspace.

// memoizing is such a visit.
type memoizing struct {
	e     *Engine
	ctx   context.Context
	by    roles.Performer
	emit  roles.Emit
	turn  protocol.Turn
	rules string // format and semantics of its run
	here  *stay  // in the workspace
	told  bool   // messages from outside were put into its prompt

	parts   []protocol.MemoPart
	key     string
	follows roles.Follows
	files   outline // the input tree
	beside  int     // attempts that acted in the workspace when it was looked at
	entered int     // attempts that had begun to by then
	heard   heard   // of the performance
}

// reuse carries out a visit of a role that reuses results.
func (d *driver) reuse(ctx context.Context, x *assignment, here *stay, emit roles.Emit) (protocol.Conclusion, error) {
	m := &memoizing{e: d.e, ctx: ctx, by: x.by, emit: emit, turn: x.turn, rules: x.rules, here: here, told: x.told || x.begun.Messages > 0}
	if !x.turn.Role.Caching.Whole {
		m.turn.Confined = true
	}
	return m.perform(x.turn)
}

// perform has an earlier result take the place of performing the visit, or performs it. plain is its turn where nothing can
// be reused.
func (m *memoizing) perform(plain protocol.Turn) (c protocol.Conclusion, err error) {
	forbids := m.forbidden()
	if was := lastReused(m.turn.Transcript); was != nil {
		done, c, err := m.goOn(was)
		if done || err != nil {
			return c, err
		}
		forbids = "an earlier result did not fit, and may have changed files"
	}
	err = m.followed()
	if errors.Is(err, roles.ErrNotReusable) {
		if err := m.miss(protocol.NotReused{Why: protocol.MemoCannot, Detail: protocol.NewText(reasonOf(err))}); err != nil {
			return c, err
		}
		return m.by.Perform(m.ctx, plain, m.emit)
	}
	if err != nil {
		return c, err
	}
	m.turn.Reuse = &protocol.Reuse{Key: m.key, Environ: m.follows.Environ}
	miss := protocol.NotReused{Key: m.key, Why: protocol.MemoCannot, Detail: protocol.NewText(forbids)}
	look := forbids == "" && m.turn.Cache != protocol.CacheOff
	if look {
		var done bool
		if done, miss, c, err = m.take(); done || err != nil {
			return c, err
		}
	} else if forbids == "" {
		miss = protocol.NotReused{Key: m.key, Why: protocol.MemoOff}
	}
	if m.turn.Cache == protocol.CacheOffline {
		return c, errors.Join(m.miss(miss))
	}
	spot, err := m.claim()
	if err != nil {
		return c, err
	}
	defer spot.Leave()
	if look { // another process may have performed it meanwhile
		var done bool
		if done, miss, c, err = m.take(); done || err != nil {
			return c, err
		}
	}
	if forbids == "" && spot.Waited {
		if forbids, err = m.moved(); err != nil {
			return c, err
		}
		if forbids != "" {
			miss = protocol.NotReused{Key: m.key, Why: protocol.MemoCannot, Detail: protocol.NewText(forbids)}
		}
	}
	if err := m.miss(miss); err != nil {
		return c, err
	}
	return m.performIn(spot, forbids == "")
}

// moved says that the files of a visit that is performed in the workspace are no more as its key says; "" where they are.
func (m *memoizing) moved() (string, error) {
	if !m.turn.Role.Caching.Whole || m.follows.Sees == roles.SeesNothing {
		return "", nil // what is copied is compared then
	}
	const why = "its files changed while another visit of the same key was performed"
	now, err := m.inputs()
	switch {
	case errors.Is(err, roles.ErrNotReusable):
		return why, nil
	case err != nil:
		return "", err
	case now.root != m.files.root || !slices.Equal(now.hidden, m.files.hidden):
		return why, nil
	}
	return "", nil
}

// forbidden says why an earlier result cannot take the place of this attempt, whatever it follows from.
func (m *memoizing) forbidden() string {
	switch {
	case m.turn.Attempt > 1:
		return "it is a further attempt"
	case len(m.turn.Answers) > 0:
		return "it was answered"
	case m.turn.Verdict != nil:
		return "it runs because the run ends"
	case m.told:
		return "it was sent a message"
	}
	for _, x := range m.turn.Transcript {
		if x.Step != nil && x.Type != protocol.EvStepStarted && x.Type != protocol.EvGroupWaiting && x.Type != protocol.EvGroupEntered {
			return "it was interrupted"
		}
	}
	return ""
}

// miss records why the visit is performed; with CacheOffline it is the error of that.
func (m *memoizing) miss(x protocol.NotReused) error {
	if err := m.emit(roles.Soon(m.ctx), x); err != nil {
		return err
	}
	if m.turn.Cache == protocol.CacheOffline {
		return protocol.ErrCacheMiss.With("", "%s is not performed, since the run is offline: %s", m.turn.Step, x.Text())
	}
	return nil
}

// reasonOf is why a result cannot be reused, without that sentence itself.
func reasonOf(err error) string {
	text, end := err.Error(), ": "+roles.ErrNotReusable.Error()
	if len(text) > len(end) && text[len(text)-len(end):] == end {
		return text[:len(text)-len(end)]
	}
	return text
}

// followed finds what the result of the visit follows from, and its key.
func (m *memoizing) followed() error {
	by, ok := m.by.(roles.Reuser)
	if !ok {
		return fmt.Errorf("what performs %q roles here does not tell what its results follow from: %w", m.turn.Role.Action, roles.ErrNotReusable)
	}
	parts, err := ofRole(m.rules, m.turn.Workflow, &m.turn.Role)
	if err != nil {
		return err
	}
	m.parts = parts
	if m.turn.Trial != "" {
		m.parts = append(m.parts, protocol.NewMemoPart("trial", []byte(m.turn.Trial)))
	}
	scratch := ""
	if len(m.turn.Role.Caching.Toolchain) > 0 {
		dir, drop, err := m.e.scratchDir()
		if err != nil {
			return err
		}
		defer drop()
		scratch = dir
	}
	if m.follows, err = by.Follows(m.ctx, m.turn, scratch); err != nil {
		return err
	}
	if m.follows.Sees != roles.SeesNothing {
		m.beside, m.entered = m.e.stays.acting(m.turn.Workspace)
		if m.files, err = m.inputs(); err != nil {
			return err
		}
		m.parts = append(m.parts, protocol.NewMemoPart(filesPart, []byte(m.files.root.String())))
	}
	if len(m.files.hidden) > 0 {
		m.parts = append(m.parts, protocol.NewMemoPart("names of git and wf", []byte(strings.Join(m.files.hidden, "\n"))))
	}
	m.parts = append(m.parts, m.follows.Parts...)
	m.key = protocol.MemoKey(m.parts)
	return nil
}

// ofRole are the parts of a key that the definition of a run tells, and the machine.
func ofRole(rules, workflow string, role *protocol.Role) ([]protocol.MemoPart, error) {
	own, spec := *role, *role.Caching
	spec.For = 0
	own.Caching = &spec
	canonical, err := cas.Encode(&own)
	if err != nil {
		return nil, err
	}
	parts := []protocol.MemoPart{
		protocol.NewMemoPart("version", []byte(rules)),
		protocol.NewMemoPart("platform", []byte(runtime.GOOS+"/"+runtime.GOARCH)),
		protocol.NewMemoPart("role", canonical.Data),
	}
	if spec.Scope == protocol.CacheWorkflow {
		parts = append(parts, protocol.NewMemoPart("workflow", []byte(workflow)))
	}
	return parts, nil
}

// rulesOf names the rules of a run in a key.
func rulesOf(s *protocol.Start) string {
	return fmt.Sprintf("semantics %d, format %d", s.Semantics, s.Format)
}

// filesPart names the input tree among the parts of a key.
const filesPart = "files"

// followedFrom is what the newest result of a role followed from, to tell what differs. It is stored beside memos.
type followedFrom struct {
	Key    string            `json:"key"`
	Origin string            `json:"origin"`
	Parts  [][2]string       `json:"parts"` // name, digest
	Files  map[string]string `json:"files"` // of the input tree, at most filesTold
}

// filesTold is how many files of an input tree are told apart by name; of a larger one it is what lies at its top.
const filesTold = 1000

func (m *memoizing) from() (followedFrom, error) {
	f := followedFrom{Key: m.key, Origin: m.origin(), Files: map[string]string{}}
	for _, p := range m.parts {
		f.Parts = append(f.Parts, [2]string{p.Name, hex.EncodeToString(p.Digest[:])})
	}
	for it, err := range m.files.walk() {
		if err != nil {
			return f, err
		}
		f.Files[it.Path] = shortly(it.Entry)
		if len(f.Files) > filesTold {
			clear(f.Files)
			break
		}
	}
	if len(f.Files) == 0 && m.files.root.Defined() {
		top, err := tree.Entries(m.files.read, m.files.root)
		if err != nil {
			return f, err
		}
		for _, e := range top[:min(len(top), filesTold)] {
			f.Files[e.Name] = shortly(e)
		}
	}
	return f, nil
}

// shortly tells an entry from another that may have lain there.
func shortly(e tree.Entry) string {
	sum := sha256.Sum256([]byte(string(e.Mode) + " " + e.Link.String()))
	return hex.EncodeToString(sum[:8])
}

// differs is the first part in which a visit is not as another, "" for none.
func (now *followedFrom) differs(was *followedFrom) string {
	for i, p := range now.Parts {
		switch {
		case i < len(was.Parts) && was.Parts[i] == p:
			continue
		case i < len(was.Parts) && !now.has(was.Parts[i][0]):
			return was.Parts[i][0]
		case p[0] != filesPart:
			return p[0]
		}
		var paths []string
		for path, e := range now.Files {
			if was.Files[path] != e {
				paths = append(paths, path)
			}
		}
		for path := range was.Files {
			if now.Files[path] == "" {
				paths = append(paths, path)
			}
		}
		if len(paths) == 0 {
			return filesPart
		}
		return "file " + slices.Min(paths)
	}
	if len(was.Parts) > len(now.Parts) {
		return was.Parts[len(now.Parts)][0]
	}
	return ""
}

// has reports whether there is a part of a name.
func (f *followedFrom) has(part string) bool {
	return slices.ContainsFunc(f.Parts, func(p [2]string) bool { return p[0] == part })
}

// roleID names the results of the visits of a role that have the same number and item, for saying what differs.
func (m *memoizing) roleID() string {
	item := -1
	if m.turn.Item != nil {
		item = m.turn.Item.Index
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%d", m.turn.Workflow, m.turn.Role.Name, m.turn.Step.N, item))
	return hex.EncodeToString(sum[:])
}

// origin names the visit, in a text.
func (m *memoizing) origin() string { return string(m.turn.Run) + ":" + m.turn.Step.String() }

// nearest says in what the visit differs from the newest result of its role.
func (m *memoizing) nearest() (protocol.NotReused, error) {
	miss := protocol.NotReused{Key: m.key, Why: protocol.MemoNone}
	stored, ok, err := cas.FindMemoOf(m.ctx, m.e.Store, m.roleID())
	if err != nil || !ok {
		return miss, err
	}
	var was followedFrom
	if json.Unmarshal(stored.Data, &was) != nil || was.Key == m.key {
		return miss, nil // that one is lost
	}
	now, err := m.from()
	if err != nil {
		return miss, err
	}
	if part := now.differs(&was); part != "" {
		miss.Why, miss.Part, miss.Origin = protocol.MemoDiffers, part, was.Origin
	}
	return miss, nil
}

// lastReused is the result that an attempt had taken when it was cut off; nil for none.
func lastReused(transcript []protocol.Entry) *protocol.Reused {
	for _, x := range slices.Backward(transcript) {
		switch x.Type {
		case protocol.EvReused:
			d, err := x.AnyData()
			if r, ok := d.(protocol.Reused); ok && err == nil {
				return &r
			}
			return nil
		case protocol.EvNotReused, protocol.EvAttemptFailed:
			return nil
		}
	}
	return nil
}
