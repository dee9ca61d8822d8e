package cas

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"

	"wf/protocol"
)

var makeDict = flag.Bool("make-dict1", false, "write dict1.bin anew; only before the first release, as stored packs need the old one")

// dictionary1Sum is the digest of dict1.bin: a store written with it needs it for ever.
const dictionary1Sum = "8953e7f810a23f2af73b07c91dd4ff7792ffa308c3ab24b0ec910b1ec2ab3bb0"

func TestDictionaryOneNeverChanges(t *testing.T) {
	if *makeDict {
		d, err := zstd.BuildDict(zstd.BuildDictOptions{
			ID: 1, Contents: dictSamples(400), History: dictHistory(), Offsets: [3]int{1, 4, 8}, Level: zstd.SpeedFastest,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("dict1.bin", d, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Logf("dict1.bin: %d bytes, sha256 %x", len(d), sha256.Sum256(d))
		return
	}
	if sum := sha256.Sum256(dictionary1); hex.EncodeToString(sum[:]) != dictionary1Sum {
		t.Errorf("dict1.bin hashes to %x, want %s: stores written with it could not be read", sum, dictionary1Sum)
	}
}

// dictLink is a link with a digest that says nothing.
func dictLink(codec byte, n ...any) protocol.Link {
	sum := sha256.Sum256([]byte(fmt.Sprint(n...)))
	return linkOf(codec, sum[:])
}

// dictRun is the packs of a small run, one for each commit of a step.
func dictRun(run int, steps int) [][]Block {
	const dagCBOR, raw = 0x71, 0x55
	roles := []string{"coder", "reviewer", "planner", "test", "developer", "gate", "fix", "check", "write", "count"}
	start := dictLink(dagCBOR, "start", run)
	prev, parent := dictLink(dagCBOR, "first", run), start
	var packs [][]Block
	event := func(seq int, step string, d protocol.Data) Block {
		e := protocol.Event{
			Kind: protocol.KindEvent, V: 1, Prev: prev, Seq: protocol.Seq(seq),
			TS: 1_790_000_000_000_000 + int64(run)*7_654_321_987 + int64(seq)*1_234_567, Type: d.EventType(), Step: &step,
			Data: cbor.RawMessage(must(encMode.Marshal(d))),
		}
		b := must(Encode(e))
		prev = b.Link
		return b
	}
	for k := range steps {
		role := roles[(run+k)%len(roles)]
		step := fmt.Sprintf("%s#%d", role, k/2+1)
		next := roles[(run+k+1)%len(roles)]
		output := Raw(fmt.Appendf(nil, "{\"choice\":\"retry\",\"exit_code\":0,\"status\":\"done\",\"summary\":\"the tests of the package pass\",\"text\":\"run %d step %d\"}", run, k))
		rec := protocol.StepRecord{
			Kind: protocol.KindStep, V: 1, Start: start, Parents: []protocol.Link{parent}, Role: role, Visit: k/2 + 1,
			Edge: k % 5, Via: protocol.ViaEdge, Data: output.Link, Status: protocol.StepOK,
		}
		if k == 0 {
			rec.Via = protocol.ViaStart
		}
		if k%3 == 1 {
			rec.Resumes, rec.Output = parent, dictLink(raw, "out", run, k)
			rec.Tools = dictLink(raw, "tools", run)
			rec.EdgePrompt = "The tests of the package fail:\n"
		}
		if k%7 == 6 {
			rec.Status, rec.Error = protocol.StepFailed, dictLink(raw, "error", k)
		}
		record := must(Encode(rec))
		parent = record.Link
		blocks := []Block{output, record, event(3*k+2, step, protocol.StepCompleted{Record: record.Link, MS: int64(7 * k), Status: rec.Status})}
		started := protocol.StepStarted{
			Start: start, Parents: []protocol.Link{parent}, Role: next, Visit: (k + 1) / 2, Edge: (k + 1) % 5,
			Via: protocol.ViaEdge, Resumes: rec.Resumes, Tools: rec.Tools, Attempt: 1, EdgePrompt: protocol.NewText(rec.EdgePrompt),
		}
		packs = append(packs, append(blocks, event(3*k+3, fmt.Sprintf("%s#%d", next, (k+1)/2+1), started)))

		in, out := int64(1234*k), int64(56*k)
		for i, d := range []protocol.Data{
			protocol.PromptSent{Digest: dictLink(raw, "prompt", run, k).String(), Model: "openai/gpt-5"},
			protocol.ToolCall{Call: "call_1", Name: "read_file", Args: protocol.NewText(`{"path":"main.go"}`)},
			protocol.ToolResult{Call: "call_1", Content: protocol.NewText("package main\n\nimport (\n\t\"fmt\"\n)\n\nfunc main() {\n")},
			protocol.TextSaid{Content: protocol.NewText("---\nstatus: done\nsummary: fixed\n---\nThe test passes now.")},
			protocol.Usage{Model: "openai/gpt-5", Input: &in, Output: &out, TTFE: 321, TotalMS: 4321},
			protocol.WaitingFor{Kind: protocol.WaitChoice, Question: protocol.NewText("What now?"), Choices: []protocol.Choice{{Label: "Try again", Value: "retry", Primary: true}}},
			protocol.Answered{By: "user", Source: "cli", Choice: "retry"},
			protocol.AttemptFailed{Attempt: 1, Error: protocol.ErrorInfo{Code: "exit_code", Phase: "run", Message: "exit status 1"}},
			protocol.SuspendedBy{Reason: protocol.ByInterrupt}, protocol.ResumedBy{By: "user"},
		} {
			if (k+i+run)%4 == 0 {
				packs = append(packs, []Block{event(3*k+3, step, d)})
			}
		}
	}
	return packs
}

// dictBodies is the segments of a small run.
func dictBodies(run, steps int) [][]byte {
	var out [][]byte
	for _, p := range dictRun(run, steps) {
		if p[0].Link.CID().Type() == 0x55 {
			out = append(out, packBody(nil, toPack(p[:1])))
			p = p[1:]
		}
		out = append(out, packBody(nil, toPack(p)))
	}
	return out
}

func dictSamples(n int) [][]byte {
	var out [][]byte
	for run := 0; len(out) < n; run++ {
		out = append(out, dictBodies(run, 8)...)
	}
	return out[:n]
}

// dictHistory is what the matches of a small segment point at.
func dictHistory() []byte { return bytes.Join(dictBodies(1001, 14), nil) }
