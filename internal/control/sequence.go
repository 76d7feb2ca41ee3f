package control

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/plan"
)

// Sequence is a sequence with the fields that its steps contain.
type Sequence struct {
	puntuale.Sequence
	Fields   []puntuale.Field
	Warnings []Warning // set only after Sequence, CreateSequence and ReplaceSequence, and never in lists
}

// NewSequence is a request to create a sequence, or to replace a whole sequence.
type NewSequence struct {
	Name        string
	Session     string // "": the client's default session, looked up at each start
	IfRunning   string // allow, skip, restart or reject; "": allow
	StopOnReply bool
	TrackLinks  *bool  // nil: as the client's settings say
	Purpose     string // service or marketing; "": service
	Booking     string // name of the main date field of a sequence for bookings; "": an ordinary sequence
	Steps       []puntuale.Step
	Known       []puntuale.Version // for a replacement: the stored version must be one of these; empty: any version
	Faults      []puntuale.Fault   // the faults that the calling package already found in the request
}

// CreateSequence stores a new sequence. Codes: invalid, forbidden.
func (c *Client) CreateSequence(ctx context.Context, r NewSequence, o Once[Sequence]) (Sequence, error) {
	if err := c.MayCreate(); err != nil {
		return Sequence{}, err
	}
	var f request.Faults
	once, clash, err := o.Begin(ctx, c.tenant, &f)
	if err != nil {
		return Sequence{}, err
	}
	r.Faults = append(f, r.Faults...)
	s, err := c.checkSequence(ctx, r)
	if err != nil {
		return Sequence{}, err
	}
	if clash != nil {
		return Sequence{}, clash
	}
	_ = plan.NameSteps(puntuale.Sequence{}, &s.Sequence)
	s.Created = c.control.clock.Now()
	s.Updated = s.Created
	result := func(stored any) Sequence {
		s.ID, _ = stored.(puntuale.SequenceID)
		return s
	}
	id, err := c.tenant.CreateSequence(ctx, s.Sequence, once.Keep(result))
	if err != nil {
		return Sequence{}, fmt.Errorf("create a sequence: %w", err)
	}
	return result(id), nil
}

// ReplaceSequence replaces a stored sequence. Runs that started earlier do not change. Codes: not_found (the sequence
// does not exist), invalid, precondition_failed.
func (c *Client) ReplaceSequence(ctx context.Context, id string, r NewSequence) (Sequence, error) {
	old, err := c.Sequence(ctx, id)
	if err != nil {
		return Sequence{}, err
	}
	named := puntuale.Sequence{Steps: puntuale.LeadVariants(r.Steps)}
	r.Faults = append(r.Faults, plan.NameSteps(old.Sequence, &named)...)
	s, err := c.checkSequence(ctx, r)
	if err != nil {
		return Sequence{}, err
	}
	s.Steps, s.LastStep = named.Steps, named.LastStep
	s.ID, s.Created, s.Updated = old.ID, old.Created, c.control.clock.Now()
	if err := c.tenant.UpdateSequence(ctx, s.Sequence, r.Known...); err != nil {
		return Sequence{}, fmt.Errorf("update sequence %d: %w", s.ID, err)
	}
	return s, nil
}

// Sequence returns one sequence. Codes: not_found.
func (c *Client) Sequence(ctx context.Context, id string) (Sequence, error) {
	wanted, err := sequenceID(id)
	if err != nil {
		return Sequence{}, err
	}
	s, err := c.tenant.Sequence(ctx, wanted)
	if err != nil {
		return Sequence{}, fmt.Errorf("read sequence %d: %w", wanted, err)
	}
	expanded, err := c.expand(ctx, s)
	if err != nil {
		return Sequence{}, err
	}
	found := Sequence{Sequence: s, Fields: plan.Fields(expanded[0])}
	return found, c.warn(ctx, &found, expanded[0])
}

// SequenceSearch is a request for a part of the list of sequences.
type SequenceSearch struct {
	Text   string // words of the name, or the id; "": all sequences
	Newest bool   // true: the newest first; false: by id
	Page   request.Page
}

