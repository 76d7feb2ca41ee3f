package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"puntuale"
)

// foreign calls one method of a tenant with data that belong to another client. It returns an error, or an answer that
// must be empty.
type foreign func(tenant puntuale.Tenant, other *Client, id puntuale.MessageID) (any, error)

// foreignCalls contains every method of a tenant. For a client, the data of other clients must not exist.
var foreignCalls = map[string]foreign{
	"Start": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := tenant.Start(context.Background(), other.Run(phone, Begin, 1)) // uses the other client's sequence and session
		return nil, err
	},
	"AddBytes": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		if ok, err := other.Tenant.AddBytes(context.Background(), Day, 1, 1); !ok || err != nil {
			return "the other", err
		}
		if ok, err := tenant.AddBytes(context.Background(), Day, 1, 1); !ok || err != nil {
			return "mine, because of the other's bytes", err
		}
		return []string{}, nil
	},
	"LastStarted": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		return tenant.LastStarted(context.Background(), 10)
	},
	"Stop": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		r, err := tenant.Stop(context.Background(), other.Sequence, []string{phone}, "", Day, Begin)
		return r.IDs, err
	},
	"CancelPending": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		some, err := CancelPending(context.Background(), tenant, []string{phone}, false, Day, Begin)
		if err != nil {
			return some, err
		}
		all, err := CancelPending(context.Background(), tenant, nil, true, Day, Begin)
		return append(some, all...), err
	},
	"Messages": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.Messages(context.Background(), puntuale.MessageFilter{}, puntuale.Page{})
		if err != nil {
			return all, err
		}
		for _, f := range []puntuale.MessageFilter{{Phone: phone}, {Sequence: other.Sequence}, {State: new(puntuale.Pending)}} {
			some, _, err := tenant.Messages(context.Background(), f, puntuale.Page{})
			if err != nil {
				return all, err
			}
			all = append(all, some...)
		}
		return all, nil
	},
	"GiveCommand": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := tenant.GiveCommand(context.Background(), order(other.Session, puntuale.CommandDrain))
		return nil, err
	},
	"NetworkTemplates": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id, err := other.businessOf()
		if err != nil {
			return []string{err.Error()}, nil
		}
		_, all, _, err := tenant.NetworkTemplates(context.Background(), id, puntuale.Page{})
		return all, err
	},
	"OfficialWays": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return tenant.OfficialWays(context.Background(), other.Session, Begin)
	},
	"NetworkTemplatesNamed": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id, err := other.businessOf()
		if err != nil {
			return []string{err.Error()}, nil
		}
		return tenant.NetworkTemplatesNamed(context.Background(), id, []string{"uno"})
	},
	"NetworkTemplateWithID": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id, err := other.businessOf()
		if err != nil {
			return []string{err.Error()}, nil
		}
		return tenant.NetworkTemplateWithID(context.Background(), id, "880001")
	},
	"AcceptCategory": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id, err := other.businessOf()
		if err != nil {
			return []string{err.Error()}, nil
		}
		return nil, tenant.AcceptCategory(context.Background(), id, "880001")
	},
	"RequestTemplate": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		r, err := other.requestOf()
		if err != nil {
			return []string{err.Error()}, nil
		}
		return tenant.RequestTemplate(context.Background(), r, func(puntuale.TemplateUsage) error { return nil })
	},
	"TemplateRequest": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		r, err := other.requestOf()
		if err != nil {
			return []string{err.Error()}, nil
		}
		return tenant.TemplateRequest(context.Background(), r.ID)
	},
	"TemplateRequests": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		r, err := other.requestOf()
		if err != nil {
			return []string{err.Error()}, nil
		}
		return tenant.TemplateRequests(context.Background(), r.Session, 10)
	},
	"CommandAnswer": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return tenant.CommandAnswer(context.Background(), other.mustGive(order(other.Session, puntuale.CommandDrain)), Begin)
	},
	"Erase": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		done, err := tenant.Erase(context.Background(), puntuale.Erasure{Person: puntuale.Person{Names: []string{phone}, Mark: func(string) string { return "~x" }}, Day: Day, Now: Begin})
		if done == (puntuale.ErasureResult{}) {
			return []any{}, err
		}
		return []any{done}, err
	},
	"Outcomes": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.Outcomes(context.Background(), Begin.Add(-time.Hour), Begin.Add(time.Hour), puntuale.Page{})
		return all, err
	},
	"Resend": func(tenant puntuale.Tenant, other *Client, id puntuale.MessageID) (any, error) {
		r, err := tenant.Resend(context.Background(), other.Again(id))
		return r.IDs, err
	},
	"Usage": nil, // no argument belongs to another client
	"CancelMessages": func(tenant puntuale.Tenant, _ *Client, id puntuale.MessageID) (any, error) {
		return tenant.CancelMessages(context.Background(), []puntuale.MessageID{id}, Day, Begin)
	},
	"DeleteSession": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.DeleteSession(context.Background(), other.Session, true, 0, Begin)
	},
	"UpdateSession": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.UpdateSession(context.Background(), other.Session, puntuale.SessionPatch{Name: puntuale.Change[string]{Set: true, To: "mia"}})
	},
	"GiveUp": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.GiveUp(context.Background(), other.Session, Begin)
	},
	"SetDefaultPair": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		err := tenant.SetDefaultPair(context.Background(), other.Session, 0, 0)
		if puntuale.CodeOf(err) != puntuale.CodeNotFound {
			return nil, err
		}
		all, _, err := tenant.Sessions(context.Background(), puntuale.Page{}) // next: try to set the other client's sequence in a session of this client
		if err != nil {
			return nil, err
		}
		return nil, tenant.SetDefaultPair(context.Background(), all[0].ID, other.Sequence, 0)
	},
	"CreateOfficial": nil, // no argument belongs to another client
	"CreateGateway":  nil, // no argument belongs to another client
	"OfferDevice": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.OfferDevice(context.Background(), other.posted().session, []byte("x"), "stolen", Begin)
	},
	"Devices": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return tenant.Devices(context.Background(), other.posted().session)
	},
	"UnlinkDevices": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.UnlinkDevices(context.Background(), other.posted().session, 0, Begin)
	},
	"Takeable": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		p := other.posted()
		return tenant.Takeable(context.Background(), p.session, p.device.ID, Begin, 10)
	},
	"HeldBy": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		p := other.posted()
		return tenant.HeldBy(context.Background(), p.session, p.device.ID)
	},
	"Take": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		p := other.posted()
		return tenant.Take(context.Background(), p.call(p.device, Begin))
	},
	"Renew": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		p := other.posted()
		_, err := tenant.Renew(context.Background(), p.session, p.device.ID, []puntuale.HeldRef{refOf(p.held)}, Begin.Add(time.Hour), Begin)
		return nil, err
	},
	"Report": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		p := other.posted()
		all, err := tenant.Report(context.Background(), p.session, p.device.ID, []puntuale.DeviceReport{{HeldRef: refOf(p.held), Outcome: puntuale.Outcome{Verdict: puntuale.Sent}}}, Begin)
		return slices.DeleteFunc(all, func(r puntuale.ReportResult) bool { return r == puntuale.ReportLate }), err
	},
	"SeenDevice": nil, // the statement contains the client's id, so it cannot change another client's row
	"KeepPush": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.KeepPush(context.Background(), other.posted().device.ID, []byte("x"))
	},
	"ChangeKeys": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.ChangeKeys(context.Background(), other.Session, func([]byte) ([]byte, string, error) { return []byte("x"), "", nil })
	},
	"SetKeys": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.SetKeys(context.Background(), other.Session, []byte("x"))
	},
	"KnownPersons": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		known, err := tenant.KnownPersons(context.Background(), other.Session, []string{phone})
		if len(known) == 0 {
			return []any{}, err
		}
		return []any{known}, err
	},
	"MergeContacts": nil, // no argument belongs to another client
	"CountCall":     nil, // no argument belongs to another client
	"UpdateContact": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := tenant.UpdateContact(context.Background(), other.contacted(), puntuale.ContactPatch{Name: new("x")}, Day, Begin)
		return nil, err
	},
	"TagContacts": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		n, err := tenant.TagContacts(context.Background(), []puntuale.ContactID{other.contacted()}, []string{"loro"}, nil, Begin)
		return make([]int, n), err
	},
	"PersonalData": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (found any, err error) {
		other.contacted()
		other.w.Exec("insert into automation_firing (client_id, rule_id, phone, at, occurrence, acted) values ($1, $2, $3, 4, 'x', 1)", other.ID, other.theirRule().ID, phone)
		other.w.Exec("update automation set payload = $3, payload_phone = $4 where client_id = $1 and id = $2", other.ID, other.theirRule().ID, []byte("{}"), phone)
		all := []json.RawMessage{}
		err = tenant.PersonalData(context.Background(), other.person(phone), func(_ string, rows []json.RawMessage) error {
			all = append(all, rows...)
			return nil
		})
		return all, err
	},
	"NumberChanges": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.moved("+393330009001", "+393330009002")
		return tenant.NumberChanges(context.Background(), "+393330009002")
	},
	"UndoChange": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.moved("+393330009003", "+393330009004")
		return tenant.UndoChange(context.Background(), "+393330009004", Day, Begin)
	},
	"DeleteContact": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.DeleteContact(context.Background(), other.contacted(), Day)
	},
	"Contact": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := tenant.Contact(context.Background(), other.contacted())
		return nil, err
	},
	"ContactOf": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.contacted()
		_, found, err := tenant.ContactOf(context.Background(), phone)
		if found {
			return []string{"there"}, err
		}
		return []string{}, err
	},
	"ContactsOf": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.contacted()
		found, err := tenant.ContactsOf(context.Background(), []string{phone})
		return slices.Collect(maps.Keys(found)), err
	},
	"NamesOf": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.contacted()
		found, err := tenant.NamesOf(context.Background(), []string{phone})
		return slices.Collect(maps.Keys(found)), err
	},
	"Contacts": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.contacted()
		var found []puntuale.Contact
		for _, f := range []puntuale.ContactFilter{{}, {Tag: "cliente"}, {Any: []string{"cliente"}}, {Name: "anna"}, {Phone: phone}, {Phone: "+39*", Name: "anna", Tag: "cliente"}} {
			all, _, err := tenant.Contacts(context.Background(), f, puntuale.Page{})
			if err != nil {
				return found, err
			}
			found = append(found, all...)
		}
		return found, nil
	},
	"FindContacts": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.contacted()
		var found []puntuale.Contact
		for _, text := range []string{"anna rossi", "ana rosi", "a"} {
			all, _, err := tenant.FindContacts(context.Background(), text, 8)
			if err != nil {
				return found, err
			}
			found = append(found, all...)
		}
		return found, nil
	},
	"BilledMessages": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		var found []puntuale.BilledMessage
		for _, p := range []puntuale.BilledPeriod{{}, {ChargedFrom: Begin.AddDate(-1, 0, 0)}, {Late: true}} {
			p.From, p.To, p.Limit = Begin.AddDate(-1, 0, 0), Begin.AddDate(1, 0, 0), 10
			all, err := tenant.BilledMessages(context.Background(), p)
			if err != nil {
				return found, err
			}
			found = append(found, all...)
		}
		return found, nil
	},
	"Calls": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		if n, err := other.Calls(context.Background(), Day, Day); err != nil || n == 0 {
			return []int64{-1}, err
		}
		n, err := tenant.Calls(context.Background(), Day, Day)
		if n > 0 {
			return []int64{n}, err
		}
		return []int64{}, err
	},
	"Statement": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		if err := other.frozen(202610); err != nil {
			return nil, err
		}
		_, found, err := tenant.Statement(context.Background(), 202610)
		if found {
			return []bool{true}, err
		}
		return []bool{}, err
	},
	"ClaimStatement": nil, // this method and the next write only rows of their own client
	"FreezeStatement": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		until := Begin.Add(time.Hour)
		if claimed, err := other.ClaimStatement(context.Background(), 202609, Begin, until); err != nil || !claimed {
			return []bool{true}, err
		}
		frozen, err := tenant.FreezeStatement(context.Background(), puntuale.Statement{Month: 202609, Frozen: Begin}, until)
		if frozen {
			return []bool{true}, err
		}
		return []bool{}, err
	},
	"FindNamed": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		found, err := tenant.FindNamed(context.Background(), other.Sequence.String(), 8)
		return found[puntuale.NamedSequence], err
	},
	"CountContacts": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.contacted()
		found := []int{}
		for _, f := range []puntuale.ContactFilter{{}, {Tag: "cliente"}, {Any: []string{"cliente"}}, {Name: "anna"}} {
			n, _, err := tenant.CountContacts(context.Background(), f, 10)
			if err != nil {
				return found, err
			}
			if n > 0 {
				found = append(found, n)
			}
		}
		return found, nil
	},
	"ContactTags": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.contacted()
		tags, err := tenant.ContactTags(context.Background())
		return slices.Collect(maps.Keys(tags)), err
	},
	"Charges": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id := other.campaigned()
		other.w.Exec("insert into charge (client_id, campaign_id, country, category, billable, messages) values ($1, $2, 'IT', 'service', 1, 1) on conflict do nothing", int64(other.ID), int64(id))
		return tenant.Charges(context.Background(), id)
	},
	"Portfolio": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		p, err := tenant.Portfolio(context.Background(), other.Session, Begin)
		if p == (puntuale.Portfolio{}) {
			return []string{}, err
		}
		return p, err
	},
	"SessionLoad": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := tenant.SessionLoad(context.Background(), other.Session, Begin)
		return nil, err
	},
	"Running": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		busy, err := tenant.Running(context.Background(), other.Sequence, []string{phone})
		return slices.Collect(maps.Keys(busy)), err
	},
	"CreateTemplate": nil,
	"UpdateTemplate": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.UpdateTemplate(context.Background(), puntuale.Template{ID: other.template(), Name: "x"})
	},
	"Template": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := tenant.Template(context.Background(), other.template())
		return nil, err
	},
	"Templates": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.Templates(context.Background(), puntuale.Page{})
		return all, err
	},
	"TemplatesNamed": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, err := tenant.TemplatesNamed(context.Background(), []string{"benvenuto"})
		return slices.Collect(maps.Keys(all)), err
	},
	"DeleteTemplate": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.DeleteTemplate(context.Background(), other.template())
	},
	"KeptAnswer": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		template, err := tenant.KeptAnswer(context.Background(), puntuale.Idempotency{Scope: "POST /api/templates", Key: "k", Hash: "h"})
		if template != nil || err != nil {
			return template, err
		}
		return tenant.KeptAnswer(context.Background(), puntuale.Idempotency{Scope: "s", Key: "k", Hash: "h"}) // the key of the other client's start
	},
	"Details": func(tenant puntuale.Tenant, _ *Client, id puntuale.MessageID) (any, error) {
		return tenant.Details(context.Background(), []puntuale.MessageID{id})
	},
	"Outlines": func(tenant puntuale.Tenant, _ *Client, id puntuale.MessageID) (any, error) {
		return tenant.Outlines(context.Background(), []puntuale.MessageID{id})
	},
	"CreateSequence": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := tenant.CreateSequence(context.Background(), puntuale.Sequence{Name: "x", Session: other.Session}, nil)
		return nil, err
	},
	"UpdateSequence": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.UpdateSequence(context.Background(), puntuale.Sequence{ID: other.Sequence, Name: "x"})
	},
	"Sequence": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := tenant.Sequence(context.Background(), other.Sequence)
		return nil, err
	},
	"Sequences": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.Sequences(context.Background(), puntuale.SequenceFilter{}, puntuale.Page{})
		return all, err
	},
	"CountSequences": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		n, _, err := tenant.CountSequences(context.Background(), "", 10)
		if n == 0 && err == nil {
			n, _, err = tenant.CountSequences(context.Background(), other.Sequence.String(), 10)
		}
		return make([]bool, n), err
	},
	"StartInfo": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, _, err := tenant.StartInfo(context.Background(), other.Sequence)
		return nil, err
	},
	"DeleteSequence": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.DeleteSequence(context.Background(), other.Sequence, false, true, Begin)
	},
	"RestoreSequence": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.RestoreSequence(context.Background(), other.Sequence, Begin)
	},
	"CreateSession": nil, // no argument belongs to another client
	"Session": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := tenant.Session(context.Background(), other.Session)
		return nil, err
	},
	"DefaultSession": nil, // no argument belongs to another client
	"Sessions": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.Sessions(context.Background(), puntuale.Page{})
		return slices.DeleteFunc(all, func(s puntuale.Session) bool { return s.Default }), err
	},
	"AddBlacklisted": nil,
	"RemoveBlacklisted": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		removed, err := tenant.RemoveBlacklisted(context.Background(), puntuale.Person{Names: []string{"+393330000009"}, Mark: func(string) string { return "~x" }}, Day, Begin)
		if removed {
			return []string{"there"}, err
		}
		return []string{}, err
	},
	"Blacklist": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.Blacklist(context.Background(), puntuale.Page{})
		return all, err
	},
	"AddAllBlacklisted": nil,
	"FindBlacklisted": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.FindBlacklisted(context.Background(), puntuale.BlacklistFilter{Digits: "9"}, puntuale.Page{})
		return all, err
	},
	"CountBlacklisted": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		n, _, err := tenant.CountBlacklisted(context.Background(), puntuale.BlacklistFilter{}, 10)
		return make([]bool, n), err
	},
	"BlacklistEntry": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id, err := other.blacklisted()
		if err != nil {
			return []string{err.Error()}, nil
		}
		_, err = tenant.BlacklistEntry(context.Background(), id)
		return nil, err
	},
	"RemoveBlacklistEntry": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id, err := other.blacklisted()
		if err != nil {
			return []string{err.Error()}, nil
		}
		return nil, tenant.RemoveBlacklistEntry(context.Background(), id, Begin)
	},
	"Ended": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, err := tenant.Ended(context.Background(), Begin.Add(-time.Hour), Begin.Add(time.Hour), 0, 10)
		if err != nil {
			return all, err
		}
		failed, err := tenant.Ended(context.Background(), Begin.Add(-time.Hour), Begin.Add(time.Hour), 5000, 10)
		return append(all, failed...), err
	},
	"Upcoming": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		return tenant.Upcoming(context.Background(), Begin.Add(-time.Hour), Begin.Add(24*time.Hour), 10)
	},
	"UpcomingCounts": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		return tenant.UpcomingCounts(context.Background(), Begin.Add(-time.Hour), Begin.Add(24*time.Hour))
	},
	"CountMessages": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		found := []int{}
		for _, f := range []puntuale.MessageFilter{{}, {Phone: phone}, {Sequence: other.Sequence}, {State: new(puntuale.Pending)}} {
			n, _, err := tenant.CountMessages(context.Background(), f, 10)
			if err != nil {
				return found, err
			}
			if n > 0 {
				found = append(found, n)
			}
		}
		return found, nil
	},
	"MessageEvents": func(tenant puntuale.Tenant, _ *Client, id puntuale.MessageID) (any, error) {
		return tenant.MessageEvents(context.Background(), id)
	},
	"ResentAs": func(tenant puntuale.Tenant, other *Client, id puntuale.MessageID) (any, error) {
		return tenant.ResentAs(context.Background(), other.Detail(id).Run, id)
	},
	"Version": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		v, err := tenant.Version(context.Background())
		if v == "0.0.0.0.0.0.0.0.0.0.0" {
			return []string{}, err
		}
		return []string{v}, err
	},
	"SandboxChat": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return tenant.SandboxChat(context.Background(), other.Session, "", 10)
	},
	"AmongBlacklisted": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		listed, err := tenant.AmongBlacklisted(context.Background(), []string{"+393330000009"}, nil)
		return slices.Collect(maps.Keys(listed)), err
	},
	"Uncertain": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		found, _, err := tenant.Uncertain(context.Background(), time.Time{})
		return found, err
	},
	"UnknownMessages": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.UnknownMessages(context.Background(), puntuale.Page{})
		return all, err
	},
	"Events": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.Events(context.Background(), 0, puntuale.AllEvents, 10, Begin)
		return all, err
	},
	"LastEvent": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		return tenant.LastEvent(context.Background())
	},
	"CloseUnknown": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		theirs, _, err := other.UnknownMessages(context.Background(), puntuale.Page{})
		if err != nil || len(theirs) != 1 {
			return nil, errors.Join(errors.New("there is nothing to close"), err)
		}
		return tenant.CloseUnknown(context.Background(), []puntuale.MessageID{theirs[0].ID}, Day, Begin)
	},
	"Release": nil, // no argument belongs to another client
}
