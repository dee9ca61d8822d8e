package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace/internal/at"
)

// Taking says what Take takes of a directory.
type Taking struct {
	Choose   tree.Chooser
	MaxSize  int64 // bytes of a file
	MaxTotal int64 // bytes of all files
	MaxFiles int   // files and links
	// Put keeps a block. What it gets belongs to it. nil keeps none.
	Put func(tree.Block) error
	// Scan makes a scanner of one file: it is written to, and Close tells what the file holds that must not be
	// kept, "" for nothing. nil lets everything in.
	Scan func() Scanner
	// Whole takes a directory as it is: one without files is kept, and a file over MaxSize is omitted.
	Whole bool
	// Hidden is told of each name that no tree has, with the path of it: those of git and wf, and such as are too long. It is
	// called once at a time; nil wants to know none.
	Hidden func(path string, mode fs.FileMode)
	// Dry only counts: nothing is read or put, and there is no tree.
	Dry bool
	// Seen is what was seen of the files before; what has not changed since is not read. It is nil where nothing is known, and
	// remembers what was taken.
	Seen *Seen
}

// A Scanner looks for what must not be kept.
type Scanner interface {
	io.Writer
	Close() (found string)
}

// A LimitError is a file that is too much.
type LimitError struct {
	Path string // of the file
	What string // what is too large, in words
	Key  string // of the limit: max_size, max_total or max_files
}

func (e *LimitError) Error() string { return e.Path + ": " + e.What }

// looksMax is how many names a taking looks at, chosen or not.
const looksMax = tree.WalkMax

// Take reads the files that globs choose below a directory, as blocks of a tree. Links are kept as text and
// never followed. What is no file, cannot be read, holds what must not be kept or changes each time it is read
// is omitted. Directories without anything chosen are left out, .git and .wf always. files is how many entries
// the tree has; with none, and not t.Whole, the link is null and nothing was put.
//
// A file is read as it is at one moment, or omitted; a process that goes on writing through a mapping can
// escape this. What lies beyond a limit is a *LimitError.
func Take(ctx context.Context, root string, t Taking) (link protocol.Link, files int, err error) {
	top, err := unix.Open(Opened(root), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) // it may be a link itself
	if err != nil {
		return link, 0, fmt.Errorf("workspace: %w", err)
	}
	x := &taker{Taking: t, ctx: ctx, spare: make(chan struct{}, spares(t.Whole))}
	if t.Seen != nil {
		if err := t.Seen.begin(top); err != nil {
			unix.Close(top)
			return link, 0, err
		}
	}
	e, err := x.dir(top, "", t.Choose, 1)
	if t.Seen != nil && err == nil {
		t.Seen.end(e.Link)
	}
	return e.Link, int(x.files.Load()), err
}

// spares is how many directories are taken beside another: system calls are most of the time. Where a limit may end the
// taking there are none, so that it is always the same file which is too much.
func spares(whole bool) int {
	if !whole {
		return 0
	}
	return min(runtime.GOMAXPROCS(0), 8) - 1
}

type taker struct {
	Taking
	ctx   context.Context
	spare chan struct{} // what is in it works
	files atomic.Int64
	total atomic.Int64
	looks atomic.Int64
	puts  sync.Mutex
	opens func(fd int) // called for each file that is read; nil for nothing
}

type buffer [128 << 10]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// whole reads content that is one block. One that is longer or shorter than size is tree.ErrChanged.
func (b *buffer) whole(r io.Reader, size int64) ([]byte, error) {
	n, err := io.ReadFull(r, b[:size+1])
	if int64(n) == size && (err == io.EOF || err == io.ErrUnexpectedEOF) {
		return b[:n], nil
	}
	if err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
		err = tree.ErrChanged
	}
	return nil, err
}

// keep is Put for one at a time.
func (x *taker) keep(b tree.Block) error {
	if x.Put == nil {
		return nil
	}
	x.puts.Lock()
	defer x.puts.Unlock()
	return x.Put(b)
}

// another counts a file, and reports whether there are too many.
func (x *taker) another(path string) error {
	if x.files.Add(1) > int64(x.MaxFiles) {
		return &LimitError{path, fmt.Sprintf("more than %d files", x.MaxFiles), "max_files"}
	}
	return nil
}

