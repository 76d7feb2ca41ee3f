package storetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"puntuale"
)

func (c *Client) mustHear(phone string, at, now time.Time) int {
	c.w.t.Helper()
	n, err := c.w.KeepInbound(context.Background(), now, []puntuale.TakenMessage{{
		InboundMessage: puntuale.InboundMessage{Client: c.ID, Session: c.Session, Phone: phone, At: at}, Names: []string{phone},
	}})
	if err != nil {
		c.w.t.Fatalf("keep what was heard: %v", err)
	}
	return n
}

func (c *Client) window(session puntuale.SessionID, phone string) time.Time {
	c.w.t.Helper()
	windowEnd, err := c.w.ReplyWindowEnd(context.Background(), c.ID, session, phone)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return windowEnd
}

// testWindow checks that a window stays open for 24 hours after the person's last message, even if the network reports
// messages in another order.
func testWindow(t *testing.T, w *World) {
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountTest)
	if windowEnd := c.window(c.Session, phone); !windowEnd.IsZero() {
		t.Errorf("never wrote: %v", windowEnd)
	}
	for _, at := range []time.Duration{0, time.Hour, 30 * time.Minute, -48 * time.Hour} {
		c.mustHear(phone, Begin.Add(at), Begin.Add(2*time.Hour))
	}
	if windowEnd := c.window(c.Session, phone); !windowEnd.Equal(Begin.Add(25 * time.Hour)) {
		t.Errorf("open until %v", windowEnd)
	}
	c.mustHear("+393330000001", Begin.Add(time.Hour), Begin) // the network's clock is ahead
	if windowEnd := c.window(c.Session, "+393330000001"); !windowEnd.Equal(Begin.Add(24 * time.Hour)) {
		t.Errorf("from the future: %v", windowEnd)
	}
	if !c.window(other.Session, phone).IsZero() || !other.window(other.Session, phone).IsZero() {
		t.Error("it is open for others, too")
	}
}

