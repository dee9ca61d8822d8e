package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"wf/agentkit/model"
	"wf/agentkit/prompt"
	"wf/agentkit/task"
	"wf/agentkit/tool"
	"wf/files"
	"wf/protocol"
	"wf/roles"
	"wf/roles/workspace"
)

// A visit of an agent can be reused where it follows from its request, its model and the files alone. What came between the
// request and the answer is not needed again: later requests are built from records, which hold the answer.

// Follows tells what the result of a visit follows from: the model that is asked first, where it is reached, and the first
// request, each message of it for itself.
func (a Agent) Follows(ctx context.Context, turn protocol.Turn, _ string) (f roles.Follows, err error) {
	role := &turn.Role
	switch {
	case role.Context == protocol.ContextTask || task.Offered(turn.History.Tools):
		return f, roles.NotReusable("it works on tasks, whose steps are no part of its answer")
	case role.Memory != nil:
		return f, roles.NotReusable("it has a memory, which no key can tell")
	}
	if f.Sees, err = a.sight(ctx, &turn); err != nil {
		return f, err
	}
	models, err := a.models(&turn)
	if err != nil {
		return f, err
	}
	w, err := prompt.NewWork(&turn, models, a.Window)
	if err != nil {
		return f, err
	}
	if cut, err := w.Due(""); cut != nil || err != nil {
		return f, roles.NotReusable("its conversation is compacted before it answers")
	}
	name := w.Model()
	if name == "" {
		return f, roles.NotReusable("it names no model")
	}
	m, err := a.open(name, filepath.Dir(turn.File))
	if err != nil {
		return f, roles.NotReusable("its first model cannot be asked: %v", err)
	}
	sourced, ok := m.(model.Sourced)
	if !ok {
		return f, roles.NotReusable("the model %s does not tell what its answers follow from, as is so of one whose calls are recorded", name)
	}
	request := model.Request{Role: role.Name, Visit: turn.Visit}
	if turn.Item != nil {
		request.Item = &turn.Item.Index
	}
	// Of equal requests of a fan-out, or of a loop that begins anew each time, each wants an answer of its own.
	f.Parts = append(f.Parts, protocol.NewMemoPart("visit", []byte(turn.Step.String())), protocol.NewMemoPart("model", []byte(name)))
	for _, s := range sourced.Sources(request) {
		f.Parts = append(f.Parts, protocol.NewMemoPart(s.Name, []byte(s.Value)))
	}
	if offers(turn.History.Tools, "search") {
		excluded, err := excludes(&turn)
		if err != nil {
			return f, err
		}
		f.Parts = append(f.Parts, protocol.NewMemoPart(excludesFile, excluded))
	}
	f.Parts = append(f.Parts, protocol.PromptParts(prompt.Bytes(turn.History.Tools, w.Prompt))...)
	f.Ear = &ear{turn: &turn, wrote: map[string]bool{}}
	return f, nil
}

// models are those that a visit tries, in order.
func (a Agent) models(turn *protocol.Turn) ([]string, error) {
	models := turn.Models
	if len(models) == 0 {
		models = turn.Role.Model
	}
	if len(models) > 0 || a.Default == nil {
		return models, nil
	}
	models, err := a.Default(turn.Role.Name)
	if err != nil {
		return nil, &protocol.Failure{
			ErrorInfo: protocol.ErrorInfo{Code: protocol.ErrModel.Code, Phase: "model", Message: err.Error()}, Suspend: true, Err: err,
		}
	}
	return models, nil
}

// sight is what the recorded tools of a visit see of the workspace, or why its result cannot be reused.
func (a Agent) sight(ctx context.Context, turn *protocol.Turn) (roles.Sight, error) {
	offer, err := offered(turn.History.Tools)
	if err != nil {
		return 0, err
	}
	if len(offer) == 0 {
		return roles.SeesNothing, nil
	}
	if turn.Workspace == "" {
		return 0, roles.NotReusable("it has tools for files, and no workspace")
	}
	own := tool.All()
	v := &visit{agent: &a, turn: turn}
	for _, o := range offer {
		i := slices.IndexFunc(own, func(t tool.Tool) bool { return t.Name == o.Name })
		switch {
		case i < 0 || slices.ContainsFunc(a.Tools, func(t tool.Tool) bool { return t.Name == o.Name }):
			return 0, roles.NotReusable("what its tool %s does is not known", o.Name)
		case own[i].Confined:
			return 0, roles.NotReusable("its tool %s runs commands, and no key can tell what they find", o.Name)
		case v.policy(ctx, own[i]) == tool.Ask:
			return 0, roles.NotReusable("a person is asked for calls of %s", o.Name)
		}
	}
	if dir := path.Clean(filepath.ToSlash(turn.Role.Dir)); reserved(dir) != "" {
		return 0, roles.NotReusable("it works in %s, which no key can tell", dir)
	}
	return roles.SeesEverything, nil
}

