package server

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/protocol"
)

// noFilters is how a query is shown in which nothing chooses runs by what was said in them, or by numbers.
const noFilters = " Search: Since:0 Until:0 CostMin:<nil> CostMax:<nil> TokensMin:<nil> TokensMax:<nil> Person: Counts:false}"

func TestTheFiltersOfAListAreRead(t *testing.T) {
	read := func(query string) (api.Query, error) {
		return ParseQuery(httptest.NewRequest("GET", "/v1/runs?"+query, nil))
	}
	q, err := read("search=a+b*&person=anna&cost_min=0.25&cost_max=1e1&tokens_min=0&tokens_max=9000000000&counts=true&since=2026-05-01T12:00:00%2B02:00&limit=500")
	want := api.Query{Limit: 500, Search: "a b*", Person: "anna", CostMin: new(0.25), CostMax: new(10.0), TokensMin: new(int64(0)), TokensMax: new(int64(9e9)), Counts: true,
		Since: time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC).UnixMicro()}
	if d := cmp.Diff(want, q); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	before := time.Now().Add(-7 * 24 * time.Hour).UnixMicro()
	q, err = read("until=7d")
	if after := time.Now().Add(-7 * 24 * time.Hour).UnixMicro(); err != nil || q.Until < before || q.Until > after {
		t.Errorf("until=7d is %d, %v", q.Until, err)
	}
	if _, err := read("search=" + strings.Repeat("a", searchMax)); err != nil {
		t.Error(err)
	}
	var many strings.Builder
	for i := range api.WantedMax + 1 {
		fmt.Fprintf(&many, "w%d+", i)
	}
	for _, bad := range []string{"search=%3F", "search=" + strings.Repeat("a", searchMax+1), "person=" + strings.Repeat("a", searchMax+1), "search=" + many.String(),
		"since=yesterday", "since=-2h", "since=0d", "until=2026-05-01", "until=1900-01-01T00:00:00Z", "until=99999w", "cost_min=-1", "cost_min=x", "cost_max=NaN", "cost_max=Inf", "tokens_min=-1", "tokens_max=1.5",
		"counts=yes", "search=a&search=b"} {
		if _, err := read(bad); protocol.CodeOf(err) != protocol.ErrBadRequest.Code {
			t.Errorf("%.60s: %v", bad, err)
		}
	}
}
