package cas

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"wf/protocol"
)

// toBackUp is a store with runs, blobs, a fork, a tombstone and garbage.
func toBackUp(t testing.TB) *Store {
	t.Helper()
	s := openSample(t)
	j := sampleRun(t, s, "one", 40)
	sampleRunOf(t, s, "old", 3, func(v int) string { return fmt.Sprint("old", v, randomText(2000)) })
	for e, err := range s.After(t.Context(), "one", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq == 70 {
			if _, err := j.Fork(t.Context(), 1, "fork", e, []Draft{{Data: protocol.Forked{}}}, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	bury(t, s, "old")
	return s
}

func restored(t testing.TB, backup string) *Store {
	t.Helper()
	to := filepath.Join(t.TempDir(), "new")
	if _, err := Restore(t.Context(), backup, to, 1, Options{}); err != nil {
		t.Fatal(err)
	}
	s := must(Open(t.Context(), to, Options{MustExist: true}))
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestAStoreIsRestoredFromItsBackup(t *testing.T) {
	s := toBackUp(t)
	want := everything(t, s)
	dir := t.TempDir()
	r := must(Backup(t.Context(), s, dir, BackupOptions{}))
	if r.Copied != r.Bytes || r.Bytes == 0 || r.Heads != 3 || len(r.Excluded) == 0 {
		t.Errorf("%+v", r)
	}
	m := must(VerifyBackup(t.Context(), dir))
	if m.Previous != "" || m.Packs.Count != r.Packs || len(m.Blobs) == 0 {
		t.Errorf("%+v", m)
	}
	got := restored(t, dir)
	if all := everything(t, got); !maps.Equal(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
	if v := must(Verify(t.Context(), got, VerifyOptions{All: true})); !v.OK {
		t.Error(v.Findings)
	}
	if stone := must(Tombstone(t.Context(), got, "old")); stone == nil || stone.By != "ada" {
		t.Errorf("the tombstone is %+v", stone)
	}
	held := must(got.Held(t.Context()))
	if held == nil || held.Backup != dir || held.Store == "" {
		t.Fatalf("it is held by %+v", held)
	}
	if err := got.MayGoOn(t.Context()); !errors.Is(err, protocol.ErrHeld) {
		t.Error(err)
	}
	if err := got.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := got.MayGoOn(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.MayGoOn(t.Context()); err != nil {
		t.Error(err)
	}
	// What a collection would remove is not in the backup.
	before := must(s.Head(t.Context(), "run/one"))
	wantHas(t, got, true, before.Link)
	if _, err := Restore(t.Context(), dir, got.Dir(), 1, Options{}); !errors.Is(err, protocol.ErrUsage) {
		t.Errorf("into a store: %v", err)
	}
}

func TestASecondBackupCopiesWhatIsNew(t *testing.T) {
	s := toBackUp(t)
	dir := t.TempDir()
	first := must(Backup(t.Context(), s, dir, BackupOptions{}))
	if again := must(Backup(t.Context(), s, dir, BackupOptions{Gentle: true})); again.Copied != 0 || again.Bytes != first.Bytes {
		t.Errorf("without a change: %+v", again)
	}
	sampleRunOf(t, s, "two", 4, func(v int) string { return fmt.Sprint("two", v) })
	bury(t, s, "one")
	must(GC(t.Context(), s, GCOptions{}))
	want := everything(t, s)
	second := must(Backup(t.Context(), s, dir, BackupOptions{}))
	if second.Copied == 0 || second.Copied > 40<<10 {
		t.Errorf("it copied %d bytes of %d", second.Copied, second.Bytes)
	}
	if m := must(VerifyBackup(t.Context(), dir)); m.Previous == "" {
		t.Error("it names no earlier backup")
	}
	if got := everything(t, restored(t, dir)); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Cut off by a kill or a full disk before any of its operations, a backup leaves the one before.
func TestABackupThatIsCutOffAnywhereLeavesTheOneBefore(t *testing.T) {
	for n := 1; ; n += cutOff() {
		s := toBackUp(t)
		dir := t.TempDir()
		must(Backup(t.Context(), s, dir, BackupOptions{}))
		want := everything(t, s)
		sampleRunOf(t, s, "two", 4, func(v int) string { return fmt.Sprint("two", v, randomText(80<<10)) })
		count, killed := 0, ""
		s.opts.Before = func(op Op) error {
			if op != OpBackup {
				return nil
			}
			if count++; count != n {
				return nil
			}
			killed = filepath.Join(t.TempDir(), "killed")
			return errors.Join(os.CopyFS(killed, os.DirFS(dir)), syscall.ENOSPC)
		}
		_, err := Backup(t.Context(), s, dir, BackupOptions{})
		s.opts.Before = nil
		if killed == "" {
			if err != nil || n < 5 {
				t.Fatalf("%d operations, %v", n-1, err)
			}
			return
		}
		if !errors.Is(err, protocol.ErrDiskFull) {
			t.Fatalf("operation %d: %v", n, err)
		}
		now := everything(t, s)
		for what, dir := range map[string]string{"full": dir, "killed": killed} {
			must(VerifyBackup(t.Context(), dir))
			if got := everything(t, restored(t, dir)); !maps.Equal(got, want) {
				t.Fatalf("%s at operation %d: %v, want %v", what, n, got, want)
			}
			must(Backup(t.Context(), s, dir, BackupOptions{}))
			must(VerifyBackup(t.Context(), dir))
			if got := everything(t, restored(t, dir)); !maps.Equal(got, now) {
				t.Fatalf("%s at operation %d, made again: %v, want %v", what, n, got, now)
			}
		}
	}
}

// cutOff is how far apart the operations are at which something is cut off: each one, and with -short, which is for the race
// detector, to which they are the same, every fourth.
func cutOff() int {
	if testing.Short() {
		return 4
	}
	return 1
}

// Cut off anywhere, a restoring leaves no store, or a whole one.
func TestARestoringThatIsCutOffAnywhereLeavesNoHalfStore(t *testing.T) {
	s := toBackUp(t)
	want := everything(t, s)
	dir := t.TempDir()
	must(Backup(t.Context(), s, dir, BackupOptions{}))
	for n := 1; ; n++ {
		to := filepath.Join(t.TempDir(), "new")
		count, killed := 0, ""
		_, err := Restore(t.Context(), dir, to, 1, Options{Before: func(Op) error {
			if count++; count != n {
				return nil
			}
			killed = filepath.Join(t.TempDir(), "killed")
			return errors.Join(os.CopyFS(killed, os.DirFS(to)), syscall.ENOSPC)
		}})
		if killed == "" {
			if err != nil || n < 5 {
				t.Fatalf("%d operations, %v", n-1, err)
			}
			return
		}
		if !errors.Is(err, protocol.ErrDiskFull) {
			t.Fatalf("operation %d: %v", n, err)
		}
		for _, at := range []string{to, killed} {
			if _, err := Open(t.Context(), at, Options{MustExist: true}); err == nil {
				t.Fatalf("operation %d: a store is there", n)
			}
			if _, err := Restore(t.Context(), dir, at, 1, Options{}); err != nil {
				t.Fatalf("operation %d: %v", n, err)
			}
			again := must(Open(t.Context(), at, Options{MustExist: true}))
			if got := everything(t, again); !maps.Equal(got, want) {
				t.Fatalf("operation %d: %v, want %v", n, got, want)
			}
			if err := again.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestADamagedBackupIsFound(t *testing.T) {
	s := toBackUp(t)
	dir := t.TempDir()
	must(Backup(t.Context(), s, dir, BackupOptions{}))
	damaged := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) == ".list" {
			return err
		}
		data := must(os.ReadFile(path))
		for _, wrong := range [][]byte{nil, data[:len(data)-1], append(append([]byte{}, data[:len(data)/2]...), append([]byte{data[len(data)/2] ^ 1}, data[len(data)/2+1:]...)...)} {
			if filepath.Base(path) == manifestFile && len(wrong) == len(data) {
				continue // a byte of the text may be of no weight
			}
			if filepath.Base(path) == manifestFile && len(wrong) == len(data)-1 {
				continue // the last newline
			}
			if err := os.WriteFile(path, wrong, 0o600); err != nil {
				return err
			}
			if _, err := VerifyBackup(t.Context(), dir); !errors.Is(err, protocol.ErrCorrupt) {
				t.Errorf("%s with %d of %d bytes: %v", path, len(wrong), len(data), err)
			}
			if _, err := Restore(t.Context(), dir, filepath.Join(t.TempDir(), "x"), 1, Options{}); !errors.Is(err, protocol.ErrCorrupt) {
				t.Errorf("restored from %s with %d of %d bytes: %v", path, len(wrong), len(data), err)
			}
			damaged++
		}
		return os.WriteFile(path, data, 0o600)
	})
	if err != nil || damaged < 10 {
		t.Errorf("%d, %v", damaged, err)
	}
	must(VerifyBackup(t.Context(), dir))
}

func TestABackupBesideLiveRunsIsWhole(t *testing.T) {
	s := toBackUp(t)
	stop, done := make(chan struct{}), sync.WaitGroup{}
	for n := range 3 {
		other := must(Open(t.Context(), s.Dir(), Options{Wait: time.Minute}))
		t.Cleanup(func() { _ = other.Close() })
		done.Go(func() {
			m := must(OpenMemory(other, fmt.Sprint("live", n)))
			var at EventRef
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				all, err := m.Append(t.Context(), int64(i), at, []Draft{{Data: protocol.TextSaid{Content: protocol.NewText(fmt.Sprint(i, randomText(1500)))}}})
				if err != nil {
					t.Error(err)
					return
				}
				at = EventRef{all[0].Seq, all[0].CID}
			}
		})
	}
	defer done.Wait()
	defer close(stop)
	dir := t.TempDir()
	for range 3 {
		must(Backup(t.Context(), s, dir, BackupOptions{}))
		got := restored(t, dir)
		everything(t, got)
		if v := must(Verify(t.Context(), got, VerifyOptions{All: true})); !v.OK {
			t.Error(v.Findings)
		}
	}
}

// While a backup is made nothing is collected.
// What a gentle backup has copied out of a store it works on while others have the store.
func TestAGentleBackupHoldsNoStoreWhileItWrites(t *testing.T) {
	s := toBackUp(t)
	wrote, o := 0, s.opts
	defer func() { s.opts = o }()
	s.opts.Before = func(op Op) error {
		s.gate.mu.Lock()
		defer s.gate.mu.Unlock()
		if wrote++; s.gate.hold != nil {
			t.Errorf("it is held at %s", op)
		}
		return nil
	}
	s.gate.pause()() // it was written to
	must(Backup(t.Context(), s, t.TempDir(), BackupOptions{Gentle: true}))
	if wrote == 0 {
		t.Error("nothing was written")
	}
}

func TestACollectionDuringABackupIsRefused(t *testing.T) {
	s := toBackUp(t)
	var refused error
	s.opts.Before = func(op Op) error {
		if op == OpBackup && refused == nil {
			_, refused = GC(t.Context(), s, GCOptions{})
		}
		return nil
	}
	must(Backup(t.Context(), s, t.TempDir(), BackupOptions{}))
	if !errors.Is(refused, protocol.ErrBusy) {
		t.Error(refused)
	}
}

// toMeasure is a store of about 1 GB (WF_BENCH_MB).
func toMeasure(b *testing.B) *Store {
	b.Helper()
	want := int64(1000)
	if _, err := fmt.Sscan(os.Getenv("WF_BENCH_MB"), &want); err != nil && os.Getenv("WF_BENCH_MB") != "" {
		b.Fatal(err)
	}
	s := openSample(b)
	for i := 0; fileSize(s) < want*1e6; i++ {
		var blocks []Block
		var links []protocol.Link
		for n := range 2000 {
			x := Raw([]byte(fmt.Sprint(i, n, randomText(3000+n))))
			blocks, links = append(blocks, x), append(links, x.Link)
		}
		root := must(Encode(map[string]any{"links": links}))
		if err := s.Commit(b.Context(), Batch{Blocks: append(blocks, root), Moves: []Move{{Name: fmt.Sprint("memory/", i), New: root.Link}}}); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// plainCopy copies the file of a store to the disk of a backup and hashes it, as cp and sha256sum do.
func plainCopy(b *testing.B, s *Store) (n int64) {
	b.Helper()
	from := must(os.Open(filepath.Join(s.Dir(), fileDB)))
	defer from.Close()
	to := must(os.Create(filepath.Join(b.TempDir(), "copy")))
	defer to.Close()
	n = must(io.CopyBuffer(io.MultiWriter(to, sha256.New()), struct{ io.Reader }{from}, make([]byte, 1<<20)))
	if err := to.Sync(); err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkBackup backs up a store, and then again what was not added to it; beside a plain copy, which tells how fast the machine is.
func BenchmarkBackup(b *testing.B) {
	s := toMeasure(b)
	for b.Loop() {
		begun, worked := time.Now(), processorTime(b)
		n := plainCopy(b, s)
		b.ReportMetric(float64(n)/1e6/time.Since(begun).Seconds(), "MB/s-copy")
		b.ReportMetric((processorTime(b) - worked).Seconds(), "cpu-s-copy")
		dir := b.TempDir()
		begun, worked = time.Now(), processorTime(b)
		r := must(Backup(b.Context(), s, dir, BackupOptions{}))
		b.ReportMetric(float64(r.Copied)/1e6/time.Since(begun).Seconds(), "MB/s")
		b.ReportMetric((processorTime(b) - worked).Seconds(), "cpu-s")
		begun, worked = time.Now(), processorTime(b)
		must(Backup(b.Context(), s, dir, BackupOptions{}))
		b.ReportMetric(time.Since(begun).Seconds(), "s-again")
		b.ReportMetric((processorTime(b) - worked).Seconds(), "cpu-s-again")
		begun = time.Now()
		must(VerifyBackup(b.Context(), dir))
		b.ReportMetric(float64(r.Copied)/1e6/time.Since(begun).Seconds(), "MB/s-verify")
	}
}

// BenchmarkGentleBackup tells how much longer a commit of a live run takes beside a gentle backup in another process, in percent. The backup
// works and rests 32 times, then waits for as long: WF_BENCH_TURNS times, of which each gives the difference of two means. With
// WF_BENCH_NOTHING there is no backup, and what is told is how much the machine differs from itself.
func BenchmarkGentleBackup(b *testing.B) {
	s := toMeasure(b)
	turns := 20
	if _, err := fmt.Sscan(os.Getenv("WF_BENCH_TURNS"), &turns); err != nil && os.Getenv("WF_BENCH_TURNS") != "" {
		b.Fatal(err)
	}
	backup := exec.Command(os.Args[0])
	backup.Env = append(os.Environ(), "CASTEST_CHILD="+strings.Join([]string{"backup", s.Dir(), b.TempDir()}, "\n"))
	backup.Stderr = os.Stderr
	in, out := must(backup.StdinPipe()), bufio.NewReader(must(backup.StdoutPipe()))
	if err := backup.Start(); err != nil {
		b.Fatal(err)
	}
	stopped := func() { // when the backup has rested
		if line := must(out.ReadString('\n')); line != "\n" {
			b.Errorf("the backup says %s", line)
		}
	}
	stopped()
	works := func() {
		for range 32 {
			if os.Getenv("WF_BENCH_NOTHING") != "" {
				time.Sleep(60 * time.Millisecond)
				continue
			}
			must(in.Write([]byte{'\n'}))
			stopped()
		}
	}
	run, at := must(OpenMemory(s, "live")), EventRef{}
	step := func() time.Duration {
		begun := time.Now()
		all, err := run.Append(b.Context(), begun.UnixMicro(), at, []Draft{{Data: protocol.TextSaid{Content: protocol.NewText(fmt.Sprint(begun, randomText(1500)))}}})
		if err != nil {
			b.Fatal(err)
		}
		at = EventRef{all[0].Seq, all[0].CID}
		return time.Since(begun)
	}
	const pause = 3 * time.Millisecond // what a quick command takes
	for b.Loop() {
		var took [2][]time.Duration // alone, beside a backup
		var means [2][]float64
		turn := func(beside int, more func() bool) {
			first := len(took[beside])
			for more() {
				took[beside] = append(took[beside], step())
				time.Sleep(pause)
			}
			means[beside] = append(means[beside], mean(took[beside][first:]))
		}
		for range turns {
			begun, over := time.Now(), make(chan struct{})
			go func() {
				defer close(over)
				works()
			}()
			turn(1, func() bool {
				select {
				case <-over:
					return false
				default:
					return true
				}
			})
			lasted := time.Since(begun)
			begun = time.Now()
			turn(0, func() bool { return time.Since(begun) < lasted })
		}
		alone := mean(took[0])
		differs := make([]float64, turns)
		for i := range differs {
			differs[i] = 100 * (means[1][i] - means[0][i]) / alone
		}
		for i, name := range []string{"alone", "beside"} {
			slices.Sort(took[i])
			b.ReportMetric(mean(took[i])/1e3, "µs-"+name)
			b.ReportMetric(float64(took[i][len(took[i])*99/100])/1e3, "µs-p99-"+name)
		}
		b.ReportMetric(float64(len(took[1])), "samples")
		b.ReportMetric(100*(float64(took[1][len(took[1])/2])/float64(took[0][len(took[0])/2])-1), "%median")
		b.ReportMetric(100*(mean(took[1])/alone-1), "%mean")
		b.ReportMetric(deviation(differs)/math.Sqrt(float64(turns)), "±%mean")
	}
	if err := errors.Join(in.Close(), backup.Wait()); err != nil {
		b.Error(err)
	}
}

func mean[T ~int64 | ~float64](all []T) (m float64) {
	for _, x := range all {
		m += float64(x) / float64(len(all))
	}
	return m
}

// deviation is the standard deviation of what a sample is from.
func deviation(all []float64) float64 {
	m, sum := mean(all), 0.0
	for _, x := range all {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / float64(len(all)-1))
}

// processorTime is what this process has worked, on all processors.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
