package postgres

import (
	"strings"
	"syscall"
)

const tcpUserTimeout = 18 // TCP_USER_TIMEOUT

// giveUpUnacknowledged has a connection end when what was sent is not acknowledged for 25 s: while such data is on its way the kernel
// sends no keep-alive probes, and tries for a quarter of an hour.
func giveUpUnacknowledged(network, _ string, c syscall.RawConn) (err error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	failed := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, 25_000) })
	if failed != nil {
		return failed
	}
	return err
}
