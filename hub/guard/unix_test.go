package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/protocol"
)

func TestASocketIsForItsUserAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "serve")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "wf.sock")
	l, err := (Endpoint{Socket: path}).Listen(t.Context(), nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{dir: 0o700 | fs.ModeDir, path: 0o600 | fs.ModeSocket} {
		if info, err := os.Lstat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
	}
	accepted := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			err = c.Close()
		}
		accepted <- err
	}()
	if err := dial(t, path); err != nil {
		t.Error(err)
	}
	if err := <-accepted; err != nil {
		t.Error(err)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

func TestThePeerOfASocketIsKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := checkPeer(c.(*net.UnixConn)); err != nil {
		t.Errorf("this process is refused: %v", err)
	}
}

// The socket of a dead server is taken over; that of a live one is not, and is named; what is
// no socket is left alone.
func TestWhoseSocketItIs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "serve")
	path := filepath.Join(dir, "wf.sock")
	e := Endpoint{Socket: path}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path}) // as kill -9 leaves it
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if _, err := e.Listen(t.Context(), nil, nil, nil, nil); !errors.Is(err, protocol.ErrInUse) {
		t.Errorf("a live program that knows no lock: %v", err)
	}
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := e.Listen(t.Context(), nil, nil, nil, nil)
	if err != nil {
		t.Fatalf("the socket of a dead server: %v", err)
	}
	_, err = e.Listen(t.Context(), nil, nil, nil, nil)
	if want := fmt.Sprintf("process %d", os.Getpid()); !errors.Is(err, protocol.ErrInUse) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
		t.Errorf("the socket of a live server: %v", err)
	}
	if err := dial(t, path); err != nil {
		t.Errorf("the live server was disturbed: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Listen(t.Context(), nil, nil, nil, nil); !errors.Is(err, protocol.ErrInUse) {
		t.Errorf("a file in the place of the socket: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("the file was touched: %q %v", b, err)
	}
}

func TestADirectoryThatIsALinkIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	_, err := (Endpoint{Socket: filepath.Join(dir, "link", "wf.sock")}).Listen(t.Context(), nil, nil, nil, nil)
	if !errors.Is(err, protocol.ErrInsecure) {
		t.Error(err)
	}
}
