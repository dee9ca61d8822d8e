package embed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func openTable(t testing.TB, dir string) *Table {
	t.Helper()
	x, err := OpenTable(dir, "test/two")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func add(t testing.TB, x *Table, name string, v ...float32) {
	t.Helper()
	if err := x.Add([]Key{KeyOf("test/two", name)}, [][]float32{v}); err != nil {
		t.Fatal(err)
	}
}

// far is how far the named vectors are from a query, −1 for one that is not there.
func far(t testing.TB, x *Table, query []float32, names ...string) []float32 {
	t.Helper()
	if err := x.Refresh(); err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(names))
	for i, name := range names {
		rows, gen := x.Rows([]Key{KeyOf("test/two", name)})
		if out[i] = -1; rows[0] < 0 {
			continue
		}
		if ok, err := x.Distances(query, gen, rows, out[i:i+1]); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if err := x.Check(gen, rows[0]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func equal(a, b []float32) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func TestATableIsSharedByProcesses(t *testing.T) {
	dir := t.TempDir()
	a, b := openTable(t, dir), openTable(t, dir)
	add(t, a, "east", 2, 0)
	add(t, b, "north", 0, 3)
	add(t, b, "east", 0, 1) // is there already
	add(t, a, "west", -1, 0)
	for _, x := range []*Table{a, b, openTable(t, dir)} {
		if got := far(t, x, []float32{5, 0}, "east", "north", "west", "south"); !equal(got, []float32{0, 1, 2, -1}) {
			t.Errorf("distances %v", got)
		}
		if rows, dim := x.Size(); rows != 3 || dim != 2 {
			t.Errorf("%d rows of %d", rows, dim)
		}
	}
	if err := a.Add([]Key{KeyOf("test/two", "up")}, [][]float32{{1, 2, 3}}); !errors.Is(err, ErrDimension) {
		t.Error(err)
	}
}

func TestTwoWritersOfATableLoseNothing(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for w := range 2 {
		x := openTable(t, dir)
		wg.Go(func() {
			for i := range 50 {
				if err := x.Add([]Key{KeyOf("test/two", fmt.Sprint(w, i))}, [][]float32{{float32(w), float32(i)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	x := openTable(t, dir)
	if rows, _ := x.Size(); rows != 100 {
		t.Errorf("%d rows", rows)
	}
}

func TestAHalfRowThatACrashLeftIsWrittenOver(t *testing.T) {
	for cut := range 2 * rowSize(2) {
		dir := t.TempDir()
		x := openTable(t, dir)
		add(t, x, "east", 1, 0)
		add(t, x, "north", 0, 1)
		info, err := os.Stat(x.Path())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(x.Path(), info.Size()-int64(cut)); err != nil {
			t.Fatal(err)
		}
		y := openTable(t, dir)
		add(t, y, "west", -1, 0)
		if got := far(t, y, []float32{1, 0}, "west"); !equal(got, []float32{2}) {
			t.Errorf("cut by %d: %v", cut, got)
		}
	}
}

func TestDamageIsToldAndDroppedWhenTheTableIsMadeAnew(t *testing.T) {
	dir := t.TempDir()
	x := openTable(t, dir)
	add(t, x, "east", 1, 0)
	add(t, x, "north", 0, 1)
	b, err := os.ReadFile(x.Path())
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(x.Path()+".damaged", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(x.Path()+".damaged", x.Path()); err != nil {
		t.Fatal(err)
	}
	y := openTable(t, dir)
	rows, gen := y.Rows([]Key{KeyOf("test/two", "north")})
	if err := y.Check(gen, rows[0]); !errors.Is(err, ErrTable) {
		t.Errorf("a flipped bit: %v", err)
	}
	if kept, err := y.Remake(func(Key) bool { return true }); err != nil || kept != 1 {
		t.Errorf("kept %d, %v", kept, err)
	}
	if got := far(t, y, []float32{1, 0}, "east", "north"); !equal(got, []float32{0, -1}) {
		t.Errorf("then %v", got)
	}
	// Rows of before mean nothing now.
	if ok, err := y.Distances([]float32{1, 0}, gen, rows, make([]float32, 1)); ok || err != nil {
		t.Error(ok, err)
	}
	if _, err := y.Remake(func(Key) bool { return false }); err != nil {
		t.Error(err)
	}
	if err := y.Add([]Key{KeyOf("test/two", "up")}, [][]float32{{1, 2, 3}}); err != nil {
		t.Errorf("another length, when it is empty: %v", err)
	}
}

func TestASoundTableIsNotWrittenAgain(t *testing.T) {
	x := openTable(t, t.TempDir())
	add(t, x, "east", 1, 0)
	before, err := os.Stat(x.Path())
	if err != nil {
		t.Fatal(err)
	}
	gen := x.Generation()
	if kept, err := x.Remake(func(Key) bool { return true }); err != nil || kept != 1 || x.Generation() != gen {
		t.Errorf("kept %d, generation %d of %d, %v", kept, x.Generation(), gen, err)
	}
	if after, err := os.Stat(x.Path()); err != nil || !os.SameFile(before, after) {
		t.Error("another file", err)
	}
}

func TestWhatIsNoTableIsRefused(t *testing.T) {
	for name, text := range map[string]string{"something else": string(make([]byte, 100)), "another model": string(header("other", 2)), "too long": string(header("test/two", dimMax+1))} {
		dir := t.TempDir()
		x := openTable(t, dir)
		if err := os.WriteFile(x.Path(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenTable(dir, "test/two"); !errors.Is(err, ErrTable) {
			t.Errorf("%s: %v", name, err)
		}
		if err := RemoveTable(dir, "test/two"); err != nil {
			t.Error(err)
		}
	}
	if got := tablePath("d", "../a b/ü"); filepath.Dir(got) != "d" {
		t.Errorf("a model is kept at %s", got)
	}
}
