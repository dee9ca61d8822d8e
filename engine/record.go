package engine

import (
	"cmp"
	"fmt"
	"strings"

	"wf/cas"
	"wf/protocol"
)

// completed makes the record of a visit that ended, well or for good.
func (d *driver) completed(w *worker, end *outcome, failed *protocol.ErrorInfo) ([]cas.Draft, []cas.Block, error) {
	status := protocol.StepOK
	if failed != nil {
		status = protocol.StepFailed
	}
	rec, err := d.s.Record(w.step, status)
	if err != nil {
		return nil, nil, err
	}
	// What no reader would take ends the visit, and is not kept.
	tooLong := func(err error) ([]cas.Draft, []cas.Block, error) {
		end.conclusion.Text, end.conclusion.Data = nil, nil
		return d.completed(w, end, cmp.Or(failed, &protocol.ErrorInfo{Code: protocol.ErrTooLarge.Code, Phase: "output_validation", Message: err.Error() + "; " + protocol.HintOf(err)}))
	}
	var blocks []cas.Block
	if end.conclusion.Text != nil {
		if err := protocol.CheckPayload("its output", len(*end.conclusion.Text)); err != nil {
			return tooLong(err)
		}
		root, parts := cas.Payload([]byte(settled(*end.conclusion.Text)))
		rec.Output, blocks = root, append(blocks, parts...)
	}
	if len(end.conclusion.Data) > 0 {
		raw, err := protocol.CanonicalizeJSON(end.conclusion.Data)
		if err != nil && failed == nil {
			bad := &protocol.ErrorInfo{Code: "output_invalid", Phase: "output_validation", Message: err.Error()}
			end.conclusion.Data = nil
			return d.completed(w, end, bad)
		}
		if err == nil {
			if err := protocol.CheckPayload("its fields as JSON", len(raw)); err != nil {
				return tooLong(err)
			}
			root, parts := cas.Payload(raw)
			rec.Data, blocks = root, append(blocks, parts...)
		}
	}
	blocks = append(blocks, end.artifacts.blocks...)
	ofChild := protocol.Link{}
	if end.artifacts.child {
		ofChild = end.artifacts.root
	} else {
		rec.Artifacts = end.artifacts.root
	}
	if failed == nil && end.own.files != nil {
		rec.Own, blocks = end.own.files, append(blocks, end.own.blocks...)
	}
	if failed != nil {
		raw, err := protocol.CanonicalJSON(map[string]any{"code": failed.Code, "phase": failed.Phase, "message": failed.Message})
		if err != nil {
			return nil, nil, err
		}
		root, parts := cas.Payload(raw)
		rec.Error, blocks = root, append(blocks, parts...)
	}
	block, err := cas.Encode(&rec)
	if err != nil {
		return nil, nil, fmt.Errorf("record of %s: %w", w.step, err)
	}
	d.from.keep(block.Link, &rec)
	done := protocol.StepCompleted{Record: block.Link, Result: end.conclusion.Result, MS: max(0, d.e.now()-w.started-end.held) / 1000,
		Workspace: end.git, Status: status, Artifacts: ofChild}
	return []cas.Draft{{Step: w.step, Data: done}}, append(blocks, block), nil
}

// settled is the one form of a text before it is stored: \n line ends, none at the end.
func settled(s string) string {
	return strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
}
