//go:build unix

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"wf/protocol"
)

// ownDirectory refuses a directory of another user, since that user could change it at any time.
func ownDirectory(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("config: %w", &protocol.Error{
			Code: ErrConfig.Code, Message: fmt.Sprintf("%s belongs to user %d, not to you", dir, stat.Uid),
			Hint: "work in a directory of your own, or chown it",
		})
	}
	return nil
}
