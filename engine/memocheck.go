package engine

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"wf/engine/rules"
	"wf/protocol"
)

// result compares the record of a visit that took an earlier result with that, and makes its key again: from the parts that
// the memo has, and of these from the definition what it tells. A memo that is not kept any more proves nothing.
func (c *checker) result(ctx context.Context, s *rules.State, x protocol.Entry, record protocol.Link) error {
	took := c.reused[x.StepName()]
	if took == nil {
		return nil
	}
	link, err := protocol.ParseLink(took.Memo)
	if err != nil {
		return err
	}
	var memo protocol.Memo
	var is protocol.StepRecord
	read := c.e.reader(ctx)
	switch err := decode(read, link, &memo); {
	case errors.Is(err, protocol.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	if err := decode(read, record, &is); err != nil {
		return err
	}
	differs := func(what, expected, actual string) error {
		c.r.Findings = append(c.r.Findings, Finding{"result", place(x) + ": " + what, expected, actual})
		return nil
	}
	c.r.Results.Checked++
	switch {
	case memo.Key != took.Key || memo.Remade() != took.Key:
		return differs("key", took.Key, memo.Remade())
	case memo.Output != is.Output:
		return differs("text", memo.Output.String(), is.Output.String())
	case memo.Data != is.Data:
		return differs("fields", memo.Data.String(), is.Data.String())
	}
	role, ok := s.Program().Workflow.RoleNamed(is.Role)
	if !ok || role.Caching == nil {
		return differs("role", is.Role+" with cache", is.Role)
	}
	own := s.TurnOf(c.run, protocol.StepID{}, role).Role // with what the run says of it
	parts, err := ofRole(rulesOf(&s.Opened().Start), s.Program().Workflow.Name, &own)
	if err != nil {
		return err
	}
	for i, p := range parts {
		want := hex.EncodeToString(p.Digest[:])
		if p.Name == "platform" {
			continue // of the machine that performed it
		}
		if i >= len(memo.Parts) || memo.Parts[i].Name != p.Name || memo.Parts[i].Digest != want {
			return differs("key", fmt.Sprintf("%s %s", p.Name, want), fmt.Sprint(memo.Parts[:min(i+1, len(memo.Parts))]))
		}
	}
	if prompt, ok := c.prompts[stepLink(x.StepName())]; ok {
		if name := otherPrompt(prompt, memo.Parts); name != "" {
			return differs("key", name+" as the records give it", name+" of another request")
		}
	}
	c.r.Results.Equal++
	return nil
}

// request rebuilds what an agent would have been sent that took an earlier result. There is no digest of it in the journal:
// it is a part of the key of the result, and the next visit of the conversation goes on from it.
func (c *checker) request(s *rules.State, x protocol.Entry) error {
	begun := c.steps.open[x.StepName()]
	if begun == nil || c.render == nil {
		return nil
	}
	if role, ok := s.Program().Workflow.RoleNamed(begun.started.Role); !ok || role.Action != protocol.ActPrompt {
		return nil
	}
	turn, err := c.turn(s, x.StepName())
	if err != nil {
		return err
	}
	prompt, _, err := c.render(turn)
	if err != nil {
		return err
	}
	c.prompts[stepLink(x.StepName())] = prompt
	return nil
}

// otherPrompt is the first part of a key that a request gives otherwise, "" for none.
func otherPrompt(prompt []byte, parts []protocol.MemoDigest) string {
	has := slices.DeleteFunc(slices.Clone(parts), func(p protocol.MemoDigest) bool { return !protocol.OfPrompt(p.Name) })
	for i, p := range protocol.PromptParts(prompt) {
		if i >= len(has) || has[i].Name != p.Name || has[i].Digest != hex.EncodeToString(p.Digest[:]) {
			return p.Name
		}
	}
	if n := len(protocol.PromptParts(prompt)); len(has) > n {
		return has[n].Name
	}
	return ""
}
