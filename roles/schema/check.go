package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// values makes the checks of single values. What the keywords type, const, enum and format say
// comes first: a value that breaks it is not looked at further.
func (o *object) values() {
	switch want := o.get("type").(type) {
	case string:
		o.ofType(want)
	case []any:
		var wanted []string
		for _, name := range []string{"null", "boolean", "number", "integer", "string", "array", "object"} {
			if slices.Contains(want, any(name)) {
				wanted = append(wanted, name)
			}
		}
		o.ofType(wanted...)
	}
	if _, ok := lookup("const", o.draft); ok {
		if want, ok := o.m["const"]; ok {
			key := identity(want)
			o.first(func(v *visit) {
				if v.identity(v.value) != key {
					v.fail("%s", mustBe("const", want))
				}
			})
		}
	}
	if want, ok := o.get("enum").([]any); ok {
		keys := map[string]bool{}
		for _, w := range want {
			keys[identity(w)] = true
		}
		o.first(func(v *visit) {
			if !keys[v.identity(v.value)] {
				v.fail("%s", mustBe("enum", want...))
			}
		})
	}
	if name, _ := o.get("format").(string); o.c.formats || o.draft < 2019 {
		if check := formats()[name]; check != nil {
			o.first(func(v *visit) {
				s, ok := v.value.(string)
				if !ok {
					return
				}
				if reason := check(s); reason != "" {
					v.fail("%s is not valid %s: %s", quote(s), name, reason)
				}
			})
		}
	}
	o.numbers()
	o.strings()
}

func (o *object) ofType(wanted ...string) {
	o.first(func(v *visit) {
		got := typeOf(v.value)
		if slices.Contains(wanted, got) {
			return
		}
		if n, ok := v.value.(json.Number); ok && slices.Contains(wanted, "integer") && rational(n).IsInt() {
			return
		}
		v.fail("%s", wrongType(v.value, wanted...))
	})
}

func (o *object) numbers() {
	for _, key := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
		limit, name := o.number(key), key
		if beyond, _ := o.get("exclusive" + strings.ToUpper(key[:1]) + key[1:]).(bool); beyond { // draft 4
			name = "exclusive" + strings.ToUpper(key[:1]) + key[1:]
		}
		if limit == nil {
			continue
		}
		sign, least := 1, 0 // of the comparison, and what it must be at least
		if strings.HasSuffix(key, "aximum") {
			sign = -1
		}
		if strings.HasPrefix(name, "exclusive") {
			least = 1
		}
		on(o, func(v *visit, number json.Number) {
			if n := rational(number); sign*n.Cmp(limit) < least {
				v.fail("%s: got %v, want %v", name, float(n), float(limit))
			}
		})
	}
	if by := o.number("multipleOf"); by != nil && by.Sign() > 0 {
		on(o, func(v *visit, number json.Number) {
			if n := rational(number); !new(big.Rat).Quo(n, by).IsInt() {
				v.fail("multipleOf: got %v, want %v", float(n), float(by))
			}
		})
	}
}

func (o *object) strings() {
	o.within("Length", func(v any) (int, bool) {
		s, ok := v.(string)
		return utf8.RuneCountInString(s), ok
	})
	expr, ok := o.get("pattern").(string)
	if !ok {
		return
	}
	re, err := newExpression(expr)
	if err != nil {
		o.err = err
		return
	}
	on(o, func(v *visit, s string) {
		if !re.matches(v.work, s) {
			v.fail("%s does not match pattern %s", quote(s), quote(expr))
		}
	})
}

// on makes a check of the values of one type.
func on[T any](o *object, check func(*visit, T)) {
	o.then(func(v *visit) {
		if value, ok := v.value.(T); ok {
			check(v, value)
		}
	})
}

// within holds a size between the keywords min… and max….
func (o *object) within(what string, size func(any) (int, bool)) {
	least, most := o.count("min"+what, 0), o.count("max"+what, -1)
	if least == 0 && most < 0 {
		return
	}
	o.then(func(v *visit) {
		n, ok := size(v.value)
		if ok && n < least {
			v.fail("min"+what+": got %d, want %d", n, least)
		}
		if ok && most >= 0 && n > most {
			v.fail("max"+what+": got %d, want %d", n, most)
		}
	})
}

func (o *object) objects() {
	o.within("Properties", func(v any) (int, bool) {
		m, ok := v.(map[string]any)
		return len(m), ok
	})
	if required := stringsOf(o.get("required")); len(required) > 0 {
		on(o, func(v *visit, m map[string]any) {
			switch missing := lacks(m, required); len(missing) {
			case 0:
			case 1:
				v.fail("missing property %s", missing[0])
			default:
				v.fail("missing properties %s", strings.Join(missing, ", "))
			}
		})
	}
	for _, key := range []string{"dependentRequired", "dependentSchemas", "dependencies"} {
		values, _ := o.get(key).(map[string]any)
		nodes := o.named(key)
		for name, value := range values {
			on(o, func(v *visit, m map[string]any) {
				if _, has := m[name]; !has {
					return
				}
				if n := nodes[name]; n != nil {
					v.self(n)
				} else if missing := lacks(m, stringsOf(value)); missing != nil {
					v.fail("properties %s required, if %s exists", strings.Join(missing, ", "), quote(name))
				}
			})
		}
	}
	o.members()
	if names := o.one("propertyNames"); names != nil {
		on(o, func(v *visit, m map[string]any) {
			for name := range m {
				found, _ := names.eval(name, v.at, &v.frame)
				v.found = append(v.found, found...)
			}
		})
	}
}

