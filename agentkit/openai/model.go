package openai

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
	"wf/protocol"
)

// Prefix is how the name of a model of this package begins: openai/MODEL.
const Prefix = "openai/"

// DefaultIdle is how long a server may be silent. Reading a long prompt takes its time.
const DefaultIdle = 10 * time.Minute

// Config is where a model is reached. The zero Config is OpenAI itself without a key.
type Config struct {
	BaseURL string        // with /v1; "" is https://api.openai.com/v1
	Key     string        // "" sends none: local servers want none
	Idle    time.Duration // silence that ends a call; 0 is DefaultIdle
}

// Model implements llms.Model.
type Model struct {
	name, id string
	client   openai.Client
	official bool
	idle     time.Duration
}

// Open makes a model named openai/MODEL from OPENAI_BASE_URL and OPENAI_API_KEY. With neither
// it is an error wrapping protocol.ErrModel that says what to do.
func Open(name string) (*Model, error) {
	c := Config{BaseURL: os.Getenv("OPENAI_BASE_URL"), Key: os.Getenv("OPENAI_API_KEY")}
	if c.BaseURL == "" && c.Key == "" {
		return nil, &model.Error{
			Class: model.Unavailable,
			Message: fmt.Sprintf("the model %s needs a key. Fixes: set OPENAI_API_KEY; or set OPENAI_BASE_URL to a server "+
				"of your own, for example http://127.0.0.1:8080/v1; or name another model with --model", name),
			Err: protocol.ErrModel,
		}
	}
	return New(name, strings.TrimPrefix(name, Prefix), c)
}

// New makes a model: name is what wf calls it, id what the server does.
func New(name, id string, c Config) (*Model, error) {
	base := c.BaseURL
	if base == "" {
		base = "https://api.openai.com/v1"
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &model.Error{Class: model.Unavailable,
			Message: fmt.Sprintf("model %s: %q is no base URL (want https://HOST/v1; look at OPENAI_BASE_URL)", name, base), Err: protocol.ErrModel}
	}
	m := &Model{name: name, id: id, idle: c.Idle}
	if m.idle <= 0 {
		m.idle = DefaultIdle
	}
	m.official = u.Hostname() == "api.openai.com"
	options := []option.RequestOption{option.WithBaseURL(base), option.WithMaxRetries(0)}
	if c.Key != "" {
		options = append(options, option.WithAPIKey(c.Key))
	} else {
		options = append(options, option.WithAPIKey("none"), option.WithHeaderDel("Authorization"))
	}
	m.client = openai.NewClient(options...)
	return m, nil
}

// Call is the older form of GenerateContent.
func (m *Model) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// GenerateContent makes one streamed request. Failures are *model.Error, but for ctx, whose
// error is given as it is.
func (m *Model) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	var opts llms.CallOptions
	for _, o := range options {
		o(&opts)
	}
	request, _ := model.RequestFrom(ctx)
	body, err := m.body(messages, &opts, request)
	if err != nil {
		return nil, &model.Error{Class: model.Invalid, Message: fmt.Sprintf("model %s: %v", m.name, err), Err: err}
	}

	calling, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	silence := time.AfterFunc(m.idle, func() { stop(errSilent) })
	defer silence.Stop()

	start := time.Now()
	res, err := m.post(calling, body)
	if err == nil {
		defer res.Body.Close()
		s := &stream{name: m.name, opts: &opts, start: start, alive: func() { silence.Reset(m.idle) }}
		err = s.read(ctx, res)
		if err == nil {
			return s.response(), nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(context.Cause(calling), errSilent):
		return nil, &model.Error{Class: model.Timeout, Message: fmt.Sprintf("model %s: nothing was heard for %v", m.name, m.idle), Err: errSilent}
	}
	return nil, model.AsError(m.name, err)
}

var errSilent = errors.New("the server is silent")

// post sends the request and gives a response of status 200.
func (m *Model) post(ctx context.Context, body []byte) (*http.Response, error) {
	digest := sha256.Sum256(body)
	var res *http.Response
	err := m.client.Post(ctx, "chat/completions", body, &res,
		// With this header net/http sends a POST again when an idle connection was closed under it.
		option.WithHeader("Idempotency-Key", hex.EncodeToString(digest[:])),
		option.WithHeader("Accept", "text/event-stream"),
	)
	if res != nil && res.StatusCode >= 400 {
		defer res.Body.Close()
		return nil, m.refusal(res)
	}
	if err != nil && res != nil {
		res.Body.Close()
	}
	return res, err
}

// refusal reads why a server refused. The client has put the body back.
func (m *Model) refusal(res *http.Response) *model.Error {
	const most = 64 << 10
	text, err := io.ReadAll(io.LimitReader(res.Body, most))
	e := &model.Error{Class: model.ClassOfStatus(res.StatusCode), Status: res.StatusCode, RetryAfter: retryAfter(res.Header, time.Now()), Err: err}
	e.Message = fmt.Sprintf("model %s: status %d: %s", m.name, res.StatusCode, errorText(text))
	return e
}

// errorText finds the message in an error body, whatever its shape.
func errorText(body []byte) string {
	var shape struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	text := strings.TrimSpace(string(body))
	if json.Unmarshal(body, &shape) == nil {
		var inner struct {
			Message string `json:"message"`
		}
		var plain string
		switch {
		case json.Unmarshal(shape.Error, &inner) == nil && inner.Message != "":
			text = inner.Message
		case json.Unmarshal(shape.Error, &plain) == nil && plain != "":
			text = plain
		case shape.Message != "":
			text = shape.Message
		}
	}
	const most = 500
	if r := []rune(strings.ToValidUTF8(text, "�")); len(r) > most {
		return string(r[:most]) + "…"
	}
	if text == "" {
		return "no reason given"
	}
	return strings.ToValidUTF8(text, "�")
}

// retryAfter reads Retry-After (seconds or a date) and retry-after-ms.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// body is the request, in a fixed order: the same call gives the same bytes.
func (m *Model) body(messages []llms.MessageContent, opts *llms.CallOptions, r model.Request) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	member := func(name string, v any) error {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		return writeMember(&b, name, v)
	}
	wire, err := wireMessages(messages, r.Opaque)
	if err != nil {
		return nil, err
	}
	err = errors.Join(member("model", m.id), member("messages", wire))
	if len(opts.Tools) > 0 {
		err = errors.Join(err, member("tools", opts.Tools))
	}
	params, perr := paramsOf(opts, r)
	err = errors.Join(err, perr)
	for _, p := range params {
		err = errors.Join(err, member(p.name, p.value))
	}
	if m.official && r.CacheKey != "" {
		err = errors.Join(err, member("prompt_cache_key", r.CacheKey))
	}
	err = errors.Join(err, member("stream", true), member("stream_options", json.RawMessage(`{"include_usage":true}`)))
	b.WriteByte('}')
	return b.Bytes(), err
}
