package pgstore

import (
	"context"
	"fmt"

	"wf/postgres"
	"wf/protocol"
)

// Report is what Check found; Meta is zero where there is no store.
type Report struct {
	Version  string // of the server
	Meta     Meta
	Findings []Finding
}

// Check looks at a database without changing it. An error is that it could not be looked at.
func Check(ctx context.Context, dsn string) (r Report, err error) {
	a, err := postgres.Parse(dsn)
	if err != nil {
		return r, err
	}
	c, err := connect(ctx, a, postgres.Addressed, nil)
	if err != nil {
		return r, err
	}
	defer c.close()
	if r.Version, r.Findings, err = postgres.Settings(ctx, c.Conn); err != nil {
		return r, fmt.Errorf("%s: %w", a.Shown, classify(ctx, err))
	}
	m, there, err := metaOf(ctx, c, readMeta)
	if err != nil {
		return r, fmt.Errorf("%s: %w", a.Shown, classify(ctx, err))
	}
	if there {
		found, err := c.strangers(ctx)
		if err != nil {
			return r, fmt.Errorf("%s: %w", a.Shown, classify(ctx, err))
		}
		r.Findings = append(r.Findings, found...)
	}
	if r.Meta = m; !there {
		r.Findings = append(r.Findings, Finding{Setting: "the store", Actual: "absent", Want: "wf store init", Fatal: true})
	} else if err := m.usable(); err != nil {
		r.Findings = append(r.Findings, Finding{Setting: "layout", Actual: fmt.Sprintf("%d, written by the rules %d", m.Layout, m.MinWriter), Want: protocol.HintOf(err), Fatal: true})
	} else {
		lacks, err := c.undriven(ctx)
		if err != nil {
			return r, fmt.Errorf("%s: %w", a.Shown, classify(ctx, err))
		}
		r.Findings = append(r.Findings, lacks...)
	}
	return r, nil
}
