package help

import "slices"

// Nearest is the name that a word was probably meant to be, "" where none is near.
func Nearest(word string, names []string) string {
	best, least := "", 1+len(word)/3
	for _, name := range names {
		if d := edits(word, name); d < least || d == least && best == "" {
			best, least = name, d
		}
	}
	return best
}

// edits is how many letters must be put in, left out, replaced or swapped with the next to make
// b of a.
func edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = slices.Min([]int{rows[i-1][j] + 1, rows[i][j-1] + 1, rows[i-1][j-1] + cost})
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
