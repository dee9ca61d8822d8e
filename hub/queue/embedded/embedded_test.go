package embedded_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

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
				if _, _, err := s.Queue.Submit(t.Context(), queue.Job{ID: id, Workflow: "w"}); err != nil {
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
			if _, _, err := s.Queue.Submit(t.Context(), queue.Job{ID: id, Workflow: "w"}); err != nil {
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
		if err := s.Registry.Announce(t.Context(), queue.Worker{ID: "gone", Name: "gone"}, time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * 24 * time.Hour)
		if _, _, err := s.Queue.Submit(t.Context(), queue.Job{ID: "new", Workflow: "w"}); err != nil {
			t.Fatal(err)
		}
		if err := s.Registry.Announce(t.Context(), queue.Worker{ID: "here", Name: "here"}, time.Second); err != nil {
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
	if _, err := embedded.Open(path); protocol.CodeOf(err) != protocol.ErrStore.Code {
		t.Errorf("a damaged file: %v", err)
	}
}
