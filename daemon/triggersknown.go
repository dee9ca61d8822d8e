package daemon

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"wf/files"
	"wf/protocol"
)

// A knownTrigger is a schedule or a webhook that was served.
type knownTrigger struct {
	Kind     string             `json:"kind"` // protocol.TriggerSchedule or TriggerWebhook
	Workflow string             `json:"workflow"`
	File     string             `json:"file"`
	Schedule *protocol.Schedule `json:"schedule,omitempty"`

	// Of one that is not served any more: since when (RFC 3339, UTC), why, and what to do.
	Stopped string `json:"stopped,omitempty"`
	Problem string `json:"problem,omitempty"`
	Fix     string `json:"fix,omitempty"`
}

func (k knownTrigger) id() string { return k.Kind + " " + k.File }

func (k knownTrigger) same(o knownTrigger) bool { return k.id() == o.id() }

func (k knownTrigger) equal(o knownTrigger) bool { return reflect.DeepEqual(k, o) }

func (k knownTrigger) state() string {
	if k.Problem != "" {
		return protocol.AlarmStopped
	}
	return protocol.AlarmServed
}

// knownIn are the triggers of a directory that were served, over restarts: in serve/triggers beside the store, since what is served
// depends on the files and the environment of this machine. The process that has the lock of the file writes it.
type knownIn struct {
	dir, root string
	key       func() ([]byte, error)
	lock      *os.File // nil: another process writes it
	changed   bool     // since it was written

	triggersNote
}

// triggersNote is what is in the file.
type triggersNote struct {
	Schema   string           `json:"schema"` // wf.triggers/v1
	Dir      string           `json:"dir"`
	Triggers []knownTrigger   `json:"triggers"`
	Untold   []protocol.Alarm `json:"untold,omitempty"` // that sinks of notifications are to be told of
	Seal     string           `json:"seal,omitempty"`   // of the rest, by the key of the user: what a clone brings along is not known
}

// triggersKey is the use of the key that seals it.
const triggersKey = "triggers"

// mostTriggers bounds the file, in bytes.
const mostTriggers = 16 << 20

func (in *knownIn) path() string {
	sum := sha256.Sum256([]byte(in.dir))
	return filepath.Join(in.root, Dir, "triggers", hex.EncodeToString(sum[:8])+".json")
}

// has reports whether a file lies in the directory.
func (in *knownIn) has(file string) bool { return filepath.Dir(file) == in.dir }

// read reads the file, unless this process has written it; mine reports that this process does so from now on.
func (in *knownIn) read() (mine bool, err error) {
	if in.lock != nil {
		return true, nil
	}
	path := in.path()
	for _, d := range []string{filepath.Dir(filepath.Dir(path)), filepath.Dir(path)} { // a clone may have a link in the place of each
		if err := files.MakeDir(d); err != nil {
			return false, err
		}
	}
	lock, err := files.LockNamed(path+".lock", os.O_CREATE)
	if errors.Is(err, files.ErrLocked) {
		return false, in.load(path) // what that one knows is listed here too
	}
	if err != nil {
		return false, err
	}
	if err := in.load(path); err != nil {
		return false, errors.Join(err, files.FreeLock(lock))
	}
	in.lock = lock
	return true, nil
}

// knownBeside are the triggers of a store that were served when a daemon of this user looked last, and the directories of their files.
func knownBeside(store string, key func() ([]byte, error)) (dirs []string, all []knownTrigger, err error) {
	in := filepath.Join(store, Dir, "triggers")
	entries, err := os.ReadDir(in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	for _, e := range entries {
		path := filepath.Join(in, e.Name())
		if filepath.Ext(path) != ".json" {
			continue
		}
		var n triggersNote
		text, err := files.Read(path, mostTriggers)
		if err == nil {
			err = json.Unmarshal(text, &n)
		}
		k := &knownIn{dir: n.Dir, root: store, key: key}
		if err == nil && k.path() == path {
			err = k.load(path)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(k.Triggers) > 0 {
			dirs, all = append(dirs, k.dir), append(all, k.Triggers...)
		}
	}
	return dirs, all, err
}

// load takes what the file holds; one that this user did not seal holds nothing.
func (in *knownIn) load(path string) error {
	in.triggersNote = triggersNote{}
	text, err := files.Read(path, mostTriggers)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var n triggersNote
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; remove it to begin anew", path, err)
	}
	sealed, err := n.sealed(in.key)
	if err == nil && hmac.Equal([]byte(sealed.Seal), []byte(n.Seal)) && n.Dir == in.dir {
		in.triggersNote = n
	}
	return err
}

func (n triggersNote) sealed(key func() ([]byte, error)) (triggersNote, error) {
	k, err := key()
	if err != nil {
		return n, err
	}
	n.Seal = ""
	raw, err := json.Marshal(n)
	if err != nil {
		return n, err
	}
	h := hmac.New(sha256.New, k)
	h.Write(raw)
	n.Seal = hex.EncodeToString(h.Sum(nil))
	return n, nil
}

// write makes durable what is known.
func (in *knownIn) write() error {
	in.Schema, in.Dir = "wf.triggers/v1", in.dir
	sealed, err := in.sealed(in.key)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(sealed, "", "  ")
	if err != nil {
		return err
	}
	err = files.Replace(in.path(), append(text, '\n'))
	in.changed = err != nil
	return err
}

// leave has another process write the file.
func (in *knownIn) leave() {
	if in.lock != nil {
		_ = files.FreeLock(in.lock) // it holds nothing that is not written
		in.lock = nil
	}
}
