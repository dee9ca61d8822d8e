//go:build unix && !linux

package cas

import (
	"errors"
	"os"

	bolt "go.etcd.io/bbolt"
)

// setDirect is for Linux only.
func setDirect(*os.File, bool) error { return errors.ErrUnsupported }

// readAhead is for Linux only.
func readAhead(*bolt.Tx) {}
