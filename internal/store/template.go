package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/account"
	"puntuale/internal/store/engine"
)

const templateColumns = `t.id, t.name, t.text, t.media, t.media_name, t.latitude, t.longitude, t.created_at, t.updated_at, t.official`

func templateFields(t *puntuale.Template) []any {
	return []any{&t.ID, &t.Name, &t.Text, &t.Media, &t.MediaName, &t.Latitude, &t.Longitude, engine.ScanTime(&t.Created), engine.ScanTime(&t.Updated), approvedColumn{&t.Official}}
}

// approvedColumn scans a column that contains an approved template's values as JSON, or an empty text.
type approvedColumn struct{ into **puntuale.Approved }

func (a approvedColumn) Scan(value any) error {
	*a.into = nil
	if value == "" || value == nil {
		return nil
	}
	*a.into = &puntuale.Approved{}
	return engine.ScanJSON(*a.into).Scan(value)
}

func approvedText(a *puntuale.Approved) (string, error) {
	if a == nil {
		return "", nil
	}
	return engine.ToJSON(a)
}

func scanTemplate(rows engine.Row, t *puntuale.Template) error {
	return rows.Scan(templateFields(t)...)
}

// Codes of the faults that functions in this file return.
const (
	faultTemplateInUse     puntuale.ReasonCode = "template.in_use"
	faultTemplateNameTaken puntuale.ReasonCode = "template.name_taken"
)

var errTemplateName = puntuale.Conflict(faultTemplateNameTaken)

