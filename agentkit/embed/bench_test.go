package embed

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// table100k is a table of 100,000 vectors of 768 numbers.
func table100k(b *testing.B) (*Table, []int32) {
	b.Helper()
	const n, dim = 100_000, 768
	t, err := OpenTable(b.TempDir(), "bench/768")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { t.Close() })
	r := rand.New(rand.NewPCG(1, 2))
	keys, vectors := make([]Key, n), make([][]float32, n)
	flat := make([]float32, n*dim)
	for i := range flat {
		flat[i] = r.Float32() - 0.5
	}
	for i := range keys {
		keys[i], vectors[i] = KeyOf("bench/768", fmt.Sprint(i)), flat[i*dim:(i+1)*dim]
	}
	if err := t.Add(keys, vectors); err != nil {
		b.Fatal(err)
	}
	rows, _ := t.Rows(keys)
	return t, rows
}

var (
	sink  float32
	count int
)

// BenchmarkDistances measures every one of 100,000 vectors against a query, on one core, and
// beside it what only reads the same bytes (the runtime's own count of a byte), and a loop that
// adds up the same numbers.
func BenchmarkDistances(b *testing.B) {
	t, rows := table100k(b)
	query := t.vector(17)
	far := make([]float32, len(rows))
	size := int64(len(rows)) * int64(4*t.dim)
	b.Run("exact", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			if ok, err := t.Distances(query, t.gen, rows, far); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	})
	b.Run("bare read", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			for i := range rows {
				count += bytes.Count(t.row(int(i))[rowHead:], []byte{0xab})
			}
		}
	})
	b.Run("bare sum", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			for i := range rows {
				sink += bareSum(t.vector(i))
			}
		}
	})
}

// bareSum reads a vector and does the least with it.
func bareSum(v []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for ; len(v) >= 8; v = v[8:] {
		x := (*[8]float32)(v)
		s0 += x[0]
		s1 += x[1]
		s2 += x[2]
		s3 += x[3]
		s4 += x[4]
		s5 += x[5]
		s6 += x[6]
		s7 += x[7]
	}
	return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7
}
