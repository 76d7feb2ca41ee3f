package official

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"puntuale"
)

// Limits of one delivery.
const (
	maxWebhook  = 3 << 20          // the largest body that Meta sends, in bytes
	webhookWait = 10 * time.Second // how long storing a delivery on disk may take
	keysKept    = time.Second      // how long keys stay in memory, so that many deliveries at the same time cause only one read of the keys
	maxKeys     = 10_000
)

// signatureHeader is the header with the signature that proves that Meta sent a delivery.
const signatureHeader = "X-Hub-Signature-256"

// signatureOf returns the hash in the header. It returns false if the header has another form.
func signatureOf(header string) (hash [sha256.Size]byte, ok bool) {
	text, begins := strings.CutPrefix(header, "sha256=")
	if !begins || len(text) != 2*len(hash) {
		return hash, false
	}
	_, err := hex.Decode(hash[:], []byte(text))
	return hash, err == nil
}

// challengeShape matches the text that the server must repeat to Meta. The text is usually a number.
var challengeShape = regexp.MustCompile(`^[0-9A-Za-z_-]{1,200}$`)

// Webhook is the handler of [puntuale.OfficialWebhooks]. Every node can run it. It answers a delivery after the whole
// delivery is on disk. Without that answer Meta repeats the delivery. A forged delivery and a delivery for an unknown
// session get the same status. The body of a delivery for an unknown session is not read. The server that mounts the
// handler limits the number of requests and their memory.
type Webhook struct {
	c *Connector

	mu        sync.Mutex
	kept      map[puntuale.SessionID]keptKeys
	lastHeard map[heardSubject]time.Time
}

// heardSubject is one way in which Meta reached the webhook of a session: a subject of puntuale.HealthWebhook.
type heardSubject struct {
	session puntuale.SessionID
	how     string
}

// keptKeys are a session's keys in memory. They are used for at most keysKept.
type keptKeys struct {
	client puntuale.ClientID
	keys   *puntuale.OfficialKeys // nil: the session has no keys
	read   time.Time
}

// NewWebhook returns the handler. The handler also serves sessions that are not open on this node.
func (c *Connector) NewWebhook() *Webhook {
	return &Webhook{c: c, kept: map[puntuale.SessionID]keptKeys{}, lastHeard: map[heardSubject]time.Time{}}
}

// Expects reports whether a request may be from Meta. The request must name a session that has keys. A POST must also
// have a signature in the correct form. Expects does not read the body, so it does not check the signature.
func (h *Webhook) Expects(r *http.Request) bool {
	_, keys, err := h.session(r.Context(), r.URL.Path)
	_, shown := signatureOf(r.Header.Get(signatureHeader))
	return err != nil || keys != puntuale.OfficialKeys{} && (r.Method != http.MethodPost || shown)
}

