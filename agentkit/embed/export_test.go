package embed

// Cosine is the distance of two vectors of one length.
func Cosine(a, b []float32) float64 { return distance(dot(unit(a), unit(b))) }
