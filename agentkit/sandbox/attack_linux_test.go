package sandbox_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"wf/agentkit/sandbox"
)

// leftKey is that of a segment of memory.
const leftKey = 0x77663037

// attack is what this binary does inside of a sandbox: it tries something and says what came
// of it, a line for each try.
func attack(name string) int {
	runtime.LockOSThread()
	switch name {
	case "sockets":
		for _, s := range socketKinds {
			fd, err := unix.Socket(s.family, s.kind, s.protocol)
			say(s.name, err)
			if err == nil {
				unix.Close(fd)
			}
		}
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		say("unix pair", err)
	case "leaves in the kernel", "finds in the kernel":
		flag := 0
		if name[0] == 'l' {
			flag = unix.IPC_CREAT
		}
		id, err := unix.SysvShmGet(leftKey, 64, flag|0o600)
		say("shared memory", err)
		if err == nil && flag == 0 {
			if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil {
				return 1
			}
		}
	case "calls":
		for _, c := range calls() {
			say(c.name, c.try())
		}
	case "descriptors":
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 1
		}
		for _, e := range entries {
			if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/sys/fs/cgroup/") && to != "/proc/"+strconv.Itoa(os.Getpid())+"/fd" {
				fmt.Println(e.Name(), strings.Split(to, ":")[0])
			}
		}
	case "loopback":
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served") }))
		defer server.Close()
		resp, err := http.Get(server.URL)
		say("http", err)
		if err == nil {
			resp.Body.Close()
		}
		_, err = net.Interfaces()
		say("interfaces", err)
		udp, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err == nil {
			defer udp.Close()
			go echoPackets(udp)
			var conn net.Conn
			if conn, err = net.Dial("udp", udp.LocalAddr().String()); err == nil {
				if _, err = conn.Write([]byte("x")); err == nil {
					err = answered(conn)
				}
				conn.Close()
			}
		}
		say("udp", err)
	case "dial":
		for _, network := range []string{"tcp", "udp", "unix"} {
			address := os.Getenv("HOST_" + strings.ToUpper(network))
			conn, err := net.Dial(network, address)
			if err == nil {
				_, err = conn.Write([]byte("x"))
				if network == "udp" && err == nil { // one that nothing receives is sent all the same
					err = answered(conn)
				}
				conn.Close()
			}
			say(network, err)
		}
	case "names":
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_, err := (&net.Resolver{PreferGo: true}).LookupHost(ctx, "example.com")
		say("example.com", err)
		for _, address := range []string{"192.0.2.1:53", "255.255.255.255:53", "224.0.0.251:5353"} {
			conn, err := net.Dial("udp4", address)
			if err == nil {
				_, err = conn.Write([]byte("x"))
				conn.Close()
			}
			var errno syscall.Errno
			if errors.As(err, &errno) {
				err = errno
			}
			say(address, err)
		}
	case "hog":
		signal.Ignore(unix.SIGTERM)
		fill(200 << 20)
		unix.Pause()
	case "map":
		sum, err := readMapped(os.Getenv("MAPPED"))
		if err != nil {
			return 1
		}
		fmt.Println("ready", sum)
		io.Copy(io.Discard, os.Stdin)
	case "way":
		reach()
	case "nested":
		fmt.Println(sandbox.Probe())
		tier, err := sandbox.Attempt(5)
		fmt.Println(tier.Name, tier.Holds, errors.Is(err, sandbox.ErrUnavailable))
		fmt.Println(err)
	case "unix":
		path := filepath.Join(os.TempDir(), "s")
		l, err := net.Listen("unix", path)
		say("listen", err)
		if err != nil {
			return 1
		}
		_, err = net.Dial("unix", path)
		say("dial", err)
		l.Close()
	}
	return 0
}

// echoPackets sends packets back, until it is closed.
func echoPackets(c net.PacketConn) {
	b := make([]byte, 16)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		_, _ = c.WriteTo(b[:n], from) // what is lost is missed at the other end
	}
}

// answered waits for a packet.
func answered(c net.Conn) error {
	c.SetReadDeadline(time.Now().Add(20 * time.Second)) // an error shows when it is read
	_, err := c.Read(make([]byte, 16))
	return err
}

// held is memory that is in use.
var held [][]byte

func fill(n int) {
	b := make([]byte, n)
	for i := 0; i < n; i += 4096 {
		b[i] = 1
	}
	held = append(held, b)
}

// readMapped reads each page of a file by a mapping that stays.
func readMapped(path string) (sum int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	for i := 0; i < len(b); i += 4096 {
		sum += int(b[i])
	}
	held = append(held, b)
	return sum, err
}

// reach says what a command with a list of hosts reaches: over its proxy, and beside it.
func reach() {
	proxy, err := url.Parse(os.Getenv("HTTPS_PROXY"))
	if err != nil {
		say("proxy", err)
		return
	}
	for _, target := range strings.Fields(os.Getenv("TARGETS")) {
		client := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		resp, err := client.Get("https://" + target)
		say(target, err)
		if err == nil {
			resp.Body.Close()
			fmt.Printf("certificate: %x\n", sha256.Sum256(resp.TLS.PeerCertificates[0].Raw))
		}
		_, err = net.Dial("tcp", target)
		say("direct "+target, err)
	}
	_, err = net.Listen("tcp", proxy.Host)
	say("listen in its place", err)
}

