package sandbox

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"wf/files"
)

// cacheMarker is the first argument under which a binary that calls Main is a cache of go, for commands
// without the mounts that layers are made of: it reads a seed and writes into a directory of the workspace.
// It does nothing that the command could not do itself, and runs within the same walls.
const cacheMarker = "wf:gocache"

// cacheProgram is the value of GOCACHEPROG, which go splits at spaces outside of quotes; "" where a path
// cannot be written so.
func cacheProgram(self, lower, upper string) string {
	words := []string{self, cacheMarker, lower, upper}
	for i, word := range words {
		switch {
		case !strings.ContainsAny(word, " \t\n\r'\""):
		case !strings.Contains(word, "'"):
			words[i] = "'" + word + "'"
		case !strings.Contains(word, `"`):
			words[i] = `"` + word + `"`
		default:
			return ""
		}
	}
	return strings.Join(words, " ")
}

// A cacheRequest is what go asks, by the protocol of cmd/go/internal/cacheprog (Go 1.24). A body follows on
// a line of its own, as a JSON string in base64.
type cacheRequest struct {
	ID       int64
	Command  string
	ActionID []byte `json:",omitempty"`
	OutputID []byte `json:",omitempty"`
	BodySize int64  `json:",omitempty"`
}

type cacheResponse struct {
	ID            int64
	Err           string     `json:",omitempty"`
	KnownCommands []string   `json:",omitempty"`
	Miss          bool       `json:",omitempty"`
	OutputID      []byte     `json:",omitempty"`
	Size          int64      `json:",omitempty"`
	Time          *time.Time `json:",omitempty"`
	DiskPath      string     `json:",omitempty"`
}

// A cacheDir has the files of go's own cache: ACTION-a names an output, OUTPUT-d is its content. So what go
// itself has put there is found too.
type cacheDir string

func (d cacheDir) file(id []byte, kind string) string {
	name := hex.EncodeToString(id)
	return filepath.Join(string(d), name[:2], name+"-"+kind)
}

// get fills in the response where the directory has the output of an action.
func (d cacheDir) get(action []byte, r *cacheResponse) bool {
	entry, err := os.ReadFile(d.file(action, "a"))
	if err != nil {
		return false
	}
	var version, id, output string
	var size, nanos int64
	if _, err := fmt.Sscan(string(entry), &version, &id, &output, &size, &nanos); err != nil || version != "v1" || id != hex.EncodeToString(action) {
		return false
	}
	out, err := hex.DecodeString(output)
	if err != nil || len(out) == 0 {
		return false
	}
	path := d.file(out, "d")
	if info, err := os.Stat(path); err != nil || info.Size() != size {
		return false
	}
	at := time.Unix(0, nanos)
	r.OutputID, r.Size, r.Time, r.DiskPath = out, size, &at, path
	return true
}

// put keeps an output, and gives its file.
func (d cacheDir) put(action, output, body []byte) (string, error) {
	path := d.file(output, "d")
	if info, err := os.Stat(path); err != nil || info.Size() != int64(len(body)) {
		if err := replace(path, body); err != nil {
			return "", err
		}
	}
	entry := fmt.Sprintf("v1 %x %x %20d %20d\n", action, output, len(body), time.Now().UnixNano())
	return path, replace(d.file(action, "a"), []byte(entry))
}

// replace writes a file that others may be reading.
func replace(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return files.ReplaceSoon(path, content)
}

// serveCache answers go until it closes: from upper, where it also puts what is new, and from lower.
func serveCache(in io.Reader, out io.Writer, lower, upper cacheDir) error {
	requests := json.NewDecoder(bufio.NewReader(in))
	w := bufio.NewWriter(out)
	answers := json.NewEncoder(w)
	answer := func(r cacheResponse) error { return errors.Join(answers.Encode(r), w.Flush()) }
	if err := answer(cacheResponse{KnownCommands: []string{"get", "put", "close"}}); err != nil {
		return err
	}
	for {
		var q cacheRequest
		if err := requests.Decode(&q); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var body []byte
		if q.BodySize > 0 {
			if err := requests.Decode(&body); err != nil {
				return err
			}
		}
		r := cacheResponse{ID: q.ID}
		switch {
		case q.Command == "close":
			return answer(r)
		case len(q.ActionID) == 0 || q.Command == "put" && len(q.OutputID) == 0:
			r.Err = "a request without an id"
		case q.Command == "get":
			r.Miss = !upper.get(q.ActionID, &r) && !lower.get(q.ActionID, &r)
		case q.Command == "put" && int64(len(body)) == q.BodySize:
			var err error
			if r.DiskPath, err = upper.put(q.ActionID, q.OutputID, body); err != nil {
				r.Err = err.Error()
			}
		default:
			r.Err = "unknown command " + q.Command
		}
		if err := answer(r); err != nil {
			return err
		}
	}
}
