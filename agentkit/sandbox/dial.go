package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"wf/protocol"
)

// Bounds of a way to an endpoint.
const (
	dialTime  = 10 * time.Second // for each address
	dialAddrs = 8                // of a name, that are tried
)

// Dial connects with an endpoint that a workflow or a config names, over TCP. An address is dialled as it is
// written; a name only where it leads to a public address, unless anywhere is set: what is on this machine and
// its networks, and answers without being asked for a key, is not reached by a name that happens to lead there.
// The address that was judged is the one that is dialled.
func Dial(ctx context.Context, e protocol.Endpoint, anywhere bool) (net.Conn, error) {
	conn, err := systemNames().dial(ctx, e, anywhere)
	if err != nil {
		return nil, err // not a nil *net.TCPConn in an interface
	}
	return conn, nil
}

// errPrivate is a name that leads where no name may lead.
var errPrivate = errors.New("its name leads to an address of this machine or a private network")

// A resolver says where names lead, and which addresses are those of this machine.
type resolver struct {
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	own    func() ([]net.Addr, error)
}

// systemNames resolves as this machine does.
func systemNames() resolver { return resolver{net.DefaultResolver.LookupNetIP, net.InterfaceAddrs} }

// resolve gives the addresses to which a name may lead.
func (r resolver) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	found, err := r.lookup(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	own, err := r.own()
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, a := range found {
		a = a.Unmap().WithZone("")
		here := slices.ContainsFunc(own, func(o net.Addr) bool {
			p, err := netip.ParsePrefix(o.String())
			return err == nil && p.Addr().Unmap() == a
		})
		if public(a) && !here {
			out = append(out, a)
		}
	}
	return out, nil
}

// dial connects with an endpoint, see Dial.
func (r resolver) dial(ctx context.Context, e protocol.Endpoint, anywhere bool) (*net.TCPConn, error) {
	var addrs []netip.Addr
	var err error
	a, digits := e.Addr()
	switch {
	case digits:
		addrs = append(addrs, a) // named as it is, whatever it is
	case anywhere:
		addrs, err = r.lookup(ctx, "ip", e.Host)
	default:
		if addrs, err = r.resolve(ctx, e.Host); err == nil && len(addrs) == 0 {
			return nil, errPrivate
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the name %s could not be resolved", e.Host)
	}
	dialer := net.Dialer{Timeout: dialTime}
	for _, a := range addrs[:min(len(addrs), dialAddrs)] {
		conn, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(a, e.Port).String())
		if err == nil {
			return conn.(*net.TCPConn), nil
		}
	}
	return nil, fmt.Errorf("%s could not be reached", e)
}

// closedNets are those that no name may lead to, beside what netip tells: this network, shared addresses, IETF's
// own, benchmarks, reserved ones, and the ways of IPv6 to an IPv4 address.
var closedNets = sync.OnceValue(func() []netip.Prefix {
	var out []netip.Prefix
	for _, s := range []string{"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4",
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fec0::/10"} {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
})

// public reports whether a name may lead to an address: not to a loopback, a private network and its metadata.
func public(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsPrivate() && !slices.ContainsFunc(closedNets(), func(n netip.Prefix) bool { return n.Contains(a) })
}
