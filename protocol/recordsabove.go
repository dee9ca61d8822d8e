package protocol

import (
	"cmp"
	"crypto/sha256"
	"iter"
	"slices"
)

// Newest yields the steps above a visit with these parents, each before all that it goes on from. No more is looked at than is
// taken. Parents that are not here, such as a Start, and compactions are left out.
func (r *Records) Newest(parents []Link) iter.Seq[*Past] {
	return func(yield func(*Past) bool) {
		for x := range r.upwards(parents) {
			if x.Compaction == nil && !yield(x) {
				return
			}
		}
	}
}

// Above is how many steps Newest yields. What was counted once is not counted again: a visit costs the steps between it and the
// nearest visit before it through which all ways lead.
func (r *Records) Above(parents []Link) int {
	if len(parents) == 0 || r == nil {
		return 0
	}
	if n, ok := r.Kept(keyAbove(parents)); ok {
		return n.(int)
	}
	n, all, neck, before := 0, 0, Link{}, 0
	for x, alone := range r.upwards(parents) {
		if alone && all > 0 {
			if known, ok := r.Kept(keyAbove([]Link{x.CID})); ok {
				n += known.(int)
				break
			}
			if !neck.Defined() {
				neck, before = x.CID, n
			}
		}
		if all++; x.Compaction == nil {
			n++
		}
	}
	r.Keep(keyAbove(parents), n)
	if neck.Defined() {
		r.Keep(keyAbove([]Link{neck}), n-before)
	}
	return n
}

// above is the key of how many steps lie above visits with the same parents.
type above [sha256.Size]byte

func keyAbove(parents []Link) above {
	h := sha256.New()
	for _, l := range parents {
		h.Write(l.Bytes())
	}
	return above(h.Sum(nil))
}

// upwards yields the records above parents, those of the highest rank first; alone tells that all others that are left lie above it.
func (r *Records) upwards(parents []Link) iter.Seq2[*Past, bool] {
	return func(yield func(*Past, bool) bool) {
		seen := map[Link]bool{}
		var list []ranked // the highest rank last
		reach := func(links []Link) {
			chain := len(list) == 0 && len(links) == 1 // then it was not seen, and is not seen again
			for _, l := range links {
				p, rank, ok := r.Get(l)
				if !ok || !chain && seen[l] {
					continue
				}
				if chain {
					list = append(list, ranked{p, rank})
					continue
				}
				seen[l] = true
				at, _ := slices.BinarySearchFunc(list, rank, func(x ranked, rank int) int { return cmp.Or(cmp.Compare(x.rank, rank), -1) })
				list = slices.Insert(list, at, ranked{p, rank})
			}
		}
		for reach(parents); len(list) > 0; {
			x := list[len(list)-1]
			list = list[:len(list)-1]
			if !yield(x.past, len(list) == 0) {
				return
			}
			reach(x.past.Parents)
		}
	}
}
