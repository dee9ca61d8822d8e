package guard

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"wf/hub/internal/lately"
	"wf/protocol"
)

// Peer is where a connection or a request comes from, as bounds count it: an IPv4 address, or the /64 of an IPv6
// address, which is what one customer has. "" is none: that of a unix socket, or what a trusted proxy does not tell.
type Peer string

// PeerAt is the peer with an address.
func PeerAt(a netip.Addr) Peer {
	a = a.Unmap()
	if a.Is6() {
		if block, err := a.WithZone("").Prefix(64); err == nil {
			return Peer(block.String())
		}
	}
	if !a.IsValid() {
		return ""
	}
	return Peer(a.String())
}

// Proxies are the addresses of proxies whose word on where a request comes from is taken.
type Proxies []netip.Prefix

// ParseProxies reads addresses and CIDR blocks; an error wraps protocol.ErrUsage.
func ParseProxies(texts []string) (Proxies, error) {
	var all Proxies
	for _, text := range texts {
		block, err := netip.ParsePrefix(text)
		if a, one := netip.ParseAddr(text); err != nil && one == nil && a.Zone() == "" {
			block, err = a.Prefix(a.BitLen())
		}
		if a := block.Addr(); err == nil && a.Is4In6() && block.Bits() >= 96 {
			block = netip.PrefixFrom(a.Unmap(), block.Bits()-96)
		}
		switch {
		case err != nil:
			return nil, protocol.ErrUsage.With("give an address or a block, such as 127.0.0.1 or 10.0.0.0/8", "--trusted-proxy %q is neither an address nor a CIDR block", text)
		case block.Bits() == 0:
			return nil, protocol.ErrUsage.With("give the addresses of the proxy", "--trusted-proxy %s is every address: each client could say that it is another one", text)
		}
		all = append(all, block.Masked())
	}
	return all, nil
}

func (p Proxies) has(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, block := range p {
		if block.Contains(a) {
			return true
		}
	}
	return false
}

// client is who sent a request to the first of the proxies, by the headers of the last: the last address of the list
// that is none of a proxy. What is before it, anybody can have written. X-Forwarded-For counts where it is given, and
// Forwarded (RFC 7239) else. The address is not valid where they do not tell.
func (p Proxies) client(h http.Header) (a netip.Addr) {
	var list []string
	if lines := h["X-Forwarded-For"]; len(lines) > 0 {
		list = strings.Split(strings.Join(lines, ","), ",")
	} else {
		list = forwardedFor(strings.Join(h["Forwarded"], ","))
	}
	for i := len(list) - 1; i >= 0; i-- {
		if a = addressIn(strings.TrimSpace(list[i])); !a.IsValid() || !p.has(a) {
			return a
		}
	}
	return a
}

// addressIn reads an address with or without a port, as proxies write it; one that is not valid if it is none.
func addressIn(text string) netip.Addr {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().WithZone("")
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		text = strings.TrimSuffix(inner, "]")
	}
	a, _ := netip.ParseAddr(text) // not valid with an error
	return a.WithZone("")
}

// forwardedFor are the values of for= in the elements of Forwarded, in their order; "" for an element without one. A
// quote that is never closed gives none: a client can have opened it, around what a proxy adds.
func forwardedFor(text string) (list []string) {
	for len(text) > 0 {
		var element string
		for more := true; more && len(text) > 0; {
			name, value, end, rest := pair(text)
			if end == '"' {
				return nil
			}
			if strings.EqualFold(name, "for") {
				element = value
			}
			more, text = end == ';', rest
		}
		list = append(list, element)
	}
	return list
}

// pair reads name=value or name="value" up to a comma, a semicolon or the end, which is 0, or a quote for one that is open.
func pair(text string) (name, value string, end byte, rest string) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case c == '"':
			quoted = !quoted
		case !quoted && c == '=' && name == "":
			name = strings.TrimSpace(b.String())
			b.Reset()
		case !quoted && (c == ',' || c == ';'):
			return name, strings.TrimSpace(b.String()), c, text[i+1:]
		default:
			b.WriteByte(c)
		}
	}
	if quoted {
		end = '"'
	}
	return name, strings.TrimSpace(b.String()), end, ""
}

// source is where a request comes from.
type source struct {
	peer Peer
	text string // for the log
	door *Door  // by which it came; may be nil
}

type sourceKey struct{}

// addressOf is the address of the other end; one that is not valid for a unix socket.
func addressOf(remote string) netip.Addr {
	at, _ := netip.ParseAddrPort(remote) // not valid with an error
	return at.Addr()
}

// sourceOf is where a request comes from: as the guard found, else the other end of its connection.
func sourceOf(r *http.Request) source {
	if o, ok := r.Context().Value(sourceKey{}).(source); ok {
		return o
	}
	return source{peer: PeerAt(addressOf(r.RemoteAddr)), text: remoteOf(r)}
}

// PeerOf is where a request comes from, as bounds count it.
func PeerOf(r *http.Request) Peer { return sourceOf(r).peer }

// RemoteOf is where a request comes from, for the log.
func RemoteOf(r *http.Request) string { return sourceOf(r).text }

// remoteOf is the other end of the connection of a request.
func remoteOf(r *http.Request) string {
	if r.RemoteAddr == "" || r.RemoteAddr == "@" {
		return "unix"
	}
	return r.RemoteAddr
}

// arrive notes where a request comes from. The connection of a proxy is from then on that of the client that it names.
func (d *Door) arrive(r *http.Request) *http.Request {
	o := source{peer: PeerAt(addressOf(r.RemoteAddr)), text: remoteOf(r), door: d}
	if d != nil && d.proxies.has(addressOf(r.RemoteAddr)) {
		a := d.proxies.client(r.Header)
		if o.peer = PeerAt(a); a.IsValid() {
			o.text = a.String()
		}
		if c := connOf(r.Context()); c != nil {
			c.outside(o.peer)
		}
	}
	return r.WithContext(context.WithValue(r.Context(), sourceKey{}, o))
}

// How many peers are remembered that showed who they are, and for how long.
const (
	mostKnown = 1024
	knownFor  = 24 * time.Hour
)

// Known are the peers that showed a token or a valid signature lately.
type Known struct {
	once  sync.Once
	peers lately.Map[Peer, time.Time]
}

// Note remembers a peer.
func (k *Known) Note(p Peer, now time.Time) {
	if p == "" {
		return
	}
	k.once.Do(func() { k.peers.Max = mostKnown })
	k.peers.Put(p, now, 1)
}

// Has reports whether a peer is remembered.
func (k *Known) Has(p Peer, now time.Time) bool {
	at, ok := k.peers.Get(p)
	return ok && now.Sub(at) < knownFor
}
