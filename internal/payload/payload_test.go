package payload

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const order = `{"id": 727, "billing": {"phone": "333 1234567", "first_name": "Anna"}, "paid": true, "note": null,
	"meta_data": [{"key": "_vat", "value": "1", "odd.name": 2}, {"key": "_birth", "value": "1990-02-28"}],
	"tags": ["a", "b"], "odd.name": {"x": 1.50}, "lists": [[1], [2]], "empty": ""}`

func TestText(t *testing.T) {
	t.Parallel()
	p, err := Parse("application/json", []byte(order))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"id": "727", "billing.phone": "333 1234567", "/billing/phone": "333 1234567", "paid": "true", "note": "", "missing.at.all": "",
		"meta_data[1].value": "1990-02-28", "meta_data.1.value": "1990-02-28", "meta_data[key=_birth].value": "1990-02-28", "meta_data[key=_none].value": "",
		"meta_data[2].value": "", "meta_data.key": "", "billing[0]": "", "billing[key=1]": "", "id.more": "",
		"tags": "a, b", "tags[1]": "b", "/odd.name/x": "1.50", "lists": "", "lists[1][0]": "2", "billing": "", "empty": "",
	} {
		read, err := ParsePath(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got := p.Text(read); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestParsePath(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " ", ".a", "a.", "a..b", "a[", "a[]", "a[x]", "a]b", "a[0]b", "[=1]", "a[b[0]=1]", "a\x00b", strings.Repeat("a", MaxPath+1)} {
		if _, err := ParsePath(text); !errors.Is(err, ErrPath) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"a", "[0]", "a[0][1].b", "/", "/a~1b/0", "a[b.c=x=y].d", " a "} {
		if _, err := ParsePath(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	part := func(name, value string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	for _, c := range []struct{ kind, body, path, want string }{
		{"application/x-www-form-urlencoded", "phone=%2B39+333&nome=Anna", "phone", "+39 333"},
		{"", "phone=333", "phone", "333"},
		{"text/plain", `{"phone": 333}`, "phone", "333"},
		{"application/x-www-form-urlencoded", "fields%5Bphone%5D%5Bvalue%5D=333&fields[phone][id]=phone", "fields.phone.value", "333"},
		{"", "names[]=a&names[]=b", "names", "a, b"},
		{"", "a=1&a=2", "a[1]", "2"},
		{"", "a[[b]]=1", "/a[[b]]", "1"},
		{"", "a[b]=1&a=2", "a.b", "1"},
		{"", "a=2&a[b]=1&a[b][c]=3", "a.b.c", "3"},
		{"multipart/form-data; boundary=x", part("phone", "333") + part("fields[a]", "Anna") + "--x--\r\n", "fields.a", "Anna"},
		{"multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\nsecret\r\n" + part("phone", "333") + "--x--\r\n", "f", ""},
	} {
		p, err := Parse(c.kind, []byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		path, _ := ParsePath(c.path)
		if got := p.Text(path); got != c.want {
			t.Errorf("%s at %s: %q, want %q", c.body, c.path, got, c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, body string
		want       error
	}{
		{"application/json", " \n", ErrEmpty},
		{"application/json", `{"a": 1`, ErrForm},
		{"application/json", `{"a": 1} {}`, ErrForm},
		{"", "a=%zz", ErrForm},
		{"", "a=%ff", ErrEncoding},
		{"", "{\"a\": \"\xff\"}", ErrEncoding},
		{"multipart/form-data", "x", ErrForm},
		{"multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\ncut of", ErrForm},
		{"", strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), ErrTooMany},
		{"", "[" + strings.Repeat("1,", MaxValues) + "1]", ErrTooMany},
		{"", strings.Repeat("a=1&", maxParts+1), ErrTooMany},
		{"", "a" + strings.Repeat("[b]", MaxDepth+1) + "=1", ErrTooMany},
	} {
		if _, err := Parse(c.kind, []byte(c.body)); !errors.Is(err, c.want) {
			t.Errorf("%.40q: %v, want %v", c.body, err, c.want)
		}
	}
}

// TestMembers: each listed member is found again at its path.
func TestMembers(t *testing.T) {
	t.Parallel()
	p, err := Parse("", []byte(order))
	if err != nil {
		t.Fatal(err)
	}
	all := p.Members(100)
	found := map[string]string{}
	for _, m := range all {
		path, err := ParsePath(m.Path)
		if err != nil || p.Text(path) != m.Text {
			t.Errorf("%s: %q, %v, want %q", m.Path, p.Text(path), err, m.Text)
		}
		found[m.Path] = m.Text
	}
	for path, want := range map[string]string{"billing.phone": "333 1234567", "meta_data[key=_birth].value": "1990-02-28", "tags": "a, b", "/odd.name/x": "1.50", "lists[0]": "1", "/meta_data/0/odd.name": "2"} {
		if found[path] != want {
			t.Errorf("%s: %q among %v", path, found[path], all)
		}
	}
	if got := p.Members(2); len(got) != 2 {
		t.Errorf("at most two: %v", got)
	}
}

// TestLongPath: if the path for people is too long, a value is listed with its JSON Pointer.
func TestLongPath(t *testing.T) {
	t.Parallel()
	body := `"x"`
	for range 4 {
		body = `{"list":[{"key":"` + strings.Repeat("k", 60) + `","value":` + body + `}]}`
	}
	p, err := Parse("", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	want := Member{Path: strings.Repeat("/list/0/value", 4), Text: "x"}
	if all := p.Members(100); !slices.Contains(all, want) {
		t.Errorf("%v is not among %v", want, all)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("application/json", order, "meta_data[key=_birth].value")
	f.Add("", "fields[a][b]=1&a=2", "fields.a.b")
	f.Add("multipart/form-data; boundary=x", "--x--", "/a/b")
	f.Fuzz(func(t *testing.T, kind, body, path string) {
		p, err := Parse(kind, []byte(body))
		if err != nil {
			return
		}
		if read, err := ParsePath(path); err == nil {
			p.Text(read)
		}
		for _, m := range p.Members(50) {
			if read, err := ParsePath(m.Path); err != nil || p.Text(read) != m.Text {
				t.Fatalf("%q is listed at %q, where %q stands (%v)", m.Text, m.Path, p.Text(read), err)
			}
		}
	})
}
