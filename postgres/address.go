package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"wf/protocol"
)

// Address is where a database is, without what is secret of it.
type Address struct {
	Shown string // user, host, port and name of the database alone
	cfg   *pgconn.Config
}

// secretKeys are the parameters of an address that hold a secret.
var secretKeys = []string{"password", "sslpassword"}

// hidden is shown of what is no address.
const hidden = "postgres://…"

// split reads an address. Package url takes no list of hosts with an IPv6 address in it ("a:1,[::1]:2"), so they are taken out before.
func split(dsn string) (u *url.URL, ok bool) {
	scheme, rest, ok := strings.Cut(dsn, "://")
	if !ok || scheme != "postgres" && scheme != "postgresql" {
		return nil, false
	}
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	at := strings.LastIndex(authority, "@") + 1
	hosts := authority[at:]
	for h := range strings.SplitSeq(hosts, ",") {
		if _, err := url.Parse(scheme + "://" + h); err != nil {
			return nil, false
		}
	}
	u, err := url.Parse(scheme + "://" + authority[:at] + path)
	if err != nil || strings.Contains(u.Path, "@") { // a password with a slash
		return nil, false
	}
	u.Host = hosts
	return u, true
}

// Redact gives the address of a database as it may be shown: without a password and without parameters.
func Redact(dsn string) string {
	u, ok := split(dsn)
	if !ok {
		return hidden
	}
	out := url.URL{Scheme: "postgres", Host: u.Host, Path: u.Path}
	if name := u.User.Username(); name != "" {
		out.User = url.User(name)
	}
	return out.String()
}

// Parse reads the address of a database: postgres://USER@HOST:PORT,HOST:PORT/NAME?…. Of several hosts the one that is the primary
// is used. The password is looked for in the file of PGPASSFILE and in a service
// file; in the address itself it is refused, as others see the arguments of a process and the config of a
// project. Beyond this machine the address says sslmode=verify-full.
func Parse(dsn string) (*Address, error) {
	a := &Address{Shown: Redact(dsn)}
	refuse := func(hint, format string, args ...any) error {
		return protocol.ErrStore.With(hint, "%s: "+format, append([]any{a.Shown}, args...)...)
	}
	u, ok := split(dsn)
	if !ok {
		return nil, refuse("it has the form postgres://USER@HOST:PORT/NAME", "it is no address of a database")
	}
	_, secret := u.User.Password()
	for key := range u.Query() {
		secret = secret || slices.Contains(secretKeys, strings.ToLower(key))
	}
	if secret {
		return nil, refuse("put it into the file that PGPASSFILE names, with mode 0600, or into a service file", "the address holds a password")
	}
	var err error
	if a.cfg, err = pgconn.ParseConfig(dsn); err != nil {
		// The error of pgconn repeats the address; it holds no password, but maybe other words of the user.
		return nil, refuse("docs of libpq list the parameters", "a parameter of the address, or of the environment (PGSSLMODE, PGSERVICE …), is not understood")
	}
	hosts := []*pgconn.FallbackConfig{{Host: a.cfg.Host, Port: a.cfg.Port, TLSConfig: a.cfg.TLSConfig}}
	for _, h := range append(hosts, a.cfg.Fallbacks...) {
		verified := h.TLSConfig != nil && !h.TLSConfig.InsecureSkipVerify
		if !verified && !local(h.Host) {
			return nil, refuse("add sslmode=verify-full, and sslrootcert where the certificate is of an own authority", "%s is beyond this machine, and its certificate would not be verified", h.Host)
		}
	}
	if a.cfg.ConnectTimeout == 0 {
		a.cfg.ConnectTimeout = 10 * time.Second
	}
	return a, nil
}

// hosts is how many there are.
func (a *Address) hosts() int {
	all := map[string]bool{fmt.Sprint(a.cfg.Host, " ", a.cfg.Port): true}
	for _, h := range a.cfg.Fallbacks { // one with TLS and one without have two entries
		all[fmt.Sprint(h.Host, " ", h.Port)] = true
	}
	return len(all)
}

// local reports whether a host is this machine: a directory of a socket, or a loopback address.
func local(host string) bool {
	if strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// errNoCancel keeps pgconn from a cancel request when a socket breaks: a cancelled wait for the standby lets the
// commit succeed with a warning, which nobody would read.
var errNoCancel = fmt.Errorf("no cancel request is sent")

// A dead peer is noticed after 25 s: a COMMIT has no deadline.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}

// Connect opens a connection, whatever the database behind it holds. Of several hosts it is the first that is the kind of server that is wanted, and that
// valid takes; nil takes any. That a host is an older copy counts only where no other host is away, which may be the one that is not. Nothing else opens one.
func (a *Address) Connect(ctx context.Context, want Server, valid func(context.Context, *Conn) error) (*Conn, error) {
	c, open := new(Conn), new(atomic.Bool)
	answered := map[string]bool{} // of the hosts; written by the check alone, as an attempt that was given up may still dial
	cfg := a.cfg.Copy()
	dialer := net.Dialer{KeepAliveConfig: keepAlive, Control: giveUpUnacknowledged}
	cfg.DialFunc = func(ctx context.Context, network, to string) (net.Conn, error) {
		if open.Load() {
			return nil, errNoCancel
		}
		return dialer.DialContext(ctx, network, to)
	}
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { c.notice = n }
	cfg.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		if c.Heard != nil {
			c.Heard(n.Channel, n.Payload)
		}
	}
	addressed := cfg.ValidateConnect // by target_session_attrs
	cfg.ValidateConnect = func(ctx context.Context, pg *pgconn.PgConn) error {
		answered[pg.Conn().RemoteAddr().String()] = true
		if err := want.check(ctx, &Conn{pg: pg}, addressed); err != nil || valid == nil {
			return err
		}
		return valid(ctx, &Conn{pg: pg})
	}
	pg, err := pgconn.ConnectConfig(ctx, cfg)
	if errors.Is(err, protocol.ErrRolledBack) && len(answered) < a.hosts() {
		err = fmt.Errorf("%w: %w", protocol.ErrUnreachable, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Shown, Classify(ctx, err))
	}
	open.Store(true)
	c.pg = pg
	return c, nil
}
