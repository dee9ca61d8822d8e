package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// socketPair is a pair of sockets over which a descriptor is sent.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("a pair of sockets: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "listener"), os.NewFile(uintptr(fds[1]), "listener"), nil
}

// lend listens on the loopback of this network namespace and sends the listener to wf, which accepts on it
// outside. Nothing in here holds it.
func lend(lender int) error {
	defer unix.Close(lender)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: proxyPort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.Listen(fd, proxyConns); err != nil {
		return err
	}
	return unix.Sendmsg(lender, []byte{0}, unix.UnixRights(fd), nil, 0)
}

// openWay receives the listener, which was sent before the command started, and serves on it.
func (l launch) openWay(lender *os.File) (*proxy, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(lender.Fd()), make([]byte, 1), oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("receive the listener of the proxy: %w", err)
	}
	fd, err := receivedIn(oob[:n])
	if err != nil {
		return nil, fmt.Errorf("the launcher sent no listener: %w", err)
	}
	f := os.NewFile(uintptr(fd), "proxy")
	defer f.Close()
	listener, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("listen for the proxy: %w", err)
	}
	return serveProxy(listener, l.Hosts, systemNames(), l.met), nil
}

// receivedIn is the one descriptor that came with a message.
func receivedIn(oob []byte) (int, error) {
	var fds []int
	messages, err := unix.ParseSocketControlMessage(oob)
	if err == nil && len(messages) == 1 {
		fds, err = unix.ParseUnixRights(&messages[0])
	}
	if err == nil && len(fds) != 1 {
		err = errors.New("no descriptor came")
	}
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}
