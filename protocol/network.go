package protocol

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"wf/protocol/lazy"
)

// PackageHosts are the endpoints from which go, npm, pip and cargo download, each by its default settings.
func PackageHosts() []string {
	return []string{
		"files.pythonhosted.org:443", "index.crates.io:443", "proxy.golang.org:443", "pypi.org:443",
		"registry.npmjs.org:443", "static.crates.io:443", "sum.golang.org:443",
	}
}

// Reach is what confined commands of a role reach: all of the network, or endpoints; neither is none.
func (r *Role) Reach() (all bool, hosts []string) { return reach(r.Network, r.NetworkHosts) }

// Reach is what the confined program of a server reaches, as for a role.
func (s *MCPServer) Reach() (all bool, hosts []string) { return reach(s.Network, s.NetworkHosts) }

func reach(word string, more []string) (all bool, hosts []string) {
	if word == NetworkAllow {
		return true, nil
	}
	hosts = slices.Clone(more)
	if word == NetworkPackages {
		hosts = append(hosts, PackageHosts()...)
	}
	slices.Sort(hosts)
	return false, slices.Compact(hosts)
}

// An Endpoint is a host, a name in small letters or an address, and a port of TCP.
type Endpoint struct {
	Host string
	Port uint16
}

// hostName is a name of DNS with a last part that is no number, so that none is an address in disguise.
var hostName = lazy.Regexp(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)

// ParseEndpoint reads HOST:PORT, with an IPv6 address in brackets.
func ParseEndpoint(s string) (Endpoint, error) {
	colon := strings.LastIndexByte(s, ':')
	if colon < 0 {
		return Endpoint{}, fmt.Errorf("%q has no port; write %s", s, strconv.Quote(s+":443"))
	}
	port, err := strconv.ParseUint(s[colon+1:], 10, 16)
	if err != nil || port == 0 || s[colon+1] == '0' || s[colon+1] == '+' {
		return Endpoint{}, fmt.Errorf("%q ends in no port from 1 to 65535", s)
	}
	host := strings.ToLower(s[:colon])
	inner, bracketed := strings.CutPrefix(host, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if addr, err := netip.ParseAddr(inner); err == nil && addr.Zone() == "" && !addr.Is4In6() && addr.Is6() == bracketed && bracketed == closed {
		return Endpoint{addr.String(), uint16(port)}, nil
	}
	if len(host) > 253 || !hostName().MatchString(host) {
		return Endpoint{}, fmt.Errorf("%q names no host: it is a name or an address, without a scheme, a path or a wildcard", s)
	}
	return Endpoint{host, uint16(port)}, nil
}

// Addr is the address that the host is, if it is one.
func (e Endpoint) Addr() (netip.Addr, bool) {
	a, err := netip.ParseAddr(e.Host)
	return a, err == nil
}

// String is the endpoint as ParseEndpoint reads it.
func (e Endpoint) String() string {
	if strings.Contains(e.Host, ":") {
		return fmt.Sprintf("[%s]:%d", e.Host, e.Port)
	}
	return fmt.Sprintf("%s:%d", e.Host, e.Port)
}
