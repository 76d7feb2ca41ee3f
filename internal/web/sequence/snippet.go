package sequence

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"puntuale/internal/control"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// snippets returns programs that start this sequence with the example's values.
func snippets(v *page.Request, s control.Sequence, f *view.Form) []Snippet {
	c := call{address: apiAddress(v) + "/api/start/" + s.ID.String(), names: []string{"phone"}, values: []string{f.Value("phone")}}
	if s.Booking != "" {
		c.names, c.values = append(c.names, "reference"), append(c.values, "4711")
	}
	for _, field := range s.Fields {
		c.names = append(c.names, field.Name)
		c.values = append(c.values, f.Value("fields."+field.Name))
	}
	return []Snippet{{Name: "curl", Text: c.curl()}, {Name: "JavaScript", Text: c.script()}, {Name: "PHP", Text: c.php()}, {Name: "Python", Text: c.python()}}
}

// apiAddress returns the address of the API for the client's programs. It uses the partner's own host name, if there is
// one. All readers of the page get the same address.
func apiAddress(v *page.Request) string {
	if host := v.Person.Host().Brand.Host; host != "" {
		return "https://" + host
	}
	return cmp.Or(v.Site.Control.Public(), page.ReadAt(v.HTTP))
}

// call is a start call that is shown in several programming languages. Hosts and ids contain no quotes, so the address
// needs no escaping.
type call struct {
	address       string
	names, values []string
}

// literal formats a text as a literal in double quotes. The result is valid in JSON, JavaScript and Python.
func literal(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return `""`
	}
	return strings.TrimSpace(b.String())
}

// members formats the members of the body, one on each line.
func (c call) members(indent string) string {
	lines := make([]string, len(c.names))
	for i, name := range c.names {
		lines[i] = indent + literal(name) + ": " + literal(c.values[i])
	}
	return strings.Join(lines, ",\n")
}

func (c call) curl() string {
	body := strings.ReplaceAll("{\n"+c.members("  ")+"\n}", "'", `'\''`)
	return "curl -X POST '" + strings.ReplaceAll(c.address, "'", "%27") + "' \\\n" +
		"  -H \"Authorization: Bearer $API_KEY\" \\\n" +
		"  -H 'Content-Type: application/json' \\\n" +
		"  -d '" + body + "'"
}

func (c call) script() string {
	return "const response = await fetch(" + literal(c.address) + ", {\n" +
		"  method: \"POST\",\n" +
		"  headers: {\n" +
		"    \"Authorization\": `Bearer ${process.env.API_KEY}`,\n" +
		"    \"Content-Type\": \"application/json\",\n" +
		"  },\n" +
		"  body: JSON.stringify({\n" + c.members("    ") + "\n  }),\n" +
		"});\n" +
		"console.log(await response.json());"
}

func (c call) php() string {
	quote := func(text string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
	}
	lines := make([]string, len(c.names))
	for i, name := range c.names {
		lines[i] = "    " + quote(name) + " => " + quote(c.values[i]) + ","
	}
	return "<?php\n" +
		"$curl = curl_init(" + quote(c.address) + ");\n" +
		"curl_setopt_array($curl, [\n" +
		"  CURLOPT_POST => true,\n" +
		"  CURLOPT_RETURNTRANSFER => true,\n" +
		"  CURLOPT_HTTPHEADER => [\n" +
		"    'Authorization: Bearer ' . getenv('API_KEY'),\n" +
		"    'Content-Type: application/json',\n" +
		"  ],\n" +
		"  CURLOPT_POSTFIELDS => json_encode([\n" + strings.Join(lines, "\n") + "\n  ]),\n" +
		"]);\n" +
		"print_r(json_decode(curl_exec($curl), true));"
}

func (c call) python() string {
	return "import json, os, urllib.request\n\n" +
		"request = urllib.request.Request(\n" +
		"    " + literal(c.address) + ",\n" +
		"    data=json.dumps({\n" + c.members("        ") + "\n    }).encode(),\n" +
		"    headers={\n" +
		"        \"Authorization\": \"Bearer \" + os.environ[\"API_KEY\"],\n" +
		"        \"Content-Type\": \"application/json\",\n" +
		"    },\n" +
		")\n" +
		"print(json.load(urllib.request.urlopen(request)))"
}
