package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
)

// known is the run that a request has begun before. A run that was begun by another request under the same id is an error
// wrapping protocol.ErrRequestReused; the event that began it decides. ok is false where there is no such run.
func (l *Local) known(ctx context.Context, s api.Start) (run protocol.RunID, ok bool, err error) {
	if s.RequestID == "" {
		return "", false, nil
	}
	if run, err = l.Engine.RunOfRequest(ctx, s.RequestID); err != nil {
		return "", false, err
	}
	if _, _, err := l.Store.Tip(ctx, run); errors.Is(err, protocol.ErrUnknownRun) {
		return "", false, nil
	} else if err != nil {
		return "", false, err
	}
	return run, true, l.Reused(ctx, run, s)
}

// Reused is nil if a run is what a request asks for, and else an error that wraps protocol.ErrRequestReused and names the
// fields that differ. What the request leaves to configs, such as models, may have changed since, and is not compared;
// nor is what it leaves out of what people read of the run.
func (l *Local) Reused(ctx context.Context, run protocol.RunID, s api.Start) error {
	st, err := l.Engine.State(ctx, run)
	if err != nil {
		return err
	}
	d, w := st.Info, st.Program().Workflow
	var differ []string
	def, err := st.Program().Block()
	if err != nil {
		return err
	}
	if s.Workflow != w.Name && s.Workflow != d.File && s.Workflow != api.Pinned(w.Name, def.Link.String()) {
		differ = append(differ, fmt.Sprintf("workflow (%q, and it is %q)", s.Workflow, w.Name))
	}
	differ = append(differ, inputsThatDiffer(st, s.Inputs)...)
	hide := func(text string) string { return engine.Hide(st.Program(), text) }
	for _, f := range []struct {
		name string
		same bool
	}{
		{"title", s.Title == "" || d.Title == hide(s.Title)},
		{"description", s.Description == "" || sameText(d.Description, hide(s.Description))},
		{"type", s.Type == "" || d.Type == s.Type},
		{"scope", s.Scope == "" || d.Scope == s.Scope},
		{"tags", len(s.Tags) == 0 || slices.Equal(d.Tags, s.Tags)},
		{"created_by", s.CreatedBy == "" || d.CreatedBy == s.CreatedBy || d.ClaimedBy == s.CreatedBy},
		{"target_user", s.TargetUser == "" || d.TargetUser == s.TargetUser},
		{"models", modelsAre(d.Models, s.Models)},
		{"context", string(d.Context) == s.Context},
		{"cache", d.Cache == s.Cache},
		{"allow_secret_inputs", slices.Equal(d.AllowSecretInputs, s.AllowSecretInputs)},
	} {
		if !f.same {
			differ = append(differ, f.name)
		}
	}
	if len(differ) == 0 {
		return nil
	}
	return protocol.ErrRequestReused.With("", "the request id %q has begun run %s, and this request differs from it in %s", s.RequestID, run, strings.Join(differ, ", "))
}

// sameText compares a recorded text, which lies in a block where it is long.
func sameText(t protocol.Text, want string) bool {
	if !t.Link.Defined() {
		return t.S == want
	}
	link, _ := cas.Payload([]byte(want))
	return t.Link == link
}

// inputsThatDiffer are the inputs that a run does not have as a request gives them, by the definition of the run.
func inputsThatDiffer(st *rules.State, given map[string]json.RawMessage) (differ []string) {
	values := make(map[string]any, len(given))
	for name, v := range given {
		values[name] = v
	}
	var had, has map[string]json.RawMessage
	whole, err := st.Program().Inputs(values)
	if err != nil || json.Unmarshal(whole, &has) != nil || json.Unmarshal(st.Opened().Raw, &had) != nil {
		return []string{"inputs"}
	}
	for _, name := range slices.Sorted(maps.Keys(st.Program().Workflow.Inputs)) {
		if !bytes.Equal(had[name], has[name]) {
			differ = append(differ, "inputs."+name)
		}
	}
	return differ
}

// modelsAre reports whether a run uses the models that a request chose.
func modelsAre(of map[string][]string, chosen map[string]api.ModelList) bool {
	for role, list := range chosen {
		if !slices.Equal(of[role], list) {
			return false
		}
	}
	return true
}
