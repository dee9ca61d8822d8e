package cas

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"testing"
)

// writtenBundle makes a bundle of packs of many lengths, in a buffer that is to be used, and returns it with what its file has to have.
func writtenBundle(t *testing.T, buf []byte) (x *bundle, want []byte) {
	t.Helper()
	x = must(newBundle(t.TempDir(), buf))
	t.Cleanup(func() {
		if err := x.drop(); err != nil {
			t.Error(err)
		}
	})
	for n := 1; n < 200_000; n += n/3 + 1 {
		stored := []byte(randomText(n))
		if err := x.add([32]byte{byte(n)}, stored); err != nil {
			t.Fatal(err)
		}
		want = append(binary.AppendUvarint(want, uint64(n)), stored...)
	}
	return x, want
}

// hasWritten holds the file of a bundle against what was added.
func hasWritten(t *testing.T, x *bundle, want []byte) {
	t.Helper()
	name := must(x.finish())
	if got := must(os.ReadFile(x.f.Name())); !bytes.Equal(got, want) || name != sumName(want) || x.size != int64(len(want)) {
		t.Errorf("%d bytes with the name %s and size %d, want %d bytes, %s", len(got), name, x.size, len(want), sumName(want))
	}
}

func TestABundleIsWrittenPastTheCache(t *testing.T) {
	x, want := writtenBundle(t, make([]byte, 0, gentleBundleBuf))
	for cut := range 3 { // buffers that are spilled full, and one that ends between two blocks
		more := []byte(randomText(2*gentleBundleBuf + cut))
		if err := x.write(more); err != nil {
			t.Fatal(err)
		}
		x.size += int64(len(more))
		want = append(want, more...)
	}
	f := must(os.CreateTemp(t.TempDir(), "x"))
	defer f.Close()
	if err := setDirect(f, true); err == nil && !x.direct {
		t.Error("what is written was refused")
	}
	hasWritten(t, x, want)
}

// A disk whose sectors are larger than the blocks that are written refuses them, as every disk does what is no multiple of a sector.
func TestABundleThatIsRefusedGoesThroughTheCache(t *testing.T) {
	x, want := writtenBundle(t, make([]byte, 0, 1000))
	hasWritten(t, x, want)
}

// What settles is on its way to the disk, and more may come.
func TestABundleGoesOnAfterItSettles(t *testing.T) {
	for _, direct := range []bool{true, false} {
		x, want := writtenBundle(t, make([]byte, 0, gentleBundleBuf))
		if !direct {
			if err := x.undirect(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
				t.Fatal(err)
			}
		}
		if err := x.settle(); err != nil {
			t.Fatal(err)
		}
		if err := x.add([32]byte{}, want[:5000]); err != nil {
			t.Fatal(err)
		}
		hasWritten(t, x, append(binary.AppendUvarint(want[:len(want):len(want)], 5000), want[:5000]...))
	}
}

// A gentle backup rests behind each piece: none is longer than it has to be, and one with a blob file ends with that.
func TestAPartIsWorkedOnInPieces(t *testing.T) {
	part := new(partOf)
	for i := range 700 {
		v := bytes.Repeat([]byte{packPlain}, 1+i*97%9000)
		if i%50 == 49 {
			v = append([]byte{packBlob}, make([]byte, 32)...)
		}
		part.add([]byte{byte(i)}, v)
	}
	for _, gentle := range []bool{false, true} {
		b := backup{o: BackupOptions{Gentle: gentle}}
		var all []entry
		var last *partOf
		count := 0
		for p := range b.pieces(part) {
			if last != nil {
				t.Fatal("it goes on behind the last piece")
			}
			size := 0
			for i, it := range p.all {
				if i < len(p.all)-1 && gentle {
					if size += len(it.value); size >= gentlePiece || isBlob(it.value) {
						t.Errorf("piece %d goes on behind its pack %d", count, i)
					}
				}
			}
			all, last = append(all, p.all...), p.last
			count++
		}
		if last != part || len(all) != len(part.all) || !gentle && count != 1 || gentle && count < 15 {
			t.Errorf("gentle %v: %d packs in %d pieces", gentle, len(all), count)
		}
		for i := range all {
			if &all[i].value[0] != &part.all[i].value[0] {
				t.Fatalf("gentle %v: pack %d is another one", gentle, i)
			}
		}
	}
}