// offers reports whether a recorded tool list has a tool of that name.
func offers(list, name string) bool {
	tools, err := offered(list)
	return err == nil && slices.ContainsFunc(tools, func(t protocol.Tool) bool { return t.Name == name })
}

// reserved is the part of a path that stands for .git or .wf, "" for none.
func reserved(name string) string {
	for part := range strings.SplitSeq(name, "/") {
		if workspace.Reserved(part) != "" {
			return part
		}
	}
	return ""
}

// excludesFile is what git ignores besides, by which a search leaves files out. excludesMax is as much of it as a search reads.
const (
	excludesFile = ".git/info/exclude"
	excludesMax  = 256 << 10
)

func excludes(turn *protocol.Turn) ([]byte, error) {
	p, err := workspace.Find(turn.Workspace, turn.Role.Dir, excludesFile, workspace.Read)
	if err != nil {
		return nil, missing(err)
	}
	defer p.Close()
	f, err := p.Open()
	if err != nil {
		return nil, missing(err)
	}
	defer f.Close()
	b, err := files.Bounded(f, excludesMax)
	if err != nil {
		return nil, roles.NotReusable("%s cannot be read: %v", excludesFile, err)
	}
	return b, nil
}

// missing is nil where there is no such file; what else is in the way no key can tell.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return roles.NotReusable("%s cannot be read: %v", excludesFile, err)
}

// An ear listens to what an agent does.
type ear struct {
	turn  *protocol.Turn
	wrote map[string]bool // paths in the workspace that calls of tools named
}

// Wrote reports whether a call of a tool named a file.
func (e *ear) Wrote(name string) bool { return e.wrote[name] }

// Hear tells why a result follows from more than its key says.
func (e *ear) Hear(data protocol.Data) string {
	const hidden = "a secret was hidden in what it read or said"
	switch d := data.(type) {
	case protocol.ModelFallback:
		return "its first model did not answer, " + d.To + " was asked instead"
	case protocol.Usage:
		switch {
		case d.Kind != protocol.UsageTurn:
			return "its conversation was compacted"
		case d.Stop == protocol.StopLength:
			return "a reply was cut off: it has as many tokens as one may have"
		case d.Stop == protocol.StopOverflow:
			return "a request was refused for its size"
		case d.Stop == protocol.StopRefused, d.Stop == protocol.StopGivenUp:
			return "a reply was kept back"
		}
	case protocol.Compacted, protocol.CompactionDraft:
		return "its conversation was compacted"
	case protocol.WaitingFor, protocol.Approval:
		return "a person was asked"
	case protocol.TextSaid:
		if roles.HasMark(d.Content.S) {
			return hidden
		}
	case protocol.ToolCall:
		if d.Digest != "" || roles.HasMark(d.Args.S) {
			return hidden
		}
		return e.called(d)
	case protocol.ToolResult:
		switch {
		case roles.HasMark(d.Content.S):
			return hidden
		case d.Appeared != nil:
			return "it left something on which other programs act"
		case d.IsError:
			return machineFault(d.Content.S)
		}
	}
	return ""
}

// machineFaults are errors of a file that follow from the machine, not from the files.
var machineFaults = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.EACCES, syscall.EPERM}

func machineFault(said string) string {
	for _, err := range machineFaults {
		if strings.HasSuffix(said, err.Error()) {
			return "a tool failed for what no key can tell: " + err.Error()
		}
	}
	return ""
}

// called notes the file that a call names, and refuses what no key tells of.
func (e *ear) called(d protocol.ToolCall) string {
	var args struct {
		Path string `json:"path"`
	}
	if json.Unmarshal([]byte(d.Args.S), &args) != nil || args.Path == "" {
		return ""
	}
	if filepath.IsAbs(args.Path) {
		return "a call names a file by its place on this machine: " + args.Path
	}
	name := path.Clean(filepath.ToSlash(args.Path))
	if p, err := workspace.Find(e.turn.Workspace, e.turn.Role.Dir, name, workspace.Read); err == nil {
		name = p.Path
		p.Close()
	}
	if part := reserved(name); part != "" {
		return "a call names a file of " + part + ", which no key can tell"
	}
	if i := slices.IndexFunc(tool.All(), func(t tool.Tool) bool { return t.Name == d.Name }); i < 0 || tool.All()[i].ReadOnly {
		return ""
	}
	e.wrote[path.Join(filepath.ToSlash(e.turn.Role.Dir), name)] = true
	return ""
}