// dir takes an open directory, which it closes; a zero entry is one without anything.
func (x *taker) dir(fd int, path string, spot tree.Chooser, depth int) (tree.Entry, error) {
	defer unix.Close(fd)
	seen := x.Seen.dir(path)
	names, err := x.names(fd, path)
	if err != nil {
		return tree.Entry{}, err
	}
	all, err := x.entries(fd, names, path, spot, depth, seen)
	if err != nil {
		return tree.Entry{}, err
	}
	entries := all[:0]
	var size int64
	for _, e := range all {
		if e.Name == "" || len(entries) > 0 && entries[len(entries)-1].Name >= e.Name { // a name that was written otherwise
			continue
		}
		entries = append(entries, e)
		if e.Mode != tree.Omitted && e.Mode != tree.Link {
			size += e.Size
		}
	}
	if len(entries) == 0 && !x.Whole || x.Dry {
		return tree.Entry{}, nil
	}
	if link, ok := seen.same(entries); ok {
		return tree.Entry{Mode: tree.Dir, Link: link, Size: size}, nil
	}
	blocks, err := tree.Encode(entries)
	if err != nil {
		return tree.Entry{}, fmt.Errorf("%s: %w", path, err)
	}
	for _, b := range blocks {
		if err := x.keep(b); err != nil {
			return tree.Entry{}, err
		}
	}
	top := blocks[len(blocks)-1].Link
	seen.keep(entries, top)
	return tree.Entry{Mode: tree.Dir, Link: top, Size: size}, nil
}

// entries are what lies under the names of a directory.
func (x *taker) entries(dir int, names []string, path string, spot tree.Chooser, depth int, seen *seenDir) ([]tree.Entry, error) {
	out, errs := make([]tree.Entry, len(names)), make([]error, len(names))
	var beside sync.WaitGroup
	for i, name := range names {
		e, below, err := x.entry(dir, name, path, spot, seen)
		if err != nil {
			errs[i] = err
			break
		}
		if !below {
			out[i] = e
			continue
		}
		select {
		case x.spare <- struct{}{}:
			beside.Go(func() {
				out[i], errs[i] = x.below(dir, name, path, spot, depth)
				<-x.spare
			})
			continue
		default:
		}
		if out[i], errs[i] = x.below(dir, name, path, spot, depth); errs[i] != nil {
			break
		}
	}
	beside.Wait()
	return out, cmp.Or(errs...)
}

// names are those in a directory, sorted as they are written in a tree.
func (x *taker) names(fd int, path string) (out []string, err error) {
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	for {
		n, err := at.Names(fd, buf[:])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if n <= 0 {
			slices.SortFunc(out, func(a, b string) int { return strings.Compare(written(a), written(b)) })
			return slices.Compact(out), nil // one that was removed and made anew meanwhile may come twice
		}
		before := len(out)
		_, _, out = unix.ParseDirent(buf[:n], -1, out)
		if x.looks.Add(int64(len(out)-before)) > looksMax {
			return nil, &LimitError{path, fmt.Sprintf("more than %d files to look at", looksMax), "max_files"}
		}
		if err := x.ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// written is a name as a tree can hold it: each byte that is no UTF-8 is \xHH.
func written(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, n := utf8.DecodeRuneInString(name)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, name[0])
		} else {
			b.WriteString(name[:n])
		}
		name = name[n:]
	}
	return b.String()
}

// entry takes what lies under a name, if it is no directory; a zero entry is left out.
func (x *taker) entry(dir int, name, path string, spot tree.Chooser, seen *seenDir) (e tree.Entry, below bool, err error) {
	if err := x.ctx.Err(); err != nil {
		return e, false, err
	}
	as := written(name)
	if tree.CheckName(as) != "" { // .git, .wf, or longer than a name may be
		return e, false, x.hidden(dir, name, join(path, as))
	}
	s, err := at.Stat(dir, name)
	if errors.Is(err, unix.ENOENT) {
		return e, false, nil
	}
	if err == nil && s.Mode&unix.S_IFMT == unix.S_IFDIR {
		return e, true, nil
	}
	if !spot.Takes(name) {
		return e, false, nil
	}
	path = join(path, as)
	if err := x.another(path); err != nil {
		return e, false, err
	}
	e = tree.Entry{Name: as, Mode: tree.Omitted}
	switch {
	case name != e.Name:
		e.Why = tree.WhyName
	case err != nil:
		e.Why = tree.WhyDenied
	case x.Dry && s.Mode&unix.S_IFMT == unix.S_IFREG && s.Size <= x.MaxSize:
		if x.total.Add(s.Size) > x.MaxTotal {
			return e, false, x.tooMuch(path)
		}
	case x.Dry:
	case s.Mode&unix.S_IFMT == unix.S_IFLNK:
		e, err = x.link(dir, e)
		return e, false, err
	case s.Mode&unix.S_IFMT != unix.S_IFREG:
		e.Why = tree.WhySpecial
	default:
		was := statOf(&s)
		if known, ok := seen.file(e.Name, was); ok {
			x.total.Add(known.Size)
			return known, false, nil
		}
		e, err = x.file(dir, path, e, s.Size, seen)
		return e, false, err
	}
	return e, false, nil
}

