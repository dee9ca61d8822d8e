package sandbox

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sampleEvery is the time between two looks at what a command uses. A look that takes long is taken less often,
// so that it costs a tenth of a processor at most.
const sampleEvery = 250 * time.Millisecond

// A meter samples what a command uses in all. What comes and goes between two samples, memory that is
// mapped by no process and files on which only a mapping is left are not seen.
type meter struct {
	limits   Limits
	launcher int      // its descendants are the command
	shm      bool     // the command has a /dev/shm of its own
	dirs     []string // that the command may write
	before   uint64   // bytes of disk in dirs at the start
}

// newMeter looks at the disk before the command starts.
func (l launch) newMeter() *meter {
	m := &meter{limits: l.Limits, shm: l.Namespaces}
	for _, dir := range l.Write {
		if l.view != nil && dir == l.Work {
			dir = l.view.Upper // a change of a file below takes as much of the disk as all of the file
		}
		if !inside(filepath.Dir(dir), l.Write) {
			m.dirs = append(m.dirs, dir)
		}
	}
	for _, o := range l.Overlays {
		m.dirs = append(m.dirs, o.Upper)
	}
	if m.limits.Disk > 0 {
		m.before = m.disk(nil)
	}
	return m
}

// watch sends a text once when the command is over a limit, until stop is closed.
func (m *meter) watch(stop <-chan struct{}) <-chan string {
	over := make(chan string, 1)
	go func() {
		next := time.NewTimer(sampleEvery)
		defer next.Stop()
		for {
			select {
			case <-stop:
				return
			case <-next.C:
			}
			begun := time.Now()
			if text := m.over(); text != "" {
				over <- text
				return
			}
			next.Reset(max(sampleEvery, 10*time.Since(begun)))
		}
	}()
	return over
}

// over says which limit the command is over, and which key raises it; "" is none.
func (m *meter) over() string {
	processes := descendants(m.launcher)
	var threads uint64
	for _, p := range processes {
		threads += p.threads
	}
	if threads > m.limits.Processes {
		return fmt.Sprintf("the command was ended: it had %d processes and threads, and its limit is %d; sandbox: {limits: {processes: NUMBER}} in your config sets it", threads, m.limits.Processes)
	}
	if used := m.memory(processes); used > m.limits.Memory {
		return overText("memory", used, m.limits.Memory)
	}
	if m.limits.Disk == 0 {
		return ""
	}
	if now := m.disk(processes); now > m.before && now-m.before > m.limits.Disk {
		return overText("disk", now-m.before, m.limits.Disk)
	}
	return ""
}

func overText(what string, used, limit uint64) string {
	return fmt.Sprintf("the command was ended: it used %.1f MB of %s, and its limit is %.1f MB; sandbox: {limits: {%s: BYTES}} in your config sets it", float64(used)/1e6, what, float64(limit)/1e6, what)
}

// A process is one of a command, as /proc tells it.
type process struct {
	pid     int
	threads uint64
	rss     uint64 // bytes, shared ones included
}

// processes are all there are, by the number of their parent.
func processes() map[int][]process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has just ended
		}
		// pid (name) state ppid …, where the name may hold anything; the number of threads is the 20th, rss the 24th.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 22 {
			continue
		}
		parent, _ := strconv.Atoi(string(fields[1])) // numbers of the kernel
		pages, _ := strconv.ParseUint(string(fields[21]), 10, 63)
		threads, _ := strconv.ParseUint(string(fields[17]), 10, 63)
		children[parent] = append(children[parent], process{pid, threads, pages * uint64(os.Getpagesize())})
	}
	return children
}

// threadsOf is how many threads a user has.
func threadsOf(uid int) (threads uint64) {
	for _, all := range processes() {
		for _, p := range all {
			var stat unix.Stat_t
			if unix.Stat(fmt.Sprintf("/proc/%d", p.pid), &stat) == nil && int(stat.Uid) == uid {
				threads += p.threads
			}
		}
	}
	return threads
}

// descendants are the processes that one has started, with those that these have started.
func descendants(of int) []process {
	children := processes()
	var out []process
	for next := children[of]; len(next) > 0; {
		p := next[0]
		out = append(out, p)
		next = append(next[1:], children[p.pid]...)
	}
	return out
}

// memory is what processes use in all. Their resident sizes count what they share once for each, so that
// only where these are over the limit the shares are asked for, which takes the kernel longer.
func (m *meter) memory(processes []process) uint64 {
	shm := m.sharedFiles(processes)
	sum := shm
	for _, p := range processes {
		sum += p.rss
	}
	if sum <= m.limits.Memory {
		return sum
	}
	sum = 0
	var mapped uint64
	for _, p := range processes {
		all, shared, ok := p.share()
		if !ok {
			all = p.rss
		}
		sum, mapped = sum+all, mapped+shared
	}
	if shm > mapped {
		sum += shm - mapped
	}
	return sum
}

// share is the proportional size of a process in bytes, and what of it is shared memory.
func (p process) share() (all, shared uint64, ok bool) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid))
	if err != nil {
		return 0, 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 54)
		switch {
		case err != nil:
		case name == "Pss":
			all, ok = n<<10, true
		case name == "Pss_Shmem":
			shared = n << 10
		}
	}
	return all, shared, ok
}

// sharedFiles is how many bytes lie in the command's own /dev/shm.
func (m *meter) sharedFiles(processes []process) uint64 {
	if !m.shm {
		return 0
	}
	var stat unix.Statfs_t
	for _, p := range processes {
		if unix.Statfs(fmt.Sprintf("/proc/%d/root%s", p.pid, shm), &stat) == nil {
			return (stat.Blocks - stat.Bfree) * uint64(stat.Bsize)
		}
	}
	return 0
}

// disk is how many bytes of disk lie in what the command may write, with files that have lost their name while
// one of its processes has them open.
func (m *meter) disk(processes []process) uint64 {
	var sum uint64
	seen := map[[2]uint64]bool{}
	count := func(info fs.FileInfo, err error, unnamed bool) {
		if err != nil || !info.Mode().IsRegular() {
			return
		}
		stat := info.Sys().(*syscall.Stat_t) // of every Unix
		if unnamed && stat.Nlink > 0 {
			return
		}
		if id := [2]uint64{uint64(stat.Dev), stat.Ino}; stat.Nlink != 1 {
			if seen[id] {
				return
			}
			seen[id] = true
		}
		sum += uint64(stat.Blocks) * 512
	}
	for _, dir := range m.dirs {
		root, err := os.OpenRoot(dir)
		if err != nil {
			continue // it is gone
		}
		_ = fs.WalkDir(root.FS(), ".", func(_ string, e fs.DirEntry, err error) error {
			if err == nil {
				info, err := e.Info()
				count(info, err, false)
			}
			return nil // what cannot be read, or is gone, is not counted
		})
		root.Close()
	}
	for _, p := range processes {
		fds := fmt.Sprintf("/proc/%d/fd", p.pid)
		entries, err := os.ReadDir(fds)
		if err != nil {
			continue
		}
		for _, e := range entries {
			info, err := os.Stat(filepath.Join(fds, e.Name()))
			count(info, err, true)
		}
	}
	return sum
}

// machineMemory is what the machine has, in bytes.
func machineMemory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 1 << 62
	}
	return uint64(info.Totalram) * uint64(info.Unit)
}
