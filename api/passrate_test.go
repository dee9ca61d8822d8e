package api

import (
	"math"
	"testing"
)

// The figures are those of Newcombe, Statistics in Medicine 17 (1998), table I, method 3, but for the first and last.
func TestM03IntervalsOfPassRatesAreThoseOfTheLiterature(t *testing.T) {
	for _, c := range []struct {
		passed, n int
		low, high float64
	}{
		{5, 5, 0.5655, 1}, {81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}, {0, 5, 0, 0.4345},
	} {
		r := NewPassRate(c.passed, c.n, true)
		if r.Low == nil || math.Abs(*r.Low-c.low) > 5e-5 || math.Abs(*r.High-c.high) > 5e-5 {
			t.Errorf("%d of %d: %v, want %.4f to %.4f", c.passed, c.n, r, c.low, c.high)
		}
	}
	if r := NewPassRate(4, 4, true); r.Low != nil || r.High != nil {
		t.Errorf("four trials have an interval: %v", r)
	}
	if r := NewPassRate(50, 50, false); r.Low != nil || r.High != nil {
		t.Errorf("trials without chance have an interval: %v", r)
	}
}