// Sequences lists the client's sequences. Codes: invalid.
func (c *Client) Sequences(ctx context.Context, s SequenceSearch) ([]Sequence, string, error) {
	f := request.Faults(s.Page.Unknown)
	f.Text("query.text", s.Text, puntuale.MaxName)
	s.Page.Unknown = f
	filter := puntuale.SequenceFilter{Text: strings.TrimSpace(s.Text), Newest: s.Newest}
	rows, next, err := request.List(s.Page, func(p puntuale.Page) ([]puntuale.Sequence, string, error) {
		return c.tenant.Sequences(ctx, filter, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list sequences: %w", err)
	}
	sequences, err := c.withFields(ctx, rows...)
	return sequences, next, err
}

// CountSequences counts the sequences that a text finds in Sequences, up to [puntuale.MaxCounted]. all is true if n is the
// complete count. Codes: invalid.
func (c *Client) CountSequences(ctx context.Context, text string) (n int, all bool, err error) {
	var f request.Faults
	f.Text("query.text", text, puntuale.MaxName)
	if err := f.Err(); err != nil {
		return 0, false, err
	}
	if n, all, err = c.tenant.CountSequences(ctx, strings.TrimSpace(text), puntuale.MaxCounted); err != nil {
		return 0, false, fmt.Errorf("count sequences: %w", err)
	}
	return n, all, nil
}

// maxRecent bounds the sequences that LastStarted returns.
const maxRecent = 20

// LastStarted returns the sequences with the latest starts, newest start first. It returns at most limit sequences, and
// never more than 20. It omits deleted sequences.
func (c *Client) LastStarted(ctx context.Context, limit int) ([]Sequence, error) {
	ids, err := c.tenant.LastStarted(ctx, max(0, min(limit, maxRecent)))
	if err != nil {
		return nil, fmt.Errorf("list the sequences started last: %w", err)
	}
	all := make([]puntuale.Sequence, 0, len(ids))
	for _, id := range ids {
		s, err := c.tenant.Sequence(ctx, id)
		switch {
		case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		case err != nil:
			return nil, fmt.Errorf("read sequence %d: %w", id, err)
		default:
			all = append(all, s)
		}
	}
	return c.withFields(ctx, all...)
}

// DeleteSequence removes a sequence. The argument pending decides about the sequence's pending messages: "cancel"
// cancels them, "keep" leaves them pending, and "" refuses the deletion if there are any. Messages that remain will be
// sent, and [Client.Stop] can still cancel them. Codes: not_found, invalid, conflict.
func (c *Client) DeleteSequence(ctx context.Context, id, pending string) error {
	wanted, err := sequenceID(id)
	if err != nil {
		return err
	}
	if pending != "" && pending != "cancel" && pending != "keep" {
		if _, err := c.tenant.Sequence(ctx, wanted); err != nil {
			return fmt.Errorf("read sequence %d: %w", wanted, err)
		}
		return puntuale.Invalid(puntuale.Fault{Location: "query.pending", Code: puntuale.FaultNotOneOf, Args: []string{"cancel, keep"}, Value: pending})
	}
	if err := c.tenant.DeleteSequence(ctx, wanted, pending == "keep", pending == "cancel", c.control.clock.Now()); err != nil {
		return fmt.Errorf("delete sequence %d: %w", wanted, err)
	}
	return nil
}

// RestoreSequence undoes a deletion of the last 24 hours. Messages that the deletion cancelled remain cancelled. start
// and stop are the ids of sessions that had the sequence as their default. These sessions get the default back, unless
// they have another default now. Codes: not_found; invalid, if the sequence uses a session or a template that no longer
// exists.
func (c *Client) RestoreSequence(ctx context.Context, id string, start, stop []string) (Sequence, error) {
	wanted, err := sequenceID(id)
	if err != nil {
		return Sequence{}, err
	}
	var f request.Faults
	f.Entries("query.start", len(start), puntuale.MaxRequestIDs)
	f.Entries("query.stop", len(stop), puntuale.MaxRequestIDs)
	if err := f.Err(); err != nil {
		return Sequence{}, err
	}
	if err := c.tenant.RestoreSequence(ctx, wanted, c.control.clock.Now().Add(-puntuale.RestorableFor)); err != nil {
		return Sequence{}, fmt.Errorf("restore sequence %d: %w", wanted, err)
	}
	for _, session := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(start, stop)))) {
		s, err := c.Session(ctx, session)
		if puntuale.CodeOf(err) == puntuale.CodeNotFound {
			continue // the session was deleted in the meantime
		}
		if err != nil {
			return Sequence{}, err
		}
		if s.Start == 0 && slices.Contains(start, session) {
			s.Start = wanted
		}
		if s.Stop == 0 && slices.Contains(stop, session) {
			s.Stop = wanted
		}
		if err := c.tenant.SetDefaultPair(ctx, s.ID, s.Start, s.Stop); err != nil {
			return Sequence{}, fmt.Errorf("set the default sequences of session %d: %w", s.ID, err)
		}
	}
	return c.Sequence(ctx, id)
}

