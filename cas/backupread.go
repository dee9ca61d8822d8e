package cas

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"

	"wf/files"
	"wf/protocol"
)

// listMax bounds a manifest or a list, which are read whole: the digests of 32 million packs.
const listMax = 1 << 30

// readManifest reads the newest manifest of a directory, whose names are those of hashes.
func readManifest(dir string) (m Manifest, raw []byte, err error) {
	path := filepath.Join(dir, manifestFile)
	if raw, err = files.Read(path, listMax); errors.Is(err, fs.ErrNotExist) {
		return m, nil, err
	}
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err == nil && m.Schema != backupSchema {
		err = fmt.Errorf("its schema is %q", m.Schema)
	}
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return m, nil, fmt.Errorf("%s is no manifest of a backup: %w: %w", path, protocol.ErrCorrupt, err)
	}
	return m, raw, nil
}

// check refuses names that are no hashes.
func (m *Manifest) check() error {
	names := append([]string{m.Heads.SHA256, m.Packs.SHA256}, m.Blobs...)
	for _, f := range m.Bundles {
		names = append(names, f.SHA256)
	}
	for _, name := range names {
		if !isSum(name) {
			return fmt.Errorf("%q is no sha256", name)
		}
	}
	return nil
}

// VerifyBackup reads all of a backup again. What it finds damaged or missing is an error wrapping ErrCorrupt.
func VerifyBackup(ctx context.Context, dir string) (Manifest, error) {
	m, err := readBackup(ctx, dir, func(int, []byte) error { return nil }, func(string, []byte) error { return nil }, func(refs, reflog []entry) error { return nil })
	if err != nil {
		return m, damagedBackup(fmt.Errorf("the backup in %s: %w", dir, classify(err)))
	}
	return m, nil
}

// damagedBackup says what to do where a backup is damaged.
func damagedBackup(err error) error {
	if errors.Is(err, protocol.ErrCorrupt) {
		err = protocol.Hinted(err, "restore another copy of the backup; or remove the file that is named, and the next wf store backup of the store copies what it held again")
	}
	return err
}

// readBackup gives the parts of a backup, each held against its hash: its packs, with their places in the store from 0 on, its
// blobs, its heads.
func readBackup(ctx context.Context, dir string, pack func(at int, stored []byte) error, blob func(name string, data []byte) error, heads func(refs, reflog []entry) error) (m Manifest, err error) {
	if m, _, err = readManifest(dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = protocol.ErrUsage.With("wf store backup DIR makes one", "there is no backup in %s", dir)
		}
		return m, err
	}
	list, err := readListed(dir, m.Packs)
	if err == nil && (len(list)%sha256.Size != 0 || len(list)/sha256.Size != m.Packs.Count) {
		err = fmt.Errorf("the packs in %s: %w", dir, protocol.ErrCorrupt)
	}
	if err != nil {
		return m, err
	}
	wanted := make(map[[32]byte]int, m.Packs.Count)
	for i, d := range slices.Collect(slices.Chunk(list, sha256.Size)) {
		wanted[[32]byte(d)] = i
	}
	for _, f := range m.Bundles {
		if err := readBundle(ctx, dir, f, wanted, pack); err != nil {
			return m, err
		}
	}
	if len(wanted) > 0 {
		return m, fmt.Errorf("%s lacks %d packs: %w", dir, len(wanted), protocol.ErrCorrupt)
	}
	for _, name := range m.Blobs {
		if ctx.Err() != nil {
			return m, context.Cause(ctx)
		}
		if err := readBlob(dir, name, blob); err != nil {
			return m, err
		}
	}
	refs, reflog, err := readHeads(dir, m)
	if err != nil {
		return m, err
	}
	return m, heads(refs, reflog)
}

// readHeads reads the heads, tombstones and reflog of a backup.
func readHeads(dir string, m Manifest) (refs, reflog []entry, err error) {
	raw, err := readListed(dir, m.Heads)
	if err != nil {
		return nil, nil, err
	}
	r := reader{b: raw}
	refs = r.entries()
	reflog = r.entries()
	if r.bad || len(r.b) > 0 || len(refs) != m.Heads.Count || !ordered(refs) || !ordered(reflog) || slices.ContainsFunc(refs, misnamed) {
		return nil, nil, fmt.Errorf("the heads in %s: %w", dir, protocol.ErrCorrupt)
	}
	return refs, reflog, nil
}

// ordered reports whether entries are as a bucket gives them.
func ordered(all []entry) bool {
	for i, it := range all {
		if len(it.key) == 0 || len(it.key) > bolt.MaxKeySize || i > 0 && bytes.Compare(all[i-1].key, it.key) >= 0 {
			return false
		}
	}
	return true
}

// misnamed reports whether a head is that of a run with an id that none can have.
func misnamed(ref entry) bool {
	id, deleted := protocol.RunDeleted(string(ref.key))
	if !deleted {
		name, ok := strings.CutPrefix(string(ref.key), protocol.RunHead(""))
		if !ok {
			return false
		}
		id = protocol.RunID(name)
	}
	return CheckRunID(id) != nil
}

// entries reads what appendEntries wrote.
func (r *reader) entries() (out []entry) {
	for n := r.uint(); n > 0 && !r.bad; n-- {
		out = append(out, entry{r.take(r.uint()), r.take(r.uint())})
	}
	return out
}

// readListed reads a list, and holds it against its hash.
func readListed(dir string, l BackupList) ([]byte, error) {
	data, err := files.Read(filepath.Join(dir, dirLists, l.SHA256), listMax)
	if err != nil || sumName(data) != l.SHA256 {
		return nil, fmt.Errorf("list %s: %w", l.SHA256, errors.Join(protocol.ErrCorrupt, err))
	}
	return data, nil
}

// readBundle gives the packs of a bundle that are wanted, and takes them off the list.
func readBundle(ctx context.Context, dir string, b BackupFile, wanted map[[32]byte]int, pack func(int, []byte) error) error {
	damaged := func(err error) error {
		return fmt.Errorf("bundle %s: %w", b.SHA256, errors.Join(protocol.ErrCorrupt, err))
	}
	f, err := files.Open(filepath.Join(dir, dirPacks, b.SHA256))
	if err != nil {
		return damaged(err)
	}
	defer f.Close()
	h := sha256.New()
	in := bufio.NewReaderSize(io.TeeReader(f, h), 1<<20)
	for {
		n, err := binary.ReadUvarint(in)
		if err == io.EOF {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || n == 0 || n > 2*BlockMax {
			return damaged(err)
		}
		stored := make([]byte, n)
		if _, err := io.ReadFull(in, stored); err != nil {
			return damaged(err)
		}
		sum := sha256.Sum256(stored)
		at, ok := wanted[sum]
		if !ok {
			continue
		}
		delete(wanted, sum)
		if err := pack(at, stored); err != nil {
			return err
		}
	}
	if hex.EncodeToString(h.Sum(nil)) != b.SHA256 {
		return damaged(nil)
	}
	return nil
}

// readBlob gives a blob, and holds its block against the digest.
func readBlob(dir, name string, blob func(string, []byte) error) error {
	data, err := readData(filepath.Join(dir, dirBlobs, name[:2], name))
	var us []unpacked
	if err == nil {
		us, err = unpack(data)
	}
	if err == nil && (len(us) != 1 || hex.EncodeToString(us[0].digest[:]) != name) {
		err = errors.New("it holds another block")
	}
	if err != nil {
		return fmt.Errorf("blob %s: %w", name, errors.Join(protocol.ErrCorrupt, err))
	}
	return blob(name, data)
}
