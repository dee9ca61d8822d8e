package workspace

import (
	"errors"
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
	restoreJobMax  = 64  // files of a directory
	restoreWorkers = 8
)

// A restoreJob are changes of files in one directory. It is worked on by one goroutine at a time.
type restoreJob struct {
	restorer // with what becomes of these files alone
	told     Restored
	way      string // of the directory, from the top
	changes  []tree.Change
	dir      int // -1 while it is not open
	err      error
}

// A restoreBatch are changes of files alone: they do not depend on each other.
//
//	each job: look, write beside ──► all on disk ──► each job: change places, look at what came out
type restoreBatch struct {
	jobs  []*restoreJob
	files int
	bytes int64
}

// add takes a change of a file.
func (b *restoreBatch) add(x *restorer, c tree.Change) {
	way, _ := path.Split(c.Path)
	if n := len(b.jobs); n == 0 || b.jobs[n-1].way != way || len(b.jobs[n-1].changes) == restoreJobMax {
		j := &restoreJob{restorer: *x, way: way, dir: -1}
		j.out, j.ready = &j.told, nil
		b.jobs = append(b.jobs, j)
	}
	j := b.jobs[len(b.jobs)-1]
	j.changes = append(j.changes, c)
	b.files++
	b.bytes += c.After.Size
}

func (b *restoreBatch) full() bool {
	return b.files >= restoreFiles || b.bytes >= restoreBytes || len(b.jobs) >= restoreJobs
}

// run makes the changes. What was written and is not in place is removed where one of them fails.
func (b *restoreBatch) run(x *restorer) error {
	if len(b.jobs) == 0 {
		return nil
	}
	defer func() {
		for _, j := range b.jobs {
			j.drop()
		}
	}()
	workers := min(restoreWorkers, runtime.GOMAXPROCS(0), len(b.jobs))
	if x.Keep != nil {
		workers = 1 // it takes one file at a time
	}
	if err := b.each(workers, x, (*restoreJob).write); err != nil {
		return err
	}
	if b.written() {
		if err := at.Flush(x.root); err != nil {
			return err
		}
	}
	return b.each(workers, x, (*restoreJob).place)
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
func (b *restoreBatch) each(workers int, x *restorer, do func(*restoreJob)) error {
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
	for _, c := range j.changes {
		if j.err = j.ctx.Err(); j.err != nil {
			return
		}
		omitted, oerr := j.omitted(c)
		switch {
		case omitted:
			j.err = oerr
		case err == nil:
			j.err = j.file(dir, path.Base(c.Path), c)
		case !errors.Is(err, unix.ENOENT) || c.After.Mode != "":
			j.err = j.conflict(c.Path, "its directory is not there: %v", err)
		}
		if j.err != nil {
			j.err = fmt.Errorf("%s: %w", c.Path, j.err)
			return
		}
		j.count()
	}
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
}

// drop removes what was written and is not in place.
func (j *restoreJob) drop() {
	for _, p := range j.ready {
		_ = unix.Unlinkat(p.dir, fresh(p.name), 0)
	}
	j.ready = nil
	if j.dir >= 0 {
		unix.Close(j.dir)
		j.dir = -1
	}
}
