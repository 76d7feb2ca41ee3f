package storetest

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"puntuale"
)

// foreign calls one method of a client's handle with something that belongs to another client. It returns an error,
// or an answer that must be empty.
type foreign func(mine puntuale.Tenant, other *Client, id puntuale.MessageID) (any, error)

// foreignCalls has every method of a client's handle. For a client, the data of other clients do not exist.
var foreignCalls = map[string]foreign{
	"Start": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := mine.Start(context.Background(), other.Run(phone, Begin, 1)) // with the other client's sequence and session
		return nil, err
	},
	"LastStarted": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		return mine.LastStarted(context.Background(), 10)
	},
	"Stop": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		r, err := mine.Stop(context.Background(), other.Sequence, phone, "", Day, Begin)
		return r.IDs, err
	},
	"CancelPending": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		some, err := CancelPending(context.Background(), mine, []string{phone}, false, Day, Begin)
		if err != nil {
			return some, err
		}
		all, err := CancelPending(context.Background(), mine, nil, true, Day, Begin)
		return append(some, all...), err
	},
	"Messages": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := mine.Messages(context.Background(), puntuale.MessageFilter{}, puntuale.Page{})
		if err != nil {
			return all, err
		}
		for _, f := range []puntuale.MessageFilter{{Phone: phone}, {Sequence: other.Sequence}, {State: new(puntuale.Pending)}} {
			some, _, err := mine.Messages(context.Background(), f, puntuale.Page{})
			if err != nil {
				return all, err
			}
			all = append(all, some...)
		}
		return all, nil
	},
	"GiveCommand": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := mine.GiveCommand(context.Background(), order(other.Session, puntuale.CommandDrain))
		return nil, err
	},
	"NetworkTemplates": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id, err := other.businessOf()
		if err != nil {
			return []string{err.Error()}, nil
		}
		_, all, _, err := mine.NetworkTemplates(context.Background(), id, puntuale.Page{})
		return all, err
	},
	"NetworkTemplatesNamed": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id, err := other.businessOf()
		if err != nil {
			return []string{err.Error()}, nil
		}
		return mine.NetworkTemplatesNamed(context.Background(), id, []string{"uno"})
	},
	"CommandAnswer": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return mine.CommandAnswer(context.Background(), other.mustGive(order(other.Session, puntuale.CommandDrain)), Begin)
	},
	"Erase": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		done, err := mine.Erase(context.Background(), puntuale.Erasure{Phone: phone, Mark: "~x", Day: Day, Now: Begin})
		if done == (puntuale.ErasureResult{}) {
			return []any{}, err
		}
		return []any{done}, err
	},
	"Outcomes": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := mine.Outcomes(context.Background(), Begin.Add(-time.Hour), Begin.Add(time.Hour), puntuale.Page{})
		return all, err
	},
	"Resend": func(mine puntuale.Tenant, other *Client, id puntuale.MessageID) (any, error) {
		r, err := mine.Resend(context.Background(), other.Again(id))
		return r.IDs, err
	},
	"CancelMessages": func(mine puntuale.Tenant, _ *Client, id puntuale.MessageID) (any, error) {
		return mine.CancelMessages(context.Background(), []puntuale.MessageID{id}, Day, Begin)
	},
	"DeleteSession": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.DeleteSession(context.Background(), other.Session, true, 0, Begin)
	},
	"UpdateSession": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.UpdateSession(context.Background(), other.Session, puntuale.SessionPatch{Name: puntuale.Change[string]{Set: true, To: "mia"}})
	},
	"GiveUp": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.GiveUp(context.Background(), other.Session, Begin)
	},
	"SetDefaultPair": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		err := mine.SetDefaultPair(context.Background(), other.Session, 0, 0)
		if puntuale.CodeOf(err) != puntuale.CodeNotFound {
			return nil, err
		}
		all, _, err := mine.Sessions(context.Background(), puntuale.Page{}) // tries to set the other client's sequence in this client's session
		if err != nil {
			return nil, err
		}
		return nil, mine.SetDefaultPair(context.Background(), all[0].ID, other.Sequence, 0)
	},
	"CreateOfficial": nil, // no argument belongs to another client
	"CreateGateway":  nil, // no argument belongs to another client
	"OfferDevice": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.OfferDevice(context.Background(), other.posted().session, []byte("x"), "stolen", Begin)
	},
	"Devices": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return mine.Devices(context.Background(), other.posted().session)
	},
	"UnlinkDevices": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.UnlinkDevices(context.Background(), other.posted().session, 0, Begin)
	},
	"Takeable": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		p := other.posted()
		return mine.Takeable(context.Background(), p.session, p.device.ID, Begin, 10)
	},
	"HeldBy": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		p := other.posted()
		return mine.HeldBy(context.Background(), p.session, p.device.ID)
	},
	"Take": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		p := other.posted()
		return mine.Take(context.Background(), p.call(p.device, Begin))
	},
	"Renew": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		p := other.posted()
		_, err := mine.Renew(context.Background(), p.session, p.device.ID, []puntuale.HeldRef{refOf(p.held)}, Begin.Add(time.Hour), Begin)
		return nil, err
	},
	"Report": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		p := other.posted()
		all, err := mine.Report(context.Background(), p.session, p.device.ID, []puntuale.DeviceReport{{HeldRef: refOf(p.held), Outcome: puntuale.Outcome{Verdict: puntuale.Sent}}}, Begin)
		return slices.DeleteFunc(all, func(r puntuale.ReportResult) bool { return r == puntuale.ReportLate }), err
	},
	"SeenDevice": nil, // the statement names the client's id, so it cannot change another client's row
	"KeepPush": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.KeepPush(context.Background(), other.posted().device.ID, []byte("x"))
	},
	"ChangeKeys": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.ChangeKeys(context.Background(), other.Session, func([]byte) ([]byte, string, error) { return []byte("x"), "", nil })
	},
	"SetKeys": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.SetKeys(context.Background(), other.Session, []byte("x"))
	},
	"CreateCampaign": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := mine.CreateCampaign(context.Background(), puntuale.Campaign{Name: "x", Session: other.Session}, nil)
		return nil, err
	},
	"UpdateCampaign": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.UpdateCampaign(context.Background(), puntuale.Campaign{ID: other.campaigned(), Name: "x"})
	},
	"Campaign": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := mine.Campaign(context.Background(), other.campaigned())
		return nil, err
	},
	"Campaigns": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.campaigned()
		all, _, err := mine.Campaigns(context.Background(), puntuale.Page{})
		return all, err
	},
	"CampaignCounts": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		counts, err := mine.CampaignCounts(context.Background(), other.campaigned(), true)
		return make([]int, counts.Total()), err
	},
	"ChangeCampaign": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.ChangeCampaign(context.Background(), other.campaigned(), puntuale.CampaignChange{
			From: []puntuale.CampaignState{puntuale.CampaignReady}, To: puntuale.CampaignCancelled, Now: Begin})
	},
	"StartCampaign": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := mine.StartCampaign(context.Background(), other.campaigned(), puntuale.CampaignStart{Digest: "d", Day: Day, Now: Begin})
		return nil, err
	},
	"NewList": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := mine.NewList(context.Background(), puntuale.RecipientList{Campaign: other.campaigned()}, Begin)
		return nil, err
	},
	"AddRecipients": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.campaigned()
		return nil, mine.AddRecipients(context.Background(), puntuale.RecipientList{ID: other.listed, Size: 1}, []puntuale.Recipient{{Line: 1}}, Begin)
	},
	"UseList": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id := other.campaigned()
		return nil, mine.UseList(context.Background(), id, other.listed)
	},
	"RecipientList": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.campaigned()
		_, err := mine.RecipientList(context.Background(), other.listed)
		return nil, err
	},
	"Recipients": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.campaigned()
		return mine.Recipients(context.Background(), other.listed, puntuale.RecipientFilter{}, 0, 10)
	},
	"ChangeCheck": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.ChangeCheck(context.Background(), other.campaigned(), puntuale.CheckProgress{Alive: Begin, Now: Begin})
	},
	"FailedOfCampaign": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return mine.FailedOfCampaign(context.Background(), other.campaigned(), true, 0, 10)
	},
	"KnownPersons": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		known, err := mine.KnownPersons(context.Background(), other.Session, []string{phone})
		if len(known) == 0 {
			return []any{}, err
		}
		return []any{known}, err
	},
	"MergeContacts": nil, // no argument belongs to another client
	"CountCall":     nil, // no argument belongs to another client
	"UpdateContact": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := mine.UpdateContact(context.Background(), other.contacted(), puntuale.ContactPatch{Name: new("x")}, Day, Begin)
		return nil, err
	},
	"DeleteContact": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.DeleteContact(context.Background(), other.contacted(), Day)
	},
	"Contact": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := mine.Contact(context.Background(), other.contacted())
		return nil, err
	},
	"ContactOf": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.contacted()
		_, found, err := mine.ContactOf(context.Background(), phone)
		if found {
			return []string{"there"}, err
		}
		return []string{}, err
	},
	"ContactsOf": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.contacted()
		found, err := mine.ContactsOf(context.Background(), []string{phone})
		return slices.Collect(maps.Keys(found)), err
	},
	"Contacts": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.contacted()
		var found []puntuale.Contact
		for _, f := range []puntuale.ContactFilter{{}, {Tag: "cliente"}, {Any: []string{"cliente"}}, {Name: "anna"}, {Phone: phone}, {Phone: "+39*", Name: "anna", Tag: "cliente"}} {
			all, _, err := mine.Contacts(context.Background(), f, puntuale.Page{})
			if err != nil {
				return found, err
			}
			found = append(found, all...)
		}
		return found, nil
	},
	"CountContacts": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.contacted()
		found := []int{}
		for _, f := range []puntuale.ContactFilter{{}, {Tag: "cliente"}, {Any: []string{"cliente"}}, {Name: "anna"}} {
			n, err := mine.CountContacts(context.Background(), f, 10)
			if err != nil {
				return found, err
			}
			if n > 0 {
				found = append(found, n)
			}
		}
		return found, nil
	},
	"ContactTags": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.contacted()
		tags, err := mine.ContactTags(context.Background())
		return slices.Collect(maps.Keys(tags)), err
	},
	"Charges": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id := other.campaigned()
		other.w.Exec("insert into charge (client_id, campaign_id, country, category, billable, messages) values ($1, $2, 'IT', 'service', 1, 1) on conflict do nothing", int64(other.ID), int64(id))
		return mine.Charges(context.Background(), id)
	},
	"SessionLoad": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := mine.SessionLoad(context.Background(), other.Session, Begin)
		return nil, err
	},
	"Running": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		busy, err := mine.Running(context.Background(), other.Sequence, []string{phone})
		return slices.Collect(maps.Keys(busy)), err
	},
	"CreateTemplate": nil,
	"UpdateTemplate": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.UpdateTemplate(context.Background(), puntuale.Template{ID: other.template(), Name: "x"})
	},
	"Template": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := mine.Template(context.Background(), other.template())
		return nil, err
	},
	"Templates": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := mine.Templates(context.Background(), puntuale.Page{})
		return all, err
	},
	"TemplatesNamed": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, err := mine.TemplatesNamed(context.Background(), []string{"benvenuto"})
		return slices.Collect(maps.Keys(all)), err
	},
	"DeleteTemplate": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.DeleteTemplate(context.Background(), other.template())
	},
	"Kept": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		template, err := mine.Kept(context.Background(), puntuale.Idempotency{Scope: "POST /api/templates", Key: "k", Hash: "h"})
		if template != nil || err != nil {
			return template, err
		}
		return mine.Kept(context.Background(), puntuale.Idempotency{Scope: "s", Key: "k", Hash: "h"}) // the key that the other client's start used
	},
	"Details": func(mine puntuale.Tenant, _ *Client, id puntuale.MessageID) (any, error) {
		return mine.Details(context.Background(), []puntuale.MessageID{id})
	},
	"Outlines": func(mine puntuale.Tenant, _ *Client, id puntuale.MessageID) (any, error) {
		return mine.Outlines(context.Background(), []puntuale.MessageID{id})
	},
	"CreateSequence": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := mine.CreateSequence(context.Background(), puntuale.Sequence{Name: "x", Session: other.Session}, nil)
		return nil, err
	},
	"UpdateSequence": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.UpdateSequence(context.Background(), puntuale.Sequence{ID: other.Sequence, Name: "x"})
	},
	"Sequence": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := mine.Sequence(context.Background(), other.Sequence)
		return nil, err
	},
	"Sequences": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := mine.Sequences(context.Background(), puntuale.SequenceFilter{}, puntuale.Page{})
		return all, err
	},
	"StartInfo": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, _, err := mine.StartInfo(context.Background(), other.Sequence)
		return nil, err
	},
	"DeleteSequence": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.DeleteSequence(context.Background(), other.Sequence, false, true, Begin)
	},
	"RestoreSequence": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, mine.RestoreSequence(context.Background(), other.Sequence, Begin)
	},
	"CreateSession": nil, // no argument belongs to another client
	"Session": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := mine.Session(context.Background(), other.Session)
		return nil, err
	},
	"Sessions": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := mine.Sessions(context.Background(), puntuale.Page{})
		return slices.DeleteFunc(all, func(s puntuale.Session) bool { return s.Default }), err
	},
	"AddBlacklisted": nil,
	"RemoveBlacklisted": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		there, err := mine.RemoveBlacklisted(context.Background(), "+393330000009", "~x", Day)
		if there {
			return []string{"there"}, err
		}
		return []string{}, err
	},
	"Blacklist": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := mine.Blacklist(context.Background(), puntuale.Page{})
		return all, err
	},
	"AddAllBlacklisted": nil,
	"FindBlacklisted": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := mine.FindBlacklisted(context.Background(), puntuale.BlacklistFilter{Digits: "9"}, puntuale.Page{})
		return all, err
	},
	"BlacklistEntry": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id, err := other.blacklisted()
		if err != nil {
			return []string{err.Error()}, nil
		}
		_, err = mine.BlacklistEntry(context.Background(), id)
		return nil, err
	},
	"RemoveBlacklistEntry": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id, err := other.blacklisted()
		if err != nil {
			return []string{err.Error()}, nil
		}
		return nil, mine.RemoveBlacklistEntry(context.Background(), id)
	},
	"Ended": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, err := mine.Ended(context.Background(), Begin.Add(-time.Hour), Begin.Add(time.Hour), false, 10)
		if err != nil {
			return all, err
		}
		failed, err := mine.Ended(context.Background(), Begin.Add(-time.Hour), Begin.Add(time.Hour), true, 10)
		return append(all, failed...), err
	},
	"Upcoming": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		return mine.Upcoming(context.Background(), Begin.Add(-time.Hour), Begin.Add(24*time.Hour), 10)
	},
	"UpcomingCounts": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		return mine.UpcomingCounts(context.Background(), Begin.Add(-time.Hour), Begin.Add(24*time.Hour))
	},
	"CountMessages": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		found := []int{}
		for _, f := range []puntuale.MessageFilter{{}, {Phone: phone}, {Sequence: other.Sequence}, {State: new(puntuale.Pending)}} {
			n, _, err := mine.CountMessages(context.Background(), f, 10)
			if err != nil {
				return found, err
			}
			if n > 0 {
				found = append(found, n)
			}
		}
		return found, nil
	},
	"MessageEvents": func(mine puntuale.Tenant, _ *Client, id puntuale.MessageID) (any, error) {
		return mine.MessageEvents(context.Background(), id)
	},
	"ResentAs": func(mine puntuale.Tenant, other *Client, id puntuale.MessageID) (any, error) {
		return mine.ResentAs(context.Background(), other.Detail(id).Run, id)
	},
	"Version": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		v, err := mine.Version(context.Background())
		if v == "0.0.0.0.0.0.0" {
			return []string{}, err
		}
		return []string{v}, err
	},
	"SandboxChat": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return mine.SandboxChat(context.Background(), other.Session, "", 10)
	},
	"AmongBlacklisted": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		return mine.AmongBlacklisted(context.Background(), []string{"+393330000009"})
	},
	"Uncertain": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		found, _, err := mine.Uncertain(context.Background(), time.Time{})
		return found, err
	},
	"UnknownMessages": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := mine.UnknownMessages(context.Background(), puntuale.Page{})
		return all, err
	},
	"Events": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := mine.Events(context.Background(), 0, puntuale.AllEvents, 10, Begin)
		return all, err
	},
	"CloseUnknown": func(mine puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		theirs, _, err := other.UnknownMessages(context.Background(), puntuale.Page{})
		if err != nil || len(theirs) != 1 {
			return nil, errors.Join(errors.New("there is nothing to close"), err)
		}
		return mine.CloseUnknown(context.Background(), []puntuale.MessageID{theirs[0].ID}, Day, Begin)
	},
	"Restored": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		r, err := mine.Restored(context.Background())
		if r == (puntuale.RestoreResult{}) {
			return []puntuale.RestoreResult(nil), err
		}
		return r, err
	},
	"Release": nil, // no argument belongs to another client
	"SandboxMessages": func(mine puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := mine.SandboxMessages(context.Background(), puntuale.Page{})
		return all, err
	},
}

