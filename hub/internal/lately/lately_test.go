package lately_test

import (
	"testing"

	"wf/hub/internal/lately"
)

func TestWhatWasUsedLastIsKept(t *testing.T) {
	c := lately.Map[int, string]{Max: 10_000}
	for i := range 100 {
		c.Put(i, "old", 500)
		c.Put(i, "new", 500)
		if _, ok := c.Get(0); !ok {
			t.Fatalf("what is used is gone at %d", i)
		}
	}
	if n, size := c.Held(); n != 20 || size != 10_000 {
		t.Errorf("%d values of %d", n, size)
	}
	if v, ok := c.Get(99); !ok || v != "new" {
		t.Errorf("the newest is %q", v)
	}
	if _, ok := c.Get(50); ok {
		t.Error("what was not used is kept")
	}
	c.Drop(func(key int) bool { return key != 99 })
	if n, size := c.Held(); n != 1 || size != 500 {
		t.Errorf("%d values of %d are left", n, size)
	}
	if c.Put(1, "large", 20_000); len(mustGet(t, &c, 1)) == 0 {
		t.Error("one value is kept in any case")
	}
}

func mustGet(t *testing.T, c *lately.Map[int, string], key int) string {
	t.Helper()
	v, ok := c.Get(key)
	if !ok {
		t.Errorf("%d is not kept", key)
	}
	return v
}
