package pgstore

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"wf/cas"
	"wf/protocol"
)

//go:embed commit.sql
var commitParts string

// parts are what a group needs of commit.sql besides what every group does.
type parts struct{ unclear, values, runs, deletes bool }

// statements are those of groups, by their parts.
var statements sync.Map

// statementOf is commit.sql with the parts that a group needs.
func statementOf(group []*request, unclear bool) string {
	p := parts{unclear: unclear}
	for _, r := range group {
		p.values = p.values || len(r.derived) > 0
		p.runs = p.runs || len(r.runs) > 0
		p.deletes = p.deletes || slices.ContainsFunc(r.rows, func(x row) bool { return x.kind == buries })
	}
	sql, ok := statements.Load(p)
	if !ok {
		sql, _ = statements.LoadOrStore(p, p.statement())
	}
	return sql.(string)
}

// statement leaves out of commit.sql what lies between "--? PART" and "--." of another part, and the comments.
func (p parts) statement() string {
	has := map[string]bool{"unclear": p.unclear, "values": p.values, "runs": p.runs, "deletes": p.deletes}
	var b strings.Builder
	in := true
	for line := range strings.Lines(commitParts) {
		switch part, begins := strings.CutPrefix(strings.TrimSpace(line), "--? "); {
		case begins:
			in = has[part]
		case strings.HasPrefix(line, "--."):
			in = true
		case in && !strings.HasPrefix(line, "--"):
			b.WriteString(line)
		}
	}
	return b.String()
}

// namesOf are the heads of a group and the roots of its claims, sorted.
func namesOf(group []*request) param {
	var all []string
	for _, r := range group {
		all = append(all, r.names...)
	}
	slices.Sort(all)
	return texts(slices.Compact(all))
}

// params are those of commit.sql.
func (s *Store) params(group []*request) []param {
	type of[T any] struct {
		b int32
		x T
	}
	var rows []of[row]
	var free []int32 // batches that move nothing
	var blocks []of[block]
	var values []of[value]
	for i, r := range group {
		b := int32(i)
		if len(r.rows) == 0 {
			free = append(free, b)
		}
		for _, x := range r.rows {
			rows = append(rows, of[row]{b, x})
		}
		for _, x := range r.blocks {
			blocks = append(blocks, of[block]{b, x})
		}
		for _, x := range r.derived {
			values = append(values, of[value]{b, x})
		}
	}
	n := len(rows)
	bytesOf := func(at func(row) []byte) param {
		return array(oidBytes, oidBytea, n, func(i int) []byte { return at(rows[i].x) })
	}
	longOf := func(at func(row) int64) param {
		return longs(n, func(i int) (int64, bool) { return at(rows[i].x), false })
	}
	orNull := func(s string) []byte {
		if s == "" {
			return nil
		}
		return []byte(s)
	}
	textOf := func(at func(row) []byte) param {
		return array(oidTexts, oidText, n, func(i int) []byte { return at(rows[i].x) })
	}
	fence := func(i int) cas.Fence { return group[rows[i].b].fence }
	return append([]param{
		ints(n, func(i int) int32 { return rows[i].b }),
		ints(n, func(i int) int32 { return rows[i].x.kind }),
		textOf(func(x row) []byte { return append([]byte{}, x.name...) }),
		bytesOf(func(x row) []byte { return x.old }),
		bytesOf(func(x row) []byte { return x.new }),
		longOf(func(x row) int64 { return x.seq }),
		longOf(func(x row) int64 { return x.ts }),
		textOf(func(x row) []byte { return append([]byte{}, x.note...) }),
		textOf(func(x row) []byte { return orNull(x.base) }),
		longs(n, func(i int) (int64, bool) { return rows[i].x.shared, rows[i].x.base == "" }),
		bytesOf(func(x row) []byte { return append([]byte{}, x.events...) }),
		array(oidTexts, oidText, n, func(i int) []byte {
			if f := fence(i); f != (cas.Fence{}) {
				return []byte(protocol.RunHead(f.Root))
			}
			return orNull(rows[i].x.root)
		}),
		array(oidBytes, oidBytea, n, func(i int) []byte {
			if f := fence(i); f != (cas.Fence{}) {
				return f.Token[:]
			}
			return nil
		}),
		ints(len(free), func(i int) int32 { return free[i] }),
		ints(len(blocks), func(i int) int32 { return blocks[i].b }),
		array(oidBytes, oidBytea, len(blocks), func(i int) []byte { return blocks[i].x.cid }),
		array(oidBytes, oidBytea, len(blocks), func(i int) []byte { return blocks[i].x.data }),
		ints(len(values), func(i int) int32 { return values[i].b }),
		array(oidTexts, oidText, len(values), func(i int) []byte { return append([]byte{}, values[i].x.key...) }),
		array(oidBytes, oidBytea, len(values), func(i int) []byte { return values[i].x.data }),
		array(oidTexts, oidText, len(values), func(i int) []byte { return orNull(values[i].x.run) }),
		bytea(s.by),
	}, append(standings(group),
		ints(n, func(i int) int32 { return rows[i].x.moved }),
		bytesOf(func(x row) []byte { return append([]byte{}, x.keys...) }),
		bytesOf(func(x row) []byte { return x.data }))...)
}
