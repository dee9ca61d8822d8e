package embed

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"wf/files"
	"wf/protocol"
)

// ErrDimension is a vector of another length than those of the table.
var ErrDimension = &protocol.Error{Code: "embedding_dimension", Message: "the embedding model gives vectors of another length than before",
	Hint: "wf memory reindex makes the index anew; or name the model that made it"}

// ErrTable is a table that cannot be read. It is derived: nothing is lost with it.
var ErrTable = &protocol.Error{Code: "embedding_table", Message: "the index of vectors is damaged", Hint: "wf memory reindex makes it anew"}

// A Table keeps the vectors of one model, of length 1, in one file that many processes share:
//
//	header  64 bytes   "wfvector", version, byte order, dimension, sha256 of the model's name
//	rows    48 + 4·dim key (32), crc32c of key and vector (4), 12 zeros, vector
//
// Numbers are in the byte order of the machine. Rows are only ever added, under the lock of a
// file beside it; a half row at the end is what a crash left, and the next writer's to use. A
// table that is made anew is another file of the same name.
//
// It is safe for concurrent use.
type Table struct {
	model, path string

	mu   sync.RWMutex
	file fs.FileInfo // as it was mapped; nil before there is one
	data []byte      // the mapping
	dim  int
	rows int
	at   map[Key]int32
	gen  int // counts the files that were mapped: rows of one mean nothing in the next
}

const (
	headerSize   = 64
	rowHead      = 48
	tableMagic   = "wfvector"
	tableVersion = 1
	orderMark    = 0x01020304
	dimMax       = 1 << 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// RemoveTable removes the table of a model, damaged or not. Its vectors are made again when
// they are missed.
func RemoveTable(dir, model string) error { return removeIfThere(tablePath(dir, model)) }

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func tablePath(dir, model string) string {
	sum := sha256.Sum256([]byte(model))
	slug := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, head(model, 60))
	return filepath.Join(dir, slug+"."+hex.EncodeToString(sum[:6])+".f32")
}

// OpenTable opens the table of a model in a directory. Where there is none it is empty, and
// made with the first vector.
func OpenTable(dir, model string) (*Table, error) {
	t := &Table{model: model, path: tablePath(dir, model)}
	if err := t.Refresh(); err != nil {
		return nil, err
	}
	return t, nil
}

// Model is the name of the model.
func (t *Table) Model() string { return t.model }

// Path is the file.
func (t *Table) Path() string { return t.path }

// Size is the number of rows and the length of their vectors, 0 as long as there are none.
func (t *Table) Size() (rows, dim int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.rows, t.dim
}

// Rows finds the vectors of texts: the row of each key, −1 where there is none. Rows are those
// of one generation of the file; made anew, it has others.
func (t *Table) Rows(keys []Key) (rows []int32, generation int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	rows = make([]int32, len(keys))
	for i, k := range keys {
		row, ok := t.at[k]
		if !ok {
			row = -1
		}
		rows[i] = row
	}
	return rows, t.gen
}

// Generation is that of the rows there are.
func (t *Table) Generation() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.gen
}

// Close ends the use of the table.
func (t *Table) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.drop()
}

// drop forgets the mapping.
func (t *Table) drop() error {
	data := t.data
	if t.at != nil {
		t.gen++
	}
	t.data, t.file, t.dim, t.rows, t.at = nil, nil, 0, 0, nil
	return unmap(data)
}

// Refresh takes in what was added since, here or elsewhere.
func (t *Table) Refresh() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refresh()
}

func (t *Table) refresh() error {
	info, err := os.Lstat(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t.drop()
	case err != nil:
		return fmt.Errorf("index of vectors: %w", err)
	case t.file != nil && os.SameFile(t.file, info) && t.file.Size() == info.Size():
		return nil
	}
	known, same := t.rows, t.file != nil && os.SameFile(t.file, info)
	f, err := os.OpenFile(t.path, os.O_RDONLY|ownFile, 0)
	if err != nil {
		return fmt.Errorf("index of vectors: %w", err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return fmt.Errorf("index of vectors: %w", err)
	}
	dim, err := readHeader(f, t.model, info.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", t.path, err)
	}
	if dim == 0 {
		return t.drop()
	}
	rows := int((info.Size() - headerSize) / int64(rowSize(dim)))
	data, err := mapFile(f, headerSize+rows*rowSize(dim))
	if err != nil {
		return fmt.Errorf("map %s: %w", t.path, err)
	}
	if err := unmap(t.data); err != nil {
		return fmt.Errorf("unmap %s: %w", t.path, err)
	}
	if !same || t.at == nil {
		known, t.at = 0, make(map[Key]int32, rows)
		t.gen++
	}
	t.data, t.file, t.dim, t.rows = data, info, dim, rows
	for i := known; i < rows; i++ {
		t.at[Key(t.row(i)[:sha256.Size])] = int32(i)
	}
	return nil
}

func rowSize(dim int) int { return rowHead + 4*dim }

// readHeader gives the dimension; 0 for a file that holds no whole header yet.
func readHeader(f *os.File, model string, size int64) (dim int, err error) {
	if size < headerSize {
		return 0, nil
	}
	var b [headerSize]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return 0, err
	}
	dim = int(binary.NativeEndian.Uint32(b[16:]))
	sum := sha256.Sum256([]byte(model))
	switch {
	case string(b[:8]) != tableMagic || dim <= 0 || dim > dimMax:
		return 0, fmt.Errorf("no table of vectors: %w", ErrTable)
	case binary.NativeEndian.Uint32(b[8:]) != tableVersion, binary.NativeEndian.Uint32(b[12:]) != orderMark:
		return 0, fmt.Errorf("written by another wf or machine: %w", ErrTable)
	case string(b[24:56]) != string(sum[:]):
		return 0, fmt.Errorf("the table of another model: %w", ErrTable)
	}
	return dim, nil
}

