package schema

import (
	"iter"
	"strconv"
	"sync"
)

// drafts have the number or year that they go by.
var drafts = map[string]int{
	"http://json-schema.org/draft-04/schema":       4,
	"http://json-schema.org/draft-06/schema":       6,
	"http://json-schema.org/draft-07/schema":       7,
	"https://json-schema.org/draft/2019-09/schema": 2019,
	"https://json-schema.org/draft/2020-12/schema": 2020,
}

const newest = 2020

// keyword is what the drafts say of a key: from which one on it means something, to which one,
// what its value looks like, and where in it there are schemas.
type keyword struct {
	since, until int // 0 is from the first, or to the newest
	shape        string
	holds        holding
}

type holding int

const (
	nothing holding = iota
	one             // the value is a schema
	list            // an array of schemas
	named           // an object of schemas
	oneOrList
	namedOrNames // an object of schemas, or of arrays of names
)

// Shapes that several keywords share.
const (
	anything = `true`
	text     = `{"type":"string"}`
	flag     = `{"type":"boolean"}`
	number   = `{"type":"number"}`
	count    = `{"type":"integer","minimum":0}`
	anObject = `{"type":"object"}`
	array    = `{"type":"array"}`
	schemas  = `{"type":"array","minItems":1}`
	names    = `{"type":"array","items":{"type":"string"},"uniqueItems":true}`
	types    = `{"enum":["array","boolean","integer","null","number","object","string"]}`
)

// keywords are those that have a meaning. Others are ignored.
var keywords = sync.OnceValue(func() map[string]keyword {
	return map[string]keyword{
		"id":               {until: 4, shape: text},
		"$id":              {since: 6, shape: text},
		"$schema":          {shape: text},
		"$ref":             {shape: text},
		"$anchor":          {since: 2019, shape: text},
		"$recursiveRef":    {since: 2019, shape: text},
		"$recursiveAnchor": {since: 2019, shape: flag},
		"$dynamicRef":      {since: 2020, shape: text},
		"$dynamicAnchor":   {since: 2020, shape: text},
		"$comment":         {since: 7, shape: text},
		"$defs":            {since: 2019, shape: anObject, holds: named},
		"definitions":      {shape: anObject, holds: named},

		"title":            {shape: text},
		"description":      {shape: text},
		"default":          {shape: anything},
		"examples":         {since: 6, shape: array},
		"readOnly":         {since: 7, shape: flag},
		"writeOnly":        {since: 7, shape: flag},
		"deprecated":       {since: 2019, shape: flag},
		"contentEncoding":  {since: 7, shape: text},
		"contentMediaType": {since: 7, shape: text},
		"contentSchema":    {since: 2019, shape: anything, holds: one},

		"type":              {shape: `{"anyOf":[` + types + `,{"type":"array","items":` + types + `,"minItems":1,"uniqueItems":true}]}`},
		"enum":              {shape: array},
		"const":             {since: 6, shape: anything},
		"format":            {shape: text},
		"multipleOf":        {shape: `{"type":"number","exclusiveMinimum":0}`},
		"minimum":           {shape: number},
		"maximum":           {shape: number},
		"exclusiveMinimum":  {shape: number},
		"exclusiveMaximum":  {shape: number},
		"minLength":         {shape: count},
		"maxLength":         {shape: count},
		"pattern":           {shape: `{"type":"string","format":"regex"}`},
		"minItems":          {shape: count},
		"maxItems":          {shape: count},
		"uniqueItems":       {shape: flag},
		"minContains":       {since: 2019, shape: count},
		"maxContains":       {since: 2019, shape: count},
		"minProperties":     {shape: count},
		"maxProperties":     {shape: count},
		"required":          {shape: names},
		"dependentRequired": {since: 2019, shape: `{"type":"object","additionalProperties":` + names + `}`},

		"allOf":                 {shape: schemas, holds: list},
		"anyOf":                 {shape: schemas, holds: list},
		"oneOf":                 {shape: schemas, holds: list},
		"not":                   {shape: anything, holds: one},
		"if":                    {since: 7, shape: anything, holds: one},
		"then":                  {since: 7, shape: anything, holds: one},
		"else":                  {since: 7, shape: anything, holds: one},
		"items":                 {shape: anything, holds: oneOrList},
		"prefixItems":           {since: 2020, shape: schemas, holds: list},
		"additionalItems":       {until: 2019, shape: anything, holds: one},
		"contains":              {since: 6, shape: anything, holds: one},
		"properties":            {shape: anObject, holds: named},
		"patternProperties":     {shape: `{"type":"object","propertyNames":{"format":"regex"}}`, holds: named},
		"additionalProperties":  {shape: anything, holds: one},
		"propertyNames":         {since: 6, shape: anything, holds: one},
		"dependentSchemas":      {since: 2019, shape: anObject, holds: named},
		"dependencies":          {shape: `{"type":"object","additionalProperties":{"if":` + array + `,"then":` + names + `}}`, holds: namedOrNames},
		"unevaluatedItems":      {since: 2019, shape: anything, holds: one},
		"unevaluatedProperties": {since: 2019, shape: anything, holds: one},
	}
})

// lookup is the keyword of a key in a draft; false where the draft does not know it.
func lookup(key string, draft int) (keyword, bool) {
	k, ok := keywords()[key]
	if !ok || draft < k.since || k.until != 0 && draft > k.until {
		return keyword{}, false
	}
	switch {
	case draft == 4 && (key == "exclusiveMinimum" || key == "exclusiveMaximum"):
		k.shape = flag // of minimum and maximum
	case draft >= 2020 && key == "items":
		k.holds = one
	}
	return k, true
}

// children gives the schemas in the value of a keyword, by the path that leads to each.
func (k keyword) children(v any) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		items, isList := v.([]any)
		members, isObject := v.(map[string]any)
		switch {
		case isList && (k.holds == list || k.holds == oneOrList):
			for i, item := range items {
				if !yield("/"+strconv.Itoa(i), item) {
					return
				}
			}
		case isObject && (k.holds == named || k.holds == namedOrNames):
			for name, item := range members {
				if _, isNames := item.([]any); isNames && k.holds == namedOrNames {
					continue
				}
				if !yield("/"+escape(name), item) {
					return
				}
			}
		case k.holds == one || k.holds == oneOrList:
			yield("", v)
		}
	}
}

var (
	shapesMu sync.Mutex
	shapes   = map[string]*node{}
)

// shaped is a shape made into a node, when it is first looked at.
func shaped(shape string) *node {
	shapesMu.Lock()
	defer shapesMu.Unlock()
	n := shapes[shape]
	if n == nil {
		doc, err := decode([]byte(shape))
		c := compiler{doc: doc, formats: true, nodes: map[string]*node{}, trusted: true}
		if err == nil {
			n, err = c.compile()
		}
		if err != nil {
			panic(err) // a shape of the table above
		}
		shapes[shape] = n
	}
	return n
}
