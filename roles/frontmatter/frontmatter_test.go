package frontmatter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/roles/frontmatter"
)

const schema = `{"type":"object","required":["status","summary"],"properties":{"status":{"enum":["done","stuck"]},"summary":{"type":"string"},"n":{"type":"integer"}}}`

func TestW11AnswersThatAreAccepted(t *testing.T) {
	const want = `{"status":"done","summary":"fixed"}`
	for name, text := range map[string]string{
		"plain":                     "---\nstatus: done\nsummary: fixed\n---\nBody.\n",
		"byte order mark and blank": "\ufeff\n  \n---\nstatus: done\nsummary: fixed\n---\nBody.\n",
		"CRLF":                      "---\r\nstatus: done\r\nsummary: fixed\r\n---\r\nBody.\r\n",
		"spaces after the fences":   "--- \nstatus: done\nsummary: fixed\n---\t\nBody.\n",
		"comments and quotes":       "---\n# why\nstatus: 'done'\nsummary: \"fixed\"\n---\n\nBody.\n",
		"flow style":                "---\n{status: done, summary: fixed}\n---\nBody.\n",
	} {
		t.Run(name, func(t *testing.T) {
			data, body, violations := frontmatter.Parse(text, schema)
			if violations != nil {
				t.Fatal(violations)
			}
			if string(data) != want || body != "Body.\n" {
				t.Errorf("got %s and %q", data, body)
			}
		})
	}
}

func TestW11AnswersThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"no fence":        {"I fixed it.\n", []string{`the answer must begin with a line ---, then the fields, then a line ---; it begins with "I fixed it."`}},
		"text in front":   {"Sure!\n---\nstatus: done\n---\n", []string{`the answer must begin with a line ---, then the fields, then a line ---; it begins with "Sure!"`}},
		"no second fence": {"---\nstatus: done\n", []string{"the fields do not end: a second line --- is missing"}},
		"wrong type": {"---\nstatus: done\nsummary: [a]\nn: x\n---\n", []string{
			"/n: got string, want integer", "/summary: got array, want string"}},
		"unknown enum value": {"---\nstatus: finished\nsummary: s\n---\n", []string{"/status: value must be one of 'done', 'stuck'"}},
		"missing fields":     {"---\n---\nbody", []string{"missing properties 'status', 'summary'"}},
		"a list":             {"---\n- a\n---\n", []string{"the fields are not a mapping of names to values"}},
		"repeated name":      {"---\nstatus: done\nstatus: stuck\n---\n", []string{`the fields, line 2: the name "status" appears twice`}},
		"number too large": {"---\nstatus: done\nsummary: s\nn: 9007199254740993\n---\n", []string{
			"the fields, line 3: the number 9007199254740993 lies beyond ±(2^53−1); write it in quotes"}},
		"not a number": {"---\nn: .nan\n---\n", []string{"the fields, line 1: .nan is no number of JSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			data, _, violations := frontmatter.Parse(c.text, schema)
			if data != nil {
				t.Errorf("got data %s", data)
			}
			var got []string
			for _, v := range violations {
				got = append(got, v.String())
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestYAMLErrorsNameTheirLine(t *testing.T) {
	_, _, violations := frontmatter.Parse("---\nstatus: [done\nsummary: x\n---\n", schema)
	if len(violations) != 1 || !strings.Contains(violations[0].Reason, "not YAML") || !strings.Contains(violations[0].Reason, "line") {
		t.Error(violations)
	}
}

func TestScalarsAreYAML12(t *testing.T) {
	data, _, violations := frontmatter.Parse("---\na: yes\nb: off\nc: 2024-01-02\nd: 0x10\ne: 010\nf: 1.50\ng: ~\nh: TRUE\ni: '1'\nj: 1e3\nk: 12:30\nl: !!str 7\nm: <<\n---\n", "")
	if violations != nil {
		t.Fatal(violations)
	}
	const want = `{"a":"yes","b":"off","c":"2024-01-02","d":16,"e":10,"f":1.5,"g":null,"h":true,"i":"1","j":1000,"k":"12:30","l":"7","m":"<<"}`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
}

func TestHostileFieldsEndInAViolation(t *testing.T) {
	bomb := "---\na: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i, prev := 0, "a"; i < 12; i++ {
		name := fmt.Sprintf("b%d", i)
		bomb += fmt.Sprintf("%s: &%s [%s]\n", name, name, strings.TrimSuffix(strings.Repeat("*"+prev+",", 10), ","))
		prev = name
	}
	for name, text := range map[string]string{
		"alias bomb":        bomb + "---\n",
		"ten megabytes":     "---\na: " + strings.Repeat("x", 10<<20) + "\n---\n",
		"ten megabytes raw": strings.Repeat("x", 10<<20),
		"deep":              "---\na: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n---\n",
		"deep, open":        "---\na: " + strings.Repeat("[", 200000) + "\n---\n",
		"alias of itself":   "---\na: &a [*a]\n---\n",
		"unknown tag":       "---\na: !!python/object x\n---\n",
		"binary":            "---\na: \x00\n---\n",
	} {
		t.Run(name, func(t *testing.T) {
			if data, _, violations := frontmatter.Parse(text, ""); len(violations) == 0 {
				t.Errorf("accepted as %.80s", data)
			}
		})
	}
}

func TestAReferenceLeadsNowhere(t *testing.T) {
	v := frontmatter.Validate([]byte(`{}`), `{"$ref":"file:///etc/passwd"}`)
	if len(v) != 1 || !strings.Contains(v[0].Reason, "not valid") {
		t.Error(v)
	}
}

func FuzzFrontmatter(f *testing.F) {
	for _, s := range []string{"---\nstatus: done\nsummary: x\n---\nBody", "\ufeff\n---\r\na: 1\r\n---\r\n", "---\na: &a [1, *a]\n---\n",
		"---\n? [a]\n: b\n---\n", "---\na: 1e400\n---\n", "---\n<<: {a: 1}\n---\n", "---\n%YAML 1.2\n---\n", "no fence", "---", "---\n---"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		data, _, violations := frontmatter.Parse(text, "")
		if (data == nil) != (len(violations) > 0) {
			t.Fatalf("data %s beside violations %v", data, violations)
		}
		if data == nil {
			return
		}
		again, _, violations := frontmatter.Parse("---\n"+string(data)+"\n---\n", "")
		if violations != nil || string(again) != string(data) {
			t.Fatalf("%s reads back as %s %v", data, again, violations)
		}
	})
}
