package daemon

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"wf/api"
	"wf/hub/guard"
	"wf/hub/server"
	"wf/protocol"
	"wf/service/compose"
)

// doors are all addresses of a server.
type doors struct {
	all    []*Listener
	keys   *guard.Keys // nil where only sockets listen
	log    *slog.Logger
	failed chan error // has the error of each that ended
}

// openKeys opens the tokens of the user.
func openKeys(path string) (*guard.Keys, error) {
	keys, err := guard.OpenKeys(path, nil)
	if err == nil {
		keys.Owner = compose.User()
	}
	return keys, err
}

// endpoints reads addresses; socket is the path of unix alone.
func endpoints(addresses []string, socket string) (all []guard.Endpoint, err error) {
	for _, text := range addresses {
		e, err := guard.ParseEndpoint(text, socket)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// open listens at all endpoints, or at none.
func (o ListenOptions) open(ctx context.Context, at []guard.Endpoint, secure *tls.Config, keys *guard.Keys, log *slog.Logger) (doors, error) {
	d := doors{keys: keys, log: cmp.Or(log, slog.New(slog.DiscardHandler)), failed: make(chan error, len(at))}
	proxies, err := guard.ParseProxies(o.Proxies)
	if err != nil {
		return d, err
	}
	door := guard.NewDoor(proxies, log) // one for all of them: what strangers take is bounded for the process
	for _, e := range at {
		l, err := e.Listen(ctx, secure, keys, door, log)
		if err != nil {
			return d, errors.Join(err, d.close())
		}
		end := NewListener(l, e, o, secure != nil, keys, log)
		if e.Socket == "" {
			end.Guard.Door = door
		}
		d.all = append(d.all, end)
	}
	return d, nil
}

// serve answers everywhere until the doors are closed; what the guards refuse is counted.
func (d doors) serve(h http.Handler, m *server.Meter) {
	for _, l := range d.all {
		l.Guard.Refused = m.Refused
		go func() { d.failed <- l.Serve(h) }()
	}
}

// Wait returns when ctx ends or an address fails, with the reason.
func (d doors) Wait(ctx context.Context) error {
	select {
	case err := <-d.failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d doors) close() (err error) {
	for _, l := range d.all {
		err = errors.Join(err, l.Close())
	}
	return err
}

// withCode is an address that logs a browser in: what follows # is never sent or logged.
func withCode(url, code string) string { return url + "/#code=" + code }

// newCode makes a one-time code for browsers that open one of the doors, of the client whose request ctx is of.
func (d doors) newCode(ctx context.Context) (api.Code, error) {
	by, _ := guard.Of(ctx) // the route wants a scope, so that there is one
	code, expires, err := d.keys.NewCode(by)
	if err != nil {
		return api.Code{}, err
	}
	out := api.Code{Schema: "wf.code/v1", Code: code, Expires: expires.UTC().Format(time.RFC3339), URLs: []string{}}
	for _, l := range d.all {
		if l.Guard.Keys != nil {
			out.URLs = append(out.URLs, withCode(l.URL, code))
		}
	}
	return out, nil
}

// addresses are where the doors are, each with a code of its own, which is the owner's. Where the file of tokens has
// none for that the server starts all the same: those who have a token use it.
func (d doors) addresses() ([]api.Address, error) {
	out := []api.Address{}
	for _, l := range d.all {
		at := api.Address{URL: l.URL}
		if l.Guard.Keys != nil {
			switch code, _, err := d.keys.OwnerCode(); {
			case errors.Is(err, protocol.ErrForbidden):
				d.log.Warn("browsers get no code", "address", l.URL, "why", err, "fix", protocol.HintOf(err))
			case err != nil:
				return nil, err
			default:
				at.Open = withCode(l.URL, code)
			}
		}
		out = append(out, at)
	}
	return out, nil
}
