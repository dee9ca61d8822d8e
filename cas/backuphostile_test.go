package cas

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"wf/files"
	"wf/protocol"
)

// below lists the paths in a directory.
func below(t testing.TB, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		out = append(out, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestADirectoryThatIsNoPlaceForABackupIsLeftAlone(t *testing.T) {
	s := toBackUp(t)
	other, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.WriteFile(filepath.Join(other, "thesis.tex"), nil, 0o600), os.Symlink(s.Dir(), link)); err != nil {
		t.Fatal(err)
	}
	before := append(below(t, s.Dir()), below(t, other)...)
	for name, dir := range map[string]string{
		"the store": s.Dir(), "below the store": filepath.Join(s.Dir(), "new", "backup"), "its blobs": filepath.Join(s.Dir(), dirBlobs),
		"behind a link": link, "below a link": filepath.Join(link, "backup"), "by a way around": filepath.Join(s.Dir(), "..", filepath.Base(s.Dir()), "x"), "another directory": other,
	} {
		if _, err := Backup(t.Context(), s, dir, BackupOptions{}); !errors.Is(err, protocol.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := append(below(t, s.Dir()), below(t, other)...); !slices.Equal(after, before) {
		t.Errorf("there was %q, there is %q", before, after)
	}
	// A directory beside the store, whose name begins alike, is one; so is what a link leads to.
	beside := s.Dir() + "-backup"
	t.Cleanup(func() { _ = os.RemoveAll(beside) }) // beside a directory of tests
	if err := errors.Join(os.Mkdir(beside, 0o700), os.Remove(link), os.Symlink(beside, link)); err != nil {
		t.Fatal(err)
	}
	must(Backup(t.Context(), s, link, BackupOptions{}))
	must(VerifyBackup(t.Context(), beside))
}

func TestABackupDoesNotReplaceThatOfAnotherStore(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	top := t.TempDir()
	open := func(name string) *Store {
		s := must(Open(ctx, filepath.Join(top, name), Options{}))
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	s := open("one")
	sampleRun(t, s, "r1", 2)
	must(Backup(ctx, s, dir, BackupOptions{}))
	raw := must(os.ReadFile(filepath.Join(dir, manifestFile)))
	another := open("another")
	sampleRun(t, another, "r2", 2)
	if _, err := Backup(ctx, another, dir, BackupOptions{}); !errors.Is(err, protocol.ErrUsage) || !strings.Contains(err.Error(), s.Dir()) {
		t.Errorf("another store: %v", err)
	}
	if err := errors.Join(s.Close(), os.Rename(s.Dir(), s.Dir()+"-moved")); err != nil {
		t.Fatal(err)
	}
	anew := open("one")
	sampleRun(t, anew, "r3", 2)
	if _, err := Backup(ctx, anew, dir, BackupOptions{}); !errors.Is(err, protocol.ErrUsage) {
		t.Errorf("a new store in the place of the old one: %v", err)
	}
	if now := must(os.ReadFile(filepath.Join(dir, manifestFile))); string(now) != string(raw) {
		t.Error("the manifest was replaced")
	}
	moved := open("one-moved")
	bury(t, moved, "r1")
	for range 2 { // known by a tombstone, at first in the place of a run
		must(Backup(ctx, moved, dir, BackupOptions{}))
	}
	if stone := must(Tombstone(ctx, restored(t, dir), "r1")); stone == nil {
		t.Error("the newest backup is not that of the moved store")
	}
}

func TestOfTwoBackupsIntoOneDirectoryOneIsMade(t *testing.T) {
	s := toBackUp(t)
	dir := t.TempDir()
	var second error
	s.opts.Before = func(op Op) error {
		if op == OpBackup && second == nil {
			_, second = Backup(t.Context(), s, dir, BackupOptions{})
		}
		return nil
	}
	must(Backup(t.Context(), s, dir, BackupOptions{}))
	if !errors.Is(second, protocol.ErrBusy) {
		t.Errorf("the second one: %v", second)
	}
	must(VerifyBackup(t.Context(), dir))
}

// A kill while a file is written leaves it under another name, be it the manifest of the first backup.
func TestWhatAKilledBackupLeftIsRemoved(t *testing.T) {
	s := toBackUp(t)
	dir := t.TempDir()
	sum := sumName(nil)
	left := []string{manifestFile + ".123", "lists/" + sum + ".4", "packs/new-77", "packs/" + sum + ".list.5", "blobs/" + sum[:2] + "/" + sum + ".6"}
	lay := func() {
		for _, name := range left {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("half"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		lay()
		must(Backup(t.Context(), s, dir, BackupOptions{}))
		for _, name := range left {
			if files.Exists(filepath.Join(dir, name)) {
				t.Errorf("%s is left", name)
			}
		}
		must(VerifyBackup(t.Context(), dir))
	}
}

func TestABundleThatWasCutShortIsCopiedAgain(t *testing.T) {
	s := toBackUp(t)
	dir := t.TempDir()
	must(Backup(t.Context(), s, dir, BackupOptions{}))
	m, _, err := readManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, dirPacks, m.Bundles[0].SHA256)
	if err := os.Truncate(path, m.Bundles[0].Bytes/2); err != nil {
		t.Fatal(err)
	}
	_, err = VerifyBackup(t.Context(), dir)
	if !errors.Is(err, protocol.ErrCorrupt) || !strings.Contains(err.Error(), m.Bundles[0].SHA256) || !strings.Contains(protocol.HintOf(err), "remove the file") {
		t.Errorf("%v (%s)", err, protocol.HintOf(err))
	}
	must(Backup(t.Context(), s, dir, BackupOptions{}))
	must(VerifyBackup(t.Context(), dir))
	// So it is with any file that is removed, as the hint says.
	for _, name := range below(t, dir) {
		if info := must(os.Lstat(name)); !info.Mode().IsRegular() || filepath.Base(filepath.Dir(name)) == dirManifests {
			continue
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		must(Backup(t.Context(), s, dir, BackupOptions{}))
		if _, err := VerifyBackup(t.Context(), dir); err != nil {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// forge changes the manifest of a backup.
func forge(t *testing.T, dir string, change func(*Manifest)) {
	t.Helper()
	var m Manifest
	path := filepath.Join(dir, manifestFile)
	if err := json.Unmarshal(must(os.ReadFile(path)), &m); err != nil {
		t.Fatal(err)
	}
	change(&m)
	if err := os.WriteFile(path, must(json.Marshal(m)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// laid writes a file of a backup under the name of its contents.
func laid(t *testing.T, dir string, data []byte) (f BackupFile) {
	t.Helper()
	f = BackupFile{sumName(data), int64(len(data))}
	if err := os.WriteFile(filepath.Join(dir, f.SHA256), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// swelling is a pack that says to unpack to a terabyte.
func swelling() []byte {
	frame := append(binary.LittleEndian.AppendUint64([]byte{0xe0}, 1<<40), 0x03, 0, 0x10, 'x')
	return append([]byte{byte(len(frame) + 2), 1, packZstd1}, frame...)
}

// What others wrote into the directory of a backup leads to nothing outside of it, asks for no memory beyond what is
// there, is waited for in vain by no one, and never becomes a store.
func TestAHostileBackupIsRefused(t *testing.T) {
	source := t.TempDir()
	must(Backup(t.Context(), toBackUp(t), source, BackupOptions{}))
	// only makes a bundle of one stored pack the whole of the backup.
	only := func(stored []byte, framed ...byte) func(*testing.T, string, *Manifest) {
		return func(t *testing.T, dir string, m *Manifest) {
			sum := must(hex.DecodeString(sumName(stored)))
			m.Packs = BackupList{laid(t, filepath.Join(dir, dirLists), sum), 1}
			if framed == nil {
				framed = append(binary.AppendUvarint(nil, uint64(len(stored))), stored...)
			}
			m.Bundles = []BackupFile{laid(t, filepath.Join(dir, dirPacks), framed)}
		}
	}
	inPlace := func(path string, put func(path string) error) func(*testing.T, string, *Manifest) {
		return func(t *testing.T, dir string, m *Manifest) {
			at := filepath.Join(dir, strings.NewReplacer("BUNDLE", m.Bundles[0].SHA256, "HEADS", m.Heads.SHA256, "BLOB", filepath.Join(m.Blobs[0][:2], m.Blobs[0])).Replace(path))
			if err := errors.Join(os.Rename(at, at+"-was"), put(at)); err != nil {
				t.Fatal(err)
			}
		}
	}
	pipe := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	link := func(path string) error { return os.Symlink(path+"-was", path) }
	endless := func(path string) error { return os.Symlink("/dev/zero", path) }
	heads := func(refs ...entry) func(*testing.T, string, *Manifest) {
		return func(t *testing.T, dir string, m *Manifest) {
			was, reflog, err := readHeads(dir, *m)
			if err != nil {
				t.Fatal(err)
			}
			all := was
			for _, it := range refs {
				it.value = was[0].value
				all = append(all, it)
			}
			slices.SortStableFunc(all, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
			m.Heads = BackupList{laid(t, filepath.Join(dir, dirLists), appendEntries(appendEntries(nil, all), reflog)), len(all)}
		}
	}
	for name, c := range map[string]struct {
		bytes bool // they show it, before a store is made of them
		harm  func(*testing.T, string, *Manifest)
	}{
		"heads elsewhere":         {true, func(_ *testing.T, _ string, m *Manifest) { m.Heads.SHA256 = "../manifest.json" }},
		"packs elsewhere":         {true, func(_ *testing.T, _ string, m *Manifest) { m.Packs.SHA256 = "../../../etc/passwd" }},
		"a bundle elsewhere":      {true, func(_ *testing.T, _ string, m *Manifest) { m.Bundles[0].SHA256 = "../" + m.Bundles[0].SHA256 }},
		"a bundle without a name": {true, func(_ *testing.T, _ string, m *Manifest) { m.Bundles[0].SHA256 = "" }},
		"a blob elsewhere":        {true, func(_ *testing.T, _ string, m *Manifest) { m.Blobs[0] = "../../../../x" }},
		"a blob in capitals":      {true, func(_ *testing.T, _ string, m *Manifest) { m.Blobs[0] = strings.ToUpper(m.Blobs[0]) }},
		"countless packs":         {true, func(_ *testing.T, _ string, m *Manifest) { m.Packs.Count = math.MaxInt }},
		"less than no packs":      {true, func(_ *testing.T, _ string, m *Manifest) { m.Packs.Count = -1 }},
		"countless heads":         {true, func(_ *testing.T, _ string, m *Manifest) { m.Heads.Count = math.MaxInt }},
		"another schema":          {true, func(_ *testing.T, _ string, m *Manifest) { m.Schema = "wf.backup/v2" }},
		"a list with half a digest": {true, func(t *testing.T, dir string, m *Manifest) {
			list := must(os.ReadFile(filepath.Join(dir, dirLists, m.Packs.SHA256)))
			m.Packs.BackupFile = laid(t, filepath.Join(dir, dirLists), append(list, 7))
		}},
		"entries beyond the heads": {true, func(t *testing.T, dir string, m *Manifest) {
			m.Heads = BackupList{laid(t, filepath.Join(dir, dirLists), binary.AppendUvarint(nil, math.MaxUint64)), 1}
		}},
		"an empty pack":            {true, only([]byte{}, 0)},
		"a pack longer than any":   {true, only([]byte{1}, binary.AppendUvarint(nil, math.MaxUint64)...)},
		"a pack cut short":         {true, only([]byte{1, 2, 3}, 9, 1, 2, 3)},
		"a blob without a digest":  {false, only([]byte{packBlob})},
		"a blob of half a digest":  {false, only([]byte{packBlob, 1, 2, 3})},
		"a blob that is not there": {false, only(append([]byte{packBlob}, make([]byte, 32)...))},
		"a pack of noise":          {false, only([]byte(randomText(1000)))},
		"a pack that grows":        {false, only(swelling())},
		"a pipe for a manifest":    {true, inPlace(manifestFile, pipe)},
		"a link to a manifest":     {true, inPlace(manifestFile, link)},
		"an endless manifest":      {true, inPlace(manifestFile, endless)},
		"a manifest too long": {true, inPlace(manifestFile, func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("{"), 0o600), os.Truncate(path, listMax+1))
		})},
		"a pipe for a bundle":      {true, inPlace("packs/BUNDLE", pipe)},
		"a link to a bundle":       {true, inPlace("packs/BUNDLE", link)},
		"an endless bundle":        {true, inPlace("packs/BUNDLE", endless)},
		"a pipe for the heads":     {true, inPlace("lists/HEADS", pipe)},
		"a link to the heads":      {true, inPlace("lists/HEADS", link)},
		"a list too long":          {true, inPlace("lists/HEADS", func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)) })},
		"a pipe for a blob":        {true, inPlace("blobs/BLOB", pipe)},
		"a link to a blob":         {true, inPlace("blobs/BLOB", link)},
		"a head without a name":    {true, heads(entry{key: []byte{}})},
		"a head of half a name":    {true, heads(entry{key: []byte("run/")})},
		"a head above":             {true, heads(entry{key: []byte("run/../../above")})},
		"a deleted run above":      {true, heads(entry{key: []byte("deleted/../../above")})},
		"a head twice":             {true, heads(entry{key: []byte("run/one")})},
		"a head of a long name":    {true, heads(entry{key: []byte("run/" + strings.Repeat("x", 40000))})},
		"a tombstone that is none": {false, heads(entry{key: []byte("deleted/other")})},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir, to := filepath.Join(top, "backup"), filepath.Join(top, "to", "store")
			if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
				t.Fatal(err)
			}
			m, _, err := readManifest(dir)
			if err != nil {
				t.Fatal(err)
			}
			c.harm(t, dir, &m)
			if info, err := os.Lstat(filepath.Join(dir, manifestFile)); err == nil && info.Mode().IsRegular() && info.Size() < 1<<20 {
				forge(t, dir, func(to *Manifest) { *to = m })
			}
			before := below(t, dir)
			if _, err := Restore(t.Context(), dir, to, 1, Options{}); err == nil || !errors.Is(err, protocol.ErrCorrupt) {
				t.Errorf("restored: %v", err)
			}
			if _, err := Open(t.Context(), to, Options{MustExist: true}); err == nil {
				t.Error("there is a store")
			}
			if _, err := VerifyBackup(t.Context(), dir); err != nil != c.bytes {
				t.Errorf("verified: %v", err)
			}
			if after := below(t, dir); !slices.Equal(after, before) {
				t.Errorf("there was %q, there is %q", before, after)
			}
			if above := below(t, filepath.Join(top, "to")); len(above) > 3 { // to, to/store, to/store/turn
				t.Errorf("left: %q", above)
			}
		})
	}
}

// No part of a backup is a link: what is written would lie elsewhere.
func TestABackupWritesThroughNoLink(t *testing.T) {
	s := toBackUp(t)
	for _, name := range []string{dirManifests, dirLists, dirPacks, dirBlobs} {
		dir, elsewhere := t.TempDir(), t.TempDir()
		must(Backup(t.Context(), s, dir, BackupOptions{}))
		path := filepath.Join(dir, name)
		if err := errors.Join(os.RemoveAll(path), os.Symlink(elsewhere, path)); err != nil {
			t.Fatal(err)
		}
		if _, err := Backup(t.Context(), s, dir, BackupOptions{}); err == nil {
			t.Errorf("%s is a link, and a backup is made", name)
		}
		if got := below(t, elsewhere); len(got) != 1 {
			t.Errorf("%s: written elsewhere: %q", name, got)
		}
	}
}
