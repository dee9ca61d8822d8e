package workspace

import (
	"os"
	"strings"
)

// Open opens a directory of the workspace root, "" for the workspace itself. Links within the
// workspace are followed; one that leads out of it is an error (see Outside), as is a path with
// too many parts "..".
func Open(root, dir string) (*os.Root, error) {
	r, err := openRoot(root)
	if err != nil || dir == "" || dir == "." {
		return r, err
	}
	defer r.Close()
	return r.OpenRoot(dir)
}

// Outside reports whether an error of os.Root says that a path or a link leads out of it. The
// links of os.Root are relative: an absolute one counts as leading out.
func Outside(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), escapes)
}

// escapes is how os.Root tells, by no error that it exports, of a link that leads out of it.
const escapes = "path escapes from parent"
