package engine

import (
	"fmt"
	"strings"

	"wf/cas"
	"wf/protocol"
)

// record is the StepRecord of a visit as far as it is known before the outcome.
func (d *driver) record(a *act, v *visit, status protocol.StepStatus) (protocol.StepRecord, error) {
	prompt, err := textOf(d.s.read, v.prompt)
	if err != nil {
		return protocol.StepRecord{}, fmt.Errorf("edge prompt of %s: %w", v.id, err)
	}
	return protocol.StepRecord{Kind: protocol.KindStep, V: protocol.RecordVersion, Start: d.s.Start, Parents: a.links,
		Role: a.role, Visit: v.number, Item: v.item, Edge: a.edge, Via: a.via, EdgePrompt: prompt, Resumes: v.resumes,
		Tools: v.tools, Inject: v.inject, Status: status}, nil
}

// completed makes the record of a visit that ended, well or for good.
func (d *driver) completed(a *act, v *visit, w *worker, end *outcome, failed *protocol.ErrorInfo) ([]cas.Draft, []cas.Block, error) {
	status := protocol.StepOK
	if failed != nil {
		status = protocol.StepFailed
	}
	rec, err := d.record(a, v, status)
	if err != nil {
		return nil, nil, err
	}
	var blocks []cas.Block
	if end.conclusion.Text != nil {
		root, parts := cas.Payload([]byte(settled(*end.conclusion.Text)))
		rec.Output, blocks = root, append(blocks, parts...)
	}
	if len(end.conclusion.Data) > 0 {
		raw, err := protocol.CanonicalizeJSON(end.conclusion.Data)
		if err != nil && failed == nil {
			bad := &protocol.ErrorInfo{Code: "output_invalid", Phase: "output_validation", Message: err.Error()}
			end.conclusion.Data = nil
			return d.completed(a, v, w, end, bad)
		}
		if err == nil {
			root, parts := cas.Payload(raw)
			rec.Data, blocks = root, append(blocks, parts...)
		}
	}
	if failed != nil {
		raw, err := canonical(map[string]any{"code": failed.Code, "phase": failed.Phase, "message": failed.Message})
		if err != nil {
			return nil, nil, err
		}
		root, parts := cas.Payload(raw)
		rec.Error, blocks = root, append(blocks, parts...)
	}
	block, err := cas.Encode(&rec)
	if err != nil {
		return nil, nil, fmt.Errorf("record of %s: %w", v.id, err)
	}
	d.s.keepRecord(block.Link, &rec)
	done := protocol.StepCompleted{Record: block.Link, Result: end.conclusion.Result, MS: max(0, d.e.now()-w.started) / 1000,
		Workspace: end.git, Status: status}
	return []cas.Draft{{Step: w.step, Data: done}}, append(blocks, block), nil
}

// settled is the one form of a text before it is stored: \n line ends, none at the end.
func settled(s string) string {
	return strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
}
