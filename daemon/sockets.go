package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"wf/files"
	"wf/hub/guard"
	"wf/protocol"
)

// LongestSocket is the most bytes the path of a socket may have on any system (sun_path).
const LongestSocket = 100

// RuntimeDir is the user's directory for the sockets of daemons and runs, made if it is not there. They
// do not lie in stores: a store may be in a workspace, which the commands of agents reach. It lies
// in $XDG_RUNTIME_DIR or /run/user/UID, else in the directory for temporary files, and must be the user's own.
func RuntimeDir() (string, error) {
	uid := strconv.Itoa(os.Geteuid())
	runtime := os.Getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(runtime) {
		runtime = filepath.Join("/run/user", uid)
	}
	if info, err := os.Stat(runtime); err == nil && info.IsDir() && files.Writable(runtime) {
		if dir := filepath.Join(runtime, "wf"); len(filepath.Join(dir, "0123456789abcdef.sock")) <= LongestSocket {
			return dir, guard.PrivateDir(dir)
		}
	}
	dir := filepath.Join(os.TempDir(), "wf-"+uid)
	if err := guard.PrivateDir(dir); err != nil {
		return "", &protocol.Error{Code: protocol.CodeOf(err), Message: fmt.Sprintf("directory for sockets: %v", err),
			Hint: "set XDG_RUNTIME_DIR to a directory that only you can enter"}
	}
	return dir, nil
}

// SocketPath is where the daemon of a store listens.
func SocketPath(store string) (string, error) {
	dir, err := RuntimeDir()
	return filepath.Join(dir, StoreName(files.Real(store))+".sock"), err
}

// RunSocket is where the process that drives a run of a store lets others watch.
func RunSocket(store string, run protocol.RunID) (dir, name string, err error) {
	dir, err = RuntimeDir()
	return dir, runSockets(store) + string(run) + runSocketEnd, err
}

// runSockets is what the names of the sockets of the runs of a store begin with, and runSocketEnd their end.
func runSockets(store string) string { return StoreName(files.Real(store)) + "." }

const runSocketEnd = ".sock"

// withSockets are the runs of a store that have a socket, by what the names of these begin with.
func withSockets(begin string) (runs []protocol.RunID, err error) {
	dir, err := RuntimeDir()
	if err != nil {
		return nil, err
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	for _, name := range names {
		if run, of := strings.CutPrefix(name, begin); of && strings.HasSuffix(run, runSocketEnd) {
			runs = append(runs, protocol.RunID(strings.TrimSuffix(run, runSocketEnd)))
		}
	}
	return runs, err
}

// StoreName is a short name made from the path of a store.
func StoreName(store string) string {
	sum := sha256.Sum256([]byte(store))
	return hex.EncodeToString(sum[:8])
}
