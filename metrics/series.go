package metrics

import (
	"math"
	"slices"
	"sync/atomic"
)

// series is one line of a family, or those of one histogram.
type series struct {
	labels []string
	value  atomic.Uint64   // bits of a float; the sum of a histogram
	counts []atomic.Uint64 // of a histogram: by bucket, the last one without a bound
}

func newSeries(labels []string, buckets []float64) *series {
	s := &series{labels: labels}
	if buckets != nil {
		s.counts = make([]atomic.Uint64, len(buckets)+1)
	}
	return s
}

func (s *series) set(to float64) { s.value.Store(math.Float64bits(to)) }

func (s *series) get() float64 { return math.Float64frombits(s.value.Load()) }

func (s *series) add(by float64) {
	for {
		old := s.value.Load()
		if s.value.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+by)) {
			return
		}
	}
}

func (s *series) observe(value float64, buckets []float64) {
	i, _ := slices.BinarySearch(buckets, value) // the first bound that is not below the value
	s.counts[i].Add(1)
	s.add(value)
}
