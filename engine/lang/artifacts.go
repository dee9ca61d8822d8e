package lang

import (
	"fmt"
	"strconv"

	"wf/engine/yaml"
	"wf/protocol"
	"wf/protocol/lazy"
	"wf/protocol/tree"
)

var byteSize = lazy.Regexp(`^[1-9][0-9]{0,8}(KB|MB|GB)$`)

// artifacts reads which files are kept; nil where none are. What holds by default is not written down.
func (l *loader) artifacts(role string, n *yaml.Node) *protocol.Artifacts {
	if !l.good(n) {
		return nil
	}
	paths, out := n, &protocol.Artifacts{}
	if n.Kind == yaml.Mapping {
		paths = n.Get("paths")
		out.MaxSize = l.bytes(n.Get("max_size"), protocol.ArtifactSize, protocol.ArtifactSizeMax)
		out.MaxTotal = l.bytes(n.Get("max_total"), protocol.ArtifactTotal, protocol.ArtifactTotalMax)
		if out.MaxFiles = l.integer(n.Get("max_files")); out.MaxFiles == protocol.ArtifactFiles {
			out.MaxFiles = 0
		}
	}
	if !l.good(paths) || paths.Kind != yaml.Sequence {
		return nil
	}
	for _, item := range paths.Items {
		out.Paths = append(out.Paths, l.str(item))
	}
	if _, err := tree.NewGlobs(out.Paths); err != nil && len(out.Paths) > 0 {
		l.wrong(paths, fmt.Sprintf("roles.%s.artifacts: %v", role, err), "globs are relative to the workspace and stay in it, such as dist/** or report.html")
	}
	if len(out.Paths) == 0 {
		return nil
	}
	return out
}

// bytes reads a size; 0 is the default.
func (l *loader) bytes(n *yaml.Node, def, most int64) int64 {
	text := l.str(n)
	if text == "" || !byteSize().MatchString(text) {
		return 0
	}
	unit := map[string]int64{"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}[text[len(text)-2:]]
	count, err := strconv.ParseInt(text[:len(text)-2], 10, 64)
	if err != nil || count > most/unit {
		l.wrong(n, fmt.Sprintf("%s is more than there can be", text), fmt.Sprintf("at most %dGB", most>>30))
		return 0
	}
	if count*unit == def {
		return 0
	}
	return count * unit
}
