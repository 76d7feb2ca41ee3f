package official

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"puntuale"
)

// Prepare uploads media, and refuses messages that Meta would refuse. Meta bills nothing for the upload.
func (c *Connector) Prepare(ctx context.Context, e puntuale.Envelope) (puntuale.Prepared, error) {
	now := c.cfg.Clock.Now()
	a := c.account(e.Session)
	if a == nil {
		return puntuale.Prepared{}, offline()
	}
	keys, ok := a.access(now)
	if !ok {
		return puntuale.Prepared{}, offline()
	}
	switch group := puntuale.IsNetworkGroup(e.To); {
	case group && !keys.GroupsAPI:
		return puntuale.Prepared{}, final(reasonGroup, puntuale.Quoted("recipient_type group"))
	case !group && !strings.HasPrefix(e.To, "+") && !puntuale.IsPersonID(e.To):
		return puntuale.Prepared{}, final(reasonOtherGroup, puntuale.Quoted("recipient_type group"))
	}
	p := &payload{message: newOutgoing(e.To)}
	if t := e.Content.Official; t != nil && t.Language == "" {
		chosen, err := c.inLanguage(ctx, a, keys, e)
		switch missing := puntuale.AsSendError(err); {
		case missing != nil: // no matter if the message leaves without its template
			p.missing = missing
		case err != nil:
			return puntuale.Prepared{}, err
		default:
			e.Content.Official = chosen
		}
	}
	if err := c.allowed(ctx, a, keys, e, p, now); err != nil {
		return puntuale.Prepared{}, err
	}
	if err := c.compose(ctx, a, keys, e, p); err != nil {
		return puntuale.Prepared{}, err
	}
	return puntuale.Prepared{Envelope: e, Payload: p}, nil
}

// inLanguage returns the message's template in a language that the person reads, see [puntuale.ChooseLanguage].
func (c *Connector) inLanguage(ctx context.Context, a *account, keys puntuale.OfficialKeys, e puntuale.Envelope) (*puntuale.Approved, error) {
	t := *e.Content.Official
	all, person, err := c.cfg.Store.TemplateLanguages(ctx, a.clientID(), keys.BusinessAccountID, t.Name, e.To)
	if err != nil {
		return nil, err
	}
	chosen, found := puntuale.ChooseLanguage(all, t.Name, "", person)
	if !found {
		return nil, final(puntuale.ReasonNoTemplate, puntuale.Quoted(t.Name))
	}
	t.Language = chosen.Language
	return &t, nil
}

// allowed returns an error if the person may not get the message now. It sets window, first, template and replies of p.
func (c *Connector) allowed(ctx context.Context, a *account, keys puntuale.OfficialKeys, e puntuale.Envelope, p *payload, now time.Time) error {
	p.country = c.countryOf(e.To)
	if t := e.Content.Official; t != nil {
		p.template = templateKey(t)
	}
	key := puntuale.PauseKey{Client: e.Client, Session: e.Session, Account: keys.BusinessAccountID, To: e.To, Country: p.country, Template: p.template, Now: now}
	windowEnd, pauses, err := c.cfg.Store.OfficialPauses(ctx, key)
	if err != nil {
		return err
	}
	p.window, p.first = windowEnd, !now.Before(windowEnd)
	pauses = append(pauses, a.ordersNow()...)
	if !a.learn(key, pauses) {
		return offline()
	}
	refusal, err := c.choose(ctx, a, keys, e, p, pauses, now)
	if err != nil {
		return err
	}
	if held := firstOf(pauses, p, windowEnd, now); held != nil {
		return held
	}
	if refusal != nil {
		return refusal
	}
	if p.first {
		if err := c.readOthers(ctx, a, now); err != nil {
			return err
		}
		if wait := a.persons().wait(e.To, now); wait > 0 {
			return tooMany(wait)
		}
	}
	if wait := a.pairs.wait(e.To, now); wait > 0 {
		return tooOften(wait)
	}
	return nil
}