func header(model string, dim int) []byte {
	b := make([]byte, headerSize)
	copy(b, tableMagic)
	binary.NativeEndian.PutUint32(b[8:], tableVersion)
	binary.NativeEndian.PutUint32(b[12:], orderMark)
	binary.NativeEndian.PutUint32(b[16:], uint32(dim))
	sum := sha256.Sum256([]byte(model))
	copy(b[24:], sum[:])
	return b
}

// row is the bytes of a row.
func (t *Table) row(i int) []byte {
	n := rowSize(t.dim)
	return t.data[headerSize+i*n:][:n:n]
}

// vector is the numbers of a row, in place: rows begin at multiples of four bytes.
func (t *Table) vector(i int) []float32 {
	b := t.row(i)[rowHead:]
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), t.dim)
}

// bytesOf is the numbers of a vector as they are stored.
func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// sum is the checksum of a row.
func sum(key, vector []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, vector)
}

// sound reports whether a row is as it was written.
func (t *Table) sound(i int) bool {
	b := t.row(i)
	return binary.NativeEndian.Uint32(b[sha256.Size:]) == sum(b[:sha256.Size], b[rowHead:])
}

// lock keeps other writers out of the table, in its directory, which it makes.
func (t *Table) lock() (unlock func(), err error) {
	if err = files.MakeDir(filepath.Dir(t.path)); err == nil {
		unlock, err = lockFile(t.path + ".lock")
	}
	if err != nil {
		return nil, fmt.Errorf("index of vectors: %w", err)
	}
	return unlock, nil
}

// Add stores vectors under their keys; those that are there already stay. Vectors of another
// length than the table's are an error wrapping ErrDimension, and nothing is stored.
func (t *Table) Add(keys []Key, vectors [][]float32) error {
	if len(keys) == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	unlock, err := t.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := t.refresh(); err != nil {
		return err
	}
	dim := t.dim
	var out []byte
	if dim == 0 {
		dim = len(vectors[0])
		out = header(t.model, dim)
	}
	if out, err = appendRows(out, dim, keys, vectors, t.at); err != nil {
		return fmt.Errorf("embedding model %s: %w", t.model, err)
	}
	at := int64(0)
	if t.dim > 0 {
		at = int64(len(t.data))
	}
	f, err := os.OpenFile(t.path, os.O_RDWR|os.O_CREATE|ownFile, 0o600)
	if err != nil {
		return fmt.Errorf("index of vectors: %w", err)
	}
	_, err = f.WriteAt(out, at)
	if err == nil {
		err = f.Truncate(at + int64(len(out)))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("index of vectors: %w", err)
	}
	return t.refresh()
}

// appendRows writes the rows of keys that are not known.
func appendRows(out []byte, dim int, keys []Key, vectors [][]float32, known map[Key]int32) ([]byte, error) {
	if dim <= 0 || dim > dimMax {
		return nil, fmt.Errorf("vectors of %d numbers cannot be kept: %w", dim, ErrDimension)
	}
	seen := make(map[Key]bool, len(keys))
	for i, k := range keys {
		if len(vectors[i]) != dim {
			return nil, fmt.Errorf("it gave a vector of %d numbers, the index holds vectors of %d: %w", len(vectors[i]), dim, ErrDimension)
		}
		if _, there := known[k]; there || seen[k] {
			continue
		}
		seen[k] = true
		v := bytesOf(unit(vectors[i]))
		out = append(out, k[:]...)
		out = binary.NativeEndian.AppendUint32(out, sum(k[:], v))
		out = append(out, make([]byte, rowHead-sha256.Size-4)...)
		out = append(out, v...)
	}
	return out, nil
}

// Remake keeps those of the sound rows that keep wants, in a table that is written anew unless
// these are all. Where it wants none, vectors may have another length afterwards.
func (t *Table) Remake(keep func(Key) bool) (kept int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	unlock, err := t.lock()
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := t.refresh(); err != nil && !errors.Is(err, ErrTable) {
		return 0, err
	}
	var rows []int
	for i := range t.rows {
		if keep(Key(t.row(i)[:sha256.Size])) && t.sound(i) {
			rows = append(rows, i)
		}
	}
	switch {
	case len(rows) == 0:
		return 0, errors.Join(removeIfThere(t.path), t.drop())
	case len(rows) == t.rows:
		return len(rows), nil
	}
	anew := slices.Grow(header(t.model, t.dim), len(rows)*len(t.row(rows[0])))
	for _, i := range rows {
		anew = append(anew, t.row(i)...)
	}
	if err := files.Replace(t.path, anew); err != nil {
		return 0, fmt.Errorf("index of vectors: %w", err)
	}
	return len(rows), t.refresh()
}
