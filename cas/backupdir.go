package cas

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"wf/files"
	"wf/protocol"
)

// The directory of a backup may lie where others write. So names in its manifest are those of hashes alone, no link
// below the directory itself is followed, and nothing is read without a bound.

// prepare makes the directories, and reads what is there. Nothing is changed where the directory is refused.
func (b *backup) prepare(ctx context.Context) (unlock func(), err error) {
	if err := b.outside(); err != nil {
		return nil, err
	}
	_, _, err = readManifest(b.dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = vacantForBackup(b.dir)
	}
	if err == nil {
		err = os.MkdirAll(b.dir, 0o700)
	}
	if err != nil {
		return nil, err
	}
	if unlock, err = lockDir(b.dir); err != nil {
		return nil, err
	}
	if err := b.begin(ctx); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// outside refuses a directory within the store: what destroys the one destroys the other.
func (b *backup) outside() error {
	store, dir := files.Real(b.s.Dir()), b.dir
	for !files.Exists(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	if in, err := filepath.Rel(store, files.Real(dir)); err == nil && filepath.IsLocal(in) {
		return protocol.ErrUsage.With("name a directory elsewhere, at best on another disk", "%s lies in the store %s, and would be lost with it", b.dir, b.s.Dir())
	}
	return nil
}

// lockDir refuses a second backup into a directory. Where the file system has no such locks there is none.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	free, err := files.TryLock(f, false)
	switch {
	case err == nil && !free:
		err = protocol.ErrBusy.With("", "another backup into %s is under way", dir)
	case err == nil, errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.EBADF): // the last by NFS
		return func() { _ = files.FreeLock(f) }, nil // nothing was written
	}
	return nil, errors.Join(err, f.Close())
}

// begin takes over what earlier backups left, under the lock of the directory.
func (b *backup) begin(ctx context.Context) error {
	for _, d := range []string{dirManifests, dirLists, dirPacks, dirBlobs} {
		if err := files.MakeDir(filepath.Join(b.dir, d)); err != nil {
			return err
		}
	}
	if err := removeLeftovers(b.dir); err != nil {
		return err
	}
	b.m = Manifest{Schema: backupSchema, Store: b.s.Dir(), Excluded: excluded, Bundles: []BackupFile{}, Blobs: []string{}}
	before, raw, err := readManifest(b.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := b.sameStore(ctx, before); err != nil {
		return err
	}
	b.m.Previous = sumName(raw)
	for _, f := range before.Bundles {
		path := filepath.Join(b.dir, dirPacks, f.SHA256)
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() != f.Bytes {
			continue // damaged: its packs are copied again
		}
		list, err := files.Read(path+".list", listMax)
		if err != nil || len(list)%sha256.Size != 0 {
			continue
		}
		for d := range slices.Chunk(list, sha256.Size) {
			b.known[[32]byte(d)] = true
		}
		b.m.Bundles = append(b.m.Bundles, f)
	}
	return files.Replace(filepath.Join(b.dir, dirManifests, b.m.Previous), raw)
}

// sameStore refuses the directory of another store, or of one that was at the same place before: its newest backup would
// be replaced. A store that was moved, or restored elsewhere, is known by its runs.
func (b *backup) sameStore(ctx context.Context, before Manifest) error {
	refs, _, err := readHeads(b.dir, before)
	if errors.Is(err, protocol.ErrCorrupt) && before.Store == b.m.Store {
		return nil // it is made again
	}
	if err != nil {
		return err
	}
	heads, err := b.s.rawHeads(ctx)
	if err != nil {
		return err
	}
	same := before.Store == b.m.Store || len(refs) == 0
	for _, it := range refs {
		h, err := parseHead(string(it.key), it.value)
		if err != nil {
			return err
		}
		if heads[h.Name] == h.Link {
			return nil
		}
		run, deleted := protocol.RunDeleted(h.Name)
		if !deleted {
			name, ran := strings.CutPrefix(h.Name, protocol.RunHead(""))
			if !ran {
				continue
			}
			run = protocol.RunID(name)
		}
		same = false
		if heads[protocol.RunHead(run)].Defined() || heads[protocol.DeletedHead(run)].Defined() {
			return nil
		}
	}
	if !same {
		return protocol.ErrUsage.With("name a directory for the backups of this store alone", "%s has the backups of another store, which was in %s", b.dir, before.Store)
	}
	return nil
}

// vacantForBackup refuses a directory that holds something else.
func vacantForBackup(dir string) error {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range names {
		if name := e.Name(); !slices.Contains([]string{dirManifests, dirLists, dirPacks, dirBlobs}, name) && !strings.HasPrefix(name, ".") && !leftover(name) {
			return protocol.ErrUsage.With("name an empty directory, or one of a backup", "%s holds something else than a backup: %s", dir, name)
		}
	}
	return err
}

// removeLeftovers removes the files that a backup which was killed had not finished.
func removeLeftovers(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && leftover(e.Name()) {
			err = removeIfThere(path)
		}
		return err
	})
}

// leftover reports whether a file has the name of one that is being written: a bundle, or what files.Replace makes.
func leftover(name string) bool {
	if strings.HasPrefix(name, bundleNew) {
		return true
	}
	of, digits, ok := cutLast(name, ".")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == "" && (of == manifestFile || isSum(strings.TrimSuffix(of, ".list")))
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// isSum reports whether a name is a sha256 as files of a backup are named.
func isSum(name string) bool {
	sum, err := hex.DecodeString(name)
	return err == nil && len(sum) == sha256.Size && hex.EncodeToString(sum) == name
}

// sumName is the name of a file with these contents.
func sumName(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