// firstOf returns the send error of the first wait that holds back a message, or nil.
func firstOf(all []puntuale.OfficialPause, p *payload, windowEnd, now time.Time) error {
	for _, w := range all {
		if p.path && w.Code == puntuale.CodeMarketingClosed { // it closes only the usual path
			continue
		}
		if applies(w, p, windowEnd.Add(-puntuale.ServiceWindow), now) {
			return heldBack(w, now)
		}
	}
	return nil
}

// compose sets the message's content, and uploads its file.
func (c *Connector) compose(ctx context.Context, a *account, keys puntuale.OfficialKeys, e puntuale.Envelope, p *payload) error {
	var kind mediaKind
	var media string
	if e.Content.MediaURL != "" {
		var err error
		if kind, media, p.upload, err = c.upload(ctx, a, keys, e); err != nil {
			return err
		}
	}
	content, payloads := e.Content, c.tapPayloads(e)
	content.MediaName = cmp.Or(content.MediaName, kind.name)
	if p.way != puntuale.WayTemplate {
		content.Official = nil
	}
	if content.Official == nil && puntuale.IsNetworkGroup(e.To) { // Meta sends nothing interactive to groups
		content.Flatten()
	}
	var refusal *puntuale.SendError
	switch {
	case content.Official != nil:
		content.Official = withTaps(*content.Official, p.replies, payloads)
		refusal = p.message.setTemplate(content, kind, media)
	case len(content.Buttons()) > 0 && kind.kind != audioKind.kind:
		p.message.setReplyButtons(content, payloads, kind, media)
	case content.Interactive != nil && kind.kind != audioKind.kind:
		p.message.setInteractive(content, payloads, kind, media)
	case media != "":
		refusal = p.message.setMedia(kind, media, content)
	case content.Latitude != nil && content.Longitude != nil:
		refusal = p.message.setLocation(content)
	default:
		p.message.setText(content.Text)
	}
	if refusal != nil {
		return refusal
	}
	if p.way == puntuale.WayDirectSend {
		p.message.byDirectSend()
		p.instead.compose(e, p.replies, payloads)
	}
	return nil
}

// Send posts the message. A refusal of a first attempt proves that the message did not arrive. In a repeat, the earlier
// attempt may have arrived. So a refused repeat proves nothing, and the outcome stays uncertain.
func (c *Connector) Send(ctx context.Context, prepared puntuale.Prepared) (puntuale.Acceptance, error) {
	receipt, err := c.send(ctx, prepared)
	return receipt, prepared.Unsure(err)
}

func (c *Connector) send(ctx context.Context, prepared puntuale.Prepared) (puntuale.Acceptance, error) {
	p, ok := prepared.Payload.(*payload)
	if !ok {
		return puntuale.Acceptance{}, final(puntuale.ReasonUnprepared, puntuale.Quoted("payload"))
	}
	if err := ctx.Err(); err != nil {
		return puntuale.Acceptance{}, &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Because(puntuale.ReasonInterrupted), Detail: puntuale.Quoted(err.Error()), Err: err}
	}
	now := c.cfg.Clock.Now()
	a := c.account(prepared.Session)
	if a == nil {
		return puntuale.Acceptance{}, offline()
	}
	keys, ok := a.access(now)
	if !ok {
		return puntuale.Acceptance{}, offline()
	}
	fresh, err := c.take(ctx, a, prepared, p, now)
	if err != nil {
		return puntuale.Acceptance{}, err
	}
	receipt, err := c.post(ctx, a, keys, prepared, p)
	if fresh && puntuale.AsSendError(err) != nil {
		a.persons().undo(prepared.To)
	}
	return receipt, err
}

