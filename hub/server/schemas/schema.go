package main

import (
	"fmt"
	"go/ast"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

type schema = map[string]any

// component is a schema with a name: an object of properties, or any other.
type component struct {
	made    *goType
	request bool // what a client sends: other fields are refused
	props   []property
	other   schema // nil for an object of properties
	written string // the document that describes it
}

type property struct {
	name, doc     string
	required, hub bool
	schema        schema
}

// want makes a component and those that it leads to.
func (g *generator) want(name string, request bool) (err error) {
	if c := g.components[name]; c != nil {
		if c.props != nil && request != c.request {
			return fmt.Errorf("%s is in answers and in requests, which are strict: give each a type", name)
		}
		return nil
	}
	t := g.find(name)
	if t == nil {
		return fmt.Errorf("there is no type for the schema %s: declare it in api, or add a line to names: in %s (types of %v are found)", name, overrides, packages)
	}
	c := &component{made: t, request: request}
	g.components[name] = c
	if s, ok := t.expr.(*ast.StructType); g.Schemas[name] != nil {
		c.other = g.Schemas[name]
	} else if ok {
		c.props, err = g.properties(name, t, s, request)
	} else if len(t.values) > 0 {
		c.other = schema{"enum": t.values}
	} else {
		c.other, err = g.schema(t, t.expr, request)
	}
	return err
}

var version = regexp.MustCompile(`wf\.\w+/v\d+`)

// properties are the fields of a struct, those of embedded ones in their place.
func (g *generator) properties(component string, t *goType, s *ast.StructType, request bool) (all []property, err error) {
	for _, f := range s.Fields.List {
		if len(f.Names) == 0 {
			inner := g.typeOf(t, f.Type)
			if inner == nil {
				return nil, fmt.Errorf("%v embeds a type that is not one of %v", t, packages)
			}
			more, err := g.properties(component, inner, inner.expr.(*ast.StructType), request)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
			continue
		}
		var tag reflect.StructTag
		if f.Tag != nil {
			text, _ := strconv.Unquote(f.Tag.Value) // it was parsed
			tag = reflect.StructTag(text)
		}
		key, options, _ := strings.Cut(tag.Get("json"), ",")
		at := component + "." + key
		p := property{name: key, doc: said(f.Names[0].Name, f.Doc, f.Comment), required: !strings.Contains(options, "omit"), hub: tag.Get("at") == "hub"}
		switch v := version.FindString(t.doc); {
		case key == "-":
			continue
		case key == "":
			return nil, fmt.Errorf("%v.%s has no json tag", t, f.Names[0])
		case g.Fields[at] != nil:
			p.schema = g.Fields[at]
		case key == "schema" && v != "":
			p.schema = schema{"const": v}
		default:
			_, pointer := f.Type.(*ast.StarExpr)
			null, given := g.Nullable[at]
			if !given {
				null = pointer && p.required
			}
			if p.schema, err = g.schema(t, f.Type, request); err != nil {
				return nil, fmt.Errorf("%v.%s: %w", t, f.Names[0], err)
			}
			if !p.required && !pointer && p.schema["type"] == "integer" {
				p.schema["minimum"] = 1 // 0 is left out
			}
			if kind, ok := p.schema["type"].(string); ok && null {
				p.schema["type"] = []any{kind, "null"}
			} else if null {
				p.schema = schema{"oneOf": []any{p.schema, schema{"type": "null"}}}
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// typeOf is the declared type that an expression in the declaration of another names, or nil.
func (g *generator) typeOf(in *goType, e ast.Expr) *goType {
	switch e := e.(type) {
	case *ast.StarExpr:
		return g.typeOf(in, e.X)
	case *ast.Ident:
		return g.types[in.pkg+"."+e.Name]
	case *ast.SelectorExpr:
		return g.types[e.X.(*ast.Ident).Name+"."+e.Sel.Name]
	}
	return nil
}

// basic are the types that are not declared in the packages.
var basic = map[string]schema{
	"string": {"type": "string"}, "bool": {"type": "boolean"}, "float64": {"type": "number"}, "any": {},
	"int": {"type": "integer", "minimum": 0}, "int64": {"type": "integer", "minimum": 0}, "uint64": {"type": "integer", "minimum": 0},
	"json.RawMessage": {}, "json.Number": {"type": "number"}, "time.Time": {"type": "string", "format": "date-time"},
}

// schema is that of a type as it is written in the declaration of another.
func (g *generator) schema(in *goType, e ast.Expr, request bool) (schema, error) {
	name := fmt.Sprintf("%T", e)
	switch e := e.(type) {
	case *ast.StarExpr: // of a field it says null; no item of a list is
		return g.schema(in, e.X, request)
	case *ast.ArrayType:
		s, err := g.schema(in, e.Elt, request)
		return schema{"type": "array", "items": s}, err
	case *ast.MapType:
		s, err := g.schema(in, e.Value, request)
		return schema{"type": "object", "additionalProperties": s}, err
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = fmt.Sprintf("%s.%s", e.X, e.Sel)
	}
	if s, ok := basic[name]; ok {
		return maps.Clone(s), nil
	}
	t := g.typeOf(in, e)
	if t == nil || t.expr == nil {
		return nil, fmt.Errorf("the type %s has no schema: use one that is declared in %v, or describe the field under fields: in %s", name, packages, overrides)
	}
	to := t.name
	if g.named[t.String()] != "" {
		to = g.named[t.String()]
	}
	if _, isStruct := t.expr.(*ast.StructType); !isStruct && len(t.values) == 0 && g.find(to) == t && g.named[t.String()] == "" && g.Schemas[to] == nil {
		return g.schema(t, t.expr, request)
	}
	err := g.want(to, request)
	if err == nil && g.components[to].made != t {
		err = fmt.Errorf("the schema %s is that of %v: give %v another name under names: in %s", to, g.components[to].made, t, overrides)
	}
	return schema{"$ref": "#/components/schemas/" + to}, err
}

// unused is an error for overrides of what there is not.
func (g *generator) unused() error {
	for _, at := range slices.Concat(sorted(g.Names), sorted(g.Schemas), sorted(g.Fields), sorted(g.Nullable)) {
		name, field, isField := strings.Cut(at, ".")
		c := g.components[name]
		if c == nil || isField && !slices.ContainsFunc(c.props, func(p property) bool { return p.name == field }) {
			return fmt.Errorf("%s: %s is named there, and no path leads to it", overrides, at)
		}
	}
	return nil
}
