package guard

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// admit is nil for a peer of the own user.
func admit(fd int) error {
	c, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return fmt.Errorf("its user is not known: %w", err)
	}
	if int(c.Uid) != os.Geteuid() {
		return fmt.Errorf("it is of user %d, this is user %d", c.Uid, os.Geteuid())
	}
	return nil
}