// take counts the message against the limits just before the message leaves, because time has passed since Prepare.
// fresh means that the person has no open 24-hour window, and that this is the first message to that person in 24
// hours.
func (c *Connector) take(ctx context.Context, a *account, prepared puntuale.Prepared, p *payload, now time.Time) (fresh bool, err error) {
	first := p.first
	if !first && !now.Before(p.window) { // the window that Prepare read is closed, so take checks whether the person wrote again
		windowEnd, err := c.cfg.Store.ReplyWindowEnd(ctx, prepared.Client, prepared.Session, prepared.To)
		if err != nil {
			return false, &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Because(puntuale.ReasonInterrupted), Detail: puntuale.Because(reasonWindowUnread), Err: err}
		}
		first = !now.Before(windowEnd)
	}
	if refusal := a.mayLeave(p, now); refusal != nil {
		return false, refusal
	}
	if p.way == puntuale.WayFreeText && first && prepared.Content.Official != nil { // it leaves in another way now
		return false, &puntuale.SendError{Kind: puntuale.Deferred, Reason: puntuale.Because(reasonWindow), Detail: puntuale.Because(reasonClosedBefore), After: time.Second}
	}
	if p.way == puntuale.WayFreeText && first {
		return false, final(reasonWindow, puntuale.Because(reasonClosedBefore))
	}
	if wait := a.pairs.take(prepared.To, now); wait > 0 {
		return false, tooOften(wait)
	}
	if first {
		var wait time.Duration
		if fresh, wait = a.persons().take(prepared.To, now); wait > 0 {
			return false, tooMany(wait)
		}
	}
	return fresh, nil
}

// post sends the message to Meta. After that, the message cannot be cancelled. If Meta refuses its way, post tries the
// other one, once: the refusal proves that nothing left.
func (c *Connector) post(ctx context.Context, a *account, keys puntuale.OfficialKeys, prepared puntuale.Prepared, p *payload) (puntuale.Acceptance, error) {
	taken, err := c.postOnce(ctx, a, keys, prepared, p)
	refusal, ok := errors.AsType[*graphError](err)
	if first := refusal; ok && c.otherWay(ctx, a, keys, refusal, prepared, p) {
		taken, err = c.postOnce(ctx, a, keys, prepared, p)
		if refusal, ok = errors.AsType[*graphError](err); ok && codeOf(err) == pathNotAccepted && first.Code == puntuale.CodeMarketingClosed {
			_ = c.refuse(ctx, a, refusal, prepared.To, p.template)
			refusal = first // both paths are closed for now: the message waits
		}
	}
	if ok {
		return puntuale.Acceptance{}, c.refused(ctx, a, refusal, prepared, p)
	}
	return taken, err
}

// postOnce sends the message to Meta in its present way. A [*graphError] is Meta's refusal.
func (c *Connector) postOnce(ctx context.Context, a *account, keys puntuale.OfficialKeys, prepared puntuale.Prepared, p *payload) (puntuale.Acceptance, error) {
	message := p.message
	path := "/messages"
	message.Token = callback(prepared.Envelope)
	switch {
	case p.way == puntuale.WayDirectSend:
		message.Token += directMark
		message.TTL = timeToLive(prepared.ValidUntil, c.cfg.Clock.Now())
	case p.path:
		path = "/marketing_messages"
		message.Policy, message.Sharing = "CLOUD_API_FALLBACK", new(false)
	}
	var answer struct {
		Contacts []person `json:"contacts"`
		Messages []struct {
			ID     string `json:"id"`
			Status string `json:"message_status"`
		} `json:"messages"`
	}
	err := c.graph.post(ctx, prepared.Client, keys, url.PathEscape(keys.PhoneNumberID)+path, encode(message), &answer)
	if unsent, ok := errors.AsType[*unsentError](err); ok {
		return puntuale.Acceptance{}, &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Because(puntuale.ReasonUnreachable), Detail: puntuale.Because(puntuale.ReasonUnsent, storable(unsent.err.Error())), Err: err}
	}
	switch {
	case err != nil:
		return puntuale.Acceptance{}, err
	case len(answer.Messages) != 1 || answer.Messages[0].ID == "":
		return puntuale.Acceptance{}, errors.New("answer 200 without a message id")
	}
	a.accepted(prepared.To)
	c.noteNames(ctx, a, prepared, answer.Contacts)
	detail := answer.Messages[0].ID
	if status := answer.Messages[0].Status; status != "" && status != "accepted" {
		detail += " (" + status + ")"
	}
	detail = c.noteWay(ctx, a, prepared, p, detail)
	return puntuale.Acceptance{Detail: puntuale.Quoted(storable(clip(detail, 300)))}, nil
}

