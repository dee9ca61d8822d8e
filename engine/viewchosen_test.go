package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wf/api"
	"wf/protocol"
	"wf/roles"
)

// ends performs run roles: each item of a fan-out ends as that says.
type ends []fanOut

func (e ends) Perform(_ context.Context, turn protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
	for _, f := range e {
		if f.role == turn.Role.Name && turn.Item != nil {
			return f.end(turn.Item.Index)
		}
	}
	return exits(0)
}

func exits(code int) (protocol.Conclusion, error) {
	return protocol.Conclusion{Data: protocol.JSON(fmt.Sprintf(`{"exit_code":%d}`, code))}, nil
}

func noProgram() (protocol.Conclusion, error) {
	return protocol.Conclusion{}, &protocol.Failure{ErrorInfo: protocol.ErrorInfo{Code: "spawn", Phase: "run", Message: "no such program"}, Class: "server_error"}
}

// checked is a fan-out of commands whose failure is data for each role, one after another.
func checked(fans ...fanOut) string {
	var roles, edges strings.Builder
	steps, from := 10, "START"
	for _, f := range fans {
		steps += f.items + 1
		fmt.Fprintf(&roles, "  list_%s: {set: {items: \"${{ 1..%d }}\"}}\n  %s: {run: \"true\", continue_on_error: true}\n", f.role, f.items, f.role)
		fmt.Fprintf(&edges, "  - {from: %s, to: list_%s}\n  - {from: list_%s, to: %s, for_each: output.items}\n", from, f.role, f.role, f.role)
		from = f.role
	}
	return fmt.Sprintf("wf: 1\nname: checked\nlimits: {steps: %d}\nroles:\n%sedges:\n%s  - {from: %s, to: END}\n", steps, &roles, &edges, from)
}

// fanOut says how many items of a fan-out fail, from the tenth on, and how many commands exit with another code than 0 behind them.
type fanOut struct {
	role                   string
	items, failed, nonzero int
}

func (f fanOut) end(item int) (protocol.Conclusion, error) {
	switch {
	case item < 10 || item >= 10+f.failed+f.nonzero:
		return exits(0)
	case item < 10+f.failed:
		return noProgram()
	}
	return exits(item%3 + 1)
}

// every is one of the answers that together are all steps of a window, the newest first.
func every(t *testing.T, b *bench, id protocol.RunID, w api.Window) (all []string, first *api.Run) {
	t.Helper()
	for {
		v, err := b.e.ViewWindow(context.Background(), id, w)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = v
		}
		if w.Limit > 0 && len(v.Steps) > w.Limit || len(v.Steps) == 0 && v.Earlier > 0 {
			t.Fatalf("an answer of %d steps, at most %d, earlier %d", len(v.Steps), w.Limit, v.Earlier)
		}
		if *v.Matching != *first.Matching || v.Total != first.Total {
			t.Fatalf("%d of %d steps fit on one page, %d of %d on the first", *v.Matching, v.Total, *first.Matching, first.Total)
		}
		part := []string{}
		for _, s := range v.Steps {
			part = append(part, s.ID)
		}
		all = append(part, all...)
		if w.Before = v.Earlier; w.Before == 0 {
			return all, first
		}
	}
}

