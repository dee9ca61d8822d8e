package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Bouncer is a PgBouncer before a server. It lends a connection of a pool to a client for one transaction at a time.
type Bouncer struct {
	program
	path, config string
	s            *Server
}

// NewBouncer starts one on a unix socket, with so many connections to each database. It knows the user wf alone.
func NewBouncer(s *Server, pool int) (b *Bouncer, err error) {
	b = &Bouncer{path: "/usr/sbin/pgbouncer", s: s} // not in the PATH of a user
	if p, err := exec.LookPath("pgbouncer"); err == nil {
		b.path = p
	}
	if _, err := os.Stat(b.path); err != nil {
		return nil, fmt.Errorf("%w: pgbouncer, neither in PATH nor in /usr/sbin", ErrMissing)
	}
	if b.program, err = newProgram("wf-pgbouncer-"); err != nil {
		return nil, err
	}
	b.config = filepath.Join(b.dir, "pgbouncer.ini")
	users := filepath.Join(b.dir, "users")
	ini := fmt.Sprintf(`[databases]
* = host=%s port=5432
[pgbouncer]
unix_socket_dir = %s
listen_port = %d
auth_type = trust
auth_file = %s
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
`, s.dir, b.dir, bouncerPort, users, pool)
	err = errors.Join(os.WriteFile(b.config, []byte(ini), 0o644), os.WriteFile(users, []byte(`"wf" ""`+"\n"), 0o644))
	if err == nil {
		err = b.Restart()
	}
	if err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	return b, nil
}

const bouncerPort = 6432

// Restart starts it, after Kill, and waits until it answers.
func (b *Bouncer) Restart() error {
	if err := b.start(b.path, b.config); err != nil {
		return err
	}
	if _, err := b.until(func() error { return b.s.Exec(context.Background(), b.DSN("postgres"), "") }); err != nil {
		return fmt.Errorf("pgbouncer does not start: %w\n%s", err, b.said())
	}
	return nil
}

// DSN is the address of a database of the server through the pool.
func (b *Bouncer) DSN(database string) string {
	return fmt.Sprintf("postgres://wf@/%s?host=%s&port=%d", database, b.dir, bouncerPort)
}

// Of is the address through the pool of the database at an address of the server.
func (b *Bouncer) Of(dsn string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(dsn, "postgres://wf@/"), "?")
	return b.DSN(name)
}

// Stop ends it and removes its directory.
func (b *Bouncer) Stop() error { return b.stop(syscall.SIGTERM) }
