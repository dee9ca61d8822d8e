package protocol_test

import (
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"

	"wf/protocol"
)

// chained are events of a run, as they are stored.
func chained(t *testing.T, texts ...string) (out []protocol.Entry) {
	t.Helper()
	var prev protocol.Link
	step := "coder#1"
	for i, text := range texts {
		data, err := cbor.Marshal(map[string]string{"content": text})
		if err != nil {
			t.Fatal(err)
		}
		e := protocol.Entry{Event: protocol.Event{Kind: protocol.KindEvent, V: protocol.RecordVersion, Prev: prev, Seq: protocol.Seq(i + 1), TS: -5,
			Type: protocol.EvText, Data: data}}
		if i > 0 {
			e.Step = &step
		}
		if e.Raw, err = protocol.EncodeEvent(&e.Event); err != nil {
			t.Fatal(err)
		}
		e.CID = linkTo(t, string(e.Raw))
		out, prev = append(out, e), e.CID
	}
	return out
}

// What is walked over reads as it was written; what is not of that form is decoded by reflection.
func TestTheWalkReadsWhatWasWritten(t *testing.T) {
	all := chained(t, "one", "two")
	first, second := all[0], all[1]
	place := func(e protocol.Entry) protocol.WireEvent {
		return protocol.WireEvent{Seq: e.Seq, CID: e.CID, Raw: e.Raw}
	}
	for _, c := range []struct {
		name   string
		f      protocol.Frame
		walked bool
	}{
		{"a batch", protocol.Frame{Type: protocol.FrameReplayBatch, Events: []protocol.WireEvent{place(first), place(second)}}, true},
		{"a live batch with an id", protocol.Frame{Type: protocol.FrameReplayBatch, ID: "7", Live: true, Events: []protocol.WireEvent{place(first)}}, true},
		{"one event without its bytes", protocol.Frame{Type: protocol.FrameReplayBatch, Events: []protocol.WireEvent{place(first), {Seq: 2, CID: second.CID, Size: 9}}}, false},
		{"another frame", protocol.Frame{Type: protocol.FramePong, N: 7}, false},
	} {
		b, err := c.f.Encode(protocol.CBORFrames)
		if err != nil {
			t.Fatal(err)
		}
		walked, ok := protocol.WalkBatch(b)
		if ok != c.walked {
			t.Errorf("%s: walked %v", c.name, ok)
		}
		if d := cmp.Diff(c.f, walked, equalLinks); ok && d != "" {
			t.Errorf("%s, walked over: %s", c.name, d)
		}
		got, err := protocol.ParseFrame(protocol.CBORFrames, b)
		if d := cmp.Diff(c.f, got, equalLinks); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", c.name, err, d)
		}
		for n := range b { // cut off anywhere it is an error, not another batch
			if f, ok := protocol.WalkBatch(b[:n]); ok {
				t.Errorf("%s: %d bytes are %+v", c.name, n, f)
			}
		}
	}
	for _, e := range all {
		var got protocol.Event
		if !protocol.WalkEvent(e.Raw, &got) {
			t.Errorf("event %d is not walked", e.Seq)
		}
		if d := cmp.Diff(e.Event, got, equalLinks); d != "" {
			t.Errorf("event %d: %s", e.Seq, d)
		}
		for n := range e.Raw {
			if protocol.DecodeEvent(e.Raw[:n], &got) == nil {
				t.Errorf("event %d: its first %d bytes are one", e.Seq, n)
			}
		}
	}
}

// An event of a later version, with a key more and data of any depth, is read as well.
func TestAnEventOfALaterVersionIsRead(t *testing.T) {
	e := chained(t, "one")[0]
	later := map[string]any{}
	if err := cbor.Unmarshal(e.Raw, &later); err != nil {
		t.Fatal(err)
	}
	var deep any = "x"
	for range 60 {
		deep = []any{deep}
	}
	later["data"], later["more"] = map[string]any{"deep": deep}, 1
	raw, err := cbor.Marshal(later)
	if err != nil {
		t.Fatal(err)
	}
	var got protocol.Event
	if err := protocol.DecodeEvent(raw, &got); err != nil || got.Seq != 1 || got.Type != protocol.EvText {
		t.Errorf("%+v, %v", got, err)
	}
	delete(later, "kind")
	if raw, err = cbor.Marshal(later); err != nil {
		t.Fatal(err)
	}
	if err := protocol.DecodeEvent(raw, &got); protocol.CodeOf(err) != protocol.ErrCorrupt.Code {
		t.Errorf("a record without a kind: %v", err)
	}
}
