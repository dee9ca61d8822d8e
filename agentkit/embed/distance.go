package embed

import "fmt"

// Distances measures how far the vectors of rows are from query, exactly, into far, which is
// as long as rows. It reports false where the rows are of another generation. A query of
// another length than the rows is an error wrapping ErrDimension.
func (t *Table) Distances(query []float32, generation int, rows []int32, far []float32) (bool, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if generation != t.gen {
		return false, nil
	}
	if len(rows) == 0 {
		return true, nil
	}
	if len(query) != t.dim {
		return false, fmt.Errorf("embedding model %s: it gave a vector of %d numbers, the index holds vectors of %d: %w", t.model, len(query), t.dim, ErrDimension)
	}
	q := unit(query)
	for i, row := range rows {
		far[i] = float32(distance(dot(q, t.vector(int(row)))))
	}
	return true, nil
}

// Check tells whether a row is as it was written; else it is an error wrapping ErrTable.
func (t *Table) Check(generation int, row int32) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if generation == t.gen && !t.sound(int(row)) {
		return fmt.Errorf("%s: row %d: %w", t.path, row, ErrTable)
	}
	return nil
}
