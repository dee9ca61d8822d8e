package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"wf/api"
	"wf/files"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles"
	"wf/service/query"
)

// A Committing is a git commit of what the steps of runs wrote in a workspace. Whatever git does there is said by files that an agent
// may have written (config, hooks, filters): all of it runs as an agent's commands do, within their walls.
type Committing struct {
	Local     *Local
	Workspace string // the top of a git repository
	Message   string
	Paths     []string // from there: they are staged; none: what is staged
	All       bool     // files that git knows and that were changed or removed are staged
	NoVerify  bool     // hooks of git are left out
	DryRun    bool     // nothing is committed, and what is staged stays so
	// Looks are what runs recorded in the workspace, from the newest on, and Read reads what they name.
	Looks func(yield func(*api.Looks, error) bool)
	Read  tree.Read
	Tell  func(text string) // gets what git says of the commit
}

// Bounds of a commit: of paths beyond commitPaths it is not told which steps wrote them.
const (
	commitPaths = 10_000
	gitSaysMax  = 256 << 20 // bytes
)

// ErrNothingStaged says that there is nothing to commit.
var ErrNothingStaged = &protocol.Error{Code: "nothing_staged", Message: "nothing is staged for a commit", Hint: "name paths, or --all for every changed file that git knows; git add stages others"}

// Commit stages, finds out which steps wrote what the commit adds, and commits with a trailer for each.
func (c *Committing) Commit(ctx context.Context) (*api.Commit, error) {
	if err := c.fits(); err != nil {
		return nil, err
	}
	if err := c.stage(ctx); err != nil {
		return nil, err
	}
	paths, err := c.staged(ctx)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, ErrNothingStaged
	}
	if err := c.authors(paths); err != nil {
		return nil, err
	}
	out := &api.Commit{Schema: "wf.commit/v1", Trailers: []string{}, Paths: []api.CommittedPath{}}
	for _, p := range paths {
		told := api.CommittedPath{Path: p.Path, By: p.By, Why: p.Untold}
		if told.By == nil {
			told.By = []api.Author{}
		}
		out.Paths = append(out.Paths, told)
		for _, a := range p.By {
			if line := a.Trailer(); !slices.Contains(out.Trailers, line) {
				out.Trailers = append(out.Trailers, line)
			}
		}
	}
	slices.Sort(out.Trailers)
	if c.DryRun {
		return out, nil
	}
	return out, c.commit(ctx, out)
}

// Overlap reports whether one of two directories lies in the other, or both are the same.
func Overlap(a, b string) bool {
	within := func(dir, of string) bool {
		rel, err := filepath.Rel(of, dir)
		return err == nil && filepath.IsLocal(rel)
	}
	return within(a, b) || within(b, a)
}

// fits refuses a workspace that is not the top of a repository of its own: the walls let a command write no other one.
func (c *Committing) fits() error {
	if !files.Exists(filepath.Join(c.Workspace, ".git")) {
		return protocol.ErrUsage.With("wf blame FILE tells which steps wrote a file; git commit --trailer 'Wf-Step: RUN:STEP' notes one", "%s is not the top of a git repository", c.Workspace)
	}
	return nil
}

// stage adds what is to be committed to the index.
func (c *Committing) stage(ctx context.Context) error {
	switch {
	case c.DryRun && (c.All || len(c.Paths) > 0):
		return protocol.ErrUsage.With("git add stages files", "--dry-run tells of what is staged, and stages nothing")
	case len(c.Paths) > 0:
		var list bytes.Buffer
		for _, p := range c.Paths {
			list.WriteString(p + "\x00")
		}
		_, err := c.git(ctx, "git --literal-pathspecs add --all --pathspec-from-file=- --pathspec-file-nul", list.Bytes())
		return err
	case c.All:
		_, err := c.git(ctx, "git add --update", nil)
		return err
	}
	return nil
}

// staged lists what is staged, with the content of before and now.
func (c *Committing) staged(ctx context.Context) ([]*query.Committed, error) {
	list, err := c.git(ctx, "git diff --cached --name-only --no-renames --no-ext-diff -z", nil)
	if err != nil {
		return nil, err
	}
	var out, asked []*query.Committed
	var names bytes.Buffer
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if name == "" {
			continue
		}
		p := &query.Committed{Path: name}
		out = append(out, p)
		switch {
		case len(out) > commitPaths:
			p.Untold = fmt.Sprintf("of more than %d paths of one commit it is not found out", commitPaths)
		case strings.Contains(name, "\n"):
			p.Untold = "its name has a line break"
		default:
			asked = append(asked, p)
			fmt.Fprintf(&names, "HEAD:%s\n:%s\n", name, name)
		}
	}
	if len(asked) == 0 {
		return out, nil
	}
	sizes, err := c.git(ctx, "git cat-file --batch-check='%(objecttype) %(objectsize) %(objectname)'", names.Bytes())
	if err != nil {
		return nil, err
	}
	return out, c.contents(ctx, asked, sizes)
}

