package agentkit

import (
	"context"
	"fmt"

	"wf/agentkit/prompt"
	"wf/protocol"
)

// compact is called before each model call. All calls of the tools have their results then. What
// is due is summarised and journaled in one commit: a process that dies before it has changed
// nothing.
func (v *visit) compact(ctx context.Context) error {
	cut, err := v.Due(v.refusal)
	if cut == nil || err != nil {
		return err
	}
	inject, unthought, err := v.reflect(ctx, cut.Read)
	if err != nil {
		return fmt.Errorf("reflection before the compaction of %s: %w", v.turn.Step, err)
	}
	s, usage, err := v.summarise(ctx, cut)
	if err != nil {
		return err
	}
	s.Inject, s.Why = inject, prompt.Join(s.Why, unthought)
	kept, err := v.keepSummary(ctx, cut.Of, s.Text)
	if err != nil {
		return err
	}
	event, err := cut.Event(s)
	if err != nil {
		return err
	}
	return v.journal(ctx, append(append(usage, kept...), event)...)
}

// summarise asks a model once for a summary. Without one that writes it, it is an extract. usage is
// that of the call, none where none was made.
func (v *visit) summarise(ctx context.Context, cut *prompt.Cut) (s prompt.Summary, usage []protocol.Data, err error) {
	written, name := "", v.summaryModel()
	if name != "" {
		written, usage, err = v.writeCompaction(ctx, name, cut)
		if ctx.Err() != nil {
			return s, usage, ctx.Err()
		}
		if s.Model = name; err != nil {
			s.Model, s.Why = "", v.why(err)
		}
	}
	s.Text = cut.Text(written)
	return s, usage, nil
}

// why is an error as it is journaled.
func (v *visit) why(err error) string { return prompt.Head(v.clean(valid(err.Error())), 500) }
