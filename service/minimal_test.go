package service

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"wf/api"
)

// oracle is a random truth about the subsets of n changes: all of them are bad, none good, others any of the three.
type oracle struct {
	n     int
	guilt [][]int // a subset is bad if it holds all of one of these
	clash [][2]int
	noise uint64 // unresolved by chance, in 256
	seed  uint64
}

func (o oracle) verdict(subset []int) api.Verdict {
	if len(subset) == 0 {
		return api.Good
	}
	if len(subset) < o.n {
		for _, c := range o.clash { // one needs the other
			if slices.Contains(subset, c[0]) && !slices.Contains(subset, c[1]) {
				return api.Unresolved
			}
		}
		h := rand.NewPCG(o.seed, o.seed)
		for _, i := range subset {
			h.Seed(h.Uint64()^uint64(i+1), o.seed)
		}
		if h.Uint64()%256 < o.noise {
			return api.Unresolved
		}
	}
	for _, g := range o.guilt {
		if !slices.ContainsFunc(g, func(i int) bool { return !slices.Contains(subset, i) }) {
			return api.Bad
		}
	}
	return api.Good
}

// The answer is bad, and without any one of its changes it is not, whatever is unresolved; no subset is tried twice.
func TestM04TheAnswerIsMinimal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(rt, "changes")
		change := rapid.IntRange(0, n-1)
		o := oracle{n: n, noise: rapid.Uint64Range(0, 200).Draw(rt, "noise"), seed: rapid.Uint64().Draw(rt, "seed")}
		for range rapid.IntRange(1, 3).Draw(rt, "causes") {
			o.guilt = append(o.guilt, rapid.SliceOfNDistinct(change, 1, min(n, 5), rapid.ID).Draw(rt, "cause"))
		}
		for range rapid.IntRange(0, 6).Draw(rt, "needs") {
			o.clash = append(o.clash, [2]int{change.Draw(rt, "a"), change.Draw(rt, "b")})
		}
		tried := map[string]bool{}
		got, err := minimal(n, func(subset []int) (api.Verdict, error) {
			key := fmt.Sprint(subset)
			if tried[key] {
				rt.Fatalf("%s is tried twice", key)
			}
			tried[key] = true
			return o.verdict(subset), nil
		})
		if err != nil {
			rt.Fatal(err)
		}
		if o.verdict(got) != api.Bad {
			rt.Fatalf("%v is %s", got, o.verdict(got))
		}
		for i := range got {
			if without := slices.Delete(slices.Clone(got), i, i+1); len(without) > 0 && o.verdict(without) == api.Bad {
				rt.Fatalf("%v is bad without %d too", got, got[i])
			}
		}
		if len(tried) > n*n+3*n {
			rt.Fatalf("%d subsets of %d changes were tried", len(tried), n)
		}
	})
}

// One culprit among many is found in about as many trials as halving takes; a pair in a few times that.
func TestM04FewTrialsFindTheCulprit(t *testing.T) {
	for _, c := range []struct {
		n, most int
		guilt   []int
	}{{12, 8, []int{7}}, {12, 40, []int{2, 9}}, {200, 16, []int{133}}, {200, 120, []int{3, 190}}, {200, 60, []int{100, 101}}, {1, 0, []int{0}}} {
		o, tried := oracle{n: c.n, guilt: [][]int{c.guilt}}, 0
		got, err := minimal(c.n, func(subset []int) (api.Verdict, error) { tried++; return o.verdict(subset), nil })
		if err != nil || !slices.Equal(got, c.guilt) {
			t.Errorf("%v of %d: found %v, %v", c.guilt, c.n, got, err)
		}
		if tried > c.most {
			t.Errorf("%v of %d: %d trials, at most %d", c.guilt, c.n, tried, c.most)
		}
	}
}

// The turning point of a list has a good version before it, a bad one behind it and unresolved ones alone between.
func TestM04TheTurningPointOfVersions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		verdicts := rapid.SliceOfN(rapid.SampledFrom([]api.Verdict{api.Good, api.Bad, api.Unresolved}), 0, 60).Draw(rt, "verdicts")
		verdicts = append(append([]api.Verdict{api.Good}, verdicts...), api.Bad)
		tried := map[int]bool{}
		good, bad, err := turning(len(verdicts), func(i int) (api.Verdict, error) {
			if tried[i] {
				rt.Fatalf("%d is tried twice", i)
			}
			tried[i] = true
			return verdicts[i], nil
		})
		if err != nil || verdicts[good] != api.Good || verdicts[bad] != api.Bad || good >= bad {
			rt.Fatalf("%d, %d, %v", good, bad, err)
		}
		for i := good + 1; i < bad; i++ {
			if verdicts[i] != api.Unresolved {
				rt.Fatalf("between %d and %d lies %d, which is %s", good, bad, i, verdicts[i])
			}
		}
	})
	tried := 0
	good, bad, _ := turning(1000, func(i int) (api.Verdict, error) {
		if tried++; i < 700 {
			return api.Good, nil
		}
		return api.Bad, nil
	})
	if good != 699 || bad != 700 || tried > 10 {
		t.Errorf("%d, %d in %d trials", good, bad, tried)
	}
}
