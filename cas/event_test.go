package cas

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wf/protocol"
)

func TestAnEventIsWrittenByHandAsTheEncoderWritesIt(t *testing.T) {
	stored := slices.DeleteFunc(protocol.Events(), func(s protocol.EventSpec) bool { read, _ := s.New(); return read == nil })
	rapid.Check(t, func(t *rapid.T) {
		spec := rapid.SampledFrom(stored).Draw(t, "type")
		read, data := spec.New()
		if rapid.Bool().Draw(t, "full") {
			fill(reflect.ValueOf(read).Elem())
		}
		raw, err := encMode.Marshal(data())
		if err != nil {
			t.Fatal(err)
		}
		e := protocol.Event{Kind: protocol.KindEvent, V: protocol.RecordVersion, Prev: anyLink(t, "prev"),
			Seq:  protocol.Seq(rapid.Int64Range(0, protocol.MaxSafeInt).Draw(t, "seq")),
			TS:   rapid.Int64Range(-protocol.MaxSafeInt, protocol.MaxSafeInt).Draw(t, "ts"),
			Type: spec.Type, Data: raw}
		if rapid.Bool().Draw(t, "of a step") {
			step := rapid.StringN(0, 300, 400).Draw(t, "step")
			e.Step = &step
		}
		want, err := Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := protocol.EncodeEvent(&e)
		if err != nil || !bytes.Equal(got, want.Data) {
			t.Fatalf("% x, %v; the encoder writes % x", got, err, want.Data)
		}
		var back protocol.Event
		if err := protocol.DecodeEvent(got, &back); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(e, back, linksEqual); d != "" {
			t.Fatal(d)
		}
	})
}

func TestWhatNoEventMayHoldIsRefused(t *testing.T) {
	j, err := openSample(t).Journal(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, now int64, d Draft) {
		t.Helper()
		if _, err := j.Stage(now, []Draft{d}, nil); !errors.Is(err, protocol.ErrInvalidBlock) {
			t.Errorf("%s: %v", what, err)
		}
	}
	plain := protocol.ResumedBy{By: "ada"}
	refused("a time beyond 2^53", protocol.MaxSafeInt+1, Draft{Data: plain})
	refused("a step that is no text", 1, Draft{Step: "\xff#1", Data: plain})
	refused("a number beyond 2^53 in the data", 1, Draft{Data: protocol.LimitChanged{Limit: "steps", Max: protocol.MaxSafeInt + 1}})
	if _, err := (Draft{Data: protocol.LimitChanged{Max: -protocol.MaxSafeInt - 1}}).Ready(); !errors.Is(err, protocol.ErrInvalidBlock) {
		t.Errorf("a draft with a number below −2^53 is ready: %v", err)
	}
}