// members makes the check of the members of an object, each by its name.
func (o *object) members() {
	properties, patterns := o.named("properties"), o.patterns()
	additional := o.one("additionalProperties")
	if len(properties) == 0 && len(patterns) == 0 && additional == nil {
		return
	}
	on(o, func(v *visit, m map[string]any) {
		var extra []string
		for name, member := range m {
			at, known := &place{v.at, name}, false
			if n := properties[name]; n != nil {
				known = true
				v.child(n, member, at)
			}
			for _, p := range patterns {
				if p.matches(v.work, name) {
					known = true
					v.child(p.node, member, at)
				}
			}
			switch {
			case known:
			case additional == nil:
				continue
			case additional.never:
				extra = append(extra, name)
			default:
				v.child(additional, member, at)
			}
			v.see(name)
		}
		if len(extra) > 0 {
			slices.Sort(extra)
			v.fail("additional properties %s not allowed", strings.Join(quoted(extra), ", "))
		}
	})
}

func (o *object) arrays() {
	o.within("Items", func(v any) (int, bool) {
		list, ok := v.([]any)
		return len(list), ok
	})
	if unique, _ := o.get("uniqueItems").(bool); unique {
		on(o, func(v *visit, list []any) {
			at := map[string]int{}
			for i, item := range list {
				key := v.identity(item)
				if j, has := at[key]; has {
					v.fail("items at %d and %d are equal", j, i)
					return
				}
				at[key] = i
			}
		})
	}
	o.items()
	o.contains()
}

// items makes the check of the items of an array: the first ones each by its place.
func (o *object) items() {
	first, others := o.list("prefixItems"), (*node)(nil)
	if _, isList := o.get("items").([]any); isList && o.draft < 2020 {
		first, others = o.list("items"), o.one("additionalItems")
	} else {
		others = o.one("items")
	}
	old := o.draft < 2020
	if len(first) == 0 && others == nil {
		return
	}
	on(o, func(v *visit, list []any) {
		for i, item := range list {
			switch {
			case i < len(first):
				v.child(first[i], item, &place{v.at, strconv.Itoa(i)})
			case others == nil:
				return
			case others.never && old && len(first) > 0:
				v.fail("last %d additionalItem(s) not allowed", len(list)-i)
				for j := range list {
					v.see(j)
				}
				return
			default:
				v.child(others, item, &place{v.at, strconv.Itoa(i)})
			}
			v.see(i)
		}
	})
}

func (o *object) contains() {
	n := o.one("contains")
	if n == nil {
		return
	}
	least, most := o.count("minContains", -1), o.count("maxContains", -1)
	sees := o.draft >= 2020
	on(o, func(v *visit, list []any) {
		var matched []int
		var found []Violation
		for i, item := range list {
			broken, _ := n.eval(item, &place{v.at, strconv.Itoa(i)}, &v.frame)
			if broken != nil {
				found = append(found, broken...)
				continue
			}
			matched = append(matched, i)
			if sees {
				v.see(i)
			}
		}
		places := strings.Trim(fmt.Sprint(matched), "[]")
		switch {
		case len(matched) >= least && (least >= 0 || len(matched) > 0):
		case len(found) > 0:
			v.found = append(v.found, found...)
		case least < 0:
			v.fail("no items match contains schema")
		case len(matched) == 0:
			v.fail("min %d items required to match contains schema, but none matched", least)
		default:
			v.fail("min %d items required to match contains schema, but matched %d items at %v", least, len(matched), places)
		}
		if most >= 0 && len(matched) > most {
			v.fail("max %d items required to match contains schema, but matched %d items at %v", most, len(matched), places)
		}
	})
}

// combined makes the checks of schemas that are about the same value.
func (o *object) combined() {
	if not := o.one("not"); not != nil {
		o.then(func(v *visit) {
			if _, ok := v.try(not); ok {
				v.fail("'not' failed")
			}
		})
	}
	for _, n := range o.list("allOf") {
		o.then(func(v *visit) { v.self(n) })
	}
	if nodes := o.list("anyOf"); len(nodes) > 0 {
		o.then(func(v *visit) {
			var all []Violation
			fits := false
			for _, n := range nodes { // all of them: each may see members that others do not
				found, ok := v.try(n)
				fits = fits || ok
				all = append(all, found...)
			}
			if !fits {
				v.found = append(v.found, all...)
			}
		})
	}
	if nodes := o.list("oneOf"); len(nodes) > 0 {
		o.then(func(v *visit) {
			var all []Violation
			fits := -1
			for i, n := range nodes {
				switch found, ok := v.try(n); {
				case !ok:
					all = append(all, found...)
				case fits >= 0:
					v.fail("'oneOf' failed, subschemas %d, %d matched", fits, i)
					return
				default:
					fits = i
				}
			}
			if fits < 0 {
				v.found = append(v.found, all...)
			}
		})
	}
	if cond := o.one("if"); cond != nil {
		then, otherwise := o.one("then"), o.one("else")
		o.then(func(v *visit) {
			next := otherwise
			if _, ok := v.try(cond); ok {
				next = then
			}
			if next != nil {
				v.self(next)
			}
		})
	}
}

// unevaluated makes the checks of what no other part of the schema has looked at. They come last.
func (o *object) unevaluated() {
	if n := o.one("unevaluatedProperties"); n != nil {
		on(o, func(v *visit, m map[string]any) {
			for _, name := range slices.Sorted(maps.Keys(m)) {
				if !v.seen[name] {
					v.child(n, m[name], &place{v.at, name})
					v.see(name)
				}
			}
		})
	}
	if n := o.one("unevaluatedItems"); n != nil {
		on(o, func(v *visit, list []any) {
			for i, item := range list {
				if !v.seen[i] {
					v.child(n, item, &place{v.at, strconv.Itoa(i)})
					v.see(i)
				}
			}
		})
	}
}
