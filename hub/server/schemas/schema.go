package main

import (
	"cmp"
	"go/ast"
	"go/types"
	"log"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

type schema = map[string]any

type property struct {
	name, doc     string
	required, hub bool
	schema        schema
}

// want makes a component and those that it leads to, and gives a reference to it.
func (g *generator) want(name string, request bool) schema {
	t := g.made[name]
	if t == nil {
		log.Fatalf("there is no type for the schema %s: declare it in api, or add a line to names: in %s (types of %v are found)", name, overrides, packages)
	}
	if g.components[name] == nil {
		g.components[name], t.request, t.other = t, request, g.Schemas[name]
		s, isStruct := t.expr.(*ast.StructType)
		switch {
		case t.other != nil:
		case isStruct:
			t.props = g.properties(name, t, s, request)
		case len(t.values) > 0:
			t.other = schema{"enum": t.values}
		default:
			t.other = g.schema(t, t.expr, request)
		}
	}
	if t.props != nil && request != t.request {
		log.Fatalf("%s is in answers and in requests, which are strict: give each a type", name)
	}
	return schema{"$ref": "#/components/schemas/" + name}
}

var version = regexp.MustCompile(`wf\.\w+/v\d+`)

// properties are the fields of a struct, those of embedded ones in their place.
func (g *generator) properties(component string, t *goType, s *ast.StructType, request bool) (all []property) {
	for _, f := range s.Fields.List {
		if len(f.Names) == 0 {
			inner := g.typeOf(t, f.Type)
			if inner == nil {
				log.Fatalf("%v embeds a type that is not one of %v", t, packages)
			}
			all = append(all, g.properties(component, inner, inner.expr.(*ast.StructType), request)...)
			continue
		}
		var tag reflect.StructTag
		if f.Tag != nil {
			tag = reflect.StructTag(must(strconv.Unquote(f.Tag.Value)))
		}
		key, options, _ := strings.Cut(tag.Get("json"), ",")
		p := property{name: key, doc: said(f.Names[0].Name, cmp.Or(f.Doc.Text(), f.Comment.Text())), required: !strings.Contains(options, "omit"),
			hub: tag.Get("at") == "hub", schema: g.Fields[component+"."+key]}
		switch v := version.FindString(t.doc); {
		case key == "-":
			continue
		case key == "":
			log.Fatalf("%v.%s has no json tag", t, f.Names[0])
		case p.schema != nil:
		case key == "schema" && v != "":
			p.schema = schema{"const": v}
		default:
			_, pointer := f.Type.(*ast.StarExpr)
			null, given := g.Nullable[component+"."+key]
			if !given {
				null = pointer && p.required
			}
			p.schema = g.schema(t, f.Type, request)
			kind, _ := p.schema["type"].(string)
			switch {
			case null && kind != "":
				p.schema["type"] = []any{kind, "null"}
			case null:
				p.schema = schema{"oneOf": []any{p.schema, schema{"type": "null"}}}
			case !p.required && !pointer && kind == "integer":
				p.schema["minimum"] = 1 // 0 is left out
			}
		}
		all = append(all, p)
	}
	return all
}

// typeOf is the declared type that an expression in the declaration of another names, or nil.
func (g *generator) typeOf(in *goType, e ast.Expr) *goType {
	name := strings.TrimPrefix(types.ExprString(e), "*")
	if !strings.Contains(name, ".") {
		name = in.pkg + "." + name
	}
	return g.types[name]
}

// basic are the types that are not declared in the packages.
var basic = map[string]schema{
	"string": {"type": "string"}, "bool": {"type": "boolean"}, "float64": {"type": "number"}, "any": {},
	"int": {"type": "integer", "minimum": 0}, "int64": {"type": "integer", "minimum": 0}, "uint64": {"type": "integer", "minimum": 0},
	"json.RawMessage": {}, "json.Number": {"type": "number"}, "time.Time": {"type": "string", "format": "date-time"},
}

// schema is that of a type as it is written in the declaration of another.
func (g *generator) schema(in *goType, e ast.Expr, request bool) schema {
	switch e := e.(type) {
	case *ast.StarExpr: // of a field it says null; no item of a list is
		return g.schema(in, e.X, request)
	case *ast.ArrayType:
		return schema{"type": "array", "items": g.schema(in, e.Elt, request)}
	case *ast.MapType:
		return schema{"type": "object", "additionalProperties": g.schema(in, e.Value, request)}
	}
	name := types.ExprString(e)
	if s, ok := basic[name]; ok {
		return maps.Clone(s)
	}
	t := g.typeOf(in, e)
	switch {
	case t == nil:
		log.Fatalf("%v: the type %s has no schema: use one that is declared in %v, or describe the field under fields: in %s", in, name, packages, overrides)
	case g.made[t.component] != t:
		log.Fatalf("the schema %s is that of %v: give %v another name under names: in %s", t.component, g.made[t.component], t, overrides)
	}
	_, isStruct := t.expr.(*ast.StructType)
	if isStruct || len(t.values) > 0 || t.component != t.name || g.Schemas[t.component] != nil {
		return g.want(t.component, request)
	}
	return g.schema(t, t.expr, request)
}

// used fails for overrides of what there is not.
func (g *generator) used() {
	for _, at := range slices.Concat(slices.Sorted(maps.Values(g.Names)), sorted(g.Schemas), sorted(g.Fields), sorted(g.Nullable)) {
		name, field, isField := strings.Cut(at, ".")
		c := g.components[name]
		if c == nil || isField && !slices.ContainsFunc(c.props, func(p property) bool { return p.name == field }) {
			log.Fatalf("%s: %s is named there, and no path leads to it", overrides, at)
		}
	}
}