// noteNames stores Meta's name for a recipient, if it differs from ours. Meta writes the numbers of some countries in
// another form than we do, and gives an id for people who hide their number. If Meta gives a number and an id,
// noteNames does not store the id, because later statuses contain it.
func (c *Connector) noteNames(ctx context.Context, a *account, prepared puntuale.Prepared, all []person) {
	if len(all) != 1 {
		return
	}
	name, ok := phoneOf(all[0].Number)
	if !ok {
		name, ok = all[0].ID, puntuale.IsPersonID(all[0].ID)
	}
	x := puntuale.Alias{Client: prepared.Client, Session: prepared.Session, Name: name, Phone: prepared.To}
	if !ok || name == prepared.To || c.aliases.Known(x, c.cfg.Clock.Now()) {
		return
	}
	fresh := []puntuale.Alias{x}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	if err := c.cfg.Take(ctx, prepared.Session, puntuale.InboundBatch{Aliases: fresh}); err != nil {
		a.log.Warn("another name of a recipient could not be kept", "error", err) // only a warning, because Meta's next answer contains the name again
		return
	}
	c.aliases.Note(fresh, c.cfg.Clock.Now())
}

// refused handles Meta's refusal of a message. It does the action of the refusal's code.
func (c *Connector) refused(ctx context.Context, a *account, refusal *graphError, prepared puntuale.Prepared, p *payload) error {
	sendError := c.refuse(ctx, a, refusal, prepared.To, p.template)
	row, _ := ruleFor(refusal, p.country)
	if p.way == puntuale.WayDirectSend && prepared.Content.Official != nil && aboutDirectSend(refusal, row) { // its template could not be sent a moment ago, so it waits for it
		c.keepPauses(ctx, a, notDirect(refusal, row, refusedMessage{origin: a.origin(), names: given(prepared.To), at: c.cfg.Clock.Now()}))
		sendError.Kind, sendError.After = puntuale.Deferred, time.Second
	}
	if p.upload != nil && (refusal.Code == 131053 || refusal.Code == 131009 || refusal.Code == 100) { // Meta may have lost the file, so the next message must upload it again
		if err := c.cfg.Store.KeepUpload(ctx, *p.upload, "", time.Time{}); err != nil {
			a.log.Warn("an upload could not be forgotten", "error", err)
		}
	}
	if row.action == optedOut {
		now := c.cfg.Clock.Now()
		err := c.cfg.Take(ctx, prepared.Session, puntuale.InboundBatch{Preferences: []puntuale.Preference{{
			Client: prepared.Client, Session: prepared.Session, Phone: prepared.To, Stop: true, At: now, Reason: optOutReason(refusal.Code, now),
		}}})
		if err != nil {
			a.log.Error("that a person wants no marketing could not be kept", "message_id", int64(prepared.Message), "error", err)
		}
	}
	return sendError
}

// optOutReason returns the text that is stored in the ledger of consent as proof of an opt-out.
func optOutReason(code int, at time.Time) string {
	return "non vuole messaggi di marketing (codice Meta " + strconv.Itoa(code) + ", " + at.UTC().Format(time.RFC3339) + ")"
}

// noteTime limits how long noteNames delays an outcome. If a name is not stored, the next answer contains it again.
const noteTime = time.Second

func offline() *puntuale.SendError {
	return &puntuale.SendError{Kind: puntuale.SessionDown, Reason: puntuale.Because(puntuale.ReasonNotLinked), Detail: puntuale.Because(puntuale.ReasonPaused)}
}

func tooOften(wait time.Duration) *puntuale.SendError {
	return &puntuale.SendError{Kind: puntuale.Deferred, Reason: puntuale.Because(reasonTooOften), Detail: puntuale.Because(reasonEverySix), After: wait}
}

func tooMany(wait time.Duration) *puntuale.SendError {
	return &puntuale.SendError{Kind: puntuale.Deferred, Reason: puntuale.Because(reasonManyPeople), Detail: puntuale.Because(reasonNumberLimit), After: wait}
}
