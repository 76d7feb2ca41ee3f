package graphtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
)

// attached is a file that a person sent to a number.
type attached struct {
	number string
	File
	address string // the address of the file; "": the peer serves it
}

// Attach stores a file that a person sends to a number. It returns the JSON member for the file in the person's
// message.
func (p *Peer) Attach(number string, f File) map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := fmt.Sprintf("7%08d", len(p.attached)+1)
	p.attached[id] = attached{number: number, File: f}
	sum := sha256.Sum256(f.Data)
	m := map[string]any{"id": id, "mime_type": f.Type, "sha256": base64.StdEncoding.EncodeToString(sum[:])}
	if f.Name != "" {
		m["filename"] = f.Name
	}
	return m
}

// Move makes the peer answer that a file is at the given address.
func (p *Peer) Move(id, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.attached[id]
	a.address = address
	p.attached[id] = a
}

// Forget removes all files that people sent, as Meta does after a week.
func (p *Peer) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.attached)
}

// find answers with a file's address. It returns false if there is no such file.
func (p *Peer) find(w http.ResponseWriter, r *http.Request, id string) bool {
	p.mu.Lock()
	a, ok := p.attached[id]
	n := p.numbers[a.number]
	p.mu.Unlock()
	switch {
	case !ok:
		return false
	case r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer "+n.Token || r.URL.Query().Get("appsecret_proof") != hmacOf(n.Secret, n.Token):
		refuse(w, 401, 190, "Error validating access token")
		return true
	case r.URL.Query().Get("phone_number_id") != n.ID:
		writeError(w, 400, 100, 33, "Unsupported get request. Object does not exist", "")
		return true
	}
	address := a.address
	if address == "" {
		address = p.URL + files + id + "?ext=1&hash=x"
	}
	sum := sha256.Sum256(a.Data)
	writeJSON(w, 200, map[string]any{
		"messaging_product": "whatsapp", "id": id, "url": address, "mime_type": a.Type, "sha256": hex.EncodeToString(sum[:]), "file_size": len(a.Data),
	})
	return true
}

// files is the first part of each file's path.
const files = "/whatsapp_business/attachments/"

// serve sends a file, as the host that stores files does.
func (p *Peer) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	a, ok := p.attached[strings.TrimPrefix(r.URL.Path, files)]
	n := p.numbers[a.number]
	p.mu.Unlock()
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case r.Header.Get("Authorization") != "Bearer "+n.Token || r.Header.Get("User-Agent") == "":
		p.fault("a file is asked for without the token")
		w.WriteHeader(http.StatusUnauthorized)
	default:
		w.Header().Set("Content-Type", a.Type)
		_, _ = w.Write(a.Data)
	}
}
