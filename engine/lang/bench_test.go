package lang_test

import (
	"testing"

	"wf/engine/lang"
)

func BenchmarkLoad(b *testing.B) {
	src := []byte(everything)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if p, _ := lang.Load(src, lang.Options{}); p == nil {
			b.Fatal("not valid")
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	p := load(b, everything)
	for b.Loop() {
		if _, err := lang.Compile(p.Workflow, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWhen(b *testing.B) {
	p := fixBug(b)
	s := lang.Scope{Output: map[string]any{"exit_code": 1}}
	for b.Loop() {
		if _, err := p.When(1, s); err != nil {
			b.Fatal(err)
		}
	}
}
