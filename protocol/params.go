package protocol

import (
	"slices"
	"strconv"
	"strings"

	"wf/protocol/lazy"
)

// A definition has no fractions: the params of a role hold a decimal as a text. Which texts of that form are texts all
// the same is said beside them, in Role.ParamsTexts.

// ReservedParams are the names of what wf itself writes into a request of some provider, with the key of a role that says
// it; "" where none does.
var ReservedParams = map[string]string{"model": "model", "messages": "prompt", "system": "prompt", "tools": "tools", "stream": "", "stream_options": "", "prompt_cache_key": ""}

// MeasureParams are numbers to every provider, however they are written.
var MeasureParams = []string{"temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repeat_penalty"}

var decimalParam = lazy.Regexp(`^-?[0-9]+\.[0-9]+$`)

// DecimalParam reports whether a text within params, at a JSON pointer, stands for a number.
func DecimalParam(text, at string, texts []string) bool {
	return decimalParam().MatchString(text) && !slices.Contains(texts, at)
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// MapParams replaces the values within params that hold no others, by what change makes of them and their JSON pointers.
// It changes v.
func MapParams(v any, change func(at string, v any) any) any { return mapParams(v, "", change) }

func mapParams(v any, at string, change func(string, any) any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = mapParams(v[i], at+"/"+strconv.Itoa(i), change)
		}
		return v
	case map[string]any:
		for k := range v {
			v[k] = mapParams(v[k], at+"/"+pointerEscapes.Replace(k), change)
		}
		return v
	}
	return change(at, v)
}
