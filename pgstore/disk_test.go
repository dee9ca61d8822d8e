package pgstore_test

import (
	"errors"
	"testing"

	"wf/cas"
	"wf/cas/castest"
	"wf/pgstore"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

// small is a server on a disk of its own, and a store on it.
func small(t *testing.T) (srv *pgtest.Server, s *pgstore.Store, dsn string) {
	t.Helper()
	srv, err := pgtest.StartSmall(160 << 20)
	if errors.Is(err, pgtest.ErrNoMount) {
		t.Skip(err)
	}
	srv = started(srv, err)(t)
	dsn = fresh(t, srv)
	return srv, open(t, dsn), dsn
}

// noise is n bytes that do not compress.
func noise(seed uint64, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		out[i] = byte(seed >> 32)
	}
	return out
}

// A batch for which there is no space is refused, with nothing of it stored; with space the store goes on.
func TestFullDisk(t *testing.T) {
	srv, s, dsn := small(t)
	ctx := t.Context()
	j := must(s.Journal(ctx, "r1"))(t)
	if err := srv.Exec(ctx, dsn, `select pg_switch_wal()`); err != nil { // to have a whole file of the log for what follows
		t.Fatal(err)
	}
	castest.Append(t, j, 3)
	if err := srv.Fill(256 << 10); err != nil {
		t.Fatal(err)
	}
	before := ask(t, dsn, `select count(*) from wf.reflog`)
	for i, size := range []int{2 << 20, 3 << 20, 9 << 20} { // the last one sends its blocks ahead
		var blocks []cas.Block
		for n := range 3 {
			blocks = append(blocks, cas.Raw(noise(uint64(1000*i+n+1), size/3)))
		}
		_, err := j.Append(ctx, castest.Now, draft, blocks)
		if !errors.Is(err, protocol.ErrDiskFull) || errors.Is(err, protocol.ErrUnreachable) {
			t.Fatalf("%d bytes: %v", size, err)
		}
		for _, b := range blocks {
			if ok := must(castest.Has(ctx, s, b.Link))(t); ok {
				t.Errorf("%d bytes: a block of them is stored", size)
			}
		}
	}
	if h := must(s.Head(ctx, "run/r1"))(t); h.Seq != 3 {
		t.Errorf("the head is at %d, want 3", h.Seq)
	}
	if n := ask(t, dsn, `select count(*) from wf.reflog`); n != before {
		t.Errorf("%d moves are stored, want %d", n, before)
	}
	if err := srv.Free(); err != nil {
		t.Fatal(err)
	}
	if got := castest.Append(t, j, 1); got[0].Seq != 4 {
		t.Errorf("then event %d, want 4", got[0].Seq)
	}
	b := cas.Raw(noise(7, 3<<20))
	if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{b}}); err != nil {
		t.Error(err)
	}
}

// The log of the server finds no space, which ends the server. The outcome of what was under way is settled when it is back.
func TestFullDiskUnderTheLog(t *testing.T) {
	srv, s, dsn := small(t)
	ctx := t.Context()
	j := must(s.Journal(ctx, "r1"))(t)
	castest.Append(t, j, 3)
	before := ask(t, dsn, moved)
	if err := srv.Fill(0); err != nil {
		t.Fatal(err)
	}
	if err := srv.Exec(ctx, dsn, `select pg_switch_wal()`); err != nil { // the next file of the log does not exist yet
		t.Log("the server ended at once:", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := j.Append(ctx, castest.Now, draft, nil)
		done <- err
	}()
	srv.Wait() // it cannot recover on a full disk
	select {
	case err := <-done:
		t.Errorf("without a server: %v", err)
	default:
	}
	if err := errors.Join(srv.Free(), srv.Restart()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := ask(t, dsn, moved); n != before+1 {
		t.Errorf("%d moves, want %d", n, before+1)
	}
	if got := castest.Append(t, j, 1); got[0].Seq != 5 {
		t.Errorf("then event %d, want 5", got[0].Seq)
	}
}
