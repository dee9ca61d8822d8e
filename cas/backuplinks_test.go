package cas

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// tangle is a store of blocks that link to each other at random, stored in an order that has nothing to do with it, with
// heads at some of them; it tells which blocks those lead to.
func tangle(t *testing.T, rng *rand.Rand) (s *Store, reached map[protocol.Link]bool) {
	t.Helper()
	s = openSample(t)
	var blocks []Block
	links := map[protocol.Link][]protocol.Link{}
	for i := range 200 {
		if rng.IntN(3) == 0 {
			size := 10 << rng.IntN(9)
			if rng.IntN(40) == 0 {
				size = inlineMax + 9000
			}
			blocks = append(blocks, Raw([]byte(fmt.Sprint(i, randomText(size), rng.Uint64()))))
			continue
		}
		var to []protocol.Link
		for range rng.IntN(4) {
			if len(blocks) > 0 {
				to = append(to, blocks[rng.IntN(len(blocks))].Link)
			}
		}
		b := must(Encode(map[string]any{"n": i, "to": to}))
		blocks, links[b.Link] = append(blocks, b), to
	}
	all := slices.Clone(blocks)
	rng.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
	for len(blocks) > 0 {
		n := min(len(blocks), 1+rng.IntN(20))
		if err := s.Commit(t.Context(), Batch{Blocks: blocks[:n]}); err != nil {
			t.Fatal(err)
		}
		blocks = blocks[n:]
	}
	reached = map[protocol.Link]bool{}
	for i := range 1 + rng.IntN(5) {
		head := all[rng.IntN(len(all))].Link
		if err := s.Commit(t.Context(), Batch{Moves: []Move{{Name: fmt.Sprint("memory/", i), New: head}}}); err != nil {
			t.Fatal(err)
		}
		for todo := []protocol.Link{head}; len(todo) > 0; {
			at := todo[len(todo)-1]
			if todo = todo[:len(todo)-1]; !reached[at] {
				reached[at] = true
				todo = append(todo, links[at]...)
			}
		}
	}
	return s, reached
}

