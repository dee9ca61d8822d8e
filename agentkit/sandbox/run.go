package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/protocol"
	"wf/roles/workspace"
	"wf/roles/workspace/appear"
)

// Run runs a command under a policy until everything that it started has ended, and gives its
// exit status as a shell tells it: 128+n after signal n. The command has no
// terminal. stdout and stderr are each written by one goroutine of its own, or, where they are the same,
// by one for both.
//
// When ctx is done the command gets SIGTERM, and SIGKILL after its grace; Run then returns ctx's
// error. An error that wraps ErrUnavailable means that the machine cannot confine commands, one that wraps
// protocol.ErrUnseen that a part of the workspace cannot be looked at, and any other that this command could not be started. None of
// them has run anything. An error that wraps protocol.ErrLeft is an alarm: the command ran, and left what could not be removed.
func Run(ctx context.Context, p Policy, args []string, stdout, stderr io.Writer) (int, error) {
	at := probed()
	if !at.tier.Holds {
		return 0, at.tier.refusal()
	}
	release, err := p.hold()
	if err != nil {
		return 0, fmt.Errorf("confine %s: %w", args[0], err)
	}
	defer release()
	for again := startsMax - 1; ; again-- {
		code, err := p.once(ctx, at, args, stdout, stderr)
		if again == 0 || !errors.Is(err, errMoved) && !errors.Is(err, protocol.ErrUnseen) {
			return code, err
		}
	}
}

// startsMax is how often a command is started whose workspace changes meanwhile.
const startsMax = 3

func (p Policy) once(ctx context.Context, at found, args []string, stdout, stderr io.Writer) (int, error) {
	l, err := p.launch(at, args)
	if err != nil {
		return 0, fmt.Errorf("confine %s: %w", args[0], err)
	}
	defer l.letGo()
	return l.clean(ctx, at.flags(p), stdout, stderr)
}