// below takes a directory in the directory.
func (x *taker) below(dir int, name, path string, spot tree.Chooser, depth int) (tree.Entry, error) {
	inner, err := spot.Enter(name)
	if inner == nil || err != nil {
		return tree.Entry{}, err
	}
	e := tree.Entry{Name: written(name), Mode: tree.Omitted}
	path = join(path, e.Name)
	fd := -1
	if name != e.Name {
		e.Why = tree.WhyName
	} else if depth >= tree.DepthMax {
		return e, &LimitError{path, fmt.Sprintf("more than %d directories within each other", tree.DepthMax), "max_files"}
	} else if fd, err = at.Open(dir, name, unix.O_DIRECTORY); errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return tree.Entry{}, nil // it went away
	} else if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		e.Why = tree.WhyDenied
	} else if err != nil {
		return e, fmt.Errorf("%s: %w", path, err)
	}
	if e.Why != "" {
		return e, x.another(path)
	}
	took, err := x.dir(fd, path, inner, depth+1)
	if took.Mode == "" {
		return tree.Entry{}, err
	}
	took.Name = e.Name
	return took, err
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// link takes the text of a link.
func (x *taker) link(dir int, e tree.Entry) (tree.Entry, error) {
	text, err := at.Link(dir, e.Name)
	if err != nil {
		e.Why = tree.WhyUnstable
		return e, nil
	}
	if found := x.scan([]byte(text)); found != "" {
		e.Why = tree.WhySecret
		return e, nil
	}
	b := tree.Raw([]byte(text))
	e.Mode, e.Link, e.Size = tree.Link, b.Link, int64(len(text))
	return e, x.keep(b)
}

func (x *taker) scan(b []byte) string {
	if x.Scan == nil {
		return ""
	}
	s := x.Scan()
	_, _ = s.Write(b) // a scanner has no errors
	return s.Close()
}

func (x *taker) tooMuch(path string) error {
	return &LimitError{path, fmt.Sprintf("with it the files have more than %d bytes", x.MaxTotal), "max_total"}
}

// readings is how often a file is read that changes meanwhile.
const readings = 4

// file takes a regular file.
func (x *taker) file(dir int, path string, e tree.Entry, size int64, seen *seenDir) (tree.Entry, error) {
	for range readings {
		if size > x.MaxSize && x.Whole {
			e.Why, e.Size = tree.WhySize, size
			return e, nil
		}
		if size > x.MaxSize {
			return e, &LimitError{path, fmt.Sprintf("a file of %d bytes, and max_size is %d", size, x.MaxSize), "max_size"}
		}
		if x.total.Load()+size > x.MaxTotal {
			return e, x.tooMuch(path)
		}
		took, stat, err := x.reading(dir, e)
		if errors.Is(err, tree.ErrChanged) {
			size = stat.size
			continue
		}
		if err != nil {
			return e, fmt.Errorf("%s: %w", path, err)
		}
		if took.Mode != tree.Omitted {
			x.total.Add(took.Size)
		}
		seen.remember(took, stat)
		return took, nil
	}
	e.Why = tree.WhyUnstable
	return e, nil
}

// reading reads a file once, and tells its stat: that of the content, or, with tree.ErrChanged, the present one.
func (x *taker) reading(dir int, e tree.Entry) (took tree.Entry, is stat, err error) {
	f, s, err := at.Readable(dir, e.Name)
	switch {
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		e.Why = tree.WhyDenied
		return e, is, nil
	case errors.Is(err, at.ErrNoFile) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO):
		e.Why = tree.WhyUnstable // another thing lies there now
		return e, is, nil
	case err != nil:
		return e, is, err
	}
	defer unix.Close(int(f))
	if x.opens != nil {
		x.opens(int(f))
	}
	before := statOf(&s)
	size := before.size
	if size > x.MaxSize || x.total.Load()+size > x.MaxTotal {
		return e, before, tree.ErrChanged
	}
	defer func() {
		after, look := statFile(int(f))
		if is = after; look != nil || after != before {
			err = errors.Join(look, tree.ErrChanged)
		}
	}()
	e.Size = size
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	if x.Scan != nil { // to the end, before anything of it is kept
		s := x.Scan()
		_, err = io.CopyBuffer(s, struct{ io.Reader }{io.LimitReader(f, size)}, buf[:])
		if err != nil {
			return e, is, err
		}
		if s.Close() != "" {
			e.Why = tree.WhySecret
			return e, is, nil
		}
		if now, err := statFile(int(f)); err != nil || now != before {
			return e, is, errors.Join(err, tree.ErrChanged)
		}
		if _, err = unix.Seek(int(f), 0, io.SeekStart); err != nil {
			return e, is, err
		}
	}
	e.Mode = tree.File
	if before.exec {
		e.Mode = tree.Exec
	}
	if x.Put == nil && size <= tree.WholeMax {
		var b []byte
		if b, err = buf.whole(f, size); err == nil {
			e.Link = protocol.RawLink(b)
		}
		return e, is, err
	}
	e.Link, err = tree.Content(f, size, x.keep)
	return e, is, err
}

// stat tells whether a file is as it was. Times are nanoseconds of the file system's clock.
type stat struct {
	ino          uint64
	size         int64
	mtime, ctime int64
	exec         bool
}

func statOf(s *unix.Stat_t) stat {
	return stat{s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano(), s.Mode&0o100 != 0}
}

func statFile(fd int) (stat, error) {
	var s unix.Stat_t
	err := unix.Fstat(fd, &s)
	return statOf(&s), err
}
