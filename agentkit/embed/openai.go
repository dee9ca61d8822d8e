package embed

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"wf/agentkit/internal/wire"
	"wf/agentkit/model"
	"wf/agentkit/ratelimit"
	"wf/protocol"
	"wf/protocol/lazy"
	"wf/roles"
)

// Config is where an embedding model is reached, and how patiently.
type Config struct {
	BaseURL string        // with /v1; "" is https://api.openai.com/v1
	Key     string        // "" sends none: local servers want none
	Backoff time.Duration // before the second try, then twice as long each time; 0 is 500 ms

	Account *ratelimit.Account // whose limits hold; nil has none
}

// Bounds of a request.
const (
	batchTexts  = 64
	batchBytes  = 96 << 10 // of texts
	textMax     = 24 << 10 // bytes of a text that are sent at first: what embedding models read is about that
	textMin     = 256      // bytes below which a text is not cut further
	maxPatience = 30 * time.Second
	tries       = 3               // of one request, the first included
	idle        = 2 * time.Minute // of silence that end a request
)

// OpenAI embeds by an OpenAI-compatible server: OpenAI, llama-server, Ollama, vLLM. Of a text
// that is longer than the model reads, the beginning counts.
type OpenAI struct {
	name, id string
	c        Config
	url      string
}

func openByEnvironment(name string) (Embedder, error) {
	base, key, err := wire.FromEnvironment("OPENAI", "embedding model "+name, "of your own, for example http://127.0.0.1:8080/v1", LexicalName+", which needs none")
	if err != nil {
		return nil, err
	}
	return NewOpenAI(name, strings.TrimPrefix(name, "openai/"), Config{BaseURL: base, Key: key})
}

// NewOpenAI makes an embedder: name is what wf calls the model, id what the server does.
func NewOpenAI(name, id string, c Config) (*OpenAI, error) {
	roles.Conceal("model key", c.Key)
	c.BaseURL = cmp.Or(c.BaseURL, "https://api.openai.com/v1")
	u, err := wire.Base("embedding model "+name, c.BaseURL, "https://HOST/v1", "OPENAI_BASE_URL")
	if err != nil {
		return nil, err
	}
	c.Backoff = cmp.Or(max(c.Backoff, 0), 500*time.Millisecond)
	return &OpenAI{name: name, id: id, c: c, url: wire.Below(u, "embeddings")}, nil
}

// EmbedQuery gives the vector of a text.
func (o *OpenAI) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	out, err := o.EmbedDocuments(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// EmbedDocuments gives the vectors of texts, some in each request. Failures are *model.Error,
// but for that of ctx, which is returned as it is.
func (o *OpenAI) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for rest := texts; len(rest) > 0; {
		n, size := 0, 0
		for n < len(rest) && n < batchTexts && (n == 0 || size+min(len(rest[n]), textMax) <= batchBytes) {
			size += min(len(rest[n]), textMax)
			n++
		}
		batch := make([]string, n)
		for i, text := range rest[:n] {
			batch[i] = head(strings.ToValidUTF8(text, "�"), textMax)
		}
		vectors, err := o.fitting(ctx, batch)
		if err != nil {
			return nil, err
		}
		if len(out) > 0 && len(vectors[0]) != len(out[0]) {
			return nil, o.broken("it gave vectors of %d numbers, then of %d", len(out[0]), len(vectors[0]))
		}
		out, rest = append(out, vectors...), rest[n:]
	}
	return out, nil
}

// tooLong is how servers say that a text is longer than the model reads, whatever the status.
var tooLong = lazy.Regexp(`(?i)too (large|long)|context (length|size|window)|maximum context|batch size|exceeds? .*(token|length|limit)`)

// fitting makes a request. Where a text is too long for the model, the texts go one by one,
// and the long one is cut in halves until it fits.
func (o *OpenAI) fitting(ctx context.Context, batch []string) ([][]float32, error) {
	vectors, err := o.patient(ctx, batch)
	failed, ok := errors.AsType[*model.Error](err)
	if !ok || failed.Status == 0 || !tooLong().MatchString(failed.Message) {
		return vectors, err
	}
	if len(batch) == 1 {
		if len(batch[0]) <= textMin {
			return nil, err
		}
		return o.fitting(ctx, []string{head(batch[0], len(batch[0])/2)})
	}
	first, err := o.fitting(ctx, batch[:len(batch)/2])
	if err != nil {
		return nil, err
	}
	second, err := o.fitting(ctx, batch[len(batch)/2:])
	return append(first, second...), err
}

