package embed

import (
	"math"
	"slices"
)

// dot is the scalar product of two vectors of one length. Eight sums run side by side, so that
// an addition does not wait for the one before; they are joined in a fixed order, so that the
// same vectors give the same bits on every machine.
func dot(a, b []float32) float32 {
	n := len(a) &^ 7
	s := sums(a[:n], b[:n])
	for i := n; i < len(a); i++ {
		s[0] += float32(a[i] * b[i])
	}
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
}

// plainSums adds product 8k+i to sum i. The conversions keep a compiler from joining
// multiplication and addition, which rounds otherwise.
func plainSums(a, b []float32) [8]float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]float32)(a), (*[8]float32)(b)
		s0 += float32(x[0] * y[0])
		s1 += float32(x[1] * y[1])
		s2 += float32(x[2] * y[2])
		s3 += float32(x[3] * y[3])
		s4 += float32(x[4] * y[4])
		s5 += float32(x[5] * y[5])
		s6 += float32(x[6] * y[6])
		s7 += float32(x[7] * y[7])
		a, b = a[8:], b[8:]
	}
	return [8]float32{s0, s1, s2, s3, s4, s5, s6, s7}
}

// unit gives the vector of length 1 in the direction of v; one without a direction stays 0.
func unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(float64(x) * float64(x))
	}
	out := make([]float32, len(v))
	if sum == 0 {
		return out
	}
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		out[i] = float32(float64(x) * scale)
	}
	return out
}

// finite reports whether all of v are numbers.
func finite(v []float32) bool {
	return !slices.ContainsFunc(v, func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) })
}

// distance is that of two vectors of length 1, by their scalar product.
func distance(cos float32) float64 { return min(2, max(0, 1-float64(cos))) }
