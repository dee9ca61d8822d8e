package pgtest

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mount puts a file system in memory with so many bytes onto the directory of a program.
func mount(p *program, bytes int64) error {
	options := fmt.Sprint("mode=0700,size=", bytes)
	if p.user != nil {
		options += fmt.Sprintf(",uid=%d,gid=%d", p.user.Credential.Uid, p.user.Credential.Gid)
	}
	return unix.Mount("wf-pg", p.dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
}

func unmount(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) }

// free is how many bytes of the file system of a directory are.
func free(dir string) (int64, error) {
	var fs unix.Statfs_t
	err := unix.Statfs(dir, &fs)
	return int64(fs.Bavail) * fs.Bsize, err
}
