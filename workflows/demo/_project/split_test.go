package split

import (
	"slices"
	"testing"
)

var bills = []struct{ total, people int }{{900, 3}, {1000, 3}, {1999, 4}}

func TestSharesAddUp(t *testing.T) {
	for _, b := range bills {
		sum := 0
		for _, share := range Split(b.total, b.people) {
			sum += share
		}
		if sum != b.total {
			t.Errorf("Split(%d, %d) adds up to %d", b.total, b.people, sum)
		}
	}
}

func TestSharesAreFair(t *testing.T) {
	for _, b := range bills {
		shares := Split(b.total, b.people)
		if gap := slices.Max(shares) - slices.Min(shares); gap > 1 {
			t.Errorf("Split(%d, %d) = %v: %d cents apart", b.total, b.people, shares, gap)
		}
	}
}
