package httpapi

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestTidyQuery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		raw  string
		name string
		want []string
	}{
		{"message_ids[]=1&message_ids[]=2", "message_ids[]", []string{"1", "2"}},
		{"message_ids%5B%5D=1&message_ids%5b%5d=2", "message_ids[]", []string{"1", "2"}},
		{"message_ids[1]=1&message_ids[0]=2", "message_ids[]", []string{"1", "2"}},
		{"message_ids=1,2&message_ids=3", "message_ids[]", []string{"1", "2", "3"}},
		{"message_ids=3&x=0&message_ids[7]=1%2C2&message_ids[]=", "message_ids[]", []string{"3", "1", "2", ""}},
		{"message_ids[]=1,%202&message_ids=+3+", "message_ids[]", []string{"1", "2", "3"}},
		{"message_ids=%5B1,%20%222%22%5D&message_ids[]=[]", "message_ids[]", []string{"1", "2", ""}},
		{"phones[]=%2B39333&phones=+39334", "phones[]", []string{"+39333", " 39334"}},
		{"phones[]=", "phones[]", []string{""}},
		{"phones", "phones[]", []string{"true"}},
		{"message_ids[x]=1", "message_ids[x]", []string{"1"}},
		{"message_ids[0][0]=1", "message_ids[0][0]", []string{"1"}},
		{"client=a,b", "client", []string{"a,b"}},
		{"dry_run&timezone=Europe%2FRome", "dry_run", []string{"true"}},
		{"dry_run=&x", "dry_run", []string{""}},
		{"&&a=1&", "a", []string{"1"}},
	} {
		got, err := url.ParseQuery(tidyQuery(c.raw))
		if err != nil || !slices.Equal(got[c.name], c.want) {
			t.Errorf("%s: %s = %q (%v), want %q", c.raw, c.name, got[c.name], err, c.want)
		}
	}
	for _, raw := range []string{"a=%zz", "message_ids=%zz", "%zz=1", "a=1;b=2", "message_ids=1;2"} {
		if _, err := url.ParseQuery(tidyQuery(raw)); err == nil {
			t.Errorf("%s became decodable: %s", raw, tidyQuery(raw))
		}
	}
}

// Tidying a query twice gives the same result as tidying it once. A part that cannot be decoded stays in the query, and
// no value is lost.
func FuzzTidyQuery(f *testing.F) {
	for _, seed := range []string{
		"message_ids[]=1&message_ids%5B0%5D=2,3&api_key=ck_x", "phones=+39,,&dry_run", "a=%zz", "a=1;b=2", "&=&==", "%", "a=%00%ff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		once := tidyQuery(raw)
		if again := tidyQuery(once); again != once {
			t.Fatalf("%q becomes %q, then %q", raw, once, again)
		}
		before, errBefore := url.ParseQuery(raw)
		after, errAfter := url.ParseQuery(once)
		if (errBefore == nil) != (errAfter == nil) {
			t.Fatalf("%q: %v, %q: %v", raw, errBefore, once, errAfter)
		}
		values := func(q url.Values) (n int) {
			for name, all := range q {
				for _, v := range all {
					n++
					if listNames.MatchString(name) {
						n += strings.Count(v, ",")
					}
				}
			}
			return n
		}
		if errBefore == nil && values(after) < values(before) {
			t.Fatalf("%q loses values: %q", raw, once)
		}
	})
}
