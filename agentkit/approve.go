package agentkit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"wf/agentkit/tool"
	"wf/protocol"
)

// ShownMax is how many bytes of a call a person is asked to read. A longer one is refused.
const ShownMax = 64 << 10

// approve waits for a person's word on a call and journals it. The word is bound to the digest of
// what was shown: a call that differs by now is asked for again, unless it may have been started.
// refused is why the call cannot even be asked for, for the model.
func (v *visit) approve(ctx context.Context, t tool.Tool, call protocol.CallMessage, args json.RawMessage, started bool) (refused string, err error) {
	if d := v.decided[call.ID]; d.Decision == protocol.Deny || d.Decision != "" && started {
		return "", nil
	}
	shown := v.shown(t, call, args)
	digest := v.digest(t, call, args, shown)
	if d := v.decided[call.ID]; d.Decision != "" && (d.Shown == "" || d.Shown == digest) {
		return "", nil
	}
	decision := protocol.Approval{Call: call.ID, Tool: call.Name, Shown: digest}
	a, ok := v.answerTo(call.ID, digest)
	by, granted := v.allows[digest]
	switch {
	case ok:
		decision.Decision, decision.By = protocol.Deny, cmp.Or(a.By, a.Source)
		if a.Choice == protocol.Allow || a.Choice == protocol.AllowRun {
			decision.Decision = protocol.Allow
		}
		if a.Choice == protocol.AllowRun && v.repeats(t, call) {
			decision.For = protocol.ForRun
		}
	case granted && v.repeats(t, call):
		decision.Decision, decision.By, decision.For = protocol.Allow, by, protocol.ForRun
	case len(shown) > ShownMax:
		return fmt.Sprintf("this call has to be allowed by a person, and shows %d bytes, more than the %d that one is asked to read. "+
			"Make it smaller: write a long text into a file in several calls, or write a script and run that", len(shown), ShownMax), nil
	default:
		return "", v.askFor(ctx, t, call, shown, digest)
	}
	if err := v.emit(ctx, decision); err != nil {
		return "", err
	}
	v.decide(decision)
	return "", nil
}

// decide takes over a decision.
func (v *visit) decide(d protocol.Approval) {
	v.decided[d.Call] = d
	if d.For == protocol.ForRun && d.Shown != "" {
		v.allows[d.Shown] = d.By
	}
}

// askFor asks a person for a call, once for what it is now, and gives an error wrapping ErrWaiting.
func (v *visit) askFor(ctx context.Context, t tool.Tool, call protocol.CallMessage, shown, digest string) error {
	if before, asked := v.asked[call.ID]; !asked || before != "" && before != digest {
		choices := []protocol.Choice{{Label: "Allow once", Value: protocol.Allow}}
		if v.repeats(t, call) {
			choices = append(choices, protocol.Choice{Label: "Allow exactly this for the whole run", Value: protocol.AllowRun})
		}
		err := v.emit(ctx, protocol.WaitingFor{
			Kind: protocol.WaitApproval, Call: call.ID, Shown: digest,
			Question: protocol.NewText(v.question(t, call, shown)),
			Choices:  append(choices, protocol.Choice{Label: "Deny", Value: protocol.Deny}),
		})
		if err != nil {
			return err
		}
		v.asked[call.ID] = digest
	}
	return fmt.Errorf("%s asks to call %s: %w", v.turn.Step, call.Name, protocol.ErrWaiting)
}

// repeats reports whether a word on a call may hold for the same call later in the run: not where a
// part of it is hidden, nor where nothing confines what it runs.
func (v *visit) repeats(t tool.Tool, call protocol.CallMessage) bool {
	return v.masked[call.ID] == "" && v.turn.Role.Sandbox != protocol.SandboxOff && (!t.Confined || v.confines())
}

