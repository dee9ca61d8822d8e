package proof

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// File proves the archive in a file.
func File(ctx context.Context, path string, o cas.VerifyOptions) (r cas.Report, err error) {
	f, err := os.Open(path)
	if err != nil {
		return r, protocol.ErrUsage.With("", "%v", err)
	}
	defer f.Close()
	if r, err = cas.VerifyCAR(ctx, f, o); err == nil {
		r.Findings = faults(r.Findings)
	}
	return r, err
}

// Run reads the archive of a run from a source and proves it.
func Run(ctx context.Context, source api.Archive, run protocol.RunID, o cas.VerifyOptions) (r cas.Report, err error) {
	err = Archived(ctx, source, run, api.ExportOptions{}, func(from io.Reader) (err error) {
		if o.Head.Defined() {
			o.Run = run // the chain of the first root must hold that head, whatever the archive calls its runs
		}
		r, err = cas.VerifyCAR(ctx, from, o)
		return err
	})
	if err != nil {
		return r, err
	}
	if !o.Head.Defined() {
		mustHold(&r, run)
	}
	r.Findings = faults(r.Findings)
	return r, nil
}

// Add joins the reports of two archives.
func Add(all *cas.Report, r cas.Report) {
	all.Schema, all.OK = r.Schema, all.OK && r.OK
	c := &all.Checked
	c.Heads += r.Checked.Heads
	c.Events += r.Checked.Events
	c.Records += r.Checked.Records
	c.Blocks += r.Checked.Blocks
	c.Bytes += r.Checked.Bytes
	all.Findings = append(all.Findings, r.Findings...)
	for _, n := range r.NotProven {
		if !slices.Contains(all.NotProven, n) {
			all.NotProven = append(all.NotProven, n)
		}
	}
}

// mustHold adds a finding to the report of an archive that holds another run than the one that was asked for. No
// event names its run: that the archive gives it the right name is the word of the server.
func mustHold(r *cas.Report, run protocol.RunID) {
	var held []string
	for _, h := range r.Heads {
		if h.Name == protocol.RunHead(run) {
			r.NotProven = append(r.NotProven, "no event names its run: that it is the one that was asked for is the word of the server, unless --head is a head that was noted elsewhere")
			return
		}
		held = append(held, h.Name)
	}
	if !r.OK {
		return // it could not be read far enough to tell
	}
	r.OK = false
	r.Findings = append(r.Findings, cas.Finding{Kind: "archive", Where: "runs", Expected: protocol.RunHead(run), Actual: strings.Join(held, ", "),
		Fix: "ask the server for another archive, or its operator why it sends another run"})
}

// anotherArchive is what helps with an archive that is damaged: nothing can be put into it.
const anotherArchive = "export the run again, with wf export RUN -o FILE where it is whole, or fetch the archive again"

// faults are the findings of an archive, one for each damaged block: what links to such a block
// finds it damaged or missing too, and tells where in the run it lies.
func faults(all []cas.Finding) []cas.Finding {
	var out []cas.Finding
	byCID := map[string]int{} // what a block should be, and what it is, to its place in out
	for _, f := range all {
		if f.Kind == "corrupt" || f.Kind == "missing" {
			f.Fix = anotherArchive
		}
		if strings.HasPrefix(f.Where, "byte ") {
			byCID[f.Expected], byCID[f.Actual] = len(out), len(out)
			out = append(out, f)
			continue
		}
		i, known := byCID[f.Expected]
		switch {
		case !known:
			out = append(out, f)
		case !strings.Contains(out[i].Where, "("):
			out[i].Where += " (" + f.Where + ")"
		}
	}
	return out
}

// Archived has f read the archive of a run as it comes. Its error is that of the archive, where that failed.
func Archived(ctx context.Context, from api.Archive, run protocol.RunID, o api.ExportOptions, f func(io.Reader) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := from.Export(ctx, run, o, w)
		sent <- err
		w.CloseWithError(err)
	}()
	read := f(r)
	r.CloseWithError(errStopped) // where f did not read all of it
	if err := <-sent; err != nil && !errors.Is(err, errStopped) {
		return err
	}
	return read
}

// errStopped ends an archive that is not read to its end.
var errStopped = errors.New("the archive is not read to its end")
