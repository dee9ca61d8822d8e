package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// verbose says a text of some length, and fields of another.
type verbose struct{ text, data int }

func (x verbose) Perform(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error) {
	text := strings.Repeat("x", x.text)
	return protocol.Conclusion{Text: &text, Data: protocol.JSON(`{"n":"` + strings.Repeat("y", x.data) + `"}`)}, nil
}

// What nobody could read is not written: the visit fails with the bound. At the bound it is kept, and read.
func TestAnOutputThatIsTooLongFailsItsVisit(t *testing.T) {
	const around = len(`{"n":""}`)
	for _, x := range []struct {
		verbose
		ok bool
	}{
		{verbose{protocol.PayloadMax, 1}, true}, {verbose{1, protocol.PayloadMax - around}, true},
		{verbose{protocol.PayloadMax + 1, 1}, false}, {verbose{1, protocol.PayloadMax - around + 1}, false},
	} {
		t.Run(fmt.Sprintf("%d and %d bytes", x.text, x.data), func(t *testing.T) {
			b := newBench(t)
			b.noWarning()
			b.e.Performers[protocol.ActSet] = x.verbose
			id, v := b.run("wf: 1\nname: verbose\nroles: {a: {set: {n: 1}}}\n", nil)
			if x.ok {
				if s := v.Steps[0]; v.Status != protocol.Done || len(s.Text) != x.text || len(s.Output) != x.data+around {
					t.Errorf("%s: %s: %d and %d bytes", v.Status, v.Reason, len(s.Text), len(s.Output))
				}
				b.agrees(id)
				return
			}
			if e := v.Steps[0].Error; v.Status != protocol.Suspended || e == nil || e.Code != protocol.ErrTooLarge.Code || !strings.Contains(e.Message, fmt.Sprint(protocol.PayloadMax)) {
				t.Errorf("%s: %s: %v", v.Status, v.Reason, v.Steps[0].Error)
			}
			b.open()
			b.agrees(id)
		})
	}
}

func TestInputsThatAreTooLongAreRefused(t *testing.T) {
	b := newBench(t)
	p := b.load("wf: 1\nname: given\ninputs: {x: string}\nroles: {a: {set: {n: 1}}}\n")
	_, _, err := b.e.Begin(t.Context(), engine.Launch{Program: p, Inputs: protocol.JSON(`{"x":"` + strings.Repeat("z", protocol.PayloadMax) + `"}`), Workspace: b.dir})
	if protocol.CodeOf(err) != protocol.ErrInputs.Code || !strings.Contains(err.Error(), fmt.Sprint(protocol.PayloadMax)) {
		t.Errorf("%.300v", err)
	}
}