// blacklisted returns the id of an entry in the client's blacklist.
func (c *Client) blacklisted() (int64, error) {
	all, _, err := c.Blacklist(context.Background(), puntuale.Page{Limit: 1})
	if err != nil || len(all) == 0 {
		return 0, errors.Join(errors.New("no entry"), err)
	}
	return all[0].ID, nil
}

// empty reports whether an answer has no data. For a call that returns only an error it is false, because then the
// error must show the refusal.
func empty(answer any) bool {
	v := reflect.ValueOf(answer)
	switch v.Kind() {
	case reflect.Slice:
		return v.Len() == 0
	case reflect.Pointer:
		return v.IsNil()
	}
	return false
}

func testTenantsApart(t *testing.T, w *World) {
	ctx := context.Background()
	other, mine := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	if err := mine.DeleteSequence(ctx, mine.Sequence, false, false, Begin); err != nil { // so that this client's lists are empty
		t.Fatal(err)
	}
	run := other.Run(phone, Begin, 1)
	run.Idempotency = Keyed("s", "k", "h")
	started, err := other.Start(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: "+393330000009", Added: Begin}, Day, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Receive(ctx, puntuale.SandboxMessage{Client: other.ID, Message: started.IDs[0], ConnectorID: "x.0", Phone: phone, Received: Begin}); err != nil {
		t.Fatal(err)
	}
	sent := other.MustStart("+393330000008", Begin, 1)
	other.MustSend(w.MustJoin(), Begin, sent...)
	lost := other.MustStart("+393330000007", Begin, 1)
	w.MustClaim(w.MustJoin(), Begin, other.Items("+393330000007", 0, lost...)...)
	w.Exec("insert into unknown_message (client_id, message_id, since, at) values ($1, $2, 1, 2)", other.ID, lost[0])
	if _, err := other.CreateTemplate(ctx, puntuale.Template{Name: "benvenuto", Text: "Ciao"},
		&puntuale.Idempotency{Scope: "POST /api/templates", Key: "k", Hash: "h", Answer: func(any) ([]byte, error) { return []byte("theirs"), nil }}); err != nil {
		t.Fatal(err)
	}
	other.mustTake(Begin, other.reply("t", Begin, puntuale.TakenMessage{Keep: puntuale.KeepAllReplies, InboundMessage: puntuale.InboundMessage{Phone: wrote, Text: "STOP"}}))
	other.mustEnter(optOut(wrote, "t", puntuale.ConsentWithdraw, 0))
	told := other.mustTell(other.Tenant)
	before := other.Detail(started.IDs[0])
	handle := reflect.TypeFor[puntuale.Tenant]()
	for i := range handle.NumMethod() {
		name := handle.Method(i).Name
		call, known := foreignCalls[name]
		if !known {
			call, known = ofReplies[name]
		}
		if !known {
			call, known = ofRules[name]
		}
		if about, ok := ofWebhooks[name]; ok {
			if known = true; about != nil {
				call = func(theirs puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) { return about(theirs, told) }
			}
		}
		if !known {
			t.Errorf("%s is not tried with what belongs to another", name)
			continue
		}
		if call == nil {
			continue
		}
		switch got, err := call(mine.Tenant, other, started.IDs[0]); {
		case err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound:
			t.Errorf("%s: %v", name, err)
		case err == nil && !empty(got):
			t.Errorf("%s: reached %+v", name, got)
		}
	}
	if after := other.Detail(started.IDs[0]); !reflect.DeepEqual(after.Message, before.Message) {
		t.Errorf("the other's message became %+v", after.Message)
	}
	if q, err := other.Tenant.Sequence(ctx, other.Sequence); err != nil || q.Name != "promemoria" {
		t.Errorf("the other's sequence became %+v, %v", q, err)
	}
	if m, err := other.Tenant.Template(ctx, other.template()); err != nil || m.Name != "benvenuto" {
		t.Errorf("the other's template became %+v, %v", m, err)
	}
	answers := map[string]bool{} // a missing thing and another client's thing must get the same answer, byte for byte
	for _, id := range []puntuale.SequenceID{other.Sequence, 987654} {
		_, err := mine.Tenant.Sequence(ctx, id)
		answers[err.Error()] = true
	}
	if len(answers) != 1 {
		t.Errorf("answers = %v", answers)
	}
}

// template returns the id of the client's only template.
func (c *Client) template() puntuale.TemplateID {
	all, _, err := c.Templates(context.Background(), puntuale.Page{})
	if err != nil || len(all) != 1 {
		c.w.t.Fatalf("templates: %v, %v", all, err)
	}
	return all[0].ID
}

// login returns the id of the client's first user.
func (c *Client) login() puntuale.LoginID {
	return puntuale.LoginID(c.w.Int("select id from login where client_id = $1", c.ID))
}