// contents reads what lies at the paths, before and now.
func (c *Committing) contents(ctx context.Context, asked []*query.Committed, sizes []byte) error {
	lines := strings.Split(strings.TrimSuffix(string(sizes), "\n"), "\n")
	if len(lines) != 2*len(asked) {
		return fmt.Errorf("git tells of %d files where %d were asked for: %w", len(lines), 2*len(asked), protocol.ErrCorrupt)
	}
	var objects bytes.Buffer
	var to []*[]byte
	total := int64(0)
	for i, line := range lines {
		p := asked[i/2]
		kind, rest, _ := strings.Cut(line, " ")
		size, object, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseInt(size, 10, 64)
		switch {
		case kind == "blob" && err == nil && n <= query.BlameMax && total+n <= gitSaysMax/2:
			total += n
			fmt.Fprintln(&objects, object)
			to = append(to, [2]*[]byte{&p.Was, &p.Now}[i%2])
		case kind == "blob":
			p.Untold = fmt.Sprintf("it is larger than %d bytes, or all of them together", query.BlameMax)
		case kind == "commit":
			p.Untold = "it is a submodule"
		}
	}
	said, err := c.git(ctx, "git cat-file --batch='%(objectsize)'", objects.Bytes())
	if err != nil {
		return err
	}
	for _, into := range to {
		head, rest, _ := bytes.Cut(said, []byte("\n"))
		n, err := strconv.Atoi(string(head))
		if err != nil || n < 0 || n >= len(rest) {
			return fmt.Errorf("git does not tell a file as it was asked: %w", protocol.ErrCorrupt)
		}
		*into, said = rest[:n:n], rest[n+1:]
	}
	return nil
}

// authors finds which steps wrote what the commit adds.
func (c *Committing) authors(paths []*query.Committed) error {
	for l, err := range c.Looks {
		if err != nil {
			return err
		}
		told := true
		for _, p := range paths {
			path, err := filepath.Rel(l.Workspace, filepath.Join(c.Workspace, p.Path))
			if err == nil && filepath.IsLocal(path) {
				err = query.Authors(c.Read, l, filepath.ToSlash(path), p)
			}
			if err != nil {
				return fmt.Errorf("which steps of run %s wrote %q: %w", l.Run, p.Path, err)
			}
			told = told && p.Told()
		}
		if told {
			return nil
		}
	}
	return nil
}

// commit makes the commit.
func (c *Committing) commit(ctx context.Context, out *api.Commit) error {
	line := "git interpret-trailers"
	for _, t := range out.Trailers {
		line += " --trailer " + quoted(t)
	}
	line += " | git commit --file=-"
	if c.NoVerify {
		line += " --no-verify"
	}
	said, err := c.git(ctx, line, []byte(strings.TrimRight(c.Message, "\n")+"\n"))
	if err != nil {
		return err
	}
	if c.Tell != nil {
		c.Tell(string(said))
	}
	hash, err := c.git(ctx, "git rev-parse HEAD", nil)
	out.Commit = strings.TrimSpace(string(hash))
	return err
}

// git runs a command line of git within the walls of agents' commands, in the workspace, and gives what it wrote.
func (c *Committing) git(ctx context.Context, line string, stdin []byte) ([]byte, error) {
	in, err := os.CreateTemp("", "wf-commit-")
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if err := os.Remove(in.Name()); err != nil {
		return nil, err
	}
	if _, err := in.Write(stdin); err != nil {
		return nil, err
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	said, failed := &bounded{max: gitSaysMax}, &bounded{max: 64 << 10}
	walls := c.Local.Engine.Performers[protocol.ActRun].(*roles.Run).Walls
	code, err := walls.Run(ctx, roles.Command{Line: line, Workspace: c.Workspace, Dir: c.Workspace, Env: []string{"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"},
		Stdin: in, Stdout: said, Stderr: failed, Grace: roles.DefaultGrace})
	switch {
	case err != nil:
		return nil, fmt.Errorf("git in %s: %w", c.Workspace, err)
	case code != 0:
		why := strings.TrimSpace(failed.String() + "\n" + said.String())
		return nil, fmt.Errorf("git in %s ended with %d: %s: %w", c.Workspace, code, why[:min(len(why), 2000)], ErrGit)
	case said.over:
		return nil, fmt.Errorf("git in %s wrote more than %d bytes: %w", c.Workspace, gitSaysMax, errors.ErrUnsupported)
	}
	return said.Bytes(), nil
}

// ErrGit says that git did not do what it was asked for.
var ErrGit = &protocol.Error{Code: "git", Message: "git failed", Hint: "it ran as an agent's commands do, without a network, signing keys and an editor; --no-verify leaves hooks out, and git commit --trailer 'Wf-Step: RUN:STEP' commits as you"}

// bounded keeps so many bytes.
type bounded struct {
	bytes.Buffer
	max  int
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.max - b.Len()
	b.over = b.over || len(p) > room
	b.Buffer.Write(p[:min(len(p), room)])
	return len(p), nil
}
