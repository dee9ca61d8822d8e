//go:build unix

package metrics

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// system registers what the system tells of the process.
func (r *Registry) system() {
	r.CounterFunc("process_cpu_seconds_total", "Time of processors that the process took, user and system; commands that it starts are not in it.", func(emit func(float64, ...string)) {
		var use syscall.Rusage
		if syscall.Getrusage(syscall.RUSAGE_SELF, &use) == nil {
			emit((time.Duration(use.Utime.Nano()) + time.Duration(use.Stime.Nano())).Seconds())
		}
	})
	r.GaugeFunc("process_max_fds", "Files that the process may have open.", func(emit func(float64, ...string)) {
		var limit syscall.Rlimit
		if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
			emit(float64(limit.Cur))
		}
	})
	if runtime.GOOS != "linux" {
		return // there is no /proc
	}
	r.GaugeFunc("process_open_fds", "Files that the process has open.", func(emit func(float64, ...string)) {
		if dir, err := os.Open("/proc/self/fd"); err == nil {
			names, err := dir.Readdirnames(-1)
			_ = dir.Close() // it was only read
			if err == nil {
				emit(float64(len(names) - 1)) // without the directory itself
			}
		}
	})
	r.GaugeFunc("process_resident_memory_bytes", "Memory of the machine that the process takes.", func(emit func(float64, ...string)) {
		// size resident shared …, in pages: proc(5)
		if b, err := os.ReadFile("/proc/self/statm"); err == nil {
			if fields := bytes.Fields(b); len(fields) > 1 {
				if pages, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
					emit(float64(pages * int64(os.Getpagesize())))
				}
			}
		}
	})
}
