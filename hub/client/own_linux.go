package client

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// endUID is the user of the end of a TCP connection that has the address local, of one within this
// network namespace. known is false while no process has that end: before it is accepted.
// The row of the listening socket is not looked at: it says who listened, not who accepted.
func endUID(local, remote netip.AddrPort) (uid int, known bool, err error) {
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		f, err := os.Open(table)
		if os.IsNotExist(err) && strings.HasSuffix(table, "6") {
			continue // no IPv6 here
		}
		if err != nil {
			return 0, false, err
		}
		uid, known, err := findUID(f, local, remote)
		_ = f.Close() // it was read
		if known || err != nil {
			return uid, known, err
		}
	}
	return 0, false, nil
}

// The columns of /proc/net/tcp.
// https://www.kernel.org/doc/Documentation/networking/proc_net_tcp.txt
const (
	columnLocal  = 1
	columnRemote = 2
	columnState  = 3
	columnUID    = 7
	columnInode  = 9
	established  = "01"
)

// findUID looks for an accepted connection in a table of the kernel.
func findUID(table io.Reader, local, remote netip.AddrPort) (uid int, known bool, err error) {
	rows := bufio.NewScanner(table)
	rows.Scan() // the heading
	for rows.Scan() {
		row := strings.Fields(rows.Text())
		if len(row) <= columnInode || row[columnState] != established {
			continue
		}
		from, errFrom := parseAddress(row[columnLocal])
		to, errTo := parseAddress(row[columnRemote])
		if errFrom != nil || errTo != nil {
			return 0, false, fmt.Errorf("/proc/net/tcp: %q is no row that is known", rows.Text())
		}
		if from != unmap(local) || to != unmap(remote) {
			continue
		}
		if row[columnInode] == "0" { // of no process yet; the uid of such a row is not one either
			return 0, false, nil
		}
		uid, err := strconv.Atoi(row[columnUID])
		return uid, err == nil, err
	}
	return 0, false, rows.Err()
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// parseAddress reads 0100007F:1F90: words of 32 bits as this machine has them in memory, and the
// port as a number.
func parseAddress(s string) (netip.AddrPort, error) {
	ip, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(ip)
	if err != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, fmt.Errorf("address %q", s)
	}
	for at := 0; at < len(b); at += 4 {
		binary.NativeEndian.PutUint32(b[at:], binary.BigEndian.Uint32(b[at:]))
	}
	addr, ok := netip.AddrFromSlice(b)
	n, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return netip.AddrPort{}, fmt.Errorf("address %q", s)
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), nil
}