// testReplyStops checks that a reply stops runs that began before the reply. The sequence of such a run must stop on a
// reply, and the run must use the session that got the reply.
func testReplyStops(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountTest)
	q := puntuale.Sequence{ID: c.Sequence, Name: "promemoria", StopOnReply: true, Steps: []puntuale.Step{{Text: "uno"}, {Text: "due"}}}
	if err := c.UpdateSequence(ctx, q); err != nil {
		t.Fatal(err)
	}
	steady, err := c.CreateSequence(ctx, puntuale.Sequence{Name: "altra", Created: Begin, Updated: Begin, Steps: []puntuale.Step{{Text: "uno"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	due := Begin.Add(time.Hour)
	stopped := c.MustStart(phone, due, 2)
	someone := c.MustStart("+393330000001", due, 2)
	run := c.Run(phone, due, 1)
	run.Run.Sequence = steady
	goesOn, err := c.Start(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	if n := c.mustHear(phone, Begin.Add(-time.Minute), Begin); n != 0 {
		t.Errorf("a message from before stopped %d", n)
	}
	for _, kind := range []puntuale.ReplyKind{puntuale.ReplyReaction, puntuale.ReplyCall} {
		unwritten := puntuale.InboundMessage{Client: c.ID, Session: c.Session, Phone: phone, At: Begin, Kind: kind}
		if n, err := w.KeepInbound(ctx, Begin, []puntuale.TakenMessage{{InboundMessage: unwritten, Names: []string{phone}}}); err != nil || n != 0 {
			t.Errorf("a %s stopped %d, %v", kind, n, err)
		}
	}
	if n := c.mustHear(phone, Begin, Begin.Add(time.Minute)); n != 2 {
		t.Errorf("%d messages were stopped", n)
	}
	if n := c.mustHear(phone, Begin, Begin.Add(time.Minute)); n != 0 {
		t.Errorf("a repeat stopped %d", n)
	}
	for id, want := range map[puntuale.MessageID]puntuale.State{
		stopped[0]: puntuale.Cancelled, stopped[1]: puntuale.Cancelled, someone[0]: puntuale.Pending, goesOn.IDs[0]: puntuale.Pending,
	} {
		if d := c.Detail(id); d.State != want {
			t.Errorf("message %d is %v, want %v", id, d.State, want)
		}
	}
	if used := w.Int("select used from api_usage where client_id = $1", c.ID); used != 3 {
		t.Errorf("%d calls were counted: a reply is none", used)
	}
}

func (c *Client) reply(id string, at time.Time, m puntuale.TakenMessage) puntuale.TakenMessage {
	m.Client, m.Session, m.ID, m.Mark, m.At = c.ID, c.Session, id, id, at
	if m.Phone == "" {
		m.Phone = phone
	}
	if m.Names == nil {
		m.Names = []string{m.Phone}
	}
	if m.Kind == "" {
		m.Kind = puntuale.ReplyText
	}
	if m.Keep == "" {
		m.Keep = puntuale.KeepKnownReplies
	}
	return m
}

func (c *Client) mustTake(now time.Time, all ...puntuale.TakenMessage) {
	c.w.t.Helper()
	if _, err := c.w.KeepInbound(context.Background(), now, all); err != nil {
		c.w.t.Fatalf("keep a reply: %v", err)
	}
}

// testInboundLooks checks that the store itself finds the names and the settings if the caller passes no names. A
// message that may change consent must not be stored before its change of consent.
func testInboundLooks(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	const person, number, written = "US.123456789", "+5511987654321", "+551187654321"
	if err := w.KeepAliases(ctx, []puntuale.Alias{{Client: c.ID, Session: c.Session, Name: written, Phone: number}, {Client: c.ID, Session: c.Session, Name: person, Phone: written}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.UpdateSettings(ctx, puntuale.SettingsPatch{KeepReplies: new(puntuale.KeepAllReplies), OptOutWords: &[]string{"ora"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := other.UpdateSettings(ctx, puntuale.SettingsPatch{KeepReplies: new(puntuale.KeepNoReplies)}); err != nil {
		t.Fatal(err)
	}
	message := func(c *Client, mark string) puntuale.TakenMessage {
		m := puntuale.TakenMessage{InboundMessage: puntuale.InboundMessage{Client: c.ID, Session: c.Session, Phone: person, At: Begin, ID: mark, Kind: puntuale.ReplyText, Text: "Ciao"}, Mark: mark}
		m.MayChangeConsent = func(set puntuale.ClientSettings) bool {
			return mark == "asks" && slices.Equal(set.OptOutWords, []string{"ora"})
		}
		return m
	}
	for range 2 {
		c.mustTake(Begin, message(c, "a"))
		other.mustTake(Begin, message(other, "a"), message(other, "asks"))
		if _, err := w.KeepInbound(ctx, Begin, []puntuale.TakenMessage{message(c, "b"), message(c, "asks")}); !errors.Is(err, puntuale.ErrConsentFirst) {
			t.Errorf("a message that may change consent: %v", err)
		}
		if seen, err := w.Seen(ctx, c.ID, "asks"); err != nil || seen {
			t.Errorf("it is taken: %v, %v", seen, err)
		}
	}
	if all := c.mustReplies(puntuale.ReplyFilter{}); len(all) != 1 || all[0].Phone != written || all[0].NetworkID != "a" {
		t.Errorf("kept: %+v", all)
	}
	if all := other.mustReplies(puntuale.ReplyFilter{}); len(all) != 0 {
		t.Errorf("kept for one who keeps nothing: %+v", all)
	}
	for _, name := range []string{person, number, written} {
		if c.window(c.Session, name).IsZero() {
			t.Errorf("%s may not be answered", name)
		}
	}
	if !other.window(other.Session, number).IsZero() {
		t.Error("an alias of one client is another's, too")
	}
	var twins sync.WaitGroup
	// Many callers report the same message. Its change of consent is not stored yet, so no caller may store the
	// message.
	for range 20 {
		twins.Go(func() {
			if _, err := w.KeepInbound(ctx, Begin, []puntuale.TakenMessage{message(c, "asks")}); !errors.Is(err, puntuale.ErrConsentFirst) {
				t.Errorf("one of many that may change consent: %v", err)
			}
		})
	}
	twins.Wait()
	seen := message(c, "asks")
	seen.Names, seen.Keep, seen.MayChangeConsent = []string{person}, puntuale.KeepAllReplies, nil
	c.mustTake(Begin, seen)
	c.mustTake(Begin, message(c, "asks"), message(c, "b")) // the first message is already stored, so it does not cause ErrConsentFirst
	if all := c.mustReplies(puntuale.ReplyFilter{}); len(all) != 3 {
		t.Errorf("afterwards: %+v", all)
	}
}

// testInboundGathers checks that messages that are reported within a short time share transactions. The first message
// must not wait.
func testInboundGathers(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	const n, every = 100, time.Millisecond
	before := w.DB.Meter.Inbound.Load()
	begun := time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if _, err := w.KeepInbound(context.Background(), Begin, []puntuale.TakenMessage{{Mark: "m" + strconv.Itoa(i), InboundMessage: puntuale.InboundMessage{
				Client: c.ID, Session: c.Session, Phone: phone, At: Begin, Kind: puntuale.ReplyText, Text: "Ciao"}}}); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(every)
	}
	all.Wait()
	// There may be one transaction for each ten milliseconds, and one more for the first message.
	if took, limit := time.Since(begun), int64(time.Since(begun)/(10*time.Millisecond))+2; w.DB.Meter.Inbound.Load()-before > limit {
		t.Errorf("%d transactions within %v", w.DB.Meter.Inbound.Load()-before, took)
	}
	if seen := w.Int("select count(*) from inbound_seen where client_id = $1", c.ID); seen != n {
		t.Errorf("%d of %d are taken", seen, n)
	}
}

func (c *Client) mustReplies(f puntuale.ReplyFilter) []puntuale.Reply {
	c.w.t.Helper()
	all, next, err := c.Replies(context.Background(), f, puntuale.Page{})
	if err != nil || next != "" {
		c.w.t.Fatalf("list replies: %q, %v", next, err)
	}
	return all
}

// testReplies checks that a reply is stored once, with the run that it answers. The counts of unread replies must
// change when replies are read.
func testReplies(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	ids := c.MustStart(phone, Begin, 1)
	c.MustSend(node, Begin, ids[0])
	later := Begin.Add(time.Hour)
	media := &puntuale.ReplyMedia{Type: "image/jpeg", Size: 3, Until: later, Ref: []byte{0, 1, 2}}
	for range 2 {
		c.mustTake(later, c.reply("a", later, puntuale.TakenMessage{InboundMessage: puntuale.InboundMessage{Text: "Sì, confermo"}}),
			c.reply("b", later, puntuale.TakenMessage{InboundMessage: puntuale.InboundMessage{Kind: puntuale.ReplyImage, Media: media}}))
	}
	c.mustTake(later, c.reply("c", later, puntuale.TakenMessage{InboundMessage: puntuale.InboundMessage{Phone: "+393330000009", Text: "Ciao mamma"}}))
	all := c.mustReplies(puntuale.ReplyFilter{})
	if len(all) != 2 || all[1].Text != "Sì, confermo" || all[1].Run != puntuale.RunID(ids[0]) || !all[1].Read.IsZero() || !all[1].At.Equal(later) || all[1].NetworkID != "a" ||
		all[0].Media == nil || all[0].Media.Type != "image/jpeg" || string(all[0].Media.Ref) != "\x00\x01\x02" {
		t.Errorf("replies: %+v", all)
	}
	if n := len(c.mustReplies(puntuale.ReplyFilter{Unread: true})); n != 2 {
		t.Errorf("%d unread", n)
	}
	if one, err := c.Reply(ctx, all[1].ID); err != nil || one.Text != all[1].Text {
		t.Errorf("one reply: %+v, %v", one, err)
	}
	if _, err := other.Reply(ctx, all[1].ID); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("another client's reply: %v", err)
	}
	if n := len(other.mustReplies(puntuale.ReplyFilter{})); n != 0 {
		t.Errorf("another client reads %d replies", n)
	}
	talks, _, err := c.Conversations(ctx, true, puntuale.Page{})
	if err != nil || len(talks) != 1 || talks[0].Phone != phone || talks[0].Unread != 2 || talks[0].Last.ID != all[0].ID {
		t.Errorf("conversations: %+v, %v", talks, err)
	}
	if n, err := c.Unread(ctx, 100); err != nil || n != 1 {
		t.Errorf("%d people with unread replies, %v", n, err)
	}
	c.countsConversations(true, 1)
	c.countsConversations(false, 1)
	other.countsConversations(false, 0)
	if n, err := c.MarkRead(ctx, phone, all[1].ID, later); err != nil || n != 1 {
		t.Errorf("%d marked, %v", n, err)
	}
	if n, err := c.MarkRead(ctx, phone, 0, later); err != nil || n != 1 {
		t.Errorf("%d marked, %v", n, err)
	}
	if talk, err := c.Conversation(ctx, phone); err != nil || talk.Unread != 0 || talk.Last.ID != all[0].ID {
		t.Errorf("the conversation: %+v, %v", talk, err)
	}
	if n, err := c.Unread(ctx, 100); err != nil || n != 0 {
		t.Errorf("%d people with unread replies, %v", n, err)
	}
	c.countsConversations(true, 0)
	c.countsConversations(false, 1)
}

func (c *Client) countsConversations(unread bool, want int) {
	c.w.t.Helper()
	for limit := range want + 2 {
		if n, all, err := c.CountConversations(context.Background(), unread, limit); err != nil || n != min(limit, want) || all != (limit >= want) {
			c.w.t.Errorf("conversations, unread %v, up to %d: %d, %v, %v; want %d", unread, limit, n, all, err, want)
		}
	}
}

// testKeepReplies checks that the client's setting decides which replies are stored. An own message must begin a
// take-over.
func testKeepReplies(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	c.MustSend(node, Begin, c.MustStart(phone, Begin, 1)[0])
	const cold = "+393330000009"
	at := Begin.Add(31 * 24 * time.Hour)
	n := 0
	keep := func(m puntuale.TakenMessage) bool {
		before := len(c.mustReplies(puntuale.ReplyFilter{Own: true}))
		n++
		c.mustTake(at, c.reply("k"+strconv.Itoa(n), m.At, m))
		return len(c.mustReplies(puntuale.ReplyFilter{Own: true})) == before+1
	}
	message := func(phone string, after time.Duration, own bool) puntuale.TakenMessage {
		return puntuale.TakenMessage{InboundMessage: puntuale.InboundMessage{Phone: phone, At: Begin.Add(after), Own: own, Text: "Ciao"}}
	}
	for i, x := range []struct {
		m    puntuale.TakenMessage
		keep puntuale.KeepReplies
		kept bool
	}{
		{message(phone, time.Hour, false), puntuale.KeepKnownReplies, true},
		{message(phone, 31*24*time.Hour, false), puntuale.KeepKnownReplies, false}, // this message came more than 30 days after the run
		{message(cold, time.Hour, false), puntuale.KeepKnownReplies, false},
		{message(cold, time.Hour, false), puntuale.KeepAllReplies, true},
		{message(phone, time.Hour, false), puntuale.KeepNoReplies, false},
		{message(phone, time.Hour, true), puntuale.KeepKnownReplies, true},
		{message(cold, time.Hour, true), puntuale.KeepKnownReplies, false},
	} {
		x.m.Keep = x.keep
		if got := keep(x.m); got != x.kept {
			t.Errorf("message %d is kept: %v", i, got)
		}
	}
	planned := c.MustStart("+393330000010", at.Add(48*time.Hour), 1)
	if !keep(message("+393330000010", time.Hour, false)) {
		t.Error("the reply of a person with a planned message is not kept")
	}
	if run := c.mustReplies(puntuale.ReplyFilter{Phone: "+393330000010"})[0].Run; run != 0 {
		t.Errorf("a reply answers run %d, which sent nothing", run)
	}
	if _, err := c.CancelMessages(ctx, planned, Day, at); err != nil {
		t.Fatal(err)
	}
	if keep(message("+393330000010", 2*time.Hour, false)) {
		t.Error("the reply of a person whose planned message was cancelled is kept")
	}
	effect := message(cold, 0, false)
	effect.Effect = puntuale.ReplyOptOut
	if !keep(effect) {
		t.Error("an opt-out of a stranger is not kept")
	}
	if talk, err := c.Conversation(ctx, phone); err != nil || !talk.Answered.Equal(Begin.Add(time.Hour)) || talk.Unread != 1 {
		t.Errorf("the take-over: %+v, %v", talk, err)
	}
	if own := c.mustReplies(puntuale.ReplyFilter{Phone: phone, Own: true}); len(own) != 2 || !own[0].Own || own[0].Read.IsZero() {
		t.Errorf("with own messages: %+v", own)
	}
	none := message(phone, 2*time.Hour, true)
	none.Keep = puntuale.KeepNoReplies
	if keep(none) {
		t.Error("an own message is kept although the client keeps none")
	}
	if talk, err := c.Conversation(ctx, phone); err != nil || !talk.Answered.Equal(Begin.Add(2*time.Hour)) {
		t.Errorf("the take-over of a client that keeps nothing: %+v, %v", talk, err)
	}
	if err := c.Answered(ctx, cold, at); err != nil {
		t.Fatal(err)
	}
	if talk, err := c.Conversation(ctx, cold); err != nil || !talk.Answered.Equal(at) {
		t.Errorf("answered: %+v, %v", talk, err)
	}
}

// testForgetReplies checks that an erasure removes the number and the texts from the person's replies. Blanking must
// remove only the texts. If the network reports an erased message again, the message must not be stored again.
func testForgetReplies(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	const other = "+393330000009"
	for i, p := range []string{phone, other} {
		c.mustTake(Begin, c.reply("f"+strconv.Itoa(i), Begin, puntuale.TakenMessage{Keep: puntuale.KeepAllReplies, InboundMessage: puntuale.InboundMessage{Phone: p, Text: "segreto"}}))
	}
	c.mustErase(phone, Begin)
	c.mustTake(Begin, c.reply("f0", Begin, puntuale.TakenMessage{Keep: puntuale.KeepAllReplies, InboundMessage: puntuale.InboundMessage{Text: "segreto"}}))
	all := c.mustReplies(puntuale.ReplyFilter{})
	if len(all) != 2 || all[0].Text != "segreto" || all[1].Text != "" || all[1].Phone != "" || all[1].NetworkID != "" || !all[1].Blanked {
		t.Errorf("after an erasure: %+v", all)
	}
	if unread := c.mustReplies(puntuale.ReplyFilter{Unread: true}); len(unread) != 1 || unread[0].Phone != other {
		t.Errorf("nobody can open the conversation of an erased person, yet these are unread: %+v", unread)
	}
	if talks, _, err := c.Conversations(ctx, false, puntuale.Page{}); err != nil || len(talks) != 1 || talks[0].Phone != other {
		t.Errorf("conversations after an erasure: %+v, %v", talks, err)
	}
	if err := w.Maintain(ctx, Begin.Add(time.Hour), Begin.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if all = c.mustReplies(puntuale.ReplyFilter{Phone: other}); len(all) != 1 || all[0].Text != "" || !all[0].Blanked {
		t.Errorf("after blanking: %+v", all)
	}
	if err := w.Maintain(ctx, Begin.Add(31*24*time.Hour), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if n := w.Int("select count(*) from inbound_seen where client_id = $1", c.ID); n != 0 {
		t.Errorf("%d messages are known again after 30 days", n)
	}
}

// ofReplies contains calls about replies and consent that use data of another client. Each call must find nothing.
var ofReplies = map[string]foreign{
	"AddConsent":  nil, // no argument belongs to another client
	"AddConsents": nil,
	"Answered":    nil,
	"ChatwootLink": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return tenant.ChatwootLink(context.Background(), other.chatwoot().Session)
	},
	"FinishChatwoot": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return tenant.FinishChatwoot(context.Background(), other.chatwoot().ID, 9)
	},
	"LinkChatwoot": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return tenant.LinkChatwoot(context.Background(), other.chatwoot(), []byte("theirs"), Begin)
	},
	"UnlinkChatwoot": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.UnlinkChatwoot(context.Background(), other.chatwoot().Session)
	},
	"ConsentStatuses": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		all, err := tenant.ConsentStatuses(context.Background(), other.person(wrote))
		return slices.Collect(maps.Keys(all)), err
	},
	"Consents": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.Consents(context.Background(), other.person(wrote), puntuale.Page{})
		return all, err
	},
	"Conversation": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		c, err := tenant.Conversation(context.Background(), wrote)
		return make([]int, c.Unread+int(c.Last.ID)), err
	},
	"Conversations": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.Conversations(context.Background(), false, puntuale.Page{})
		return all, err
	},
	"CountConversations": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		n, _, err := tenant.CountConversations(context.Background(), false, 10)
		return make([]bool, n), err
	},
	"MarkRead": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		n, err := tenant.MarkRead(context.Background(), wrote, 0, Begin)
		return make([]int, n), err
	},
	"Replies": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.Replies(context.Background(), puntuale.ReplyFilter{Phone: wrote}, puntuale.Page{})
		return all, err
	},
	"Reply": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := other.Replies(context.Background(), puntuale.ReplyFilter{}, puntuale.Page{})
		if err != nil || len(all) != 1 {
			return nil, errors.Join(errors.New("there is nothing to read"), err)
		}
		return tenant.Reply(context.Background(), all[0].ID)
	},
	"CancelMarketing": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		n, err := tenant.CancelMarketing(context.Background(), phone, Begin)
		return make([]int, n), err
	},
	"MarketingRefused": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		all, err := tenant.MarketingRefused(context.Background(), []string{wrote}, other.mark)
		if !all[wrote] { // marketing must be refused, because a new client requires consent; the other client's withdrawal must have no effect
			return nil, errors.Join(errors.New("marketing without consent is not refused"), err)
		}
		return []string(nil), err
	},
	"ReplyWindowOf": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		windowEnd, err := tenant.ReplyWindowOf(context.Background(), other.Session, wrote)
		if windowEnd.IsZero() {
			return []time.Time(nil), err
		}
		return []time.Time{windowEnd}, err
	},
	"Settings":       nil, // no argument can belong to another client
	"UpdateSettings": nil,
	"Unread": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		n, err := tenant.Unread(context.Background(), 100)
		return make([]int, n), err
	},
}

// wrote is the phone of a person who wrote to the other client and withdrew consent there.
const wrote = "+393330000006"
