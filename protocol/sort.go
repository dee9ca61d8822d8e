package protocol

import "sort"

// Sort orders a slice as slices.SortStableFunc does, by code that all types share: each further type adds 20 kB to the program there,
// and less than one here. It is for short lists; slices has what is faster.
func Sort[T any](s []T, compare func(a, b T) int) { sort.Stable(ordered[T]{s, compare}) }

type ordered[T any] struct {
	s       []T
	compare func(a, b T) int
}

func (o ordered[T]) Len() int           { return len(o.s) }
func (o ordered[T]) Less(i, j int) bool { return o.compare(o.s[i], o.s[j]) < 0 }
func (o ordered[T]) Swap(i, j int)      { o.s[i], o.s[j] = o.s[j], o.s[i] }