func (h *Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch r.Method {
	case http.MethodGet:
		h.verify(w, r)
	case http.MethodPost:
		w.WriteHeader(h.deliver(w, r))
	default:
		w.Header().Set("Allow", "GET, POST")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// verify answers the request with which Meta checks that the address is ours.
func (h *Webhook) verify(w http.ResponseWriter, r *http.Request) {
	at, keys, err := h.session(r.Context(), r.URL.Path)
	q := r.URL.Query()
	challenge := q.Get("hub.challenge")
	switch {
	case err != nil:
		w.WriteHeader(http.StatusServiceUnavailable)
	case !equalSecrets(q.Get("hub.verify_token"), keys.VerifyToken), keys.VerifyToken == "", q.Get("hub.mode") != "subscribe", !challengeShape.MatchString(challenge):
		w.WriteHeader(http.StatusForbidden)
	default:
		h.heard(r.Context(), at, puntuale.WebhookVerified)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, challenge) //nolint:gosec // letters and digits, as plain text
	}
}

// deliver stores one delivery, and returns the HTTP status of the answer.
func (h *Webhook) deliver(w http.ResponseWriter, r *http.Request) int {
	at, keys, err := h.session(r.Context(), r.URL.Path)
	if err != nil {
		return http.StatusServiceUnavailable
	}
	signature, shown := signatureOf(r.Header.Get(signatureHeader))
	if keys.AppSecret == "" || !shown { // the body is not read, because it could not be verified
		return http.StatusUnauthorized
	}
	body, err := h.c.cfg.ReadBody(w, r, maxWebhook)
	switch puntuale.CodeOf(err) {
	case "":
	case puntuale.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case puntuale.CodeOverloaded, puntuale.CodeRateLimited:
		w.Header().Set("Retry-After", "1")
		return http.StatusServiceUnavailable
	default:
		return http.StatusBadRequest
	}
	if !signed(body, signature, keys.AppSecret) {
		return http.StatusUnauthorized
	}
	ctx, cancel := context.WithTimeout(r.Context(), webhookWait)
	defer cancel()
	all, odd, err := h.c.read(body, func(number, account string) ([]origin, error) {
		return h.concerned(ctx, at, keys, number, account)
	})
	if odd > 0 {
		h.c.cfg.Logger.Warn("Meta told something that is not understood, or of a number that is not here", "session_id", int64(at.session), "parts", odd)
	}
	for i := 0; i < len(all) && err == nil; i++ {
		if err = h.c.store(ctx, &all[i]); err == nil {
			h.c.noteStored(&all[i])
		}
	}
	if err != nil {
		h.c.cfg.Logger.Error("what Meta told could not be kept; it will be told again", "session_id", int64(at.session), "error", err)
		return http.StatusServiceUnavailable
	}
	for i := range all { // the app's other numbers, too, and not the one in the address if the delivery is about others
		h.heard(ctx, all[i].origin, puntuale.WebhookDelivered)
	}
	return http.StatusOK
}

// heard stores that Meta reached the webhook of a session, at most once an hour for each node.
func (h *Webhook) heard(ctx context.Context, at origin, how string) {
	now, reach := h.c.cfg.Clock.Now(), heardSubject{at.session, how}
	h.mu.Lock()
	due := now.Sub(h.lastHeard[reach]) >= lookAgain
	if due {
		if len(h.lastHeard) >= maxKeys {
			clear(h.lastHeard)
		}
		h.lastHeard[reach] = now
	}
	h.mu.Unlock()
	if !due {
		return
	}
	report := puntuale.HealthReport{Client: at.client, Session: at.session, Kind: puntuale.HealthWebhook, Subject: how, Value: "1", At: now}
	if err := h.c.cfg.Store.KeepHealth(ctx, []puntuale.HealthReport{report}, now); err != nil {
		h.c.cfg.Logger.Warn("that Meta reached a webhook could not be kept", "session_id", int64(at.session), "error", err)
	}
}

// readBody is the default of Config.ReadBody.
func readBody(w http.ResponseWriter, r *http.Request, maxBytes int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, &puntuale.Error{Code: puntuale.CodeTooLarge, Reason: puntuale.Because(puntuale.FaultCallBodyTooLarge), Err: err}
	}
	return body, err
}

// store stores a report on disk.
func (c *Connector) store(ctx context.Context, t *sessionReport) error {
	if err := c.cfg.Take(ctx, t.session, t.InboundBatch); err != nil {
		return err
	}
	for _, n := range t.Templates {
		if n.Status != puntuale.TemplateApproved {
			continue
		}
		if err := c.cfg.Store.EndOfficialPauses(ctx, t.client, t.session, t.account, puntuale.PauseTemplate, n.Name+" "+n.Language); err != nil {
			return err
		}
	}
	if err := c.cfg.Store.KeepOfficialPauses(ctx, t.pauses); err != nil || len(t.health) == 0 && !t.reread {
		return err
	}
	if err := c.cfg.Store.KeepHealth(ctx, t.health, c.cfg.Clock.Now()); err != nil {
		return err
	}
	if c.account(t.session) == nil && c.cfg.Look != nil {
		return c.cfg.Look(ctx, t.client, t.session)
	}
	return nil
}

