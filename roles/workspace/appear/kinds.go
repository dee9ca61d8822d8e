package appear

import (
	"io"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"wf/protocol"
	"wf/roles/workspace"
	"wf/roles/workspace/internal/at"
)

// classify tells what an entry of a directory is to programs, "" for nothing, and whether it is a directory
// in which to look further.
func classify(in, name string, mode fs.FileMode) (kind protocol.FoundKind, inner bool) {
	isDir := mode.IsDir()
	if name[0] == '.' || odd(name) {
		switch workspace.Reserved(name) {
		case ".git":
			if isDir {
				return protocol.FoundRepository, false
			}
			return protocol.FoundGitLink, false
		case ".wf":
			return protocol.FoundStore, false
		}
	}
	_, base := split(in)
	switch {
	case name == ".envrc" && !isDir:
		kind = protocol.FoundEnvrc
	case base == ".vscode" && name == "tasks.json", (name == ".vscode" || name == ".idea" || name == "runConfigurations" && base == ".idea") && mode&fs.ModeSymlink != 0:
		kind = protocol.FoundTasks
	case base == "runConfigurations" && strings.HasSuffix(name, ".xml"):
		if dir, _ := split(in); dir == ".idea" || strings.HasSuffix(dir, "/.idea") {
			kind = protocol.FoundTasks
		}
	case (in == "." || base == "workflows") && protocol.IsWorkflowName(name) && !isDir, name == "workflows" && mode&fs.ModeSymlink != 0:
		kind = protocol.FoundWorkflow
	}
	return kind, isDir
}

// isWorkflow reports whether wf serve would take a file, below an open directory, for a workflow. One that cannot be read may be
// one.
func isWorkflow(root int, path string) bool {
	dir, name := split(path)
	fd, err := openBelow(root, dir)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	f, err := at.Regular(fd, name)
	if err != nil {
		return true
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, protocol.WorkflowMax))
	return err != nil || protocol.IsWorkflow(text)
}

// odd reports whether a name could be a reserved one in other letters.
func odd(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return r == '~' || r >= 0x80 })
}

// bareParts are what git finds in a directory that it takes for a repository.
type bareParts struct{ head, objects, refs, common bool }

func (b *bareParts) add(name string) {
	switch len(name) {
	case 4:
		b.head = b.head || strings.EqualFold(name, "HEAD")
		b.refs = b.refs || strings.EqualFold(name, "refs")
	case 7:
		b.objects = b.objects || strings.EqualFold(name, "objects")
	case 9:
		b.common = b.common || strings.EqualFold(name, "commondir")
	}
}

func (b bareParts) bare() bool { return b.head && (b.objects && b.refs || b.common) }
