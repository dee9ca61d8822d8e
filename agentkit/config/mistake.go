package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"wf/roles/frontmatter"
)

// mistake says where in a file a value is not what it should be, and what it should be.
func mistake(text string, raw []byte, err error) error {
	var typ *json.UnmarshalTypeError
	if !errors.As(err, &typ) {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	path := pathAt(raw, typ.Offset)
	if len(path) == 0 {
		return errors.New("the config wants a mapping")
	}
	want, got := wanted(typ.Type), typ.Value
	number, isNumber := strings.CutPrefix(got, "number ")
	if isNumber {
		got = number
	}
	if under := path[:len(path)-1]; len(under) > 0 && (under[0] == "prices" || under[len(under)-1] == "prices") && typ.Type.Kind() == reflect.Int64 {
		want += " of micro-dollars per million tokens"
		if f, err := strconv.ParseFloat(number, 64); isNumber && err == nil && f > 0 {
			want += fmt.Sprintf(" ($%s is %.0f)", number, math.Round(f*1e6))
		}
	}
	return at(text, path, fmt.Errorf("%s wants %s, got %s", strings.Join(path, "."), want, got))
}

// at puts the line of a value in front of what is wrong with it.
func at(text string, path []string, err error) error {
	if line := frontmatter.Line(text, path...); line > 0 {
		return fmt.Errorf("line %d: %w", line, err)
	}
	return err
}

// wanted names a Go type for people.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	}
	return "a mapping"
}

// pathAt is the path of the value of a JSON object that ends at, or holds, an offset.
func pathAt(raw []byte, offset int64) []string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	var path []string
	var inList []int // places in open lists; −1 is an object
	key := false     // a key comes next
	for {
		tok, err := dec.Token()
		if err != nil {
			return nil
		}
		if k, ok := tok.(string); ok && key {
			path, key = append(path, k), false
			continue
		}
		if d, ok := tok.(json.Delim); ok && (d == '{' || d == '[') {
			if dec.InputOffset() >= offset {
				return path
			}
			if inList, key = append(inList, -1), d == '{'; d == '[' {
				inList[len(inList)-1] = 0
				path = append(path, "0")
			}
			continue
		} else if ok {
			if d == ']' {
				path = path[:len(path)-1]
			}
			inList = inList[:len(inList)-1]
		}
		if dec.InputOffset() >= offset {
			return path
		}
		if len(inList) == 0 {
			return nil
		}
		if n := len(inList) - 1; inList[n] < 0 { // a value of an object is over
			path, key = path[:max(0, len(path)-1)], true
		} else {
			inList[n]++
			path[len(path)-1] = strconv.Itoa(inList[n])
		}
	}
}
