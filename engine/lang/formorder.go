package lang

import "wf/engine/yaml"

// FormOrder is the order in which the source of a workflow writes the fields of a role's form,
// which its canonical definition does not keep. It is nil where the source has no such form.
func FormOrder(source []byte, role string) []string {
	doc, _ := yaml.Parse(source, yaml.Limits{}) // it was read before; of one that cannot be, nothing is known
	var out []string
	if props := doc.Get("roles").Get(role).Get("form").Get("properties"); props != nil {
		for _, p := range props.Pairs {
			out = append(out, p.Key.Value)
		}
	}
	return out
}