// digest tells one call from another: by its tool as it was offered, the bytes of its arguments, the
// role, where it acts, what confines it, and by what a person sees of it.
func (v *visit) digest(t tool.Tool, call protocol.CallMessage, args json.RawMessage, shown string) string {
	offer := protocol.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
	for _, o := range v.offer {
		if o.Name == t.Name {
			offer = o
		}
	}
	tier := v.walls()
	b, err := json.Marshal([]any{"wf.approval/v1", offer, string(args), v.turn.Role.Name, v.workspace.Dir, v.workspace.Network, v.turn.Env,
		tier.Name, tier.ABI, shown})
	if err != nil {
		panic("agentkit: text is no JSON: " + err.Error())
	}
	if v.masked[call.ID] != "" {
		return v.agent.sealed(string(b))
	}
	return hexOf(string(b))
}

// answerTo is the newest answer about a call, if it was given to what the call is now. A no always
// counts, and so does an answer to a question of an older version, which has no digest.
func (v *visit) answerTo(call, digest string) (protocol.Answered, bool) {
	a, ok := v.newestAnswer(protocol.WaitApproval, call)
	same := a.Answer.Shown == "" || a.Answer.Shown == a.Waiting.Shown
	yes := a.Answer.Choice == protocol.Allow || a.Answer.Choice == protocol.AllowRun
	return a.Answer, ok && (!yes || same && (a.Waiting.Shown == "" || a.Waiting.Shown == digest))
}

// newestAnswer is the newest answer of a person about a call.
func (v *visit) newestAnswer(kind protocol.WaitKind, call string) (protocol.AnswerTo, bool) {
	for _, a := range slices.Backward(v.turn.Answers) {
		if a.Waiting.Kind == kind && a.Waiting.Call == call && !a.Fired {
			return a, true
		}
	}
	return protocol.AnswerTo{}, false
}

// denied is what the model reads of a refusal, with the reason that was given.
func (v *visit) denied(call protocol.CallMessage) tool.Result {
	content := "error: a person denied this call"
	if a, ok := v.answerTo(call.ID, ""); ok && !a.Text.Empty() {
		content += ": " + a.Text.S
	}
	return tool.Result{Content: content, IsError: true}
}

// shown is all that a person is to see of a call, in what can be seen.
func (v *visit) shown(t tool.Tool, call protocol.CallMessage, args json.RawMessage) string {
	text := ""
	if t.Show != nil {
		text = v.clean(strings.ToValidUTF8(t.Show(v.workspace, args), "�"))
	}
	text = cmp.Or(text, call.Arguments)
	return legible(text)
}

// question is what a person is asked.
func (v *visit) question(t tool.Tool, call protocol.CallMessage, shown string) string {
	q := fmt.Sprintf("%s wants to call %s", v.turn.Step, legible(call.Name))
	if v.turn.Role.Dir != "" {
		q += " in " + legible(v.turn.Role.Dir)
	}
	if t.Confined && !v.confines() {
		q += ", without a sandbox"
	} else if t.Confined && v.workspace.Network {
		q += ", with the network"
	}
	if lines := strings.Count(strings.TrimRight(shown, "\n"), "\n") + 1; lines > 1 || len(shown) > 200 {
		q += fmt.Sprintf(" (%d bytes, %d lines)", len(shown), lines)
	}
	if v.masked[call.ID] != "" {
		q += ". The parts marked [redacted:…] or [secret:…] are hidden, and belong to the call"
	}
	return q + ":\n\n" + shown
}

// unseen are what takes no room on a screen, or room that looks like another character's.
var unseen = []*unicode.RangeTable{blank, unicode.C, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point}

// blank are letters, marks and symbols of which nothing is drawn, by the Unicode charts: of Braille, music, Khitan and hieroglyphs.
var blank = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x2800, Hi: 0x2800, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x13441, Hi: 0x13442, Stride: 1}, {Lo: 0x16fe4, Hi: 0x16fe4, Stride: 1}, {Lo: 0x1d159, Hi: 0x1d159, Stride: 1}}}

// legible is a text of which every character is seen: control characters, those that turn the
// direction of writing, and all that is invisible or a blank other than the space are written as
// \u{…}. Line feeds and tabs stay.
func legible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r != '\n' && r != '\t' && r != ' ' && unicode.IsOneOf(unseen, r) {
			fmt.Fprintf(&b, `\u{%x}`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