// clean runs a launch, and undoes what it did to a repository that would have the user's own git run
// programs of its choice. It tells what else appeared.
func (l *launch) clean(ctx context.Context, flags uintptr, stdout, stderr io.Writer) (int, error) {
	code, err := l.run(ctx, flags, stdout, stderr)
	undone := l.control.undo()
	a := undone.appeared(l.span.End())
	if l.leave != nil {
		l.leave()
	}
	if a != nil && l.appeared != nil {
		l.appeared(a)
	}
	failed := undone.alarm(l.At)
	if to, text := cmp.Or(stderr, stdout), undone.String(); text != "" && to != nil {
		if _, err := io.WriteString(to, text); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	if failed != nil {
		return code, errors.Join(failed, err)
	}
	return code, err
}

// errHome refuses a workspace in which the walls would protect nothing.
var errHome = errors.New("the workspace holds the home directory, so a sandbox would protect nothing: work in a directory of the project")

// holdsSecrets reports whether a home directory is one that people keep keys in.
func holdsSecrets(home string) bool {
	for _, name := range []string{
		".ssh", ".gnupg", ".aws", ".azure", ".config", ".docker", ".kube", ".password-store", ".mozilla", ".local/share/keyrings",
		".netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".cargo/credentials.toml", ".bash_history", ".zsh_history",
	} {
		if _, err := os.Lstat(filepath.Join(home, name)); !errors.Is(err, os.ErrNotExist) {
			return true
		}
	}
	return false
}

// launch puts a policy into the words of the launcher: paths that exist, links resolved. What needs many
// looks at the machine is left to the launch's look.
func (p Policy) launch(at found, args []string) (launch, error) {
	work, err := filepath.EvalSymlinks(p.Workspace)
	if err != nil {
		return launch{}, err
	}
	dir := work
	if p.Dir != "" {
		if dir, err = workspace.Real(p.Dir); err != nil {
			return launch{}, err
		}
		if !within(dir, work) {
			return launch{}, fmt.Errorf("the directory %s leads outside of the workspace %s", p.Dir, work)
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		if real, err := filepath.EvalSymlinks(home); err == nil {
			home = real
		}
		if within(home, work) && holdsSecrets(home) {
			return launch{}, errHome
		}
	}
	place := work
	if p.At != "" && at.tier.Namespaces {
		if place, err = filepath.EvalSymlinks(p.At); err != nil {
			return launch{}, err
		}
	}
	own, err := p.at.made()
	if err != nil {
		return launch{}, err
	}
	host := hostOf(os.LookupEnv, append(own.dirs(), work)...)
	watch, err := appear.Of(work)
	if err != nil {
		return launch{}, err
	}
	var overlays []overlay
	var held []*os.File
	if len(p.Hosts) > 0 && !p.Network && !at.tier.Namespaces {
		return launch{}, fmt.Errorf("%w to a list of hosts: that needs a network namespace", ErrUnavailable)
	}
	devices, err := host.devices(p.Devices)
	if err != nil {
		return launch{}, err
	}
	var agent string
	if p.SSHAgent {
		if agent, err = host.sshAgent(at.tier); err != nil {
			return launch{}, err
		}
	}
	var program string // of GOCACHEPROG
	var given []string
	switch {
	case p.alone:
	case at.tier.Namespaces:
		overlays, held, err = p.layers(own, host)
	case p.Network || p.Reused:
		program, given, held, err = host.seedProgram(own.goCache)
	}
	if err != nil {
		return launch{}, err
	}
	view := workspace.ViewOf(work)
	if view != nil && !at.tier.Namespaces {
		return launch{}, at.tier.refusal()
	}
	var seen []symlink
	if at.tier.Namespaces {
		if seen, err = own.seen(); err != nil {
			return launch{}, err
		}
	}
	l := launch{
		Places: seen, view: view, Args: args, Dir: dir, Work: work, At: place, Tmp: own.tmp, Overlays: overlays, layers: held, Devices: devices, SSHAgent: agent,
		ABI: at.tier.ABI, Namespaces: at.tier.Namespaces, NetNS: at.tier.Namespaces && !p.Network, Network: p.Network,
		Write: []string{work, own.tmp, own.home, own.goCache, own.cache},
		Plain: p.Plain, Limits: p.Limits.filled(), Grace: cmp.Or(p.Grace, DefaultGrace), stdin: p.Stdin, met: p.Met, appeared: p.Appeared,
	}
	if !p.Network {
		l.Hosts = p.Hosts
	}
	if p.online() {
		l.Write = append(l.Write, own.modules)
	}
	l.look = func(l *launch) error {
		if err := l.clear(); err != nil {
			return err
		}
		l.Env = own.environ(host, p, overlays, l.place)
		for i, pair := range l.Env {
			if pwd, ok := strings.CutPrefix(pair, "PWD="+p.Workspace); ok && l.moved() {
				l.Env[i] = "PWD=" + p.At + pwd
			}
		}
		if l.SSHAgent != "" {
			l.Env = append(l.Env, "SSH_AUTH_SOCK="+agentSocket)
		}
		if program != "" {
			l.Env = append(l.Env, "GOCACHEPROG="+program)
		}
		if p.Lasting {
			l.leave = watch.Enter()
		} else {
			l.span = watch.Begin()
		}
		var err error
		if l.control, err = protected(work, dir, watch.Repositories()); err != nil {
			return err
		}
		if at.tier.Namespaces {
			watch.Unprotected(l.control.unprotected)
			if l.Sockets, err = sockets(work, watch); err != nil {
				return err
			}
		}
		l.Protect, l.Anchors = l.control.paths, l.control.anchors
		readable := slices.Concat(host.readable(), p.Read, given)
		l.Read = host.existing(readable)
		if linked := workspace.Linked(work); linked != "" && !slices.Contains(l.Read, linked) {
			l.Read = append(l.Read, linked) // it was found without links, and none is followed to it
		}
		if l.Namespaces {
			l.Links = slices.DeleteFunc(host.links(append(append(readable, p.Workspace, p.Dir, p.At), p.Devices...)), func(s symlink) bool { return inside(s.Path, l.Write) })
		}
		return nil
	}
	return l, nil
}

// within reports whether path is dir or lies in it; both are clean and absolute.
func within(path, dir string) bool {
	return path == dir || dir == "/" || len(path) > len(dir) && path[len(dir)] == '/' && strings.HasPrefix(path, dir)
}

func inside(path string, of []string) bool {
	return slices.ContainsFunc(of, func(dir string) bool { return within(path, dir) })
}