// noteStored adds a report's aliases to memory, and makes the open session obey the report. It runs after the report was
// stored on disk.
func (c *Connector) noteStored(t *sessionReport) {
	c.aliases.Note(t.Aliases, c.cfg.Clock.Now())
	a := c.account(t.session)
	if a == nil {
		return
	}
	for _, change := range t.Changes {
		a.rename(change)
	}
	for _, n := range t.Templates {
		if n.Status == puntuale.TemplateApproved {
			a.mu.Lock()
			delete(a.holds, pauseSubject{puntuale.PauseTemplate, n.Name + " " + n.Language})
			a.mu.Unlock()
		}
		a.reconsider()
	}
	if a.follow(t.pauses) {
		ring(a.wake)
	}
	if len(t.health) > 0 || t.reread {
		a.look()
	}
}

// concerned returns the sessions of a number, or of a business if number is "". An app has one webhook for all its
// numbers. So a delivery that is signed with the app's secret is accepted for all sessions with this secret.
func (h *Webhook) concerned(ctx context.Context, at origin, keys puntuale.OfficialKeys, number, account string) ([]origin, error) {
	if number == keys.PhoneNumberID && number != "" {
		return []origin{at}, nil
	}
	all, err := h.c.cfg.Store.OfficialSessions(ctx, number, account)
	if err != nil {
		return nil, err
	}
	var found []origin
	for _, id := range all {
		other, has, err := h.session(ctx, puntuale.OfficialWebhooks+id.String())
		switch {
		case err != nil:
			return nil, err
		case !equalSecrets(has.AppSecret, keys.AppSecret):
		case account == "" && has.PhoneNumberID != number, account != "" && has.BusinessAccountID != account:
		default:
			found = append(found, other)
		}
	}
	return found, nil
}

// origin is the client and session that a webhook belongs to.
type origin struct {
	session puntuale.SessionID
	client  puntuale.ClientID
	account string // Meta's id of the business in the session's keys; "": none
}

// session returns the session in a path, with its keys. If the session does not exist or has no keys, the returned keys
// are empty, and no signature matches them.
func (h *Webhook) session(ctx context.Context, path string) (origin, puntuale.OfficialKeys, error) {
	id, err := puntuale.ParseID[puntuale.SessionID](strings.TrimPrefix(path, puntuale.OfficialWebhooks))
	if err != nil {
		return origin{}, puntuale.OfficialKeys{}, nil //nolint:nilerr // a text that is no id names no session
	}
	now := h.c.cfg.Clock.Now()
	h.mu.Lock()
	kept, ok := h.kept[id]
	h.mu.Unlock()
	if age := now.Sub(kept.read); !ok || age > keysKept || age < 0 {
		if kept, err = h.read(ctx, id, now); err != nil {
			h.c.cfg.Logger.Error("the keys of a session could not be read for its webhook", "session_id", int64(id), "error", err)
			return origin{}, puntuale.OfficialKeys{}, err
		}
	}
	if kept.keys == nil {
		return origin{}, puntuale.OfficialKeys{}, nil
	}
	return origin{id, kept.client, kept.keys.BusinessAccountID}, *kept.keys, nil
}

func (h *Webhook) read(ctx context.Context, id puntuale.SessionID, now time.Time) (kept keptKeys, err error) {
	client, sealed, err := h.c.cfg.Store.SealedKeys(ctx, id)
	if err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
		return keptKeys{}, err
	}
	kept = keptKeys{client: client, read: now}
	if sealed != nil {
		if kept.keys, err = h.c.unseal(id, sealed); err != nil {
			return keptKeys{}, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.kept) >= maxKeys {
		clear(h.kept)
	}
	h.kept[id] = kept
	return kept, nil
}

// signed reports whether the sender of the body has the app's secret. body must be the exact bytes of the request. If
// secret is "", signed returns false, but takes the same time.
func signed(body []byte, given [sha256.Size]byte, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hmac.Equal(given[:], mac.Sum(nil)) && secret != ""
}

// equalSecrets compares two texts. The time it needs reveals nothing about the texts.
func equalSecrets(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
