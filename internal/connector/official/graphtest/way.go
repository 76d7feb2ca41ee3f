package graphtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// Ways says which ways a business may use.
type Ways struct {
	DirectSend      bool
	MarketingPath   bool // the business has accepted the terms of the path for marketing
	MarketingClosed bool // /messages takes no marketing
	NoOptOut        bool // Meta refuses the business's change of creative features
	OptedOut        int  // how often the business opted out of all creative features
	OptedIn         int  // how often it took this back
}

// Business returns the ways of a business, which the test may change while no message is sent.
func (p *Peer) Business(account string) *Ways {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waysOf(account)
}

func (p *Peer) waysOf(account string) *Ways {
	if p.ways == nil {
		p.ways = map[string]*Ways{}
	}
	if p.ways[account] == nil {
		p.ways[account] = &Ways{}
	}
	return p.ways[account]
}

// checkWay checks the members that belong to one way.
func (m Message) checkWay() error {
	buttons := m.Interactive != nil && m.Interactive.Header == nil && len([]rune(m.Interactive.Body.Text)) <= 1024
	switch {
	case m.TTL != nil && (m.Category == "" || *m.TTL < 30 || *m.TTL > 43200):
		return fmt.Errorf("ttl_seconds %d with category %q", *m.TTL, m.Category)
	case m.Category != "" && m.Category != "utility":
		return errors.New("category " + m.Category)
	case m.Category != "" && m.To == "":
		return errors.New("direct send to a person without a number")
	case m.Category != "" && m.Type == "text" && (m.Text.Preview != nil || len([]rune(m.Text.Body)) > 1024), m.Category != "" && m.Type != "text" && !buttons:
		return errors.New("direct send of " + m.Type)
	}
	return nil
}

// refuseWay returns Meta's refusal of a way, or an empty reply.
func (p *Peer) refuseWay(n Number, m Message, path string) Reply {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waysOf(n.Account)
	category, source := "", ""
	if m.Template != nil {
		for _, t := range p.templates[n.Account] {
			if t.Name == m.Template.Name && t.Language == m.Template.Language.Code {
				category, source = t.Category, t.Source
			}
		}
	}
	switch {
	case m.Category != "" && !w.DirectSend:
		return Reply{Code: 100, Details: "Sending a utility message without a template requires Direct Send, which isn't enabled for this account"}
	case m.Category != "":
		name := "auto_" + strconv.Itoa(len(p.templates[n.Account]))
		p.templates[n.Account] = append(p.templates[n.Account], ListedTemplate{ID: name, Name: name, Language: "it", Status: "APPROVED", Category: "UTILITY", Source: "AUTO_GENERATED"})
	case source == "AUTO_GENERATED":
		return Reply{Code: 132018, Details: "A Direct Send template cannot be sent"}
	case path == "" && m.Policy+fmt.Sprint(m.Sharing) != "<nil>":
		p.faults = append(p.faults, "members of /marketing_messages at /messages")
	case path == "" && w.MarketingClosed && category == "MARKETING":
		return Reply{Code: 131063, Details: "Marketing templates disabled for Cloud API"}
	case path != "" && (m.Template == nil || category != "MARKETING"):
		return Reply{Code: 134100, Details: "Only marketing templates"}
	case path != "" && m.Policy != "" && m.Policy != "CLOUD_API_FALLBACK" && m.Policy != "STRICT":
		p.faults = append(p.faults, "product_policy "+m.Policy)
	case path != "" && !w.MarketingPath:
		return Reply{Code: 134102, Status: 500, Details: "Not onboarded"}
	}
	return Reply{}
}

// changeBusiness answers a change of a business's settings.
func (p *Peer) changeBusiness(w http.ResponseWriter, r *http.Request, account string) {
	var body struct {
		Spec struct {
			Features map[string]struct {
				Status string `json:"enroll_status"`
			} `json:"creative_features_spec"`
		} `json:"degrees_of_freedom_spec"`
	}
	err := json.NewDecoder(r.Body).Decode(&body)
	p.mu.Lock()
	known := false
	for _, n := range p.numbers {
		known = known || n.Account == account && r.Header.Get("Authorization") == "Bearer "+n.Token && r.URL.Query().Get("appsecret_proof") == hmacOf(n.Secret, n.Token)
	}
	ways := p.waysOf(account)
	switch {
	case err != nil || len(body.Spec.Features) == 0:
		p.faults = append(p.faults, "a change of a business without features")
	case known && !ways.NoOptOut:
		for _, f := range body.Spec.Features {
			if f.Status == "OPT_IN" {
				ways.OptedIn++
			} else {
				ways.OptedOut++
			}
			break
		}
	}
	for name, f := range body.Spec.Features {
		if f.Status != "OPT_OUT" && f.Status != "OPT_IN" {
			p.faults = append(p.faults, "feature "+name+" "+f.Status)
		}
	}
	refused := ways.NoOptOut
	p.mu.Unlock()
	switch {
	case !known:
		writeError(w, 400, 100, 33, "Unsupported post request. Object does not exist", "")
	case refused:
		refuse(w, 400, 200, "Permissions error")
	default:
		writeJSON(w, 200, map[string]any{"id": account})
	}
}
