package daemon_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/cas/castest"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
	"wf/service"
	"wf/service/compose"
	"wf/store"
)

// Runs that come to a database from elsewhere, as a copy or in an archive, are known there: where they are, which tree they are a part of, and that none of
// them is due before it is asked for.
func TestRunsThatArriveAreKnown(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	here, err := store.Open(ctx, filepath.Join(dir, "here"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	e := &engine.Engine{Store: here, Patience: -1, Performers: map[protocol.Action]roles.Performer{protocol.ActAsk: roles.Ask{}, protocol.ActWait: roles.Wait{}}}
	e.Performers[protocol.ActWorkflow] = e.SubWorkflow()
	if err := os.WriteFile(filepath.Join(dir, "child.yaml"), []byte(askYAML), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func(yaml string) protocol.RunID {
		p, found := lang.Load([]byte(yaml), lang.Options{File: filepath.Join(dir, "test.yaml"), Read: os.ReadFile})
		if p == nil {
			t.Fatal(found)
		}
		run, _, err := e.Begin(ctx, engine.Launch{Program: p, Source: []byte(yaml), Inputs: protocol.JSON("{}")})
		if err == nil {
			_, err = e.Drive(ctx, run, engine.DriveOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	parent := begin("wf: 1\nname: parent\nroles: {sub: {workflow: child.yaml}}\n")
	timer := begin("wf: 1\nname: timer\nroles: {a: {wait: 1s}}\n")
	children, err := e.Descendants(ctx, parent)
	if err != nil || len(children) != 1 {
		t.Fatal(children, err)
	}
	// A run that this program does not understand comes all the same.
	castest.Sample(t, here, "strange", 3, nil)
	if _, err := e.State(ctx, "strange"); err == nil {
		t.Fatal("the strange run is understood")
	}
	arrived := func(what string, bring func(into store.Store) error) {
		srv, dsn := postgres(t)
		into, err := store.Open(ctx, dsn, store.Options{State: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer into.Close()
		if err := bring(into); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if _, _, err := into.Tip(ctx, "strange"); err != nil {
			t.Errorf("%s: the strange run: %v", what, err)
		}
		rows, err := srv.Ask(ctx, dsn, `select concat_ws(' ', r.run, r.state, r.due, r.workflow, r.parent, h.root) from wf.runs r join wf.heads h on h.name = 'run/' || r.run`)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(rows)
		want := []string{fmt.Sprintf("%s waiting parent", parent), fmt.Sprintf("%s waiting question %s run/%s", children[0], parent, parent), fmt.Sprintf("%s waiting timer", timer)}
		if slices.Sort(want); !slices.Equal(rows, want) {
			t.Errorf("%s: noted is\n%s\nwant\n%s", what, strings.Join(rows, "\n"), strings.Join(want, "\n"))
		}
		counts, err := into.(interface {
			CountRuns(context.Context) ([]cas.RunCount, error)
		}).CountRuns(ctx)
		if slices.SortFunc(counts, func(a, b cas.RunCount) int { return strings.Compare(a.Workflow, b.Workflow) }); err != nil || len(counts) != 2 ||
			counts[0].Workflow != "parent" || counts[1].Workflow != "timer" || counts[0].Runs != 1 || counts[0].State != protocol.Waiting || counts[0].Moved == 0 {
			t.Errorf("%s: counted are %+v, %v", what, counts, err)
		}
	}
	arrived("a copy", func(into store.Store) error {
		_, err := service.Copy(ctx, here, into, service.CopyOptions{})
		return err
	})
	arrived("archives", func(into store.Store) error {
		for _, run := range []protocol.RunID{parent, timer, "strange"} {
			archive := new(bytes.Buffer)
			below, err := e.Descendants(ctx, run)
			if err == nil {
				_, err = cas.Export(ctx, archive, here, cas.ExportOptions{}, run, below...)
			}
			if err != nil {
				return err
			}
			local := &service.Local{Setup: &compose.Setup{}, Store: into, Engine: &engine.Engine{Store: into}}
			if _, err := local.Import(ctx, archive, api.ImportOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}
