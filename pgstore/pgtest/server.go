// Package pgtest runs a PostgreSQL of its own for tests, with a standby and a pooler where one is wanted: in directories that go away, on
// unix sockets there, and never as root.
//
//	Start ──► Server ──► Standby ──► Promote       two servers, one address: DSN
//	             └─────► NewBouncer, NewProxy      what may lie between it and its clients
package pgtest

import (
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

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrMissing is that this machine lacks a program.
var ErrMissing = errors.New("this machine lacks a program")

// Server is a PostgreSQL. Its methods are not safe for concurrent use, but for Database, DSN, Exec and Ask.
type Server struct {
	program
	bin    string
	copied bool // of the cluster that was made once
	names  atomic.Int64
}

// bin is the directory of the programs of the newest version.
func bin() (string, error) {
	if p, err := exec.LookPath("postgres"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil { // not all of them may be linked to where one is
			return filepath.Dir(p), nil
		}
	}
	all, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(all) == 0 {
		return "", fmt.Errorf("%w: postgres, neither in PATH nor in /usr/lib/postgresql/*/bin", ErrMissing)
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0 for another name
		return n
	}
	slices.SortFunc(all, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(all[len(all)-1]), nil
}

// newServer is a server whose cluster is made by cluster, with settings added ("fsync=off"). It is not started.
func newServer(cluster func(*Server) error, settings ...string) (s *Server, err error) {
	s = &Server{}
	if s.bin, err = bin(); err != nil {
		return nil, err
	}
	if s.program, err = newProgram("wf-pg-"); err != nil {
		return nil, err
	}
	if err = cluster(s); err == nil {
		err = s.Set(append(settings, "unix_socket_directories='"+s.dir+"'")...)
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Start makes a database cluster and starts it with these settings ("fsync=off").
func Start(settings ...string) (*Server, error) { return start(copyCluster, settings...) }

func start(cluster func(*Server) error, settings ...string) (*Server, error) {
	s, err := newServer(cluster, append([]string{"listen_addresses=''", "max_connections=60", "shared_buffers='16MB'", "dynamic_shared_memory_type=mmap", // in its directory, so that nothing of a killed one is left
		"idle_in_transaction_session_timeout='10s'"}, settings...)...)
	if err != nil {
		return nil, err
	}
	if err := s.Restart(); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Set adds settings, for the next time that the server starts.
func (s *Server) Set(settings ...string) error {
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.auto.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, strings.Join(settings, "\n"))
	return errors.Join(err, f.Close())
}

// Restart starts the server, after Start or Kill, and waits until it answers.
func (s *Server) Restart() error {
	for tries := 0; ; tries++ {
		if err := s.start(filepath.Join(s.bin, "postgres"), "-D", s.data()); err != nil {
			return err
		}
		ended, err := s.until(func() error { return s.Exec(context.Background(), s.DSN("postgres"), "") })
		if err == nil {
			return nil
		}
		// What a killed one left in shared memory is freed when its last process has ended.
		if !ended || tries == 1000 || !strings.Contains(s.said(), "is still in use") {
			return fmt.Errorf("postgres does not start: %w\n%s", err, s.said())
		}
	}
}

// Backup copies the cluster as it is now, for Restore.
func (s *Server) Backup() error {
	return errors.Join(os.RemoveAll(s.backup()), s.perform(filepath.Join(s.bin, "pg_basebackup"), "-h", s.dir, "-U", "wf", "-D", s.backup(), "-X", "stream", "-c", "fast", "-N"))
}

func (s *Server) backup() string { return filepath.Join(s.dir, "backup") }

// Restore ends the server, puts the copy in its place and starts it.
func (s *Server) Restore() error {
	if err := errors.Join(s.Kill(), os.RemoveAll(s.data()), s.perform("/bin/cp", "-R", "-p", s.backup(), s.data())); err != nil {
		return err
	}
	return s.Restart()
}

// DSN is the address of a database of the server.
func (s *Server) DSN(database string) string { return DSN(database, s) }

// DSN is the address of a database of several servers, of which one takes writes.
func DSN(database string, servers ...*Server) string {
	var dirs []string
	for _, s := range servers {
		dirs = append(dirs, s.dir)
	}
	dsn := "postgres://wf@/" + database + "?host=" + strings.Join(dirs, ",")
	if len(servers) > 1 {
		dsn += "&target_session_attrs=read-write"
	}
	return dsn
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

// Stop ends the server and removes its directory.
func (s *Server) Stop() error { return errors.Join(s.stop(syscall.SIGQUIT), leaveCluster(s)) }
