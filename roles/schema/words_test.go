package schema

import (
	"math"
	"testing"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"pgregory.net/rapid"
)

// Numbers are written as a printer of English writes them: models have read reasons with these bytes.
func TestNumbersAreWrittenAsInEnglish(t *testing.T) {
	p := message.NewPrinter(language.English)
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-1e8, 1e8), rapid.Map(rapid.IntRange(-1e9, 1e9), func(n int) float64 { return float64(n) / 1000 }),
			rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 999999, 1e6, 1e-4, 1e-5, 1e21, math.MaxFloat64, 5e-324})).Draw(t, "f")
		n := rapid.Int().Draw(t, "n")
		const format = "got %v, want %d of '%s'"
		if want, got := p.Sprintf(format, f, n, "x"), sentence(format, f, n, "x"); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}
