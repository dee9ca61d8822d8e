package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
)

// Standby makes a standby of the server and starts it; from here on a COMMIT of the server waits until the standby has it. What it
// reads goes through the proxy, where via is one.
func (s *Server) Standby(ctx context.Context, via *Proxy) (*Server, error) {
	host, port := s.dir, "5432"
	if via != nil {
		var err error
		if host, port, err = net.SplitHostPort(via.Addr()); err != nil {
			return nil, err
		}
	}
	const name = "standby"
	copied := func(to *Server) error {
		// The slot keeps what the standby has not read.
		return to.perform(filepath.Join(s.bin, "pg_basebackup"), "-h", host, "-p", port, "-U", "wf", "-D", to.data(), "-X", "stream", "-c", "fast",
			"-C", "-S", name, "-R", "-N", "-d", "application_name="+name)
	}
	standby, err := newServer(copied, "wal_retrieve_retry_interval='10ms'")
	if err != nil {
		return nil, err
	}
	if err = standby.Restart(); err == nil {
		err = s.Exec(ctx, s.DSN("postgres"), "alter system set synchronous_standby_names = "+name)
	}
	if err == nil {
		err = s.Exec(ctx, s.DSN("postgres"), "select pg_reload_conf()")
	}
	if err == nil {
		_, err = s.until(func() error {
			got, err := s.Ask(ctx, s.DSN("postgres"), "select 1 from pg_stat_replication where sync_state = 'sync' and state = 'streaming'")
			if err == nil && len(got) == 0 {
				err = fmt.Errorf("the standby does not follow:\n%s", standby.said())
			}
			return err
		})
	}
	if err != nil {
		return nil, errors.Join(err, standby.Stop())
	}
	return standby, nil
}

// Promote makes a standby the primary, and returns when it takes writes.
func (s *Server) Promote(ctx context.Context) error {
	got, err := s.Ask(ctx, s.DSN("postgres"), "select pg_promote()")
	if err == nil && (len(got) != 1 || got[0] != "t") {
		err = fmt.Errorf("the standby is not promoted:\n%s", s.said())
	}
	return err
}
