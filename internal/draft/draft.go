// Package draft checks drafts of templates before the network sees them. It has a lint for what the network refuses or
// calls marketing, and texts to begin from. The package is pure: it does no I/O.
package draft

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"puntuale"
)

// Meta's limits of a draft, in characters, and of its buttons, in numbers. (Meta, templates/components, October 2026.)
const (
	maxFooter  = 60
	maxLabel   = 25
	maxURL     = 2000
	maxPhone   = 20
	maxCode    = 20
	maxExample = 500
)

var mostOfKind = map[string]int{"quick_reply": puntuale.MaxButtons, "url": 2, "phone": 1, "copy_code": 1}

// Codes of the faults in this file.
const (
	faultName           puntuale.ReasonCode = "draft.name"
	faultLanguage       puntuale.ReasonCode = "draft.language"
	faultAuthentication puntuale.ReasonCode = "draft.authentication"
	faultPlaceholder    puntuale.ReasonCode = "draft.placeholder"
	faultNumbers        puntuale.ReasonCode = "draft.numbers"
	faultOnePlaceholder puntuale.ReasonCode = "draft.one_placeholder"
	faultNoPlaceholder  puntuale.ReasonCode = "draft.no_placeholder"
	faultAtEnd          puntuale.ReasonCode = "draft.at_end"
	faultSample         puntuale.ReasonCode = "draft.sample"
	faultAddress        puntuale.ReasonCode = "draft.address"
	faultPhone          puntuale.ReasonCode = "draft.phone"
	faultMost           puntuale.ReasonCode = "draft.most_buttons" // {1}: the largest number of buttons of this kind
	faultApart          puntuale.ReasonCode = "draft.apart"
	faultOneLine        puntuale.ReasonCode = "draft.one_line"
	faultNUL            puntuale.ReasonCode = "draft.nul"
)

var (
	nameShape     = regexp.MustCompile(`^[a-z0-9_]{1,512}$`)
	languageShape = regexp.MustCompile(`^[a-z]{2,3}(_[A-Z]{2,3})?$`)
	placeholder   = regexp.MustCompile(`\{\{([a-z0-9_]{1,100})\}\}`)
	phoneShape    = regexp.MustCompile(`^\+[0-9]{5,19}$`)
)

// samples are the extensions of the files that Meta takes as samples, by the kind of the header.
var samples = map[string][]string{"image": {"jpg", "jpeg", "png"}, "video": {"mp4"}, "document": {"pdf"}}

// checker collects faults. Their locations begin with "body.".
type checker struct {
	d      *puntuale.TemplateDraft
	faults []puntuale.Fault
}

func (c *checker) add(location string, code puntuale.ReasonCode, value any, args ...string) {
	c.faults = append(c.faults, puntuale.Because(code, args...).At("body."+location, value))
}

// Check returns all faults of a draft: what Meta refuses for certain.
func Check(d puntuale.TemplateDraft) []puntuale.Fault {
	c := checker{d: &d}
	if !nameShape.MatchString(d.Name) {
		c.add("name", faultName, nil)
	}
	if !languageShape.MatchString(d.Language) {
		c.add("language", faultLanguage, nil)
	}
	switch d.Category {
	case puntuale.CategoryUtility, puntuale.CategoryMarketing:
	case puntuale.CategoryAuthentication:
		c.add("category", faultAuthentication, d.Category)
	default:
		c.add("category", puntuale.FaultNotOneOf, nil, "UTILITY, MARKETING")
	}
	c.text("text", d.Text, puntuale.MaxTemplateBody, true)
	c.header(d.Header)
	c.text("footer", d.Footer, maxFooter, false)
	if len(placeholder.FindAllString(d.Footer, -1)) > 0 {
		c.add("footer", faultNoPlaceholder, nil)
	}
	c.buttons(d.Buttons)
	c.numbers()
	c.examples()
	return c.faults
}

// text checks a text and its placeholders.
func (c *checker) text(location, text string, limit int, required bool) {
	switch {
	case required && puntuale.Trimmed(text) == "":
		c.add(location, puntuale.FaultRequired, nil)
	case utf8.RuneCountInString(text) > limit:
		c.add(location, puntuale.FaultLongerThanCharacters, nil, strconv.Itoa(limit))
	case strings.ContainsRune(text, 0):
		c.add(location, faultNUL, nil)
	case strings.Contains(placeholder.ReplaceAllString(text, ""), "{{"):
		c.add(location, faultPlaceholder, nil)
	case location != "text" && strings.ContainsAny(text, "\n\r"):
		c.add(location, faultOneLine, nil)
	}
}

