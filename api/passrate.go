package api

import "math"

// PassRateMin is how many completed trials a pass rate has an interval from.
const PassRateMin = 5

// PassRate is how many of several trials passed: a part of wf.sweep/v1 and wf.eval/v1.
type PassRate struct {
	N      int      `json:"n"` // completed trials
	Passed int      `json:"passed"`
	Low    *float64 `json:"low,omitempty"` // of the interval, 0 to 1; left out where N < PassRateMin, or where trials of a script or tape say nothing of others
	High   *float64 `json:"high,omitempty"`
}

// z95 is the quantile of the normal distribution that 95 % lie within.
const z95 = 1.959963984540054

// NewPassRate tells how many of n completed trials passed, with the interval in which the rate of all lies with a confidence of 95 %,
// after Wilson (Journal of the American Statistical Association 22, 1927), where n is at least PassRateMin and chance played a
// part: what a script or tape answered is the same each time.
func NewPassRate(passed, n int, chance bool) PassRate {
	r := PassRate{N: n, Passed: passed}
	if n < PassRateMin || !chance {
		return r
	}
	p, size := float64(passed)/float64(n), float64(n)
	scale := 1 + z95*z95/size
	middle := (p + z95*z95/(2*size)) / scale
	half := z95 * math.Sqrt(p*(1-p)/size+z95*z95/(4*size*size)) / scale
	r.Low, r.High = new(max(0, middle-half)), new(min(1, middle+half))
	return r
}
