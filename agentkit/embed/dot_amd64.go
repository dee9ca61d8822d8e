package embed

import "golang.org/x/sys/cpu"

var wide = cpu.X86.HasAVX

// sum8 is sums for n numbers, a multiple of eight.
//
//go:noescape
func sum8(a, b *float32, n int, sums *[8]float32)

// sums adds up the products of two vectors of one length, a multiple of eight.
func sums(a, b []float32) (s [8]float32) {
	if !wide || len(a) == 0 {
		return plainSums(a, b)
	}
	_ = b[len(a)-1]
	sum8(&a[0], &b[0], len(a), &s)
	return s
}
