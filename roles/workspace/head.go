package workspace

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"wf/roles/workspace/internal/at"
)

// A Head is what the HEAD of a git repository names.
type Head struct {
	Commit string // 40 or 64 hex digits; "" on a branch without a commit
	Branch string // such as main or fix/it; "" where HEAD names a commit itself
}

// ReadHead reads the HEAD of the repository to which dir belongs, as git finds it upwards from
// there on the same file system. It is nil where there is none, where the repository is of a
// kind that it does not know (reftable, links within .git), and when ctx is done.
//
// git itself would run the programs that the configuration of the repository names; this reads
// HEAD, the file of its branch, packed-refs, commondir and a .git file, and nothing else.
func ReadHead(ctx context.Context, dir *os.Root) *Head {
	f, err := dir.Open(".")
	if err != nil {
		return nil
	}
	defer f.Close()
	git, err := discover(int(f.Fd()))
	if err != nil {
		return nil
	}
	defer git.close()
	h, err := git.head(ctx)
	if err != nil {
		return nil
	}
	return h
}

// Bounds of what is read of a repository.
const (
	smallMax   = 4 << 10 // bytes of HEAD, a ref, commondir or a .git file
	packedLine = 4 << 10 // bytes of a line of packed-refs
	upMax      = 256     // directories above
)

var errOdd = errors.New("an unknown kind of git repository")

// A repository is open by its directories.
type repository struct {
	git    int // with HEAD
	common int // with refs and objects; the same but for a worktree
}

func (r repository) close() {
	unix.Close(r.git)
	if r.common != r.git {
		unix.Close(r.common)
	}
}

// discover finds the repository of a directory; the descriptor of that stays open.
func discover(dir int) (repository, error) {
	top, err := at.Open(dir, ".", unix.O_DIRECTORY)
	if err != nil {
		return repository{}, err
	}
	defer func() { unix.Close(top) }()
	var here, up unix.Stat_t
	if err := unix.Fstat(top, &here); err != nil {
		return repository{}, err
	}
	for range upMax {
		r, err := open(top)
		if !errors.Is(err, unix.ENOENT) {
			return r, err
		}
		next, err := at.Open(top, "..", unix.O_DIRECTORY)
		if err != nil {
			return repository{}, err
		}
		unix.Close(top)
		top = next
		if err := unix.Fstat(top, &up); err != nil {
			return repository{}, err
		}
		if up.Dev != here.Dev || up.Ino == here.Ino { // another file system, or the top
			return repository{}, unix.ENOENT
		}
		here = up
	}
	return repository{}, unix.ENOENT
}

// open opens the repository that has its .git in a directory; ENOENT says that git, too, would
// look above.
func open(dir int) (repository, error) {
	git, err := at.Walk(dir, ".git", 0)
	if err != nil {
		return repository{}, err
	}
	var s unix.Stat_t
	if err := unix.Fstat(git, &s); err != nil {
		unix.Close(git)
		return repository{}, err
	}
	pointed := s.Mode&unix.S_IFMT != unix.S_IFDIR
	if pointed {
		unix.Close(git)
		line, err := small(dir, ".git")
		if err != nil {
			return repository{}, errOdd
		}
		to, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "gitdir: ")
		if !ok {
			return repository{}, errOdd
		}
		if git, err = at.Walk(dir, to, unix.O_DIRECTORY); err != nil {
			return repository{}, errOdd
		}
	}
	r := repository{git, git}
	line, err := small(git, "commondir")
	if err == nil {
		if r.common, err = at.Walk(git, strings.TrimRight(line, "\r\n"), unix.O_DIRECTORY); err != nil {
			r.common = git
		}
	} else if errors.Is(err, unix.ENOENT) {
		err = nil
	}
	if err == nil {
		err = r.check()
	}
	if err != nil {
		r.close()
		if pointed || !errors.Is(err, unix.ENOENT) {
			err = errOdd // git ends here with an error
		}
		return repository{}, err
	}
	return r, nil
}

// check asks for what makes a directory a repository in the eyes of git.
func (r repository) check() error {
	for _, name := range []string{"objects", "refs"} {
		fd, err := at.Walk(r.common, name, unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		unix.Close(fd)
	}
	_, err := small(r.git, "HEAD")
	return err
}

func (r repository) head(ctx context.Context) (*Head, error) {
	// What the HEAD of a repository with a reftable says is there for old programs alone.
	if fd, err := at.Walk(r.common, "reftable", 0); !errors.Is(err, unix.ENOENT) {
		if err == nil {
			unix.Close(fd)
		}
		return nil, errOdd
	}
	line, err := small(r.git, "HEAD")
	if err != nil {
		return nil, err
	}
	to, symbolic := strings.CutPrefix(line, "ref:")
	if !symbolic {
		commit, err := object(line)
		return &Head{Commit: commit}, err
	}
	ref := strings.TrimSpace(to)
	branch, ok := strings.CutPrefix(ref, "refs/heads/")
	if !ok || branch == "" || path.Clean(ref) != ref || strings.ContainsAny(ref, "\x00\n \\") {
		return nil, errOdd
	}
	line, err = small(r.common, ref)
	switch {
	case err == nil:
		commit, err := object(line)
		return &Head{commit, branch}, err
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, at.ErrNoFile):
		commit, err := r.packed(ctx, ref)
		return &Head{commit, branch}, err
	}
	return nil, err
}

// gitDirs are the directories of the repository to which a directory belongs, also where they
// have other names than .git.
func gitDirs(dir *os.Root) []fs.FileInfo {
	f, err := dir.Open(".")
	if err != nil {
		return nil
	}
	defer f.Close()
	r, err := discover(int(f.Fd()))
	if err != nil {
		return nil
	}
	var out []fs.FileInfo
	for _, fd := range slices.Compact([]int{r.git, r.common}) {
		d := os.NewFile(uintptr(fd), ".git")
		if info, err := d.Stat(); err == nil {
			out = append(out, info)
		}
		d.Close()
	}
	return out
}

// packed finds a ref in packed-refs, which is read as a stream, whatever its size; "" where it
// is not in there.
func (r repository) packed(ctx context.Context, ref string) (string, error) {
	f, err := at.Regular(r.common, "packed-refs")
	if errors.Is(err, unix.ENOENT) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, packedLine), packedLine)
	for n := 0; lines.Scan(); n++ {
		if n%1_000 == 0 && ctx.Err() != nil {
			return "", ctx.Err()
		}
		if id, name, ok := strings.Cut(lines.Text(), " "); ok && name == ref {
			return object(id)
		}
	}
	return "", lines.Err()
}

// object is the name of a commit, which a line begins with.
func object(line string) (string, error) {
	id := strings.TrimRight(line, " \t\r\n")
	if _, err := hex.DecodeString(id); err != nil || len(id) != 40 && len(id) != 64 {
		return "", errOdd
	}
	return strings.ToLower(id), nil
}

// small reads a regular file of at most smallMax bytes.
func small(dir int, name string) (string, error) {
	f, err := at.Regular(dir, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, smallMax+1))
	if err == nil && len(b) > smallMax {
		err = errOdd
	}
	return string(b), err
}
