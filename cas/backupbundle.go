package cas

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"os"
	"syscall"
)

// bundle is a file of packs that is written: past the cache of the system where that can be. A backup is not read soon, to
// copy it there costs as much as to hash it, and what waits there for the disk holds up the commits of live runs all at once.
type bundle struct {
	f      *os.File
	direct bool   // past the cache
	buf    []byte // that is to be written
	sum    hash.Hash
	size   int64 // with what is in buf
	list   []byte
}

const (
	bundleMax = 64 << 20
	// bundleBuf is what is written at a time; of a gentle backup less, so that a commit of a live run waits behind little.
	bundleBuf       = 4 << 20
	gentleBundleBuf = 256 << 10

	directBlock = 4096 // what lengths past the cache are multiples of
)

// newBundle begins a file. It is written as much at a time as the buffer has room for; Go lays out what is that large on whole pages.
func newBundle(dir string, buf []byte) (*bundle, error) {
	f, err := os.CreateTemp(dir, bundleNew+"*")
	if err != nil {
		return nil, err
	}
	return &bundle{f: f, direct: setDirect(f, true) == nil, buf: buf[:0], sum: sha256.New()}, nil
}

// add writes a pack.
func (x *bundle) add(sum [32]byte, stored []byte) error {
	head := binary.AppendUvarint(nil, uint64(len(stored)))
	x.size += int64(len(head) + len(stored))
	x.list = append(x.list, sum[:]...)
	return errors.Join(x.write(head), x.write(stored))
}

func (x *bundle) write(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), cap(x.buf)-len(x.buf))
		x.buf, p = append(x.buf, p[:n]...), p[n:]
		if len(x.buf) == cap(x.buf) {
			if err := x.spill(); err != nil {
				return err
			}
		}
	}
	return nil
}

// spill writes the buffer.
func (x *bundle) spill() error {
	x.sum.Write(x.buf)
	n, err := x.f.Write(x.buf)
	if x.direct && errors.Is(err, syscall.EINVAL) { // the file system would, and the disk has larger sectors
		if err = x.undirect(); err == nil {
			_, err = x.f.Write(x.buf[n:])
		}
	}
	x.buf = x.buf[:0]
	return err
}

func (x *bundle) undirect() error {
	x.direct = false
	return setDirect(x.f, false)
}

// settle waits until little of what was written waits for the disk.
func (x *bundle) settle() error {
	if x.direct {
		return nil
	}
	return errors.Join(x.spill(), x.f.Sync())
}

// finish makes the file durable, and tells the name of its contents.
func (x *bundle) finish() (name string, err error) {
	if x.direct && len(x.buf)%directBlock != 0 {
		err = x.undirect()
	}
	if err == nil {
		err = errors.Join(x.spill(), x.f.Sync())
	}
	return hex.EncodeToString(x.sum.Sum(nil)), err
}

func (x *bundle) drop() error {
	_ = x.f.Close() // it may be closed; nothing of it is kept
	return removeIfThere(x.f.Name())
}
