package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"wf/files"
	"wf/roles/workspace"
)

// Overlay mounts a directory that is never changed below one of what is written: for this process and, by clones of the mount, for
// the launchers of commands; nothing else of the machine sees it. Upper lies on a file system with extended attributes of users, work
// is a directory beside it for the kernel, which is emptied. All three are absolute. The error says that this machine, or its file system, cannot do it.
//
//	wf ──────► holder, in namespaces of its own: mounts the overlay
//	   ◄────── a clone, by which wf opens the files
//	   ◄────── a clone for each command, whose launcher attaches it
//
// All clones are one file system, so that each sees what another wrote at once. The kernel clones a mount only for a process in the
// namespace in which it is attached: that is what the holder stays for. It ends when the view is closed, and with this process.
//
// Where a process that was killed has left commands behind, Overlay waits until they have ended.
func Overlay(lower, upper, work string) (*workspace.View, error) {
	at := probed()
	if !at.tier.Namespaces {
		return nil, at.tier.refusal()
	}
	// Without these attributes the kernel mounts an overlay that cannot say which directories it hides.
	if _, err := unix.Getxattr(upper, "user.wf", nil); err != nil && !errors.Is(err, unix.ENODATA) {
		return nil, fmt.Errorf("attributes of %s: %w", upper, err)
	}
	held, err := os.Open(upper)
	if err != nil {
		return nil, err
	}
	if err := files.WaitLock(held, false); err != nil {
		return nil, errors.Join(err, held.Close())
	}
	// Only now: the commands that were waited for could write nothing without what lies in there.
	var v *workspace.View
	if err = errors.Join(workspace.RemoveAll(work), files.MakeDir(work)); err == nil {
		v, err = at.holdOverlay(held, lower, upper, work)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mount layers: %w", err), files.FreeLock(held))
	}
	return v, nil
}

func (f found) holdOverlay(held *os.File, lower, upper, work string) (*workspace.View, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{holderMarker, lower, upper, work}, Env: []string{"GOMAXPROCS=1"}, Dir: "/",
		ExtraFiles:  []*os.File{theirs, held},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Cloneflags: f.namespaces & (unix.CLONE_NEWUSER | unix.CLONE_NEWNS)},
	}
	if err := asSelf(cmd, unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	theirs.Close()
	h := &holder{socket: ours}
	dir, err := h.clone()
	end := func() error {
		h.Lock()
		defer h.Unlock()
		return errors.Join(ours.Close(), cmd.Wait())
	}
	if err != nil {
		_ = end() // the error says why it ended
		return nil, err
	}
	return &workspace.View{Dir: dir, Upper: upper, Held: held, Clone: h.clone, Close: func() error {
		return errors.Join(dir.Close(), end(), files.FreeLock(held))
	}}, nil
}

// holder is the process that has the mount attached, as wf asks it.
type holder struct {
	sync.Mutex
	socket *os.File
}

// clone asks for the mount once more.
func (h *holder) clone() (*os.File, error) {
	h.Lock()
	defer h.Unlock()
	socket := int(h.socket.Fd())
	if _, err := unix.Write(socket, []byte{0}); err != nil {
		return nil, fmt.Errorf("ask for the mount: %w", err)
	}
	text, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := unix.Recvmsg(socket, text, oob, unix.MSG_CMSG_CLOEXEC)
	for errors.Is(err, unix.EINTR) {
		n, m, _, _, err = unix.Recvmsg(socket, text, oob, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("receive the mount: %w", err)
	}
	if m == 0 && n > 0 {
		return nil, stageError(string(text[:n]))
	}
	fd, err := receivedIn(oob[:m])
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "layers"), nil
}

// serveOverlay is the holder: it mounts layers, and sends a clone for each byte that it reads, until there are no more. What goes
// wrong it sends as a launcher reports it.
func serveOverlay(layers []string) {
	const socket = 3
	mount, err := attachOverlay(layers[0], layers[1], layers[2])
	for {
		n, failed := unix.Read(socket, make([]byte, 1))
		if errors.Is(failed, unix.EINTR) {
			continue
		}
		if n <= 0 || failed != nil {
			quit(0)
		}
		fd := -1
		if err == nil {
			fd, err = unix.OpenTree(mount, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		}
		if err == nil {
			err = unix.Sendmsg(socket, []byte{0}, unix.UnixRights(fd), nil, 0)
			unix.Close(fd)
		}
		if err != nil {
			_, _ = unix.Write(socket, []byte(report(err))) // there is no other way to report it
			quit(125)
		}
	}
}

// attachOverlay mounts layers over the root directory of the holder, where nothing looks for them. They are named by descriptors,
// so that there is no path with what options and layers are told apart by.
func attachOverlay(lower, upper, work string) (mount int, err error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return -1, fmt.Errorf("make mounts private: %w", err)
	}
	options := []string{"userxattr", "", "index", "off"}
	for i, dir := range []string{lower, upper, work} {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, fmt.Errorf("open %s: %w", dir, err)
		}
		options = append(options, []string{"lowerdir", "upperdir", "workdir"}[i], fmt.Sprintf("/proc/self/fd/%d", fd))
	}
	if mount, err = newMount("overlay", options...); err != nil {
		return -1, err
	}
	return mount, unix.MoveMount(mount, "", unix.AT_FDCWD, base, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// merge attaches the mount of a workspace in layers where its path leads, before the root of the command is furnished.
func (l *launch) merge() error {
	if l.Merged == 0 {
		return nil
	}
	defer unix.Close(l.Merged)
	return unix.MoveMount(l.Merged, "", unix.AT_FDCWD, l.Work, unix.MOVE_MOUNT_F_EMPTY_PATH)
}
