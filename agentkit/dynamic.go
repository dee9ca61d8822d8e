package agentkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"wf/agentkit/prompt"
	"wf/protocol"
	"wf/roles"
	"wf/roles/workspace"
)

// dynamicMax is how many bytes one piece of dynamic text may have.
const dynamicMax = 16 << 10

// dynamicReadMax is how many bytes of a file are read; only a count of more is shown.
const dynamicReadMax = 16 << 20

// dynamic is the text that a role asks for with dynamic: [date, cwd, git, FILE]. It is read
// once, before the visit starts, and recorded; it never enters a prompt in another way.
func dynamic(ctx context.Context, turn protocol.Turn) (string, error) {
	var parts []string
	dir := filepath.Join(cmp.Or(turn.At, turn.Workspace), turn.Role.Dir)
	for _, what := range turn.Role.Dynamic {
		switch what {
		case "date":
			parts = append(parts, "Date: "+time.Now().Format("Monday, 2 January 2006"))
		case "cwd":
			parts = append(parts, "Working directory: "+dir)
		case "git":
			if at := git(ctx, turn); at != "" {
				parts = append(parts, "Git: "+at)
			}
		default:
			text, err := workspaceFile(turn.Workspace, what)
			if err != nil {
				return "", fmt.Errorf("%s: %w", what, err)
			}
			if text != "" {
				parts = append(parts, what+":\n"+text)
			}
		}
	}
	if a := turn.Role.Artifacts; a != nil && len(a.From) > 0 {
		parts = append(parts, givenText(a.From))
	}
	return prompt.Join(parts...), ctx.Err()
}

// givenText says where the files of earlier roles lie, by a name that is the same on every machine.
func givenText(from []string) string {
	var at []string
	for _, role := range from {
		at = append(at, "$"+roles.ArtifactsVar+"/"+role)
	}
	return "Files that earlier steps keep, read-only, for file tools and commands alike: " + strings.Join(at, ", ")
}

// git says on which branch and commit the directory of the role is, "" where that is not known.
func git(ctx context.Context, turn protocol.Turn) string {
	root, err := workspace.Open(turn.Workspace, turn.Role.Dir)
	if err != nil {
		return ""
	}
	defer root.Close()
	head := workspace.ReadHead(ctx, root)
	switch {
	case head == nil:
		return ""
	case head.Commit == "":
		return "branch " + head.Branch + ", no commits yet"
	case head.Branch == "":
		return "commit " + head.Commit + ", on no branch"
	}
	return "branch " + head.Branch + ", commit " + head.Commit
}

// workspaceFile reads the beginning of a file of the workspace; a missing one is "".
func workspaceFile(root, name string) (string, error) {
	if !filepath.IsLocal(name) {
		return "", errors.New("it lies outside of the workspace")
	}
	p, err := workspace.Find(root, "", name, workspace.Read)
	if err == nil {
		defer p.Close()
		var f *os.File
		if f, err = p.Open(); err == nil {
			defer f.Close()
			var b []byte
			b, err = io.ReadAll(io.LimitReader(f, dynamicReadMax))
			text := valid(strings.TrimSpace(string(b)))
			if n := roles.CutRunes(text, dynamicMax); n < len(text) {
				text = fmt.Sprintf("%s\n…[%d more bytes]", text[:n], len(text)-n)
			}
			return text, err
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return "", err
}
