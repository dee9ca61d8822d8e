package cas

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"wf/files"
)

// A backup is a directory:
//
//	manifest.json      the newest backup, see Manifest; it is written last, and replaces the one before by a rename
//	manifests/SHA256   the ones before
//	lists/SHA256       which packs a backup has (32 bytes each, in order), and its heads and reflog
//	packs/SHA256       stored packs, one behind the other in any order, each with its length; SHA256.list names them
//	blobs/xx/DIGEST    the blob files of the store
//
// Every file but manifest.json has the name of its contents and never changes: a second backup adds what is new,
// and a cut-off one leaves files that the next one uses or that harm none.

// BackupOptions say how a backup is made.
type BackupOptions struct {
	// Gentle leaves the machine to others for most of the time.
	Gentle bool
	// Progress is called now and then with what was read of how much, in bytes; nil is allowed.
	Progress func(done, of int64)
}

// Manifest is what a backup has: wf.backup/v1.
type Manifest struct {
	Schema   string       `json:"schema"`
	At       int64        `json:"at"`       // unix µs at which the heads were read
	Store    string       `json:"store"`    // directory
	Previous string       `json:"previous"` // sha256 of the manifest before, "" for the first
	Heads    BackupList   `json:"heads"`    // with tombstones and the reflog
	Packs    BackupList   `json:"packs"`
	Bundles  []BackupFile `json:"bundles"` // the files that have them
	Blobs    []string     `json:"blobs"`   // digests
	Bytes    int64        `json:"bytes"`   // of packs and blobs
	Excluded []string     `json:"excluded"`
}

// BackupFile is a file of a backup.
type BackupFile struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// BackupList is a file with so many entries.
type BackupList struct {
	BackupFile
	Count int `json:"count"`
}

// BackupReport is what a backup did: wf.backup.report/v1.
type BackupReport struct {
	Schema   string   `json:"schema"`
	Dir      string   `json:"dir"`
	At       int64    `json:"at"`
	Heads    int      `json:"heads"`
	Packs    int      `json:"packs"`
	Bytes    int64    `json:"bytes"`  // of the whole backup
	Copied   int64    `json:"copied"` // of them now
	Excluded []string `json:"excluded"`
}

// excluded is what no backup has.
var excluded = []string{
	"tokens of wf serve and wf hub, and keys: make new ones",
	"pinned heads and the key that seals stored states, which belong to the user of a machine",
	"schedules that were served, sockets, locks, stored states and the index of searches, which are made anew",
	"config.yaml and what was trusted",
}

const (
	backupSchema = "wf.backup/v1"

	manifestFile = "manifest.json"
	dirManifests = "manifests"
	dirLists     = "lists"
	dirPacks     = "packs"
	bundleNew    = "new-" // one that is being written
)

// Backup copies what the heads of a store lead to into dir, beside what earlier backups left there. Others go on
// working; a collection is refused. All of it is read and hashed: damage, or a block that is missing, ends it with an error
// wrapping ErrCorrupt, and the backup before stays. Cut off anywhere, the backup before stays too.
func Backup(ctx context.Context, s *Store, dir string, o BackupOptions) (r BackupReport, err error) {
	defer func() {
		if err != nil {
			r, err = BackupReport{}, fmt.Errorf("backup of %s to %s: %w", s.Dir(), dir, classify(err))
		}
	}()
	b := backup{s: s, dir: dir, o: o, known: map[[32]byte]bool{}, idle: make(chan *partOf, jobsAhead)}
	unlock, err := b.prepare(ctx)
	if err != nil {
		return r, err
	}
	defer unlock()
	unlockGC, err := lockGC(ctx, s, false)
	if err != nil {
		return r, err
	}
	defer unlockGC()
	if err := b.write(ctx); err != nil {
		return r, err
	}
	if err := b.s.noteBackup(LastBackup{dir, b.m.At, b.m.Bytes}); err != nil {
		b.s.warn(fmt.Errorf("the backup is made, and not noted in %s: %w", s.Dir(), err))
	}
	if err := b.keepLinks(); err != nil {
		b.s.warn(fmt.Errorf("the backup is made; the next one takes as long, since %s cannot be written: %w", filepath.Join(s.Dir(), fileLinks), err))
	}
	return BackupReport{"wf.backup.report/v1", dir, b.m.At, b.m.Heads.Count, b.m.Packs.Count, b.m.Bytes, b.copied, b.m.Excluded}, nil
}

// LastBackup is the newest backup that was made of a store, as its directory tells.
type LastBackup struct {
	Dir   string `json:"dir"`
	At    int64  `json:"at"` // unix µs
	Bytes int64  `json:"bytes"`
}

