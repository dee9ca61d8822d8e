// Package pgtest runs a PostgreSQL of its own for tests: in a directory that goes away, on a unix socket there, and never as root.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrMissing is that this machine has no PostgreSQL.
var ErrMissing = errors.New("there is no PostgreSQL here: neither postgres in PATH nor /usr/lib/postgresql/*/bin")

// Server is a PostgreSQL. Its methods are not safe for concurrent use, but for Database and DSN.
type Server struct {
	bin, dir string
	owner    *syscall.SysProcAttr
	cmd      *exec.Cmd
	log      bytes.Buffer
	over     chan struct{} // closed when the process has ended
	names    atomic.Int64
}

// bin is the directory of the programs of the newest version.
func bin() (string, error) {
	if p, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(p), nil
	}
	all, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(all) == 0 {
		return "", ErrMissing
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0 for another name
		return n
	}
	slices.SortFunc(all, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(all[len(all)-1]), nil
}

// Start makes a database cluster and starts it with these settings ("fsync=off").
func Start(settings ...string) (s *Server, err error) {
	s = &Server{}
	if s.bin, err = bin(); err != nil {
		return nil, err
	}
	const nobody = 65534
	in, root := "", os.Geteuid() == 0
	if root {
		in = "/var/tmp" // the directories of tests are root's alone
	}
	if s.dir, err = os.MkdirTemp(in, "wf-pg-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if root { // PostgreSQL refuses to run as root
		s.owner = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if err := os.Chown(s.dir, nobody, nobody); err != nil {
			return s, err
		}
	}
	init := s.command("initdb", "-D", s.data(), "-U", "wf", "-A", "trust", "-E", "UTF8", "--locale=C", "--data-checksums", "-N")
	if out, err := init.CombinedOutput(); err != nil {
		return s, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.auto.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return s, err
	}
	_, err = fmt.Fprintf(f, "%s\n", strings.Join(append([]string{"listen_addresses=''", "unix_socket_directories='" + s.dir + "'", "max_connections=60",
		"shared_buffers='16MB'", "idle_in_transaction_session_timeout='10s'"}, settings...), "\n"))
	if err := errors.Join(err, f.Close()); err != nil {
		return s, err
	}
	return s, s.Restart()
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.SysProcAttr, cmd.Dir = s.owner, s.dir
	cmd.Env = []string{"PATH=" + s.bin + ":/usr/bin:/bin", "LC_ALL=C"}
	return cmd
}

// patience is how long a server may take to start, or to end.
const patience = time.Minute

// Restart starts the server, after Start or Kill, and waits until it answers.
func (s *Server) Restart() error {
	begun := time.Now()
	for {
		s.log.Reset()
		s.cmd, s.over = s.command("postgres", "-D", s.data()), make(chan struct{})
		s.cmd.Stderr, s.cmd.Stdout = &s.log, &s.log
		if err := s.cmd.Start(); err != nil {
			return err
		}
		go func(cmd *exec.Cmd, over chan struct{}) {
			_ = cmd.Wait() // how it ended is told by its log
			close(over)
		}(s.cmd, s.over)
		ended, err := s.answers(begun)
		if err == nil {
			return nil
		}
		if !ended || time.Since(begun) > patience {
			return fmt.Errorf("postgres does not start: %w\n%s", err, s.log.String())
		}
		// What a killed one left in shared memory is freed when its last process has ended.
	}
}

// answers waits until the server answers; ended is that it has ended instead.
func (s *Server) answers(begun time.Time) (ended bool, err error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var c *pgconn.PgConn
		if c, err = pgconn.Connect(context.Background(), s.DSN("postgres")); err == nil {
			return false, c.Close(context.Background())
		}
		select {
		case <-s.over:
			return true, err
		case <-tick.C:
			if time.Since(begun) > patience {
				return false, err
			}
		}
	}
}

// DSN is the address of a database of the server.
func (s *Server) DSN(database string) string {
	return "postgres://wf@/" + database + "?host=" + s.dir
}

// Socket is the path of the socket on which the server listens.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }

// Database makes a new database and gives its address.
func (s *Server) Database(ctx context.Context) (string, error) {
	name := fmt.Sprint("t", s.names.Add(1))
	return s.DSN(name), s.Exec(ctx, s.DSN("postgres"), "create database "+name+" template template0")
}

// Exec performs SQL at an address.
func (s *Server) Exec(ctx context.Context, dsn, sql string) error {
	_, err := s.Ask(ctx, dsn, sql)
	return err
}

// Ask performs SQL at an address, and gives the first column of the last answer.
func (s *Server) Ask(ctx context.Context, dsn, sql string) (out []string, err error) {
	c, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	all, err := c.Exec(ctx, sql).ReadAll()
	if len(all) > 0 {
		for _, r := range all[len(all)-1].Rows {
			out = append(out, string(r[0]))
		}
	}
	return out, errors.Join(err, c.Close(ctx))
}

// Kill ends all processes of the server at once, by SIGKILL.
func (s *Server) Kill() error {
	pid := strconv.Itoa(s.cmd.Process.Pid)
	children, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children") // elsewhere they end by themselves, soon after
	err := s.cmd.Process.Kill()
	for _, child := range strings.Fields(string(children)) {
		if n, bad := strconv.Atoi(child); bad == nil {
			_ = syscall.Kill(n, syscall.SIGKILL) // it may have ended
		}
	}
	<-s.over
	return err
}

// Stop ends the server and removes its directory.
func (s *Server) Stop() error {
	if s.over != nil {
		_ = s.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
		select {
		case <-s.over:
		case <-time.After(patience):
			_ = s.Kill()
		}
	}
	return os.RemoveAll(s.dir)
}
