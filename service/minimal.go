package service

import (
	"cmp"
	"slices"

	"wf/api"
)

// A tryout tells what becomes of a subset of some changes, which are counted from 0. Its error ends a search.
type tryout func(subset []int) (api.Verdict, error)

// minimal finds changes that make bad together and, with any single one of them left out, do not: by delta debugging
// (ddmin). All n changes make bad, and none of them good; a subset of which nothing is known is unresolved, and taken
// for neither. It asks for at most n² + 3n subsets, and for none twice.
//
//	parts of the changes ──one is bad──► go on with it
//	      │ none                         without a part ──bad──► go on with that
//	      └───────────────────────────────────► │ none: smaller parts, until each is one change
func minimal(n int, try tryout) ([]int, error) {
	known := map[string]api.Verdict{}
	bad := func(subset []int) (bool, error) {
		key := subsetKey(n, subset)
		v, ok := known[key]
		if !ok {
			var err error
			if v, err = try(subset); err != nil {
				return false, err
			}
			known[key] = v
		}
		return v == api.Bad, nil
	}
	rest := make([]int, n)
	for i := range rest {
		rest[i] = i
	}
	parts := 2
search:
	for len(rest) > 1 {
		parts = min(parts, len(rest))
		cuts := make([][]int, parts)
		for i := range cuts {
			cuts[i] = rest[i*len(rest)/parts : (i+1)*len(rest)/parts]
		}
		for _, part := range cuts {
			found, err := bad(part)
			if err != nil {
				return nil, err
			}
			if found {
				rest, parts = slices.Clone(part), 2
				continue search
			}
		}
		for i := range cuts {
			without := slices.Concat(slices.Concat(cuts[:i]...), slices.Concat(cuts[i+1:]...))
			found, err := bad(without)
			if err != nil {
				return nil, err
			}
			if found {
				rest, parts = without, max(parts-1, 2)
				continue search
			}
		}
		if parts == len(rest) {
			break
		}
		parts *= 2
	}
	return rest, nil
}

// subsetKey names a subset of n.
func subsetKey(n int, subset []int) string {
	bits := make([]byte, (n+7)/8)
	for _, i := range subset {
		bits[i/8] |= 1 << (i % 8)
	}
	return string(bits)
}

// turning finds where a list of n versions turns from good to bad: the first of them is good, the last one bad. What lies
// between the two versions it gives is unresolved. It halves the list, as far as that can be told.
func turning(n int, try func(version int) (api.Verdict, error)) (good, bad int, err error) {
	good, bad = 0, n-1
	open := make([]int, 0, n)
	for i := 1; i < n-1; i++ {
		open = append(open, i)
	}
	for len(open) > 0 {
		middle := good + bad // twice that
		at := slices.MinFunc(open, func(a, b int) int {
			return cmp.Or(cmp.Compare(distance(2*a, middle), distance(2*b, middle)), cmp.Compare(a, b))
		})
		v, err := try(at)
		if err != nil {
			return good, bad, err
		}
		switch v {
		case api.Good:
			good = at
		case api.Bad:
			bad = at
		}
		open = slices.DeleteFunc(open, func(i int) bool { return i == at || i <= good || i >= bad })
	}
	return good, bad, nil
}

func distance(a, b int) int { return max(a-b, b-a) }
