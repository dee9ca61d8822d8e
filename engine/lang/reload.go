package lang

import (
	"fmt"
	"path"
	"strings"

	"wf/engine/yaml"
	"wf/protocol"
)

// reloadMax bounds the source that Reload writes: with line ends and quotes escaped, and with what defaults and
// anchors stood for written out, it is larger than the file was.
const reloadMax = 64 << 20

// Reload makes the program of a canonical definition by all that Load checks of a file, which Compile does
// not: a definition that was put together of others may name what is not there. sub gives the definitions of
// sub-workflows; nil is where there are none. The Program is nil if and only if one of the diagnostics is an
// error; it has the CID of the definition.
func Reload(w *protocol.Workflow, sub Subs, o Options) (*Program, []Diagnostic) {
	was, err := (&Program{Workflow: w}).Block()
	if err != nil {
		return nil, []Diagnostic{unwritten(err.Error())}
	}
	src, err := written(w)
	if err != nil {
		return nil, []Diagnostic{unwritten(err.Error())}
	}
	p, ds := loadWritten(src, nil, sub, o)
	if p == nil {
		return nil, ds
	}
	if now, err := p.Block(); err != nil || now.Link != was.Link {
		return nil, []Diagnostic{unwritten("a part of it has no words in the language")}
	}
	return p, ds
}

// writtenFile is the name of a definition that has no file.
const writtenFile = "definition.yaml"

func unwritten(why string) Diagnostic {
	return Diagnostic{Code: "WF003", Severity: SeverityError, File: writtenFile, Message: "the definition cannot be written as a file: " + why, Hint: "another version of wf may have made it"}
}

// loadWritten loads what was written of definitions; sources are those of sub-workflows that have no CID yet, by name.
func loadWritten(src []byte, sources map[string][]byte, sub Subs, o Options) (*Program, []Diagnostic) {
	o.File, o.Apart, o.limits = writtenFile, nil, yaml.Limits{Bytes: reloadMax, Nodes: 5_000_000}
	o.Read = func(file string) ([]byte, error) {
		if src, ok := sources[file]; ok {
			return src, nil
		}
		link, err := protocol.ParseLink(strings.TrimSuffix(path.Base(file), ".yaml"))
		if err != nil || sub == nil {
			return nil, fmt.Errorf("the sub-workflow %s is not known", file)
		}
		of, err := sub(link)
		if err != nil {
			return nil, err
		}
		return written(of)
	}
	return Load(src, o)
}
