package workspace

import (
	"bytes"
	"fmt"
	"path"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"wf/protocol/tree"
	"wf/roles/workspace/internal/at"
)

// How much is written before it is put in place, and how many do that side by side.
const (
	restoreFiles   = 8192
	restoreBytes   = 256 << 20
	restoreJobs    = 128 // each has a directory open
	restoreJobMax  = 256 // files of a directory
	restoreWorkers = 8
)

// restoreMany is how many changes are worth that the whole file system is flushed.
const restoreMany = 16

// A restoreJob are changes of files in one directory. It is worked on by one goroutine at a time.
type restoreJob struct {
	restorer // with what becomes of these files alone
	told     Restored
	ready    []placing // written beside their places
	way      string    // of the directory, from the top
	changes  []tree.Change
	dir      int // -1 while it is not open
	err      error
}

// A restoreBatch are changes of files, which do not depend on each other, and directories that are removed behind them.
//
//	each job: look, write beside ──► all on disk ──► each job: change places, look at what came out
type restoreBatch struct {
	jobs  []*restoreJob
	files int
	bytes int64
	dirs  []tree.Change
}

// take takes in a change that makes no directory.
func (b *restoreBatch) take(x *restorer, c tree.Change) {
	if c.Before.Mode != tree.Dir {
		b.add(x, c)
		return
	}
	b.dirs = append(b.dirs, c)
}

// add takes a change of a file.
func (b *restoreBatch) add(x *restorer, c tree.Change) {
	way, _ := path.Split(c.Path)
	if n := len(b.jobs); n == 0 || b.jobs[n-1].way != way || len(b.jobs[n-1].changes) == restoreJobMax {
		j := &restoreJob{restorer: *x, way: way, dir: -1}
		j.out = &j.told
		b.jobs = append(b.jobs, j)
	}
	j := b.jobs[len(b.jobs)-1]
	j.changes = append(j.changes, c)
	b.files++
	b.bytes += c.After.Size
}

func (b *restoreBatch) full() bool {
	return b.files+len(b.dirs) >= restoreFiles || b.bytes >= restoreBytes || len(b.jobs) >= restoreJobs
}

// run makes the changes. What was written and is not in place is removed where one of them fails.
func (b *restoreBatch) run(x *restorer) error {
	defer func() {
		for _, j := range b.jobs {
			j.drop()
		}
	}()
	if err := b.each(x, (*restoreJob).write); err != nil {
		return err
	}
	if x.many && b.written() {
		if err := at.Flush(x.root); err != nil {
			return err
		}
	}
	if err := b.each(x, (*restoreJob).place); err != nil {
		return err
	}
	for _, c := range b.dirs {
		if err := x.change(c); err != nil {
			return fmt.Errorf("%s: %w", c.Path, err)
		}
		x.count()
	}
	return nil
}

func (b *restoreBatch) written() bool {
	for _, j := range b.jobs {
		if len(j.ready) > 0 {
			return true
		}
	}
	return false
}

// each has workers do all jobs, and tells in the order of the jobs what became of them. The error is that of the first job that failed.
func (b *restoreBatch) each(x *restorer, do func(*restoreJob)) error {
	workers := min(restoreWorkers, runtime.GOMAXPROCS(0), len(b.jobs))
	if x.Keep != nil {
		workers = 1 // it takes one file at a time
	}
	var next atomic.Int64
	var failed atomic.Bool
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(b.jobs)) && !failed.Load(); i = next.Add(1) - 1 {
				if do(b.jobs[i]); b.jobs[i].err != nil {
					failed.Store(true)
				}
			}
		})
	}
	all.Wait()
	var err error
	for _, j := range b.jobs {
		x.out.Changed = append(x.out.Changed, j.told.Changed...)
		x.out.Kept = append(x.out.Kept, j.told.Kept...)
		x.out.Conflicts = append(x.out.Conflicts, j.told.Conflicts...)
		j.told = Restored{}
		if err == nil {
			err = j.err
		}
	}
	return err
}

// write writes the files of the job beside their places, and removes those that go.
func (j *restoreJob) write() {
	dir, err := at.Walk(j.root, path.Join(".", j.way), unix.O_DIRECTORY)
	if err == nil {
		j.dir = dir
	}
	clean := err == nil && clean(dir, len(j.changes))
	for _, c := range j.changes {
		if j.err = j.ctx.Err(); j.err != nil {
			return
		}
		omitted, oerr := j.omitted(c)
		switch {
		case omitted:
			j.err = oerr
		case err == nil:
			p, ready := placingOf(dir, c), false
			if ready, j.err = j.file(p, clean); ready && j.err == nil {
				j.ready = append(j.ready, p)
			}
		default:
			j.err = j.noDirectory(c, err)
		}
		if j.err != nil {
			j.err = fmt.Errorf("%s: %w", c.Path, j.err)
			return
		}
		j.count()
	}
}

// clean reports whether an open directory surely has none of the names that are made beside those of files. That of a large one, or
// for few files, is not worth its reading.
func clean(dir, files int) bool {
	if files < restoreMany {
		return false
	}
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	for range 2 {
		n, err := at.Names(dir, buf[:])
		if err != nil || bytes.Contains(buf[:n], []byte(freshBegin)) || bytes.Contains(buf[:n], []byte(asideBegin)) {
			return false
		}
		if n == 0 {
			return true
		}
	}
	return false
}

// place puts in place what was written.
func (j *restoreJob) place() {
	for len(j.ready) > 0 {
		p := j.ready[0]
		j.ready = j.ready[1:]
		if err := j.swap(p); err != nil {
			j.err = fmt.Errorf("%s: %w", p.Path, err)
			return
		}
	}
	if j.dir >= 0 && !j.many {
		j.err = at.Sync(j.dir)
	}
}

// drop removes what was written and is not in place.
func (j *restoreJob) drop() {
	for _, p := range j.ready {
		_ = unix.Unlinkat(p.dir, p.fresh, 0)
	}
	j.ready = nil
	if j.dir >= 0 {
		unix.Close(j.dir)
		j.dir = -1
	}
}