// packsWith are the sums of the stored packs that have one of these blocks, in their order.
func packsWith(t *testing.T, s *Store, blocks map[protocol.Link]bool) (list []byte) {
	t.Helper()
	err := s.eachPart(t.Context(), [][]byte{bucketBlocks}, nil, nil, func(part []entry) error {
		for _, p := range s.readPacks(part) {
			if slices.ContainsFunc(p.blocks, func(b seenBlock) bool {
				return blocks[linkOf(0x71, b.sum[:])] || blocks[linkOf(0x55, b.sum[:])]
			}) {
				sum := sha256.Sum256(p.value)
				list = append(list, sum[:]...)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// sumsIn are the sums of the packs of a backup, which holds them all.
func sumsIn(t *testing.T, dir string) []byte {
	t.Helper()
	m := must(VerifyBackup(t.Context(), dir))
	return must(readListed(dir, m.Packs))
}

// A backup has the packs with blocks that are reached, all of them and no others, in whatever order they were stored, and
// whether it knows what they link to or not.
func TestABackupHasWhatIsReached(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		s, reached := tangle(t, rng)
		for round := range 3 {
			want := packsWith(t, s, reached)
			if round == 2 && rng.IntN(2) == 0 {
				if err := os.WriteFile(filepath.Join(s.Dir(), fileLinks), []byte("nothing of ours"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			dir := t.TempDir()
			r := must(Backup(t.Context(), s, dir, BackupOptions{Gentle: seed%20 == 0}))
			if got := sumsIn(t, dir); !bytes.Equal(got, want) || r.Copied != r.Bytes {
				t.Fatalf("seed %d, round %d: %d packs, want %d; %+v", seed, round, len(got)/32, len(want)/32, r)
			}
			if round == 1 {
				must(GC(t.Context(), s, GCOptions{})) // moves what it keeps
			}
		}
	}
}

// What is kept of a pack is what its blocks say, and nothing is unpacked that is kept.
func TestWhatIsKeptForTheNextBackupIsWhatPacksSay(t *testing.T) {
	s := toBackUp(t)
	must(Backup(t.Context(), s, t.TempDir(), BackupOptions{}))
	path := filepath.Join(s.Dir(), fileLinks)
	first := must(os.ReadFile(path))
	must(Backup(t.Context(), s, t.TempDir(), BackupOptions{}))
	if again := must(os.ReadFile(path)); !bytes.Equal(again, first) {
		t.Error("another backup of the same store keeps something else")
	}
	kept, packs := s.readLinks(), 0
	err := s.eachPart(t.Context(), [][]byte{bucketBlocks}, nil, nil, func(part []entry) error {
		for _, it := range part {
			packs++
			stored := must(s.loaded(it.value))
			got, ok := kept.of(sha256.Sum256(stored))
			var want []glimpse
			for _, u := range must(unpack(stored)) {
				want = append(want, glimpseOf(&u))
			}
			if !ok || !slices.EqualFunc(got, want, func(a, b glimpse) bool { return a.name == b.name && slices.Equal(a.links, b.links) && !b.odd }) {
				t.Errorf("pack %s: %v, want %v", packNumber(it.key), got, want)
			}
		}
		return nil
	})
	if err != nil || packs < 10 || len(kept.packs) != packs {
		t.Errorf("%d packs, %d are kept, %v", packs, len(kept.packs), err)
	}
}

// What another program than wf wrote there would have blocks left out.
func TestOnlyWhatIsSealedIsTakenFromAnEarlierBackup(t *testing.T) {
	s := toBackUp(t)
	s.opts.Seal = []byte("key of this user")
	dir := t.TempDir()
	must(Backup(t.Context(), s, dir, BackupOptions{}))
	want := sumsIn(t, dir)
	path := filepath.Join(s.Dir(), fileLinks)
	sealed := must(os.ReadFile(path))
	if s.readLinks().packs == nil {
		t.Fatal("what was sealed is not read")
	}
	forge := func(key string, change func([]byte) []byte) []byte {
		other := Store{opts: Options{Seal: []byte(key)}}
		body := change(bytes.Clone(sealed[:len(sealed)-sha256.Size]))
		h := other.sealer()
		h.Write(body)
		return h.Sum(body)
	}
	same := func(b []byte) []byte { return b }
	files := map[string][]byte{"none": {}, "another key": forge("another key", same), "no key": forge("", same), "cut short": sealed[:len(sealed)-1], "longer": append(bytes.Clone(sealed), 0)}
	for at := 0; at < len(sealed); at += 1 + len(sealed)/50 {
		wrong := bytes.Clone(sealed)
		wrong[at] ^= 4
		files[fmt.Sprint("a bit at ", at)] = wrong
	}
	for name, data := range files {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.readLinks(); got.packs != nil {
			t.Errorf("%s: it is taken", name)
		}
	}
	dir = t.TempDir()
	must(Backup(t.Context(), s, dir, BackupOptions{}))
	if got := sumsIn(t, dir); !bytes.Equal(got, want) {
		t.Errorf("%d packs, want %d", len(got)/32, len(want)/32)
	}
	// A record that is sealed and no record is none; and a missing block is looked for before it is called missing.
	head := len(linksHead) + sha256.Size
	for name, change := range map[string]func([]byte) []byte{
		"of a later version": func(b []byte) []byte { b[len(linksHead)-2]++; return b },
		"too long":           func(b []byte) []byte { return append(b[:head], 0xff, 0xff, 0xff, 0xff, 0x7f) },
		"countless blocks":   func(b []byte) []byte { return append(b[:head], 5, 0xff, 0xff, 0xff, 0xff, 0x7f) },
		"countless links": func(b []byte) []byte {
			return append(b[:head], 14, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xff, 0xff, 0xff, 0x7f)
		},
		"a place beyond":    func(b []byte) []byte { return append(b[:head], 11, 1, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2) },
		"more than it says": func(b []byte) []byte { return append(b[:head], 2, 0, 0) },
	} {
		if err := os.WriteFile(path, forge("key of this user", change), 0o600); err != nil {
			t.Fatal(err)
		}
		kept := s.readLinks()
		for sum := range kept.packs {
			if blocks, ok := kept.of(sum); ok {
				t.Errorf("%s: %v", name, blocks)
			}
		}
	}
	// Where the store cannot hold it, the backup is made, and says so.
	var warned error
	s.opts.Warn = func(err error) { warned = err }
	if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700)); err != nil {
		t.Fatal(err)
	}
	must(Backup(t.Context(), s, t.TempDir(), BackupOptions{}))
	if warned == nil || !strings.Contains(warned.Error(), fileLinks) {
		t.Errorf("it warns: %v", warned)
	}
}

// Damage of a pack that an earlier backup has does not go unnoticed.
func TestDamageOfWhatWasBackedUpBeforeIsNoticed(t *testing.T) {
	s := toBackUp(t)
	ctx, dir := t.Context(), t.TempDir()
	must(Backup(ctx, s, dir, BackupOptions{}))
	err := s.update(ctx, func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketBlocks).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if v[0] != packBlob && len(v) > 1000 {
				v = bytes.Clone(v)
				v[len(v)/2] ^= 1
				return tx.Bucket(bucketBlocks).Put(bytes.Clone(k), v)
			}
		}
		return errors.New("no pack is that long")
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Backup(ctx, s, dir, BackupOptions{}); !errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("damaged in store.db: %v", err)
	}
	s = toBackUp(t)
	dir = t.TempDir()
	must(Backup(ctx, s, dir, BackupOptions{}))
	blob := must(filepath.Glob(filepath.Join(s.Dir(), dirBlobs, "*", "*")))[0]
	data := must(os.ReadFile(blob))
	data[len(data)/2] ^= 1
	if err := os.WriteFile(blob, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Backup(ctx, s, dir, BackupOptions{}); !errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("a damaged blob file: %v", err)
	}
	must(VerifyBackup(ctx, dir))
}

// The newest pack may grow between two readings of it, where something leads to it only later.
func TestAPackThatGrowsWhileABackupIsMadeIsCopied(t *testing.T) {
	s := openSample(t)
	ctx := t.Context()
	child := must(Encode(map[string]any{"n": "child"}))
	parent := must(Encode(map[string]any{"to": child.Link, "n": randomText(2 * packRoom)}))
	for _, b := range []Batch{{Blocks: []Block{parent}}, {Blocks: []Block{child}}, {Moves: []Move{{Name: "memory/x", New: parent.Link}}}} {
		if err := s.Commit(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	grown := 0
	dir := t.TempDir()
	m := BackupOptions{Progress: func(int64, int64) {
		if grown++; grown == 1 { // when the packs came, and not when one comes again
			if err := s.Commit(ctx, Batch{Blocks: []Block{must(Encode(map[string]any{"more": grown}))}}); err != nil {
				t.Error(err)
			}
		}
	}}
	must(Backup(ctx, s, dir, m))
	want := map[protocol.Link]bool{parent.Link: true, child.Link: true}
	if got := sumsIn(t, dir); len(got) != 2*sha256.Size || !bytes.Equal(got[:sha256.Size], packsWith(t, s, want)[:sha256.Size]) {
		t.Errorf("%d packs", len(got)/sha256.Size)
	}
	have := map[protocol.Link]bool{}
	_, err := readBackup(ctx, dir, func(_ int, stored []byte) error {
		for _, u := range must(unpack(stored)) {
			have[linkOf(u.codec, u.digest[:])] = true
		}
		return nil
	}, func(string, []byte) error { return nil }, func(_, _ []entry) error { return nil })
	if err != nil || !have[parent.Link] || !have[child.Link] || len(have) < 3 {
		t.Errorf("it has %v, %v", have, err)
	}
	// What it grew by is known to the next one.
	grew := must(Encode(map[string]any{"more": 1})).Link
	if err := s.Commit(ctx, Batch{Moves: []Move{{Name: "memory/y", New: grew}}}); err != nil || !have[grew] {
		t.Fatal(have[grew], err)
	}
	must(Backup(ctx, s, dir, BackupOptions{}))
}

// A block that is missing is named, with what leads to it.
func TestABackupNamesWhatIsMissing(t *testing.T) {
	s := openSample(t)
	child := must(Encode(map[string]any{"n": "child"}))
	parent := must(Encode(map[string]any{"to": child.Link}))
	if err := s.Commit(t.Context(), Batch{Blocks: []Block{parent}, Moves: []Move{{Name: "memory/x", New: parent.Link}}}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for range 2 {
		_, err := Backup(t.Context(), s, dir, BackupOptions{})
		if !errors.Is(err, protocol.ErrCorrupt) || !strings.Contains(err.Error(), child.Link.String()) || !strings.Contains(err.Error(), "memory/x") {
			t.Errorf("%v", err)
		}
	}
	if err := s.Commit(t.Context(), Batch{Blocks: []Block{child}}); err != nil {
		t.Fatal(err)
	}
	must(Backup(t.Context(), s, dir, BackupOptions{}))
}

// Blocks whose digests begin alike are one in the graph, which has what any of them leads to.
func TestBlocksThatBeginAlikeAreTakenTogether(t *testing.T) {
	var g reachGraph
	g.want(1, false)
	g.addAll([]glimpse{{name: 1, links: []uint64{2}}, {name: 2}})
	g.addAll([]glimpse{{name: 3}, {name: 4, links: []uint64{3}}})
	same := g.addAll([]glimpse{{name: 1, links: []uint64{4}}, {name: 1, links: []uint64{2}}})
	for name, id := range g.ids {
		if !g.live([]uint32{id}) {
			t.Errorf("%d is not reached", name)
		}
	}
	if g.lacks() || g.record(same) != nil {
		t.Errorf("lacks: %v; a record: %x", g.lacks(), g.record(same))
	}
	g.addAll([]glimpse{{name: 2, odd: true}})
	if !g.lacks() {
		t.Error("a block that cannot be read is no trouble")
	}
}

// A restored store has its packs in their order, whatever order they were copied in: how old a block is follows from it.
func TestARestoredStoreHasItsPacksInOrder(t *testing.T) {
	s := toBackUp(t)
	dir := t.TempDir()
	must(Backup(t.Context(), s, dir, BackupOptions{}))
	sampleRunOf(t, s, "two", 20, func(v int) string { return fmt.Sprint("two", v, randomText(3000)) })
	must(Backup(t.Context(), s, dir, BackupOptions{}))
	got := restored(t, dir)
	var order []byte
	err := got.eachPart(t.Context(), [][]byte{bucketBlocks}, nil, nil, func(part []entry) error {
		for _, it := range part {
			sum := sha256.Sum256(it.value)
			order = append(order, sum[:]...)
		}
		return nil
	})
	if want := sumsIn(t, dir); err != nil || !bytes.Equal(order, want) {
		t.Errorf("%d packs in another order than %d, %v", len(order)/sha256.Size, len(want)/sha256.Size, err)
	}
	sampleRun(t, got, "three", 3) // goes on behind them
	if v := must(Verify(t.Context(), got, VerifyOptions{All: true})); !v.OK {
		t.Error(v.Findings)
	}
}

// testdata/backup was made by the first version that made backups: two of them, with a fork, a run that was deleted in between
// and a blob file.
func TestABackupOfTheFirstVersionIsReadAndContinued(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "backup"))); err != nil {
		t.Fatal(err)
	}
	was := must(VerifyBackup(t.Context(), dir))
	s := restored(t, dir)
	want := everything(t, s)
	for name, head := range map[string]string{
		"run/one":     "bafyreiea6moav763fylhtrd2redfhtm3y6l7kp6bokro6ae6g3jfmozqzi 122 1700000000082000",
		"run/two":     "bafyreial2iysz7xgowiiflt7my5micgbslzsrea65vhrhs7kcka4z36ry4 14 1700000000010000",
		"run/fork":    "bafyreib7kkwq3reavqqj7fwcldhyhfpxmzf46mlzkwisec4fpy2jenf4iy 71 1",
		"deleted/old": "bafyreihyptq34vwolgoy5n3leytn7s23glx5p7lgetrkvdkanorrx6nqk4 0 1700000000000000",
	} {
		if want[name] != head {
			t.Errorf("%s is %q, want %q", name, want[name], head)
		}
	}
	r := must(Backup(t.Context(), s, dir, BackupOptions{}))
	if m := must(VerifyBackup(t.Context(), dir)); r.Copied != 0 || r.Packs != was.Packs.Count || m.Packs.SHA256 != was.Packs.SHA256 {
		t.Errorf("without a change: %+v", r)
	}
	sampleRunOf(t, s, "three", 4, func(v int) string { return fmt.Sprint("three", v) })
	want = everything(t, s)
	if r := must(Backup(t.Context(), s, dir, BackupOptions{})); r.Copied == 0 || r.Copied > r.Bytes/4 {
		t.Errorf("with another run: %+v", r)
	}
	if got := everything(t, restored(t, dir)); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
