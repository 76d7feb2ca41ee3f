package graphtest

import (
	"cmp"
	"net/http"
	"time"
)

// CanSend sets whether a number or a business, named by its id, can send: AVAILABLE, LIMITED or BLOCKED. "" means that
// Meta does not say it.
func (p *Peer) CanSend(id, can string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.canSend[id] = cmp.Or(can, "UNKNOWN")
}

// Unpaid makes a business one that cannot pay.
func (p *Peer) Unpaid(account string) {
	p.CanSend(account, "BLOCKED")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unpaid[account] = true
}

// Portfolio is Meta's id of the portfolio that all businesses of a peer belong to.
const Portfolio = "88001"

// health returns the member health_status of a number or a business.
func (p *Peer) health(ids ...string) map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	worst := "AVAILABLE"
	var entities []any
	for i, id := range ids {
		can := cmp.Or(p.canSend[id], "AVAILABLE")
		e := map[string]any{"entity_type": []string{"PHONE_NUMBER", "WABA"}[2-len(ids)+i], "id": id, "can_send_message": can}
		if can != "AVAILABLE" {
			worst = can
			code := 141000
			if p.unpaid[id] {
				code = 141006
			}
			e["errors"] = []any{map[string]any{"error_code": code, "error_description": "Meta's words.", "possible_solution": "What to do."}}
		}
		entities = append(entities, e)
	}
	entities = append(entities, map[string]any{"entity_type": "BUSINESS", "id": Portfolio, "can_send_message": "AVAILABLE"})
	return map[string]any{"can_send_message": worst, "entities": entities}
}

// showBusiness answers a request for the health of a business. It returns false if there is no such business.
func (p *Peer) showBusiness(w http.ResponseWriter, r *http.Request, id string) bool {
	p.mu.Lock()
	known, may := false, false
	for _, n := range p.numbers {
		if n.Account == id && id != "" {
			known = true
			may = may || r.Header.Get("Authorization") == "Bearer "+n.Token && r.URL.Query().Get("appsecret_proof") == hmacOf(n.Secret, n.Token)
		}
	}
	p.mu.Unlock()
	switch {
	case !known:
		return false
	case !may:
		refuse(w, 401, 190, "Error validating access token")
	case r.Method != http.MethodGet || r.URL.Query().Get("fields") != "health_status":
		p.fault("%s of a business with %s", r.Method, r.URL.RawQuery)
		refuse(w, 400, 100, "fields")
	default:
		writeJSON(w, 200, map[string]any{"id": id, "health_status": p.health(id)})
	}
	return true
}

// AboutAccount returns the body of a delivery about a business or one of its numbers. at is the time of the entry.
func (p *Peer) AboutAccount(account, field string, at time.Time, value map[string]any) []byte {
	return p.aboutBusiness(account, field, at, value)
}

// Looked returns how often a number's data was requested.
func (p *Peer) Looked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.looked
}
