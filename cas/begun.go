package cas

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"wf/protocol"
)

// Runs begin often, and the file of many is large: so the first events of runs that begin are added
// to a file beside it, a line for each, until the next change takes them in.
//
//	SEQ CID NAME
//
// A line that was cut off by a crash is as good as none.

func begunFile(pinned string) string { return pinned + ".begun" }

// appendBegun adds what was begun to the file beside the pinned heads at path.
func appendBegun(path string, all []*pinChange) error {
	return lockedPinned(path, func() error {
		f, err := os.OpenFile(begunFile(path), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		var lines bytes.Buffer
		lines.WriteByte('\n') // behind a line that was cut off
		for _, c := range all {
			for _, h := range c.begun {
				fmt.Fprintf(&lines, "%d %s %s\n", h.Seq, h.Link, h.Name)
			}
		}
		_, err = f.Write(lines.Bytes())
		return errors.Join(err, f.Sync(), f.Close())
	})
}

// readBegun reads the heads beside the pinned heads at path.
func readBegun(path string) ([]Head, error) {
	raw, err := os.ReadFile(begunFile(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Head
	for line := range bytes.Lines(raw) {
		var h Head
		var cid string
		line, whole := bytes.CutSuffix(line, []byte("\n"))
		if n, err := fmt.Sscanf(string(line), "%d %s %s", &h.Seq, &cid, &h.Name); !whole || n != 3 || err != nil {
			continue
		}
		if h.Link, err = protocol.ParseLink(cid); err == nil {
			out = append(out, h)
		}
	}
	return out, nil
}
