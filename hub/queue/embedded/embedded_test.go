package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"wf/hub/queue"
	"wf/hub/queue/embedded"
	"wf/hub/queue/queuetest"
	"wf/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, path string) *embedded.Store {
	t.Helper()
	s, err := embedded.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOnDisk(t *testing.T) {
	queuetest.Exercise(t, func(t *testing.T, dir string) queuetest.Backend {
		s := open(t, filepath.Join(dir, "hub", "hub.db"))
		return queuetest.Backend{Queue: s.Queue, Registry: s.Registry, Pointers: s.Pointers, Close: s.Close}
	})
}

// A hub that lost its disk gives larger epochs than before, so that a holder of an old lease
// stays behind.
func TestEpochsGrowWithoutTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last uint64
		for range 3 {
			s := open(t, filepath.Join(t.TempDir(), "hub.db"))
			for _, id := range []string{"a", "b"} {
				if _, _, err := s.Queue.Submit(t.Context(), queue.Job{ID: id, Workflow: "w"}, sealed); err != nil {
					t.Fatal(err)
				}
				l, err := s.Queue.Lease(t.Context(), "x", nil, time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				if l.Entry().Epoch <= last {
					t.Errorf("epoch %d after %d", l.Entry().Epoch, last)
				}
				last = l.Entry().Epoch
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestOldThingsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "hub.db")
		s := open(t, path)
		for _, id := range []string{"done", "dead", "open"} {
			if _, _, err := s.Queue.Submit(t.Context(), queue.Job{ID: id, Workflow: "w"}, sealed); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Queue.Settle(t.Context(), queue.Job{ID: "done", Workflow: "w"}, "x", "R"); err != nil {
			t.Fatal(err)
		}
		l, err := s.Queue.Lease(t.Context(), "x", nil, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Dead(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Registry.Announce(t.Context(), queue.Worker{ID: "gone", Name: "gone"}, time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * 24 * time.Hour)
		if _, _, err := s.Queue.Submit(t.Context(), queue.Job{ID: "new", Workflow: "w"}, sealed); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Registry.Announce(t.Context(), queue.Worker{ID: "here", Name: "here"}, time.Second); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			jobs, err := s.Queue.List(t.Context())
			if err != nil || len(jobs) != 2 || jobs[0].ID != "open" || jobs[1].ID != "new" {
				t.Errorf("have %+v, %v", jobs, err)
			}
			if _, err := s.Queue.Find(t.Context(), "done"); protocol.CodeOf(err) != queue.ErrUnknownJob.Code {
				t.Errorf("the done job: %v", err)
			}
			workers, err := s.Registry.List(t.Context())
			if err != nil || len(workers) != 1 || workers[0].ID != "here" {
				t.Errorf("have %+v, %v", workers, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, path)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// All other calls wait for the disk meanwhile: it is asked once, however many jobs a worker could open.
func TestAWorkerIsForgottenInOneTransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hub.db")
	s := open(t, path)
	defer func() { _ = s.Close() }()
	const n = 50
	for i := range n {
		if _, _, err := s.Queue.Submit(t.Context(), queue.Job{ID: fmt.Sprint("j", i), Workflow: "w"}, sealed); err != nil {
			t.Fatal(err)
		}
	}
	written := func() int {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		tx, err := db.Begin(false)
		if err != nil {
			t.Fatal(err)
		}
		id := tx.ID()
		if err := errors.Join(tx.Rollback(), db.Close()); err != nil {
			t.Fatal(err)
		}
		s = open(t, path)
		return id
	}
	before := written()
	opening := written() - before
	if err := s.Queue.Forget(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if got := written() - before - 2*opening; got > 1 {
		t.Errorf("%d transactions for %d jobs", got, n)
	}
	if st, err := s.Queue.Stats(t.Context()); err != nil || st.Dead != n || st.Queued != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestAFileThatIsHeldOrDamagedIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hub.db")
	s := open(t, path)
	if _, err := embedded.Open(path); protocol.CodeOf(err) != protocol.ErrBusy.Code {
		t.Errorf("the second open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, 16384), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Open(path); protocol.CodeOf(err) != protocol.ErrStore.Code || !strings.Contains(protocol.HintOf(err), "clients submit them again") {
		t.Errorf("a damaged file: %v", err)
	}
}

var sealed = queue.Sealed{Box: []byte("box"), Keys: []queue.Key{{Worker: "x"}}}

// A file of version 1 has no boxes: its jobs that waited are dead for that reason, and can be submitted again.
func TestAFileOfVersion1Opens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hub.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for bucket, rows := range map[string]map[string]string{
			"meta": {"version": "\x00\x00\x00\x00\x00\x00\x00\x01"},
			"jobs": {
				"\x00\x00\x00\x00\x00\x00\x00\x01": `{"id":"waits","workflow":"w","state":"queued","since":"2026-01-05T04:00:00Z","attempts":1,"agent":"x","epoch":5,"why":"lapsed","number":1,"ttl":30000000000,"until":"0001-01-01T00:00:00Z"}`,
				"\x00\x00\x00\x00\x00\x00\x00\x02": `{"id":"leased","workflow":"w","state":"leased","since":"2026-01-05T04:00:00Z","attempts":1,"agent":"x","epoch":6,"number":2,"ttl":30000000000,"until":"2026-01-05T04:00:30Z"}`,
				"\x00\x00\x00\x00\x00\x00\x00\x03": `{"id":"done","workflow":"w","state":"done","since":"2026-01-05T04:00:00Z","attempts":1,"agent":"x","epoch":7,"run":"R","number":3}`,
			},
			"agents":   {"x": `{"id":"x","name":"x","version":"1","caps":["w"],"runs":2,"since":"2026-01-05T04:00:00Z","last_seen":"2026-01-05T04:00:00Z","connected":true}`},
			"pointers": {"R": `{"run":"R","agent":"x","epoch":7,"seq":3,"head":"c","revision":1}`},
		} {
			b, err := tx.CreateBucket([]byte(bucket))
			for k, v := range rows {
				err = errors.Join(err, b.Put([]byte(k), []byte(v)))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	for id, want := range map[string]queue.State{"waits": queue.Dead, "leased": queue.Dead, "done": queue.Done} {
		e, err := s.Queue.Find(t.Context(), id)
		if err != nil || e.State != want || want == queue.Dead && e.Why != queue.ErrBodyGone.Code {
			t.Errorf("%s: %+v, %v", id, e, err)
		}
	}
	if e, err := s.Queue.Resubmit(t.Context(), queue.Job{ID: "waits", Workflow: "w"}, sealed); err != nil || e.State != queue.Queued {
		t.Errorf("submitted again: %+v, %v", e, err)
	}
	if p, err := s.Pointers.Get(t.Context(), "R"); err != nil || p.Worker != "x" || p.Seq != 3 {
		t.Errorf("pointer %+v, %v", p, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
