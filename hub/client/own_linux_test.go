package client

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// listenAs has another user listen on a port of this machine: it takes one connection, and gives
// what came there, once the other end hangs up or the header is there.
func listenAs(t *testing.T, uid int) (address string, heard <-chan string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can act as another user")
	}
	at, said := make(chan string, 1), make(chan string, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its user
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); e != 0 {
			t.Error(e)
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 1))
		}
		var name unix.Sockaddr
		if err == nil {
			name, err = unix.Getsockname(fd)
		}
		if err != nil {
			t.Error(err)
			close(at)
			return
		}
		at <- netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(name.(*unix.SockaddrInet4).Port)).String()
		c, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
		if err != nil {
			t.Error(err)
		}
		b := make([]byte, 4096)
		n, _ := unix.Read(c, b) // 0 at the end
		said <- string(b[:max(n, 0)])
		unix.Close(c)
		unix.Close(fd)
	}()
	return <-at, said
}

// Another user listens on the port of a hub that is not running. A token that was named for that
// address is sent there; one that was not is kept, and the listener does not get a byte.
func TestAStoredTokenDoesNotGoToAnotherUser(t *testing.T) {
	for _, own := range []bool{false, true} {
		address, heard := listenAs(t, 54321)
		api, err := New("http://"+address, Options{Token: "the-token", Own: own})
		if err != nil {
			t.Fatal(err)
		}
		_, err = api.Info(t.Context())
		got := <-heard
		if own && (got != "" || !errors.Is(err, ErrForeignServer) || !strings.Contains(err.Error(), "user 54321")) {
			t.Errorf("the other user heard %q; %v", got, err)
		}
		if !own && !strings.Contains(got, "the-token") {
			t.Errorf("the attack does not work: %q, %v", got, err)
		}
		api.Close()
	}
}

func TestAStoredTokenGoesToTheOwnUser(t *testing.T) {
	for _, network := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
		l, err := net.Listen("tcp", network)
		if err != nil {
			t.Logf("%s: %v", network, err)
			continue // no IPv6 here
		}
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer the-token" {
				t.Errorf("%s: Authorization %q", network, r.Header.Get("Authorization"))
			}
			_, _ = w.Write([]byte(`{"kind":"hub"}`))
		}))
		_ = s.Listener.Close() // another takes its place
		s.Listener = l
		s.Start()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		for _, host := range []string{"127.0.0.1", "localhost", "[::1]"} {
			if (host == "[::1]") != strings.HasPrefix(network, "[::1]") && !strings.HasPrefix(network, "[::]") && host != "localhost" {
				continue
			}
			api, err := New("http://"+host+":"+port, Options{Token: "the-token", Own: true})
			if err != nil {
				t.Fatal(err)
			}
			if i, err := api.Info(t.Context()); err != nil || i.Kind != "hub" {
				t.Errorf("%s at %s: %+v, %v", host, network, i, err)
			}
			api.Close()
		}
		s.Close()
	}
}

// A connection that no process has accepted is of nobody, whoever listens.
func TestAConnectionThatIsNotAcceptedIsNobodys(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := prove(ctx, c); !errors.Is(err, ErrForeignServer) {
		t.Errorf("have %v", err)
	}
}

func TestTheRowOfTheConnectionCounts(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	local, remote := netip.MustParseAddrPort("127.0.0.1:8766"), netip.MustParseAddrPort("127.0.0.1:40000")
	row := func(from, to, state, uid, inode string) string {
		return "   0: " + from + " " + to + " " + state + " 00000000:00000000 00:00000000 00000000 " + uid + " 0 " + inode + " 1 0 20 4 30 10 -1\n"
	}
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the addresses below are those of a little-endian machine")
	}
	const server, client = "0100007F:223E", "0100007F:9C40"
	for _, test := range []struct {
		name  string
		table string
		uid   int
		known bool
	}{
		{"mine", row(server, client, "01", "1000", "77"), 1000, true},
		{"mapped into IPv6", row("0000000000000000FFFF00000100007F:223E", "0000000000000000FFFF00000100007F:9C40", "01", "1000", "77"), 1000, true},
		{"the listener is mine, the connection another's", row(server, "00000000:0000", "0A", "1000", "5") + row(server, client, "01", "1001", "77"), 1001, true},
		{"the listener alone", row(server, "00000000:0000", "0A", "1000", "5"), 0, false},
		{"my own end", row(client, server, "01", "1000", "76"), 0, false},
		{"forwarded to another port", row("0100007F:223F", client, "01", "1000", "77"), 0, false},
		{"forwarded to another address", row("020011AC:223E", client, "01", "1000", "77"), 0, false},
		{"of another client", row(server, "0100007F:9C41", "01", "1000", "77"), 0, false},
		{"not accepted yet", row(server, client, "01", "1000", "0"), 0, false},
		{"root's", row(server, client, "01", "0", "77"), 0, true},
		{"closing", row(server, client, "06", "1000", "77"), 0, false},
	} {
		uid, known, err := findUID(strings.NewReader(head+test.table), local, remote)
		if err != nil || uid != test.uid || known != test.known {
			t.Errorf("%s: user %d, %v, %v", test.name, uid, known, err)
		}
	}
	if _, _, err := findUID(strings.NewReader(head+row("x", client, "01", "1000", "7")), local, remote); err == nil {
		t.Error("a row that is none is passed over")
	}
}
