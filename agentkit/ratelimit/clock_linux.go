package ratelimit

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// boot names the boot of this machine.
func boot() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// uptime is µs since the boot, the time of sleep included; the same for all processes.
func uptime() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("this kernel has no CLOCK_BOOTTIME: %v", err)) // it is older than Go can run on
	}
	return t.Nano() / int64(time.Microsecond)
}
