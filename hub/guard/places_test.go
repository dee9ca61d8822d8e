package guard

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wf/protocol"
)

// full is how many of n takes of a holder were refused, and what the last refusal said.
func full(t *testing.T, p *Places, by Holder, busy bool, n int) (refused int, why string) {
	t.Helper()
	for range n {
		if _, err := p.Take(by, busy, func() {}); err != nil {
			if !errors.Is(err, protocol.ErrRateLimited) {
				t.Fatal(err)
			}
			refused, why = refused+1, err.Error()
		}
	}
	return refused, why
}

// Each bound below, at and beyond it, where no place can be taken for another one.
func TestPlacesHaveBounds(t *testing.T) {
	all := func() *Places {
		return &Places{What: "sockets", Most: 20, Each: 5, Favoured: 12, Shared: 8, Kept: 4}
	}
	for _, test := range []struct {
		name  string
		by    Holder
		most  int
		words string
	}{
		{"one", Holder{Name: "a"}, 5, "one client may have 5 sockets"},
		{"one that is favoured", Holder{Name: "a", Favoured: true}, 12, "one client may have 12 sockets"},
		{"a name that many share", Holder{Name: "a", Shared: true}, 8, "one client may have 8 sockets"},
		{"one without a name", Holder{}, 16, "all 16 sockets are taken that are not kept"},
		{"one without a name that is favoured", Holder{Favoured: true}, 20, "all 20 sockets are taken"},
	} {
		if n, why := full(t, all(), test.by, true, test.most); n != 0 {
			t.Errorf("%s: %d of %d are refused: %s", test.name, n, test.most, why)
		}
		n, why := full(t, all(), test.by, true, test.most+1)
		if n != 1 || !strings.Contains(why, test.words) {
			t.Errorf("%s: %d of %d are refused: %q", test.name, n, test.most+1, why)
		}
	}
	// What is kept for the favoured is there whatever the others take.
	p := all()
	for i := range 10 {
		full(t, p, Holder{Name: fmt.Sprint(i)}, true, 10)
	}
	if n, _ := full(t, p, Holder{Name: "owner", Favoured: true}, true, 4); n != 0 || p.Held() != 20 {
		t.Errorf("%d places of the owner are refused, %d are held", n, p.Held())
	}
	if n, _ := full(t, p, Holder{Name: "owner", Favoured: true}, true, 1); n != 1 {
		t.Error("there are more places than all")
	}
}

// The one that gives way is the oldest of the holder that has the most; nobody loses a place to one that has more.
func TestTheHeaviestGivesWay(t *testing.T) {
	p := &Places{What: "connections", Most: 8, Each: 4, Kept: 0, Spared: 2}
	var cut []string
	take := func(name string, favoured bool) *Place {
		t.Helper()
		label := fmt.Sprint(name, p.Held())
		x, err := p.Take(Holder{Name: name, Favoured: favoured}, false, func() { cut = append(cut, label) })
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	expect := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(cut, want) {
			t.Errorf("%s: %v gave way, want %v", what, cut, want)
		}
		cut = nil
	}
	sender := take("s", false) // s0
	for range 4 {
		take("a", false) // a1 … a4
	}
	expect("below every bound")
	take("a", false)
	expect("the fifth of one peer", "a1")
	take("b", false) // b5
	take("b", false) // b6
	take("b", false) // b7
	expect("all are taken")
	take("c", false)
	expect("one more peer", "a2")
	for range 3 {
		take("d", false)
	}
	expect("and three more of it", "a3", "b5", "a4")
	sender.Leave()
	take("k", true)
	expect("where one is free")
	take("k", true)
	take("k", true)
	take("k", true)
	take("k", true)
	if len(cut) != 4 || slices.Contains(cut, "c7") {
		t.Errorf("four of a favoured one: %v", cut)
	}
	cut = nil
	sender.Leave() // again: no one else's
	if p.Held() != 8 {
		t.Errorf("%d are held", p.Held())
	}
	busy := take("k", true)
	busy.Busy(true)
	cut = nil
	for range 20 {
		take("z", false)
	}
	if slices.Contains(cut, "k7") {
		t.Errorf("a busy one gave way: %v", cut)
	}
}

// Whatever clients do, no bound is crossed, a place that may give way is found, and one that was left is never cut off.
func TestPlacesHoldTheirBounds(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := &Places{What: "x", Most: 1 + r.IntN(12), Each: 1 + r.IntN(4), Favoured: r.IntN(6), Spared: r.IntN(3)}
		p.Kept = r.IntN(p.Most)
		type mine struct {
			*Place
			by   Holder
			busy bool
			left *bool
		}
		held := map[int]*mine{}
		names := map[string]int{}
		for i := range 400 {
			if r.IntN(3) == 0 && len(held) > 0 {
				for id, x := range held {
					x.Leave()
					*x.left = true
					names[x.by.Name]--
					delete(held, id)
					break
				}
				continue
			}
			by := Holder{Name: fmt.Sprint(r.IntN(6))}
			by.Favoured = by.Name >= "4"
			busy := r.IntN(3) == 0
			loose := slices.ContainsFunc(valuesOf(held), func(x *mine) bool { return !x.busy && !x.by.Favoured })
			own := slices.ContainsFunc(valuesOf(held), func(x *mine) bool { return !x.busy && x.by.Name == by.Name })
			left := false
			x, err := p.Take(by, busy, func() {
				if left {
					t.Errorf("seed %d: one that was left is cut off", seed)
				}
				left = true
			})
			if err != nil {
				if loose && own {
					t.Fatalf("seed %d: refused beside places that may give way: %v", seed, err)
				}
				continue
			}
			for id, y := range held { // those that gave way
				if y.at == nil {
					if y.busy {
						t.Fatalf("seed %d: a busy one gave way", seed)
					}
					names[y.by.Name]--
					delete(held, id)
				}
			}
			held[i] = &mine{x, by, busy, &left}
			names[by.Name]++
			plain := 0
			for name, n := range names {
				if name < "4" {
					plain += n
					if n > p.Each {
						t.Fatalf("seed %d: %s has %d, each may have %d", seed, name, n, p.Each)
					}
				} else if p.Favoured > 0 && n > p.Favoured {
					t.Fatalf("seed %d: %s has %d", seed, name, n)
				}
			}
			if len(held) > p.Most || plain > p.Most-p.Kept || p.Held() != len(held) || p.plain != plain {
				t.Fatalf("seed %d: %d are held of %d, %d plain, %d kept", seed, len(held), p.Most, plain, p.Kept)
			}
		}
	}
}

func valuesOf[K comparable, V any](m map[K]V) (out []V) {
	for _, v := range m {
		out = append(out, v)
	}
	return out
}