func (c *checker) header(h *puntuale.DraftHeader) {
	if h == nil {
		return
	}
	switch h.Kind {
	case "text":
		c.text("header.text", h.Text, puntuale.MaxTemplateHeader, true)
		if len(placeholder.FindAllString(h.Text, -1)) > 1 {
			c.add("header.text", faultOnePlaceholder, nil)
		}
	case "location":
	case "image", "video", "document":
		u, err := url.Parse(h.Media)
		if id, _ := puntuale.UploadedFile(h.Media); id != "" {
			u = &url.URL{Scheme: "https", Host: "-", Path: string(id)} // as an address, only its extension is checked
		}
		switch {
		case puntuale.Trimmed(h.Media) == "":
			c.add("header.media", puntuale.FaultRequired, nil)
		case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || len(h.Media) > maxURL:
			c.add("header.media", faultAddress, nil)
		case !slices.Contains(samples[h.Kind], strings.ToLower(strings.TrimPrefix(path.Ext(u.Path), "."))):
			c.add("header.media", faultSample, nil, strings.Join(samples[h.Kind], ", "))
		}
	default:
		c.add("header.kind", puntuale.FaultNotOneOf, nil, "text, image, video, document, location")
	}
	if h.Kind != "text" && h.Text != "" {
		c.add("header.text", puntuale.FaultGoesWithout, nil, "kind "+h.Kind)
	}
}

func (c *checker) buttons(all []puntuale.DraftButton) {
	if len(all) > puntuale.MaxButtons {
		c.add("buttons", puntuale.FaultMoreEntries, nil, strconv.Itoa(puntuale.MaxButtons))
		return
	}
	count := map[string]int{}
	for i, b := range all {
		at := fmt.Sprintf("buttons[%d]", i)
		most, known := mostOfKind[b.Kind]
		if !known {
			c.add(at+".kind", puntuale.FaultNotOneOf, nil, "quick_reply, url, phone, copy_code")
			continue
		}
		if count[b.Kind]++; count[b.Kind] == most+1 {
			c.add(at+".kind", faultMost, nil, strconv.Itoa(most))
		}
		if b.Kind == "quick_reply" && count[b.Kind] > 1 && all[i-1].Kind != b.Kind { // Meta wants them next to each other
			c.add(at+".kind", faultApart, nil)
		}
		c.button(at, b)
	}
}

func (c *checker) button(at string, b puntuale.DraftButton) {
	if b.Kind != "copy_code" {
		c.text(at+".text", b.Text, maxLabel, true)
		if strings.Contains(b.Text, "{{") {
			c.add(at+".text", faultNoPlaceholder, nil)
		}
	}
	switch b.Kind {
	case "url":
		fixed := placeholder.ReplaceAllString(b.URL, "")
		u, err := url.Parse(fixed)
		found := placeholder.FindAllStringIndex(b.URL, -1)
		switch {
		case b.URL == "":
			c.add(at+".url", puntuale.FaultRequired, nil)
		case len(b.URL) > maxURL:
			c.add(at+".url", puntuale.FaultLongerThanCharacters, nil, strconv.Itoa(maxURL))
		case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.ContainsAny(fixed, " {}\n"):
			c.add(at+".url", faultAddress, nil)
		case len(found) > 1, len(found) == 1 && found[0][1] != len(b.URL):
			c.add(at+".url", faultAtEnd, nil)
		}
	case "phone":
		if len(b.Phone) > maxPhone || !phoneShape.MatchString(b.Phone) {
			c.add(at+".phone", faultPhone, nil)
		}
	case "copy_code":
		c.text(at+".code", b.Code, maxCode, true)
	}
}

// numbers checks that numbered placeholders are 1, 2 and so on, and that none of them has a name. Placeholders of
// addresses do not count, because Meta numbers those of each button.
func (c *checker) numbers() {
	texts := c.d.Text
	if c.d.Header != nil && c.d.Header.Kind == "text" {
		for _, name := range names(c.d.Header.Text) {
			if _, err := strconv.Atoi(name); err == nil && name != "1" {
				c.add("header.text", faultNumbers, nil)
			}
		}
		texts += c.d.Header.Text
	}
	numbered, named := 0, 0
	for _, name := range names(texts) {
		if _, err := strconv.Atoi(name); err == nil {
			numbered++
		} else {
			named++
		}
	}
	body := names(c.d.Text)
	switch {
	case numbered > 0 && named > 0:
		c.add("text", faultNumbers, nil)
	case numbered > 0:
		for i := range body {
			if !slices.Contains(body, strconv.Itoa(i+1)) {
				c.add("text", faultNumbers, nil)
				return
			}
		}
	}
}

// examples checks that each placeholder has an example that Meta accepts as a value.
func (c *checker) examples() {
	for _, name := range c.d.Placeholders() {
		at := "examples." + name
		switch value := c.d.Examples[name]; {
		case puntuale.Trimmed(value) == "":
			c.add(at, puntuale.FaultRequired, nil)
		case utf8.RuneCountInString(value) > maxExample:
			c.add(at, puntuale.FaultLongerThanCharacters, nil, strconv.Itoa(maxExample))
		case puntuale.ValueBreaks(value):
			c.add(at, faultOneLine, nil)
		}
	}
}

// names returns the names of a text's placeholders, each once.
func names(text string) (all []string) {
	for _, found := range placeholder.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(all, found[1]) {
			all = append(all, found[1])
		}
	}
	return all
}