// patient tries a request again where that may help.
func (o *OpenAI) patient(ctx context.Context, batch []string) ([][]float32, error) {
	for try := 1; ; try++ {
		vectors, err := o.request(ctx, batch)
		failed, ok := errors.AsType[*model.Error](err)
		if !ok || try >= tries || !failed.Class.Temporary() || tooLong().MatchString(failed.Message) {
			return vectors, err
		}
		wait := o.c.Backoff << (try - 1)
		if failed.RetryAfter > 0 {
			wait = failed.RetryAfter
		}
		if wait > maxPatience {
			return nil, err
		}
		if err := model.Wait(ctx, model.Later(wait)); err != nil {
			return nil, err
		}
	}
}

func (o *OpenAI) request(ctx context.Context, batch []string) (vectors [][]float32, err error) {
	if i := slices.IndexFunc(batch, func(s string) bool { return strings.TrimSpace(s) == "" }); i >= 0 {
		return nil, &model.Error{Class: model.Invalid, Message: fmt.Sprintf("embedding model %s: text %d of %d is empty", o.name, i+1, len(batch))}
	}
	var body wire.Object
	body.Add("model", o.id)
	body.Add("input", batch)
	body.Add("encoding_format", "float")
	raw, err := body.Bytes()
	if err != nil {
		return nil, fmt.Errorf("embedding model %s: %w", o.name, err)
	}
	used := int64(-1)
	call := wire.Call{Name: o.name, URL: o.url, Header: map[string]string{"Authorization": wire.Bearer(o.c.Key)}, Body: raw, Idle: idle,
		Account: o.c.Account, Most: 1, Used: func() int64 { return used }}
	err = call.Do(ctx, func(_ context.Context, _ http.Header, r io.Reader) error {
		vectors, used, err = o.read(r, len(batch))
		return err
	})
	if failed, ok := errors.AsType[*model.Error](err); ok && failed.Class != model.Invalid {
		located := *failed
		located.Message, located.Err = fmt.Sprintf("embeddings at %s: %s", o.c.BaseURL, failed.Error()), protocol.ErrModel
		err = &located
	}
	return vectors, err
}

// read takes the vectors by their index: servers may give them in any order. used is how many tokens the texts had, −1
// where that was not told.
func (o *OpenAI) read(r io.Reader, n int) (vectors [][]float32, used int64, err error) {
	var answer struct {
		Data []struct {
			Index     *int            `json:"index"`
			Embedding json.RawMessage `json:"embedding"`
		} `json:"data"`
		Usage struct {
			Total *int64 `json:"total_tokens"`
		} `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, -1, err
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, -1, o.broken("its answer is no JSON: %v", err)
	}
	if len(answer.Data) != n {
		if len(answer.Data) == 0 && len(answer.Error) > 0 {
			return nil, -1, o.broken("%s", wire.ErrorText(raw))
		}
		return nil, -1, o.broken("%d vectors came for %d texts", len(answer.Data), n)
	}
	out := make([][]float32, n)
	for i, d := range answer.Data {
		at := i
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= n || out[at] != nil {
			return nil, -1, o.broken("vector %d has the index %d", i, at)
		}
		v, err := vector(d.Embedding)
		if err != nil {
			return nil, -1, o.broken("vector %d: %v", at, err)
		}
		out[at] = v
	}
	for i, v := range out {
		if len(v) != len(out[0]) {
			return nil, -1, o.broken("vector 0 has %d numbers, vector %d has %d", len(out[0]), i, len(v))
		}
	}
	if used = -1; answer.Usage.Total != nil {
		used = *answer.Usage.Total
	}
	return out, used, nil
}

// vector reads a list of numbers, or base64 of float32s, which some servers give regardless.
func vector(raw json.RawMessage) ([]float32, error) {
	var v []float32
	var text string
	if json.Unmarshal(raw, &text) == nil {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(b)%4 != 0 {
			return nil, errors.New("it is neither a list of numbers nor base64 of them")
		}
		for ; len(b) > 0; b = b[4:] {
			v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
	} else if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("it is no list of numbers: %w", err)
	}
	switch {
	case len(v) == 0:
		return nil, errors.New("it is empty")
	case !finite(v):
		return nil, errors.New("it holds what is no number")
	}
	return v, nil
}

// ErrAnswer is an answer of an embedding server that cannot be used.
var ErrAnswer = &protocol.Error{Code: "embedding_answer", Message: "the answer cannot be used", Hint: "see whether that is an embedding server"}

// broken is such an answer. Asking again rarely helps.
func (o *OpenAI) broken(format string, args ...any) error {
	return &model.Error{Class: model.Invalid, Err: ErrAnswer,
		Message: fmt.Sprintf("embedding model %s at %s: ", o.name, o.c.BaseURL) + fmt.Sprintf(format, args...)}
}

// head is at most the first n bytes of a text, whole runes.
func head(s string, n int) string { return s[:roles.CutRunes(s, n)] }
