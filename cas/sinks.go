package cas

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"wf/files"
	"wf/protocol"
)

// OpenSink gives the journal of a sink of notifications, under the head notify/<name>, which begins with its first
// Append. Names are as the scopes of memories.
func OpenSink(s Backing, name string) (*Chain, error) {
	if err := checkScope(name, "name of a sink"); err != nil {
		return nil, err
	}
	return &Chain{s, protocol.NotifyHead(name), "notifications to " + name}, nil
}

// LockSink makes this process the only one that delivers to a sink, until unlock is called or the process ends,
// however it ends; ok is false where another one is.
func (s *Store) LockSink(_ context.Context, name string) (unlockSink func() error, ok bool, err error) {
	sum := sha256.Sum256([]byte(name)) // a name may be too long for one of a file
	path := filepath.Join(s.gate.dir, dirRuns, ".notify-"+hex.EncodeToString(sum[:12]))
	if err := files.MakeDir(filepath.Dir(path)); err != nil {
		return nil, false, fmt.Errorf("lock the sink %s: %w", name, classify(err))
	}
	f, err := openLock(path, false)
	if err != nil {
		return nil, false, fmt.Errorf("lock the sink %s: %w", name, classify(err))
	}
	ok, err = files.TryLock(f, false)
	if err != nil || !ok {
		_ = f.Close() // it holds nothing
		if err != nil {
			err = fmt.Errorf("lock the sink %s: %w", name, classify(err))
		}
		return nil, false, err
	}
	return func() error { return files.FreeLock(f) }, true, nil
}
