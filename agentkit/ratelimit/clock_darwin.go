package ratelimit

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// boot names the boot of this machine.
func boot() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }

// uptime is µs since the boot, the time of sleep included; the same for all processes.
func uptime() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(fmt.Sprintf("this system has no CLOCK_MONOTONIC: %v", err))
	}
	return t.Nano() / int64(time.Microsecond)
}
