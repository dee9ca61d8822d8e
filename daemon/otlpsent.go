package daemon

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"wf/files"
	"wf/protocol"
)

// sentTraces is a file of the runs whose traces a collector has: a line for each, behind one that tells that the runs
// which had ended at the beginning are among them. Of several processes one has it at a time.
type sentTraces struct {
	path  string
	file  *os.File
	begun bool
	runs  map[protocol.RunID]bool
}

// sentLine is a line of the file.
type sentLine struct {
	Schema string         `json:"schema,omitempty"` // wf.otlp/v1, of the line behind the runs that had ended
	Run    protocol.RunID `json:"run,omitempty"`
}

const sentSchema = "wf.otlp/v1"

// errOtherExports is why this process does not send.
var errOtherExports = errors.New("another process sends the traces of this store there")

// open reads the file, once; fresh is true until begin.
func (f *sentTraces) open() (fresh bool, err error) {
	if f.file != nil {
		return !f.begun, nil
	}
	if err := files.MakeDir(filepath.Dir(f.path)); err != nil {
		return false, err
	}
	file, err := files.OpenFile(f.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	free, err := files.TryLock(file, false)
	if err == nil && !free {
		err = errOtherExports
	}
	if err != nil {
		file.Close()
		return false, err
	}
	if err := f.read(file); err != nil {
		_ = files.FreeLock(file) // nothing was written
		return false, fmt.Errorf("%s: %w", f.path, err)
	}
	f.file = file
	return !f.begun, nil
}

// read takes the lines. What follows the last whole one was cut off by a crash, and goes.
func (f *sentTraces) read(file *os.File) error {
	f.runs, f.begun = map[protocol.RunID]bool{}, false
	lines := bufio.NewReader(file)
	var whole int64
	for {
		b, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		whole += int64(len(b))
		var line sentLine
		if err := json.Unmarshal(b, &line); err != nil {
			continue // of a damaged disk: that run is sent once more
		}
		if line.Run != "" {
			f.runs[line.Run] = true
		}
		f.begun = f.begun || line.Schema == sentSchema
	}
	if err := file.Truncate(whole); err != nil {
		return err
	}
	_, err := file.Seek(whole, io.SeekStart)
	return err
}

func (f *sentTraces) has(run protocol.RunID) bool { return f.runs[run] }

// add notes a run. The line need not be durable: a trace may be sent twice.
func (f *sentTraces) add(run protocol.RunID) error {
	err := f.write(sentLine{Run: run})
	if err == nil {
		f.runs[run] = true
	}
	return err
}

// begin notes that the runs which had ended are in the file, and returns when that is durable.
func (f *sentTraces) begin() error {
	if err := f.write(sentLine{Schema: sentSchema}); err != nil {
		return err
	}
	f.begun = true
	return f.file.Sync()
}

func (f *sentTraces) write(line sentLine) error {
	b, err := json.Marshal(line)
	if err == nil {
		_, err = f.file.Write(append(b, '\n'))
	}
	return err
}

func (f *sentTraces) close() {
	if f.file != nil {
		f.file.Close() // lines are written as they come
	}
}

func shortSum(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:5])
}
