package pgstore_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// asked is an operation of a client on one head.
type asked struct {
	what     string // "read", "fence" or "move"
	head     int
	token    int // of fence: the one it sets; of move: the one it carries, 0 for none
	old, new int // of move; 0 is no value
}

// Outcomes of operations, as far as a client knows them.
const (
	done = iota
	headMoved
	fenced
	unclear
)

type answered struct {
	outcome int
	value   int // of a read
}

// headState is a head as the model has it.
type headState struct{ token, value int }

// registers are heads, each a register with compare-and-swap, and a token that a swap may carry. An unclear operation
// may come to pass at any time, so it returns at infinity: at the end it does no harm if it never did.
var registers = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		by := map[int][]porcupine.Operation{}
		for _, o := range all {
			by[o.Input.(asked).head] = append(by[o.Input.(asked).head], o)
		}
		var out [][]porcupine.Operation
		for _, ops := range by {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return headState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(headState), input.(asked), output.(answered)
		outcome := done
		switch {
		case in.what == "read":
			return out.value == s.value, s
		case in.what == "fence":
			s.token = in.token
		case in.token != 0 && in.token != s.token:
			outcome = fenced
		case in.old != s.value:
			outcome = headMoved
		default:
			s.value = in.new
		}
		return out.outcome == unclear || out.outcome == outcome, s
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v %+v", input, output) },
}

// judgeHistory fails where no order of a history explains it.
func judgeHistory(t *testing.T, all []porcupine.Operation) {
	t.Helper()
	result, info := porcupine.CheckOperationsVerbose(registers, all, time.Minute)
	if result == porcupine.Ok {
		return
	}
	file := t.TempDir() + "/history.html"
	err := porcupine.VisualizePath(registers, info, file)
	for _, o := range all {
		t.Logf("client %d, %d to %d: %+v: %+v", o.ClientId, o.Call, o.Return, o.Input, o.Output)
	}
	t.Errorf("the history is %s (%v)", result, err)
}

// The judge itself: what must not be is found.
func TestTheModelOfHeads(t *testing.T) {
	read := func(v int) (asked, answered) { return asked{what: "read"}, answered{value: v} }
	move := func(token, old, new, outcome int) (asked, answered) {
		return asked{what: "move", token: token, old: old, new: new}, answered{outcome: outcome}
	}
	fence := func(token, outcome int) (asked, answered) {
		return asked{what: "fence", token: token}, answered{outcome: outcome}
	}
	var all []porcupine.Operation
	then := func(in asked, out answered) {
		o := porcupine.Operation{Input: in, Output: out, Call: int64(2 * len(all)), Return: int64(2*len(all) + 1)}
		if out.outcome == unclear {
			o.Return = math.MaxInt64
		}
		all = append(all, o)
	}
	for _, c := range []struct {
		name string
		want porcupine.CheckResult
		does func()
	}{
		{"a swap and its refusal", porcupine.Ok, func() { then(move(0, 0, 1, done)); then(move(0, 0, 2, headMoved)); then(read(1)) }},
		{"an acknowledged swap that is lost", porcupine.Illegal, func() { then(move(0, 0, 1, done)); then(read(0)) }},
		{"an unclear swap that comes to pass late", porcupine.Ok, func() { then(move(0, 0, 1, unclear)); then(read(0)); then(read(1)) }},
		{"one that comes to pass and goes again", porcupine.Illegal, func() { then(move(0, 0, 1, unclear)); then(read(1)); then(read(0)) }},
		{"one that comes to pass twice", porcupine.Illegal, func() { then(move(0, 0, 1, unclear)); then(read(1)); then(move(0, 1, 0, done)); then(read(1)) }},
		{"a refusal without a cause", porcupine.Illegal, func() { then(move(0, 0, 1, headMoved)) }},
		{"a token that was overtaken", porcupine.Ok, func() {
			then(fence(1, done))
			then(move(1, 0, 1, done))
			then(fence(2, done))
			then(move(1, 1, 2, fenced))
		}},
		{"a swap under a token after its successor's first", porcupine.Illegal, func() {
			then(fence(1, done))
			then(fence(2, unclear))
			then(move(2, 0, 1, done))
			then(move(1, 1, 2, done))
		}},
	} {
		all = nil
		c.does()
		if got := porcupine.CheckOperationsTimeout(registers, all, time.Minute); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
