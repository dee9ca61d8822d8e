package ratelimit

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"wf/files"
)

// The file of a ledger holds two copies of the state, each behind a head. They are written in turn, so that a
// process that is killed while it writes leaves the one before: its grant was not made, and it sends nothing.
//
//	magic 8 bytes │ number of the copy 8 │ length 4 │ CRC-32 of what is before and behind 4 │ JSON
const (
	magic    = "wflimit1"
	headSize = 24
	copySize = 128 << 10
)

// errBusy is a ledger that another process keeps locked.
var errBusy = errors.New("another process keeps the file of limits locked")

// errDamaged is a ledger of which no copy can be read.
var errDamaged = errors.New("the file of limits is damaged")

// flockFor locks a file, waiting for at most so long.
func flockFor(f *os.File, shared bool, most time.Duration) error {
	for waited, pause := time.Duration(0), 20*time.Microsecond; ; pause = min(2*pause, 2*time.Millisecond) {
		free, err := files.TryLock(f, shared)
		switch {
		case err != nil || free:
			return err
		case waited >= most:
			return errBusy
		}
		rest := pause/2 + rand.N(pause)
		time.Sleep(rest)
		waited += rest
	}
}

// readState reads the newer copy that is whole, and its number. One that is empty was cut off: none is made so.
func readState(f io.ReaderAt, s *state) (number uint64, err error) {
	var heads [2][headSize]byte
	for i := range heads {
		if _, err := f.ReadAt(heads[i][:], int64(i)*copySize); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
	numberOf := func(i int) uint64 {
		if string(heads[i][:8]) != magic {
			return 0
		}
		return binary.LittleEndian.Uint64(heads[i][8:])
	}
	order := [2]int{0, 1}
	if numberOf(1) > numberOf(0) {
		order = [2]int{1, 0}
	}
	for _, i := range order {
		size := binary.LittleEndian.Uint32(heads[i][16:])
		if numberOf(i) == 0 || numberOf(i)%2 != uint64(i) || size > copySize-headSize {
			continue
		}
		body := make([]byte, size)
		if _, err := f.ReadAt(body, int64(i)*copySize+headSize); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if sum(heads[i][:20], body) != binary.LittleEndian.Uint32(heads[i][20:]) {
			continue
		}
		if json.Unmarshal(body, s) == nil {
			return numberOf(i), nil
		}
	}
	return max(numberOf(0), numberOf(1)), errDamaged
}

func sum(head, body []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, body)
}

// writeState writes a copy in the place of the older one.
func writeState(f io.WriterAt, s *state, number uint64) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if len(body) > copySize-headSize {
		return fmt.Errorf("too many processes share an account: the file of limits would hold %d bytes", len(body))
	}
	b := make([]byte, headSize, headSize+len(body))
	copy(b, magic)
	binary.LittleEndian.PutUint64(b[8:], number)
	binary.LittleEndian.PutUint32(b[16:], uint32(len(body)))
	binary.LittleEndian.PutUint32(b[20:], sum(b[:20], body))
	_, err = f.WriteAt(append(b, body...), int64(number%2)*copySize)
	return err
}

// maxMembers bounds the processes that share an account.
const maxMembers = 512

// memberPath is the file that a process keeps locked.
func memberPath(path string, member int) string { return path + "." + strconv.Itoa(member) }

// join finds the first member that no process is, and becomes it. The ledger is locked.
func join(path string) (*os.File, int, error) {
	for member := 1; member <= maxMembers; member++ {
		f, err := files.OpenFile(memberPath(path, member), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, 0, err
		}
		free, err := files.TryLock(f, false)
		if free {
			return f, member, nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, 0, err
		}
	}
	return nil, 0, fmt.Errorf("more than %d processes share an account", maxMembers)
}

// aliveAt reports whether a process is a member: one whose lock cannot be looked at is taken for alive.
func aliveAt(path string, member int) bool {
	f, err := files.Open(memberPath(path, member))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = files.FreeLock(f) }() // nothing was written
	free, err := files.TryLock(f, true)
	return err != nil || !free
}

// openLedger opens the file of a ledger, and makes it: with a state in it before others find it.
func openLedger(path string, first *state) (*os.File, error) {
	f, err := files.OpenFile(path, os.O_RDWR, 0o600)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := files.MakeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	made, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(made.Name()) // it has another name by then, or is of no use
	if err := errors.Join(writeState(made, first, 1), made.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(made.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return files.OpenFile(path, os.O_RDWR, 0o600)
}
