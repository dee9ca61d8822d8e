// Package embedded keeps a queue, a registry and pointers in one bbolt file, for a hub that
// is one process.
//
//	file ──Open──► memory ──every read──► caller
//	                 ▲
//	  change ──one transaction──► file, then memory
//
// Everything but the boxes is small and is held in memory; the file is there for the next start. What a
// method returned is in the file before. Two things are not written at once, because the next
// start finds them anyway: that a lease lapsed follows from its time, and which runs a worker
// has and how far they are follows from what it says.
//
// # Buckets
//
//	meta      version 2, epoch of the newest lease
//	jobs      number of the submission, 8 bytes big-endian → JSON of the job
//	boxes     number of the submission → its box, until it is done
//	workers    id → JSON of the worker
//	pointers  run → JSON of the pointer
//
// # Not promised
//
// Several processes on one file: the second one waits a second and gets an error.
package embedded

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"wf/hub/queue/line"
	"wf/protocol"
)

// keep is for how long workers that are gone are remembered.
const keep = 7 * 24 * time.Hour

// Store holds the three parts of what a hub keeps.
type Store struct {
	Queue    *line.Queue
	Registry *Registry
	Pointers *Pointers

	db *bbolt.DB
}

var (
	metaBucket     = []byte("meta")
	jobsBucket     = []byte("jobs")
	boxesBucket    = []byte("boxes")
	workersBucket  = []byte("agents")
	pointersBucket = []byte("pointers")

	versionKey = []byte("version")
	epochKey   = []byte("epoch")
)

// version 1 had no boxes: its jobs that waited are dead, and can be submitted again.
const version = 2

// Open opens the store in the file at path, and makes it when there is none. A file that is held by
// another process is an error wrapping protocol.ErrBusy, one of a newer version one wrapping
// protocol.ErrNewerStore.
func Open(path string) (*Store, error) {
	db, err := openFile(path)
	if err != nil {
		return nil, err
	}
	s := &Store{Queue: line.New(&keeper{db: db}), Registry: newRegistry(db), Pointers: newPointers(db), db: db}
	err = s.db.View(func(tx *bbolt.Tx) error {
		return errors.Join(s.Registry.load(tx), s.Pointers.load(tx))
	})
	if err = errors.Join(err, s.Queue.Sync(context.Background())); err != nil {
		s.Queue.Close()
		return nil, errors.Join(damaged(path, err), s.db.Close())
	}
	return s, nil
}

// damaged is the error of a file that cannot be read.
func damaged(path string, err error) error {
	return protocol.ErrStore.With("look at the disk and at its permissions; moved away, the file is made anew: jobs that waited in it are lost, and clients submit them again",
		"hub data %s: %v", path, err)
}

func openFile(path string) (*bbolt.DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("hub data %s: %w: %w", path, err, protocol.ErrStore)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("hub data %s: another hub has it open: %w", path, protocol.ErrBusy)
	case err != nil:
		return nil, damaged(path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{metaBucket, jobsBucket, boxesBucket, workersBucket, pointersBucket} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket(metaBucket)
		switch v := number(meta.Get(versionKey)); {
		case v > version:
			return fmt.Errorf("version %d, this wf knows %d: %w", v, version, protocol.ErrNewerStore)
		case v == version:
			return nil
		}
		return meta.Put(versionKey, key(version))
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hub data %s: %w", path, err), db.Close())
	}
	return db, nil
}

// Close writes what was left in memory and closes the file. Waiting calls get queue.ErrClosed.
func (s *Store) Close() error {
	s.Queue.Close()
	s.Registry.close()
	return errors.Join(s.Pointers.close(), s.db.Close())
}

// put writes v as JSON.
func put(b *bbolt.Bucket, k []byte, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.Put(k, data)
}

func key(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// number reads a key; nil is 0.
func number(b []byte) uint64 {
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}