// Failed items are found wherever they are in a run of 10,000 steps, in answers of 1000, and what is said of the run is of all of it.
func TestStepsAreChosenByTheirStates(t *testing.T) {
	b := newBench(t)
	fans := ends{{"six", 6000, 6, 3}, {"none", 100, 0, 0}, {"single", 100, 1, 0}, {"full", 1100, 1000, 1}, {"beyond", 1100, 1001, 0}, {"most", 2000, 1500, 0}}
	b.e.Performers[protocol.ActRun] = fans
	id := begin(t, b, checked(fans...))
	v := b.drive(id)
	if v.Status != protocol.Done || len(v.Steps) < 10_000 {
		t.Fatal(v.Status, v.Reason, len(v.Steps))
	}
	want := map[string][]string{} // by role and state
	for _, s := range v.Steps {
		state := s.Status
		if s.Action == protocol.ActRun && state == string(protocol.StepOK) && string(s.Output) != `{"exit_code":0}` {
			state = api.StepNonzero
		}
		want[s.Role+" "+state] = append(want[s.Role+" "+state], s.ID)
	}
	var tallies []api.FanTally
	for _, f := range fans {
		states := map[string]int{string(protocol.StepOK): f.items - f.failed - f.nonzero}
		for state, n := range map[string]int{string(protocol.StepFailed): f.failed, api.StepNonzero: f.nonzero} {
			if n > 0 {
				states[state] = n
			}
			all := want[f.role+" "+state]
			if len(all) != n {
				t.Fatalf("%d items of %s are %s", len(all), f.role, state)
			}
			limits := []int{1000}
			if n < 10 {
				limits = append(limits, 2)
			}
			for _, limit := range limits {
				got, first := every(t, b, id, api.Window{States: []string{state}, Role: f.role, Limit: limit})
				if diff := cmp.Diff(all, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s items of %s, %d at a time (-want +got):\n%s", state, f.role, limit, diff)
				}
				if *first.Matching != n || len(first.Steps) != min(n, limit) || first.Total != len(v.Steps) || first.Status != v.Status || first.Seq != v.Seq {
					t.Errorf("%s items of %s: %d of %d steps fit, of a run that is %s after event %d", state, f.role, *first.Matching, first.Total, first.Status, first.Seq)
				}
			}
		}
		tallies = append(tallies, api.FanTally{ID: f.role + "#1", Items: f.items, States: states})
	}
	bad, first := every(t, b, id, api.Window{States: []string{string(protocol.StepFailed), api.StepNonzero}, Limit: 1000})
	if n := 6 + 3 + 1 + 1000 + 1 + 1001 + 1500; len(bad) != n || *first.Matching != n {
		t.Errorf("%d steps are failed or nonzero, it says %d, want %d", len(bad), *first.Matching, n)
	}
	if diff := cmp.Diff(tallies, first.Fans, cmpopts.IgnoreFields(api.FanTally{}, "Exits", "Began", "Ended")); diff != "" {
		t.Errorf("the items (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(v, whole(first, v), sameStep); diff != "" {
		t.Errorf("what is no step differs (-whole +chosen):\n%s", diff)
	}
	if all, _ := every(t, b, id, api.Window{States: api.StepStates, Limit: 1000}); len(all) != len(v.Steps) {
		t.Errorf("%d steps have one of all states, want %d", len(all), len(v.Steps))
	}
	at := v.Steps[14].Ended // among the failed items
	was, err := b.e.ViewWindow(context.Background(), id, api.Window{At: at})
	if err != nil {
		t.Fatal(err)
	}
	then := map[string][]string{}
	for _, s := range was.Steps {
		then[s.Status] = append(then[s.Status], s.ID)
	}
	for _, state := range []string{string(protocol.StepFailed), api.StepRunning} {
		got, _ := every(t, b, id, api.Window{States: []string{state}, At: at, Limit: 2})
		if diff := cmp.Diff(then[state], got); diff != "" || len(got) == 0 {
			t.Errorf("%s steps after event %d (-want +got):\n%s", state, at, diff)
		}
	}
}

// Clients that ask at once while a run goes on, each for other steps, hear what was so after one event.
func TestManyClientsChooseSteps(t *testing.T) {
	b := newBench(t)
	fan := fanOut{"check", 300, 6, 3}
	b.e.Performers[protocol.ActRun] = ends{fan}
	id := begin(t, b, checked(fan))
	over := make(chan struct{})
	var clients sync.WaitGroup
	for i := range 6 {
		clients.Go(func() {
			for last := false; !last; {
				select {
				case <-over:
					last = true
				default:
				}
				state := api.StepStates[i%4]
				v, err := b.e.ViewWindow(context.Background(), id, api.Window{States: []string{state}, Role: "check"})
				if err != nil {
					t.Error(err)
					return
				}
				for _, f := range v.Fans {
					if f.States[state] != *v.Matching || len(v.Steps) != *v.Matching {
						t.Errorf("after event %d: %d steps that are %s, %d in all, of the items %v", v.Seq, len(v.Steps), state, *v.Matching, f.States)
					}
				}
				if last && v.Status != protocol.Done {
					t.Errorf("the run is %s", v.Status)
				}
			}
		})
	}
	b.drive(id)
	close(over)
	clients.Wait()
}

// whole is a run with the steps of the whole of it.
func whole(chosen, all *api.Run) *api.Run {
	v := *chosen
	v.Steps, v.Total, v.Earlier, v.Roles, v.Ways, v.Matching, v.Fans = all.Steps, all.Total, all.Earlier, all.Roles, all.Ways, nil, nil
	return &v
}

// What the newest failed items of a fan-out cost, which lie at its beginning.
func BenchmarkChosenSteps(b *testing.B) {
	for _, n := range []int{10_000} {
		w, fan := newBench(b), fanOut{"check", n, 6, 0}
		w.e.Performers[protocol.ActRun] = ends{fan}
		id := begin(b, w, checked(fan))
		drive(b, w, id, protocol.Done)
		for name, window := range map[string]api.Window{"newest": {Limit: 1000}, "failed": {States: []string{"failed"}, Limit: 1000}} {
			b.Run(fmt.Sprintf("%s of %d", name, n), func(b *testing.B) {
				for b.Loop() {
					if _, err := w.e.ViewWindow(context.Background(), id, window); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