// CreateTemplate stores a template. The function o.Answer gets the TemplateID. Codes: conflict (another template has the
// name).
func (t tenant) CreateTemplate(ctx context.Context, m puntuale.Template, o *puntuale.Idempotency) (id puntuale.TemplateID, err error) {
	err = t.once(ctx, o, func(ctx context.Context, a engine.Querier) (any, error) {
		if err := t.checkQuota(ctx, a, puntuale.QuotaTemplates); err != nil {
			return nil, err
		}
		n, err := engine.NextNumber(ctx, a, "template")
		if err != nil {
			return nil, err
		}
		id = puntuale.TemplateID(n)
		official, err := approvedText(m.Official)
		if err != nil {
			return nil, err
		}
		if _, err = a.Exec(ctx, `insert into template (client_id, id, name, text, media, media_name, latitude, longitude, created_at, updated_at, official)
 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			t.id, id, m.Name, m.Text, m.Media, m.MediaName, m.Latitude, m.Longitude, engine.Micros(m.Created), engine.Micros(m.Updated), official); err != nil {
			if engine.Repeated(err) {
				return nil, errTemplateName
			}
			return nil, fmt.Errorf("insert a template: %w", err)
		}
		return id, t.tellTemplate(ctx, a, id, m.Name, "created", m.Created)
	})
	return id, err
}

// UpdateTemplate replaces the template. If the argument known is not empty, the stored version must be in it.
// Codes: not_found; precondition_failed; conflict (another template has the name; or the name changes, and a
// sequence uses the old name).
func (t tenant) UpdateTemplate(ctx context.Context, m puntuale.Template, known ...puntuale.Version) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		stored, err := t.lockTemplate(ctx, a, m.ID)
		if err != nil {
			return err
		}
		if err := puntuale.CheckVersion(stored.Version(), known); err != nil {
			return err
		}
		if stored.Name != m.Name {
			if err := t.unnamed(ctx, a, stored.Name); err != nil {
				return err
			}
		}
		official, err := approvedText(m.Official)
		if err != nil {
			return err
		}
		if _, err := a.Exec(ctx, `update template set name = $3, text = $4, media = $5, media_name = $6, latitude = $7, longitude = $8,
 updated_at = $9, official = $10 where client_id = $1 and id = $2`,
			t.id, m.ID, m.Name, m.Text, m.Media, m.MediaName, m.Latitude, m.Longitude, engine.Micros(m.Updated), official); err != nil {
			if engine.Repeated(err) {
				return errTemplateName
			}
			return fmt.Errorf("update a template: %w", err)
		}
		if err := t.tellTemplate(ctx, a, m.ID, m.Name, "updated", m.Updated); err != nil {
			return err
		}
		return account.Changed(ctx, a, t.id)
	})
}

// DeleteTemplate deletes a template. Codes: not_found, conflict (a sequence names it).
func (t tenant) DeleteTemplate(ctx context.Context, id puntuale.TemplateID) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		stored, err := t.lockTemplate(ctx, a, id)
		if err != nil {
			return err
		}
		if err := t.unnamed(ctx, a, stored.Name); err != nil {
			return err
		}
		if _, err := a.Exec(ctx, `delete from template where client_id = $1 and id = $2`, t.id, id); err != nil {
			return fmt.Errorf("delete a template: %w", err)
		}
		if err := t.tellTemplate(ctx, a, id, stored.Name, "deleted", t.s.Config.Clock.Now()); err != nil {
			return err
		}
		return account.Changed(ctx, a, t.id)
	})
}

// Template reads a template. Codes: not_found.
func (t tenant) Template(ctx context.Context, id puntuale.TemplateID) (puntuale.Template, error) {
	var m puntuale.Template
	found, err := engine.QueryOne(ctx, t.s.CallReads, `select `+templateColumns+` from template t where t.client_id = $1 and t.id = $2`,
		[]any{t.id, id}, templateFields(&m)...)
	return m, engine.FoundOr(found, err, puntuale.NoTemplate)
}

// Templates lists templates, sorted by id. Codes: invalid (the cursor).
func (t tenant) Templates(ctx context.Context, p puntuale.Page) ([]puntuale.Template, string, error) {
	last, limit, err := engine.ReadCursor(p, "template")
	if err != nil {
		return nil, "", err
	}
	page, err := engine.ReadPageSpan(ctx, t.s.CallReads, "template", `select t.id, octet_length(t.text) + octet_length(t.media) from template t
 where t.client_id = $1 and t.id > $2 order by t.id limit $3`, []any{t.id, last, limit + 1}, limit)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list templates: %w", err))
	}
	all, err := engine.QueryAll(ctx, t.s.CallReads, `select `+templateColumns+` from template t
 where t.client_id = $1 and t.id > $2 and t.id <= $3 order by t.id`, []any{t.id, last, page.Last}, scanTemplate)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list templates: %w", err))
	}
	return all, page.Next, nil
}

func (t tenant) TemplatesNamed(ctx context.Context, names []string) (map[string]puntuale.Template, error) {
	found := make(map[string]puntuale.Template, len(names))
	if len(names) == 0 {
		return found, nil
	}
	all, err := engine.QueryAll(ctx, t.s.CallReads, `select `+templateColumns+` from $u(n text) join template t on t.client_id = $1 and t.name = u.n`,
		[]any{t.id, engine.Columns{names}}, scanTemplate)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read templates: %w", err))
	}
	for _, m := range all {
		found[m.Name] = m
	}
	return found, nil
}

// lockTemplate locks a template's row and reads it. So the template does not change before this transaction commits.
func (t tenant) lockTemplate(ctx context.Context, a engine.Querier, id puntuale.TemplateID) (m puntuale.Template, err error) {
	found, err := engine.QueryOne(ctx, a, `select `+templateColumns+` from template t where t.client_id = $1 and t.id = $2 for update`,
		[]any{t.id, id}, templateFields(&m)...)
	return m, engine.ThereOr(found, err, puntuale.NoTemplate)
}

// templatesThere returns an error if steps use a template that does not exist. It locks the templates, so that nobody
// deletes them before this transaction commits.
func (t tenant) templatesThere(ctx context.Context, a engine.Querier, steps []puntuale.Step) error {
	var names []string
	for _, step := range puntuale.Texts(steps) {
		if step.Template != "" {
			names = append(names, step.Template)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	existing, err := engine.QueryAll(ctx, a, `select t.name from $u(n text) join template t on t.client_id = $1 and t.name = u.n order by t.id for update of t`,
		[]any{t.id, engine.Columns{slices.Compact(names)}}, engine.ScanOne[string])
	if err != nil {
		return fmt.Errorf("look for templates: %w", err)
	}
	var faults []puntuale.Fault
	for i, step := range puntuale.Texts(steps) {
		if step.Template != "" && !slices.Contains(existing, step.Template) {
			faults = append(faults, puntuale.Fault{Location: fmt.Sprintf("body.steps[%d].template", i), Code: puntuale.FaultNotOwnTemplate, Value: step.Template})
		}
	}
	if len(faults) > 0 {
		return puntuale.Invalid(faults...)
	}
	return nil
}

// unnamed returns an error if a sequence uses the template.
func (t tenant) unnamed(ctx context.Context, a engine.Querier, template string) error {
	all, err := engine.QueryAll(ctx, a, `select q.steps from sequence q where q.client_id = $1 and q.deleted_at = 0 and q.steps like '%"template":%'`,
		[]any{t.id}, engine.ScanOne[string])
	if err != nil {
		return fmt.Errorf("look for sequences with a template: %w", err)
	}
	for _, text := range all {
		var steps []puntuale.Step
		if err := json.Unmarshal([]byte(text), &steps); err != nil {
			return fmt.Errorf("read a sequence's steps: %w", err)
		}
		for _, step := range puntuale.Texts(steps) {
			if step.Template == template {
				return puntuale.Conflict(faultTemplateInUse)
			}
		}
	}
	return nil
}
