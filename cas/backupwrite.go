package cas

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"wf/files"
)

// gentleRest is how many times as long as it worked a gentle backup rests.
const gentleRest = 30

// jobsAhead is how many parts may wait for the goroutine that writes: as much as a bundle has, while the one before it is synced.
const jobsAhead = 32

// writing runs a function with a goroutine beside it that writes what the function gives to later, in order: of what is in the
// directory of a backup one goroutine alone changes anything. The first error of either ends both.
func (b *backup) writing(ctx context.Context, read func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	b.buf = make([]byte, 0, gentleBundleBuf)
	if !b.o.Gentle {
		b.buf = make([]byte, 0, bundleBuf)
		defer oneMore()()
	}
	b.jobs = make(chan func() error, jobsAhead)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for job := range b.jobs {
			if ctx.Err() != nil {
				continue
			}
			if err := job(); err != nil {
				stop(err)
			}
		}
	}()
	err := read(ctx)
	if err == nil {
		err = b.later(ctx, b.flush)
	}
	close(b.jobs)
	<-over
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if b.bundle != nil {
		err = errors.Join(err, b.bundle.drop())
	}
	return err
}

// oneMore gives Go one more processor: the goroutine that writes keeps that on which it waits for the disk for up to 10 ms each time,
// while another one would have work for it.
func oneMore() (undo func()) {
	was := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(was + 1)
	return func() { runtime.GOMAXPROCS(was) }
}

// later has something written behind what was given before; a gentle backup does so at once.
func (b *backup) later(ctx context.Context, job func() error) error {
	if b.o.Gentle {
		return job()
	}
	select {
	case b.jobs <- job:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// rest gives the machine to others, in a gentle backup.
func (b *backup) rest(ctx context.Context, begun time.Time) {
	if b.o.Gentle {
		select {
		case <-time.After(min(time.Since(begun)*gentleRest, 10*time.Second)): // a machine may have slept meanwhile
		case <-ctx.Done():
		}
	}
}

// copy writes a pack unless a bundle has it, and the blob file that it names.
func (b *backup) copy(p *backupPack, stored []byte) error {
	if p.blob {
		if err := b.blob(stored[1:]); err != nil {
			return err
		}
	}
	if b.known[p.sum] {
		return nil
	}
	b.known[p.sum] = true
	return b.add(p.sum, stored)
}

// add writes a pack to the bundle that is written.
func (b *backup) add(sum [32]byte, stored []byte) (err error) {
	if err := b.s.opts.before(OpBackup); err != nil {
		return err
	}
	if b.bundle == nil {
		if b.bundle, err = newBundle(filepath.Join(b.dir, dirPacks), b.buf); err != nil {
			return err
		}
	}
	if err := b.bundle.add(sum, stored); err != nil {
		return err
	}
	b.copied += int64(len(stored))
	if b.bundle.size < bundleMax {
		return nil
	}
	return b.flush()
}

// flush ends the bundle that is written.
func (b *backup) flush() error {
	x := b.bundle
	if x == nil {
		return nil
	}
	name, err := x.finish()
	if err != nil {
		return err
	}
	path := filepath.Join(b.dir, dirPacks, name)
	if err := files.Replace(path+".list", x.list); err != nil {
		return err
	}
	err = x.f.Close()
	if err == nil {
		err = b.s.opts.before(OpBackup)
	}
	if err == nil {
		err = os.Rename(x.f.Name(), path)
	}
	if err != nil {
		return err
	}
	b.bundle = nil
	b.m.Bundles = append(b.m.Bundles, BackupFile{name, x.size})
	return files.SyncDir(filepath.Dir(path))
}

// blob copies a blob file, which was hashed when the graph was made.
func (b *backup) blob(digest []byte) error {
	name := hex.EncodeToString(digest)
	b.m.Blobs = append(b.m.Blobs, name)
	data, err := readData(b.s.blobPath(digest))
	if err != nil {
		return err
	}
	b.m.Bytes += int64(len(data))
	to := filepath.Join(b.dir, dirBlobs, name[:2], name)
	if old, err := os.Lstat(to); err == nil && old.Mode().IsRegular() && old.Size() == int64(len(data)) {
		return nil
	}
	if err := b.s.opts.before(OpBackup); err != nil {
		return err
	}
	if err := files.MakeDir(filepath.Dir(to)); err != nil {
		return err
	}
	b.copied += int64(len(data))
	return files.Replace(to, data)
}
