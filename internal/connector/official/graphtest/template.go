package graphtest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ListedTemplate is a template of a business, as Meta lists it.
type ListedTemplate struct {
	ID         string           `json:"id"`
	Name       string           `json:"name"`
	Language   string           `json:"language"`
	Status     string           `json:"status"`
	Category   string           `json:"category"`
	Quality    map[string]any   `json:"quality_score,omitempty"`
	Rejected   string           `json:"rejected_reason,omitempty"`
	Format     string           `json:"parameter_format,omitempty"`
	Components []map[string]any `json:"components"`
	Source     string           `json:"source,omitempty"`
}

// NewTemplate returns an approved template with a text in its body.
func NewTemplate(name, body string) ListedTemplate {
	return ListedTemplate{
		ID: "77" + strconv.Itoa(len(name)), Name: name, Language: "it", Status: "APPROVED", Category: "UTILITY", Quality: map[string]any{"score": "GREEN"},
		Rejected: "NONE", Format: "POSITIONAL", Components: []map[string]any{{"type": "BODY", "text": body, "example": map[string]any{"body_text": []any{[]any{"x"}}}}},
	}
}

// SetTemplates sets a business's list of templates.
func (p *Peer) SetTemplates(account string, all ...ListedTemplate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.templates[account] = all
}

// Listed returns how often a list of templates was read.
func (p *Peer) Listed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listed
}

// ListPage sets the largest number of entries on one page of a list. The default is 100.
func (p *Peer) ListPage(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.page = n
}

// List sets the function that answers requests for a business's data. With nil, the peer returns the data.
func (p *Peer) List(decide func() Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = decide
}

// business answers a request for a business's data, if the token may see the business.
func (p *Peer) business(w http.ResponseWriter, r *http.Request, account, edge string) {
	p.mu.Lock()
	var number *Number
	for _, n := range p.numbers {
		if n.Account == account && r.Header.Get("Authorization") == "Bearer "+n.Token {
			number = &n
			break
		}
	}
	decide := p.list
	p.mu.Unlock()
	switch {
	case number == nil:
		writeError(w, 400, 100, 33, "Unsupported get request. Object does not exist", "")
		return
	case r.URL.Query().Get("appsecret_proof") != hmacOf(number.Secret, number.Token):
		writeError(w, 400, 100, 0, "Invalid appsecret_proof provided in the API argument", "")
		return
	case r.Method != http.MethodGet:
		p.fault("%s of a business", r.Method)
		refuse(w, 404, 2500, "Unknown path components")
		return
	}
	if decide != nil {
		if reply := decide(); reply.Code != 0 || reply.Body != "" || reply.Break {
			reply.write(w)
			return
		}
	}
	var all []any
	p.mu.Lock()
	switch edge {
	case "message_templates":
		p.listed++
		for _, t := range p.templates[account] {
			if name := r.URL.Query().Get("name"); name == "" || strings.Contains(t.Name, name) { // Meta finds parts of names, too
				all = append(all, t)
			}
		}
	case "phone_numbers":
		for _, n := range p.numbers {
			if n.Account == account {
				all = append(all, map[string]any{"id": n.ID})
			}
		}
	default:
		p.faults = append(p.faults, "edge "+edge)
	}
	page := p.page
	p.mu.Unlock()
	p.showPage(w, r, all, page)
}

func (p *Peer) showPage(w http.ResponseWriter, r *http.Request, all []any, maximum int) {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit < 1 || r.URL.Query().Get("fields") == "" {
		p.fault("a list with the query %s", r.URL.RawQuery)
		limit = 25
	}
	if maximum > 0 {
		limit = min(limit, maximum)
	}
	begin := 0
	if after := r.URL.Query().Get("after"); after != "" {
		if _, err := fmt.Sscanf(after, "after%d", &begin); err != nil || begin > len(all) {
			p.fault("after %s", after)
			begin = 0
		}
	}
	end := min(len(all), begin+limit)
	paging := map[string]any{"cursors": map[string]any{"after": fmt.Sprintf("after%d", end)}}
	if end < len(all) {
		paging["next"] = "https://elsewhere.example/stolen?access_token=x"
	}
	writeJSON(w, 200, map[string]any{"data": append([]any{}, all[begin:end]...), "paging": paging})
}

// TemplateEvent returns the body of a delivery: the status of a template changed.
func (p *Peer) TemplateEvent(account, name, language, event, reason string, at time.Time) []byte {
	return p.aboutBusiness(account, "message_template_status_update", at, map[string]any{
		"event": event, "message_template_id": 1689556908129832, "message_template_name": name, "message_template_language": language, "reason": reason,
		"message_template_category": "UTILITY",
	})
}

// TemplateQuality returns the body of a delivery: the quality of a template changed.
func (p *Peer) TemplateQuality(account, name, language, quality string, at time.Time) []byte {
	return p.aboutBusiness(account, "message_template_quality_update", at, map[string]any{
		"previous_quality_score": "GREEN", "new_quality_score": quality, "message_template_id": 1689556908129832,
		"message_template_name": name, "message_template_language": language,
	})
}

// TemplateCategory returns the body of a delivery: the category of a template changed.
func (p *Peer) TemplateCategory(account, name, language, category string, at time.Time) []byte {
	return p.aboutBusiness(account, "template_category_update", at, map[string]any{
		"previous_category": "UTILITY", "new_category": category, "message_template_id": 1689556908129832,
		"message_template_name": name, "message_template_language": language,
	})
}

// aboutBusiness returns the body of a delivery about a business. It contains no number of the business.
func (p *Peer) aboutBusiness(account, field string, at time.Time, value map[string]any) []byte {
	return p.escaped(map[string]any{"object": "whatsapp_business_account", "entry": []any{map[string]any{
		"id": account, "time": at.Unix(), "changes": []any{map[string]any{"field": field, "value": value}},
	}}})
}