func (s *Store) noteBackup(l LastBackup) error {
	var err error
	if l.Dir, err = filepath.Abs(l.Dir); err != nil {
		return err
	}
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return files.Replace(filepath.Join(s.Dir(), fileBackup), raw)
}

// LastBackup is nil where none was made.
func (s *Store) LastBackup() (*LastBackup, error) {
	f, err := openData(filepath.Join(s.Dir(), fileBackup))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := files.Bounded(f, 64<<10)
	l := new(LastBackup)
	if err == nil {
		err = json.Unmarshal(raw, l)
	}
	return l, err
}

// backup is one that is being made.
type backup struct {
	s     *Store
	dir   string
	o     BackupOptions
	m     Manifest
	known map[[32]byte]bool // packs that bundles have
	of    int64             // bytes that are read, about
	done  int64

	links keptLinks
	graph reachGraph
	packs []backupPack // that were read, from the newest to the oldest
	idle  chan *partOf // that are not in use

	// Of the goroutine that writes, until it has ended:
	jobs   chan func() error
	bundle *bundle // that is written
	buf    []byte  // of bundles
	copied int64
}

// backupPack is a pack as it was read.
type backupPack struct {
	key     [packKeySize]byte
	sum     [32]byte // of what is stored under the key
	stored  int      // its length
	content [32]byte // sum, or that of the blob file
	blob    bool
	taken   bool // a bundle has it, or will
	blocks  []uint32
}

func (b *backup) write(ctx context.Context) error {
	b.of = fileSize(b.s)
	b.links = b.s.readLinks()
	refs, reflog, top, err := b.view(ctx)
	if err != nil {
		return err
	}
	if err := b.wanted(refs, reflog); err != nil {
		return err
	}
	err = b.writing(ctx, func(ctx context.Context) error {
		if err := b.copyDown(ctx, top); err != nil {
			return err
		}
		if b.graph.lacks() {
			return b.damage(ctx, refs, reflog)
		}
		return b.copyLeft(ctx)
	})
	if err != nil {
		return err
	}
	if err := b.listPacks(); err != nil {
		return err
	}
	heads := appendEntries(appendEntries(nil, refs), reflog)
	if b.m.Heads, err = b.list(heads, len(refs)); err != nil {
		return err
	}
	return b.finish()
}

// view copies heads, tombstones and reflog as they are at one moment, and the key of the newest pack.
func (b *backup) view(ctx context.Context) (refs, reflog []entry, top []byte, err error) {
	err = b.glance(ctx, func(tx *bolt.Tx) error {
		refs, reflog = nil, nil
		newest, _ := tx.Bucket(bucketBlocks).Cursor().Last()
		top = bytes.Clone(newest)
		b.m.At = b.s.now()
		all := func(bucket []byte, to *[]entry) error {
			return tx.Bucket(bucket).ForEach(func(k, v []byte) error {
				*to = append(*to, entry{bytes.Clone(k), bytes.Clone(v)})
				return nil
			})
		}
		return errors.Join(all(bucketRefs, &refs), all(bucketReflog, &reflog))
	})
	return refs, reflog, top, err
}

// appendEntries writes how many entries there are, and each with its lengths.
func appendEntries(out []byte, all []entry) []byte {
	out = binary.AppendUvarint(out, uint64(len(all)))
	for _, it := range all {
		out = append(binary.AppendUvarint(out, uint64(len(it.key))), it.key...)
		out = append(binary.AppendUvarint(out, uint64(len(it.value))), it.value...)
	}
	return out
}

// list writes a list, under the name of its contents.
func (b *backup) list(data []byte, count int) (BackupList, error) {
	name := sumName(data)
	err := b.s.opts.before(OpBackup)
	if err == nil {
		err = files.Replace(filepath.Join(b.dir, dirLists, name), data)
	}
	return BackupList{BackupFile{name, int64(len(data))}, count}, err
}

// finish writes the manifest, by which the backup is there.
func (b *backup) finish() error {
	raw, err := json.MarshalIndent(b.m, "", "  ")
	if err == nil {
		err = b.s.opts.before(OpBackup)
	}
	if err != nil {
		return err
	}
	for _, d := range []string{dirBlobs, dirPacks, dirLists, ""} { // what was made in them before
		if err := files.SyncDir(filepath.Join(b.dir, d)); err != nil {
			return err
		}
	}
	return files.Replace(filepath.Join(b.dir, manifestFile), append(raw, '\n'))
}
