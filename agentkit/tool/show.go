package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"wf/roles/workspace"
)

// diffMax is how many bytes of a file are compared for a person; what would change in a longer one is
// shown by the arguments of the call.
const diffMax = 4 << 20

// showCommand is the command that a shell would run.
func showCommand(_ Workspace, args shellArgs) string {
	if args.Timeout > 0 {
		return fmt.Sprintf("timeout: %d seconds\n%s", args.Timeout, args.Command)
	}
	return args.Command
}

// showWrite is the difference that write_file would make.
func showWrite(at Workspace, args writeArgs) string {
	return difference(at, args.Path, true, func(string) (string, bool) { return args.Content, true })
}

// showEdit is the difference that edit_file would make.
func showEdit(at Workspace, args editArgs) string {
	return difference(at, args.Path, false, func(before string) (string, bool) {
		after, wrong := edited(before, args.Path, args.Old, args.New)
		return after, !wrong.IsError
	})
}

// difference is what a change does to a file, line by line; "" where it would change nothing, or there
// is no such file and none would be made. Nothing is made for it. Secrets are hidden in the whole texts,
// before they are cut into lines.
func difference(at Workspace, path string, creates bool, change func(before string) (after string, ok bool)) string {
	name, ok := inside(at, path)
	if !ok {
		return ""
	}
	from := shownName(name)
	before, err := content(at, name)
	if errors.Is(err, fs.ErrNotExist) && creates {
		from = "/dev/null"
	} else if err != nil {
		return ""
	}
	after, ok := change(before)
	if !ok || len(after) > diffMax {
		return ""
	}
	return udiff.Unified(from, shownName(name), at.clean(before), at.clean(after))
}

// content reads a file that is not too long to be compared.
func content(at Workspace, name string) (string, error) {
	dir, err := at.below()
	if err != nil {
		return "", err
	}
	p, err := workspace.Find(at.root(), dir, name, workspace.Read)
	if err != nil {
		return "", err
	}
	defer p.Close()
	return read(p, diffMax)
}

// shownName is a name of a file on a line of its own: no line feed in it passes for another line.
func shownName(name string) string {
	if strings.ContainsAny(name, "\n\r\t") {
		return strconv.Quote(name)
	}
	return name
}
