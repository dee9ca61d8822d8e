package lang

import "strings"

// nearest is the candidate that name was probably meant to be, or "". Candidates are tried
// in order, so that the answer is stable.
func nearest(name string, candidates []string) string {
	best, bound := "", max(1, min(3, len([]rune(name))/3))+1
	low := strings.ToLower(name)
	for _, c := range candidates {
		if d := distance(low, strings.ToLower(c), bound); d < bound {
			best, bound = c, d
		}
	}
	return best
}

// distance counts insertions, deletions, replacements and swaps of neighbours between a and
// b; from limit on it may stop counting.
func distance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) >= limit || len(y)-len(x) >= limit {
		return limit
	}
	prev2, prev, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(y)]
}
