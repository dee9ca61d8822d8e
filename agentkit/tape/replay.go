package tape

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
	"wf/files"
)

// Prefix is how the name of a model of this package begins: tape/FILE.
const Prefix = "tape/"

// Model implements llms.Model. It is safe for concurrent use.
type Model struct {
	name   string
	sum    []byte // SHA-256 of the file, as far as it is read
	lines  []line
	byKey  map[string][]int
	byRole map[string][]int

	own Play // of calls whose context has none
}

// mostTape bounds a recording, in bytes: a workflow names the file.
const mostTape = 1 << 30

// Open reads a recording; name is the model's, for messages. A missing or damaged file is a
// *model.Error of class unavailable, since nothing was asked yet.
func Open(name, path string) (*Model, error) {
	f, err := files.OpenNamed(path)
	if err != nil {
		return nil, &model.Error{Class: model.Unavailable, Message: fmt.Sprintf("model %s: %v", name, err), Err: err}
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > mostTape {
		err = errors.Join(err, fmt.Errorf("%s has more than %d bytes", path, mostTape))
		return nil, &model.Error{Class: model.Unavailable, Message: fmt.Sprintf("model %s: %v", name, err), Err: err}
	}
	return Read(name, f)
}

func (m *Model) read(f io.Reader) error {
	sum := sha256.New()
	lines := bufio.NewReader(f)
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			m.sum = sum.Sum(nil)
			return nil // a last line without its end was cut off while it was written
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		sum.Write(text)
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if l.V != version || l.Reply == nil && l.Failure == nil {
			return fmt.Errorf("line %d: no call of version %d", n, version)
		}
		m.byKey[l.Key] = append(m.byKey[l.Key], len(m.lines))
		m.byRole[l.Role] = append(m.byRole[l.Role], len(m.lines))
		m.lines = append(m.lines, l)
	}
}

// Sources are the whole file, and the visit: of equal requests each has its own answer.
func (m *Model) Sources(r model.Request) []model.Source {
	return []model.Source{{Name: "tape", Value: hex.EncodeToString(m.sum)}, {Name: "visit of the tape", Value: r.VisitName()}}
}

// Call is the older form of GenerateContent.
func (m *Model) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// GenerateContent gives the recorded answer, or the recorded failure, of exactly this request.
// A request that was not recorded is a *model.Error of class unavailable that shows where it
// differs, unless the Play of the context takes what was recorded in its place.
func (m *Model) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	opts := model.OptionsOf(options)
	request, _ := model.RequestFrom(ctx)
	lines, err := requestLines(messages, opts, request)
	if err != nil {
		return nil, &model.Error{Class: model.Invalid, Message: fmt.Sprintf("model %s: %v", m.name, err), Err: err}
	}
	l := m.playOf(ctx).answer(m, lines, request)
	if l == nil {
		return nil, &model.Error{Class: model.Unavailable, Message: fmt.Sprintf("model %s: %s", m.name, m.miss(lines, request))}
	}
	if f := l.Failure; f != nil {
		return nil, &model.Error{Class: f.Class, Status: f.Status, RetryAfter: time.Duration(f.RetryAfterMS) * time.Millisecond, Message: f.Message}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return l.Reply.Say(ctx, opts)
}