const faultSequenceTooManyFields puntuale.ReasonCode = "sequence.too_many_fields"

// checkSequence checks a whole request, and returns its sequence.
func (c *Client) checkSequence(ctx context.Context, r NewSequence) (Sequence, error) {
	s := puntuale.Sequence{Name: r.Name, IfRunning: puntuale.IfRunning(r.IfRunning), StopOnReply: r.StopOnReply, TrackLinks: puntuale.TrackLinksOf(r.TrackLinks), Booking: r.Booking, Steps: puntuale.LeadVariants(r.Steps)}
	f := request.Faults(r.Faults)
	s.Purpose = purposeIn(&f, r.Purpose)
	var session Session
	if r.Session != "" {
		found, err := c.Session(ctx, r.Session)
		switch {
		case puntuale.CodeOf(err) == puntuale.CodeNotFound:
			f.Add("body.id_sessione", puntuale.FaultNotOwnSession, nil)
		case err != nil:
			return Sequence{}, err
		}
		session, s.Session = found, found.ID
	}
	f = append(f, plan.Check(s, c.control.media...)...)
	if len(s.Steps) > puntuale.MaxSteps {
		return Sequence{}, f.Err()
	}
	if err := c.checkStepFiles(ctx, &f, s.Steps, session.Session, stepMedia); err != nil {
		return Sequence{}, err
	}
	expanded, err := c.expand(ctx, s)
	if err != nil {
		return Sequence{}, err
	}
	fields := plan.Fields(expanded[0])
	if n := len(fields); n > puntuale.MaxFields {
		f.Add("body.steps", faultSequenceTooManyFields, nil, strconv.Itoa(n), strconv.Itoa(puntuale.MaxFields))
	}
	if err := c.checkStepTemplates(ctx, &f, expanded[0].Steps, session.Session); err != nil {
		return Sequence{}, err
	}
	if s.IfRunning == "" {
		s.IfRunning = puntuale.IfRunningAllow
	}
	if err := f.Err(); err != nil {
		return Sequence{}, err
	}
	checked := Sequence{Sequence: s, Fields: fields}
	return checked, c.warn(ctx, &checked, expanded[0])
}

// checkStepTemplates checks the templates of expanded steps, and of their variants.
func (c *Client) checkStepTemplates(ctx context.Context, f *request.Faults, steps []puntuale.Step, session puntuale.Session) error {
	last, n := -1, 0
	for i, step := range puntuale.Texts(steps) {
		if i != last {
			last, n = i, 0
		}
		own := request.At("body.steps", i)
		at := own + ".template"
		if len(steps[i].Variants) > 0 {
			at = request.At(own+".variants", n) + ".template"
		}
		n++
		if step.Template == "" {
			continue
		}
		if unfilled(step) && strings.TrimSpace(step.Template) != "" {
			f.Add(at, puntuale.FaultNotOwnTemplate, nil)
			continue
		}
		if err := c.CheckFile(ctx, f, at, step.Media, &step.MediaName, session); err != nil {
			return err
		}
		for _, fault := range plan.CheckFilled(own, *step) {
			if !f.At(fault.Location) {
				*f = append(*f, fault)
			}
		}
	}
	return nil
}

// sequenceID parses a sequence's id from a path. A text that is not an id is not_found.
func sequenceID(text string) (puntuale.SequenceID, error) {
	id, err := puntuale.ParseID[puntuale.SequenceID](text)
	if err != nil {
		return 0, puntuale.NotFound(puntuale.NoSequence)
	}
	return id, nil
}

// memoryOfField is the memory that one field of an answer needs, in bytes. A template may contain many fields, and many
// steps may use the template.
const memoryOfField = 256

// withFields adds the fields that the steps and their templates contain.
func (c *Client) withFields(ctx context.Context, rows ...puntuale.Sequence) ([]Sequence, error) {
	expanded, err := c.expand(ctx, rows...)
	if err != nil {
		return nil, err
	}
	sequences := make([]Sequence, len(rows))
	for i, s := range rows {
		sequences[i] = Sequence{Sequence: s, Fields: plan.Fields(expanded[i])}
		if err := puntuale.TakeMemory(ctx, memoryOfField*int64(len(sequences[i].Fields))); err != nil {
			return nil, err
		}
	}
	return sequences, nil
}
