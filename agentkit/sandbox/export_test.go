package sandbox

import (
	"context"
	"net"
	"net/netip"
)

// ServeProxy is the proxy of a command with a list of hosts, on a listener of the test.
func ServeProxy(l net.Listener, hosts []string, lookup func(context.Context, string, string) ([]netip.Addr, error), met func(string)) (end func()) {
	return serveProxy(l, hosts, resolver{lookup, net.InterfaceAddrs}, met).close
}

// ServeProxyOn is ServeProxy on a machine with certain addresses.
func ServeProxyOn(own []net.Addr, l net.Listener, hosts []string, lookup func(context.Context, string, string) ([]netip.Addr, error), met func(string)) (end func()) {
	return serveProxy(l, hosts, resolver{lookup, func() ([]net.Addr, error) { return own, nil }}, met).close
}

// CacheProgram is the value of GOCACHEPROG for a cache of go.
func CacheProgram(self, lower, upper string) string { return cacheProgram(self, lower, upper) }

// Public reports whether a name may lead to an address.
func Public(a netip.Addr) bool { return public(a) }

// ProxyConns is how many connections a proxy has at a time.
const ProxyConns = proxyConns
