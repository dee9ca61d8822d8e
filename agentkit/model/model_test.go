package model_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
)

func TestErrorsOfForeignModelsAreClassified(t *testing.T) {
	own := &model.Error{Class: model.RateLimit, Message: "m"}
	for want, errs := range map[model.Class][]error{
		model.RateLimit:   {own, fmt.Errorf("wrapped: %w", own), errors.New("API returned unexpected status code: 429: slow"), &llms.Error{Code: llms.ErrCodeRateLimit}},
		model.ServerError: {errors.New("unexpected EOF"), errors.New("status code: 503"), &llms.Error{Code: llms.ErrCodeProviderUnavailable}},
		model.Timeout:     {context.DeadlineExceeded, &llms.Error{Code: llms.ErrCodeTimeout}, &net.DNSError{IsTimeout: true, IsTemporary: true}},
		model.Unavailable: {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, &net.DNSError{Err: "no such host"}, &tls.CertificateVerificationError{Err: errors.New("unknown authority")}, &llms.Error{Code: llms.ErrCodeAuthentication}},
		model.Invalid:     {&llms.Error{Code: llms.ErrCodeTokenLimit}, errors.New("status code: 400")},
	} {
		for _, err := range errs {
			if e := model.AsError("x", err); e.Class != want || !errors.Is(e, err) && !errors.Is(err, e) {
				t.Errorf("%v is %s, want %s", err, e.Class, want)
			}
		}
	}
}

func TestUsageOfForeignModels(t *testing.T) {
	r := &llms.ContentResponse{Choices: []*llms.ContentChoice{
		{GenerationInfo: map[string]any{"PromptTokens": 10, "CompletionTokens": 3, "ReasoningTokens": 0, "CachedTokens": 9}},
		{GenerationInfo: map[string]any{"PromptTokens": 10, "CompletionTokens": 3}},
	}}
	u := model.UsageOf(r)
	if *u.Input != 10 || *u.Output != 3 || u.Reasoning != nil || u.Cached != nil {
		t.Errorf("got %+v", u)
	}
	const most = 1 << 32
	for n, told := range map[int64]bool{-1: false, 0: true, most: true, most + 1: false} {
		r.Choices[0].GenerationInfo = map[string]any{model.KeyInput: n}
		if u := model.UsageOf(r); (u.Input != nil) != told {
			t.Errorf("%d: %v", n, u.Input)
		}
	}
	if u := model.UsageOf(&llms.ContentResponse{}); u.Input != nil {
		t.Errorf("got %+v", u)
	}
}
