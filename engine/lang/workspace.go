package lang

import (
	"fmt"

	"wf/engine/yaml"
	"wf/protocol"
	"wf/protocol/tree"
)

// workspace reads which files are recorded; nil where nothing is said of it. What holds by default is not written down.
func (l *loader) workspace(n *yaml.Node) *protocol.Workspace {
	if !l.good(n) || n.Kind != yaml.Mapping {
		return nil
	}
	out := &protocol.Workspace{
		Include: l.globs("workspace.include", n.Get("include")), Exclude: l.globs("workspace.exclude", n.Get("exclude")),
		MaxSize: l.bytes(n.Get("max_size"), protocol.TrackSize, protocol.TrackSizeMax),
	}
	if at := n.Get("track"); l.good(at) {
		track := l.yes(at)
		out.Track = &track
		if !track && len(out.Include)+len(out.Exclude)+int(out.MaxSize) > 0 {
			l.wrong(at, "workspace: with track: false the other keys have no effect", "remove them, or track: false")
		}
	}
	if out.Track == nil && out.Include == nil && out.Exclude == nil && out.MaxSize == 0 {
		return nil
	}
	return out
}

// globs reads a list of globs.
func (l *loader) globs(key string, n *yaml.Node) (out []string) {
	if !l.good(n) || n.Kind != yaml.Sequence {
		return nil
	}
	for _, item := range n.Items {
		out = append(out, l.str(item))
	}
	if _, err := tree.NewGlobs(out); err != nil {
		l.wrong(n, fmt.Sprintf("%s: %v", key, err), "globs are relative to the workspace and stay in it, such as data/** or *.bin")
	}
	return out
}
