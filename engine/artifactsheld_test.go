package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/protocol/tree"
)

// noise writes a file of bytes that no store can make smaller, and that differ by seed.
func (b *bench) noise(name string, seed uint64, size int) {
	b.t.Helper()
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(data) // has no errors
	if err := os.WriteFile(filepath.Join(b.dir, name), data, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// proven reads all that a store holds again, and fails the test where anything is missing.
func (b *bench) proven() {
	b.t.Helper()
	r, err := cas.Verify(context.Background(), inDir(b.e), cas.VerifyOptions{})
	if err != nil || !r.OK {
		b.t.Fatalf("%v, %+v", err, r.Findings)
	}
}

// A collection after each commit of visits that store artifacts in several batches is refused while nothing leads to these, and so
// removes nothing of them.
func TestO06bACollectionBesideATakingLosesNothing(t *testing.T) {
	b := newBench(t)
	for i, name := range []string{"a", "b"} {
		b.noise(name, uint64(i), 5<<20) // a batch, and more
	}
	other, err := cas.Open(t.Context(), filepath.Join(b.dir, ".wf"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var swept, refused atomic.Int64
	inDir(b.e).Observe(func(what cas.Op, _ time.Duration, _ error) {
		if what != cas.OpBatch {
			return
		}
		switch _, err := cas.GC(context.Background(), other, cas.GCOptions{}); {
		case errors.Is(err, protocol.ErrBusy):
			refused.Add(1)
		case err != nil:
			t.Error(err)
		default:
			swept.Add(1)
		}
	})
	_, v := b.run(`
wf: 1
name: two
roles:
  a: {run: 'true', artifacts: [a]}
  b: {run: 'true', artifacts: [b]}
edges:
  - {from: START, to: [a, b]}
  - {from: [a, b], to: END}
`, nil)
	inDir(b.e).Observe(nil)
	if swept.Load() == 0 || refused.Load() < 2 {
		t.Errorf("%d collections, and %d that were refused", swept.Load(), refused.Load())
	}
	if v.Status != protocol.Done {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	if _, err := cas.GC(t.Context(), other, cas.GCOptions{}); err != nil { // nothing keeps it away any more
		t.Fatal(err)
	}
	b.proven()
	b.sound(v.ID)
}

// A process that dies between the batches of a taking, or before the record that leads to them, leaves a run that is made whole
// by going on with it. What it had stored in vain goes with the next collection.
func TestO06bADeathBetweenTheBatchesOfATakingLosesNothing(t *testing.T) {
	const yaml = "wf: 1\nname: big\nroles: {a: {run: 'true', artifacts: [big]}}\n"
	vain := int64(0)
	for n := 6; ; n += 3 { // a commit has four of them
		b := newBench(t)
		b.noise("big", 1, 5<<20)
		p := b.load(yaml)
		id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: p, Source: []byte(yaml), Inputs: protocol.JSON("{}"), Workspace: b.dir})
		if err != nil {
			t.Fatal(err)
		}
		b.crashing(n)
		_, err = b.e.Drive(t.Context(), id, engine.DriveOptions{By: "test"})
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatalf("operation %d: %v", n, err)
		}
		inDir(b.e).Close() // what holds collections away goes with the process
		b.open()
		if err == nil { // it came to its end
			if vain < 4e6 {
				t.Fatalf("%d operations on disk are enough, and what nothing leads to had %d bytes at most", n, vain)
			}
			return
		}
		b.noise("big", 2, 100) // so that nothing leads to what was stored before, unless the record was among it
		v := b.drive(id)
		if v.Status != protocol.Done || v.Steps[0].Artifacts == nil {
			t.Fatalf("operation %d: %s: %s", n, v.Status, v.Reason)
		}
		r, err := cas.GC(t.Context(), inDir(b.e), cas.GCOptions{})
		if err != nil {
			t.Fatal(err)
		}
		vain = max(vain, r.Bytes)
		b.proven()
		root, _ := protocol.ParseLink(*v.Steps[0].Artifacts)
		e, err := tree.Find(func(l protocol.Link) ([]byte, error) { return b.e.Store.Block(t.Context(), l) }, root, "big")
		if err != nil || e.Size != 100 && e.Size != 5<<20 {
			t.Fatalf("operation %d: %+v, %v", n, e, err)
		}
	}
}
