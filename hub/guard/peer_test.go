package guard

import (
	"errors"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"wf/protocol"
)

func TestAPeerIsAnAddressOrTheBlockOfACustomer(t *testing.T) {
	for remote, want := range map[string]Peer{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64", "[2001:db8:1:2:ffff::1]:1": "2001:db8:1:2::/64", "[2001:db8:1:3::1]:1": "2001:db8:1:3::/64",
		"[fe80::1%eth0]:80": "fe80::/64", "[::1]:80": "::/64",
		"@": "", "": "", "x:80": "",
	} {
		if got := PeerAt(addressOf(remote)); got != want {
			t.Errorf("%s: %q, want %q", remote, got, want)
		}
	}
}

func TestProxiesAreAddressesAndBlocks(t *testing.T) {
	all, err := ParseProxies([]string{"127.0.0.1", "10.1.2.3/8", "2001:db8::/32", "::ffff:198.51.100.0/120", "::1"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.2": false, "10.255.0.1": true, "11.0.0.1": false, "::ffff:10.0.0.1": true,
		"2001:db8:ffff::1": true, "2001:db9::1": false, "198.51.100.255": true, "198.51.101.0": false, "::1": true, "::2": false,
	} {
		if all.has(netip.MustParseAddr(text)) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
	if all.has(netip.Addr{}) {
		t.Error("a unix socket is a proxy")
	}
	for _, text := range []string{"", "x", "127.0.0.1:80", "10.0.0.0/33", "0.0.0.0/0", "::/0", "fe80::1%eth0", "example.org", "127.0.0.1 "} {
		if _, err := ParseProxies([]string{text}); !errors.Is(err, protocol.ErrUsage) || protocol.HintOf(err) == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The peer is the last address that is none of a proxy: what clients write before it changes nothing.
func TestProxiesTellWhereRequestsComeFrom(t *testing.T) {
	proxies, err := ParseProxies([]string{"127.0.0.1", "10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name      string
		forwarded []string // X-Forwarded-For
		standard  []string // Forwarded
		want      Peer
	}{
		{"one", []string{"192.0.2.1"}, nil, "192.0.2.1"},
		{"with a port", []string{"192.0.2.1:4711"}, nil, "192.0.2.1"},
		{"IPv6", []string{"2001:db8::1"}, nil, "2001:db8::/64"},
		{"IPv6 in brackets", []string{"[2001:db8::1]"}, nil, "2001:db8::/64"},
		{"IPv6 with a port", []string{"[2001:db8::1]:80"}, nil, "2001:db8::/64"},
		{"what the client wrote is before", []string{"198.51.100.9, 192.0.2.1"}, nil, "192.0.2.1"},
		{"in two lines", []string{"198.51.100.9", "192.0.2.1"}, nil, "192.0.2.1"},
		{"behind two proxies", []string{"198.51.100.9, 192.0.2.1, 10.1.1.1"}, nil, "192.0.2.1"},
		{"a client among the proxies", []string{"10.2.2.2, 10.1.1.1"}, nil, "10.2.2.2"},
		{"no address", []string{"192.0.2.1, unknown"}, nil, ""},
		{"an empty one", []string{"192.0.2.1,"}, nil, ""},
		{"nothing", nil, nil, ""},
		{"no value", []string{""}, nil, ""},
		{"the standard", nil, []string{"for=192.0.2.1;proto=https;by=10.0.0.1"}, "192.0.2.1"},
		{"the standard, quoted", nil, []string{`For="[2001:db8::1]:4711"`}, "2001:db8::/64"},
		{"the standard, another order", nil, []string{`proto=http; for="192.0.2.1:80"`}, "192.0.2.1"},
		{"the standard, what the client wrote", nil, []string{"for=198.51.100.9, for=192.0.2.1"}, "192.0.2.1"},
		{"the standard, behind two proxies", nil, []string{"for=198.51.100.9", "for=192.0.2.1, for=10.1.1.1"}, "192.0.2.1"},
		{"the standard, hidden", nil, []string{"for=192.0.2.1, for=_hidden"}, ""},
		{"the standard, without for", nil, []string{"for=192.0.2.1, proto=http"}, ""},
		{"a quote that the client leaves open", nil, []string{`for=198.51.100.9;x="`, `for=192.0.2.1`}, ""},
		{"the same before a quoted one", nil, []string{`for=198.51.100.9;x="`, `for="[2001:db8::1]"`}, ""},
		{"a quote within a quote", nil, []string{`for="198.51.100.9\"", for=192.0.2.1`}, "192.0.2.1"},
		{"a comma within a quote", nil, []string{`for="198.51.100.9, for=198.51.100.8", for=192.0.2.1`}, "192.0.2.1"},
		{"both: the older one counts", []string{"192.0.2.1"}, []string{"for=198.51.100.9"}, "192.0.2.1"},
		{"both, the older one without an address", []string{"unknown"}, []string{"for=198.51.100.9"}, ""},
	} {
		h := http.Header{}
		for _, v := range test.forwarded {
			h.Add("X-Forwarded-For", v)
		}
		for _, v := range test.standard {
			h.Add("Forwarded", v)
		}
		if got := PeerAt(proxies.client(h)); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{`for=192.0.2.1;proto=https`, `for="[2001:db8::1]:4711", for=1.2.3.4`, `;;,,"\`, `for=1;for=2`, "\x00=\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// What a proxy appends is what counts, whatever a client wrote before it, or nothing does.
		for _, of := range []string{`for=192.0.2.1`, `for="192.0.2.1:80";proto=http`, `proto=http;for=192.0.2.1`} {
			list := forwardedFor(text + ", " + of)
			if len(list) == 0 {
				continue
			}
			if a := addressIn(list[len(list)-1]); a.IsValid() && a.String() != "192.0.2.1" {
				t.Errorf("%q, %s: %s", text, of, a)
			}
		}
	})
}

func TestPeersAreKnownForADay(t *testing.T) {
	var k Known
	now := time.Date(2026, 1, 5, 4, 0, 0, 0, time.UTC)
	k.Note("a", now)
	k.Note("", now)
	for after, want := range map[time.Duration]bool{0: true, knownFor - 1: true, knownFor: false} {
		if k.Has("a", now.Add(after)) != want {
			t.Errorf("after %s: %v", after, !want)
		}
	}
	if k.Has("", now) || k.Has("b", now) {
		t.Error("a peer that showed nothing is known")
	}
	for i := range 3 * mostKnown {
		k.Note(PeerAt(netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)})), now)
	}
	if n, _ := k.peers.Held(); n > mostKnown {
		t.Errorf("%d are remembered", n)
	}
}