func say(name string, err error) {
	result := "ok"
	if err != nil {
		result = err.Error()
	}
	fmt.Printf("%s: %s\n", name, result)
}

var socketKinds = []struct {
	name                   string
	family, kind, protocol int
}{
	{"tcp", unix.AF_INET, unix.SOCK_STREAM, 0},
	{"tcp named", unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, unix.IPPROTO_TCP},
	{"tcp6", unix.AF_INET6, unix.SOCK_STREAM, 0},
	{"mptcp", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP},
	{"mptcp6", unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_MPTCP},
	{"sctp", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP},
	{"sctp seqpacket", unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP},
	{"udp", unix.AF_INET, unix.SOCK_DGRAM, 0},
	{"udp6", unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP},
	{"udplite", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE},
	{"ping", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP},
	{"raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW},
	{"packet", unix.AF_PACKET, unix.SOCK_RAW, 0},
	{"vsock", unix.AF_VSOCK, unix.SOCK_STREAM, 0},
	{"smc", unix.AF_SMC, unix.SOCK_STREAM, 0},
	{"alg", unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
	{"netlink route", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE},
	{"netlink generic", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC},
	{"netlink netfilter", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER},
	{"unix", unix.AF_UNIX, unix.SOCK_STREAM, 0},
	{"unix datagram", unix.AF_UNIX, unix.SOCK_DGRAM, 0},
}

// dirFD is AT_FDCWD as a variable, since a constant below 0 is no uintptr.
var dirFD = unix.AT_FDCWD

type call struct {
	name string
	try  func() error
}

// calls are system calls with arguments that would work, or fail otherwise, without a filter.
func calls() []call {
	raw := func(nr uintptr, args ...uintptr) func() error {
		var a [6]uintptr
		copy(a[:], args)
		return func() error {
			_, _, errno := unix.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
			if errno != 0 {
				return errno
			}
			return nil
		}
	}
	var params [120]byte
	iov := unix.RemoteIovec{Base: 0x1000, Len: 8}
	name, _ := unix.BytePtrFromString("own") // it holds no NUL
	launcher, _ := strconv.Atoi(os.Getenv("LAUNCHER_PID"))
	host, _ := strconv.Atoi(os.Getenv("HOST_PID"))
	return []call{
		{"mount", func() error { return unix.Mount("tmpfs", ".", "tmpfs", 0, "") }},
		{"umount", func() error { return unix.Unmount("/proc", unix.MNT_DETACH) }},
		{"chroot", func() error { return unix.Chroot(".") }},
		{"unshare user", func() error { return unix.Unshare(unix.CLONE_NEWUSER) }},
		{"unshare net", func() error { return unix.Unshare(unix.CLONE_NEWNET) }},
		{"setns", raw(unix.SYS_SETNS, 0, 0)},
		{"clone user", raw(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD))},
		{"io_uring", raw(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)))},
		{"bpf", raw(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&params)), 72)},
		{"perf", raw(unix.SYS_PERF_EVENT_OPEN)},
		{"userfaultfd", raw(unix.SYS_USERFAULTFD)},
		{"keyctl", raw(unix.SYS_KEYCTL, 0, ^uintptr(2), 0)},
		{"open_by_handle_at", raw(unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(99), uintptr(unsafe.Pointer(&params)))},
		{"syslog", raw(unix.SYS_SYSLOG, 10)},
		{"x32", raw(unix.SYS_GETPID | 0x40000000)},
		{"type into a terminal", func() error { return unix.IoctlSetPointerInt(0, unix.TIOCSTI, 'x') }},
		{"trace the launcher", func() error { return unix.PtraceSeize(launcher) }},
		{"trace the init", func() error { return unix.PtraceSeize(1) }},
		{"trace wf", func() error { return unix.PtraceSeize(host) }},
		{"read wf's memory", func() error {
			var local [8]byte
			_, err := unix.ProcessVMReadv(host, []unix.Iovec{{Base: &local[0], Len: 8}}, []unix.RemoteIovec{iov}, 0)
			return err
		}},
		{"signal wf", func() error { return unix.Kill(host, 0) }},
		{"become another", func() error { return unix.Setresuid(12345, 12345, 12345) }},
		{"chmod setuid", func() error { return unix.Chmod("own", 0o4755) }},
		{"chmod setgid", func() error { return unix.Chmod("own", 0o2755) }},
		{"fchmod setuid", func() error { return unix.Fchmod(1, 0o4755) }},
		{"fchmodat setuid", raw(unix.SYS_FCHMODAT, uintptr(dirFD), uintptr(unsafe.Pointer(name)), 0o4755)},
		{"fchmodat2 setuid", raw(unix.SYS_FCHMODAT2, uintptr(dirFD), uintptr(unsafe.Pointer(name)), 0o4755)},
		{"create setuid", func() error { _, err := unix.Open("new", unix.O_CREAT|unix.O_WRONLY, 0o4755); return err }},
		{"create without a name, setuid", func() error { _, err := unix.Open(".", unix.O_TMPFILE|unix.O_WRONLY, 0o4755); return err }},
		{"creat setuid", func() error { _, err := unix.Creat("new", 0o4755); return err }},
		{"mkdir setgid", func() error { return unix.Mkdir("newdir", 0o2755) }},
		{"mknod setuid", func() error { return unix.Mknod("new", unix.S_IFREG|0o4755, 0) }},
	}
}
