package result

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"puntuale"
	"puntuale/internal/store/engine"
)

// keyRef is a key of a client.
type keyRef struct {
	client puntuale.ClientID
	Key
}

func (k keyRef) compare(o keyRef) int {
	return cmp.Or(cmp.Compare(k.client, o.client), cmp.Compare(k.Sequence, o.Sequence), cmp.Compare(k.Step, o.Step), cmp.Compare(k.Campaign, o.Campaign),
		cmp.Compare(k.Rule, o.Rule), cmp.Compare(k.Session, o.Session), cmp.Compare(k.Template, o.Template), cmp.Compare(k.Variant, o.Variant))
}

const (
	keyList = `$u(c bigint, q bigint, p integer, g bigint, r bigint, s bigint, t text, v integer)`
	sameKey = `k.client_id = u.c and k.sequence_id = u.q and k.step = u.p and k.campaign_id = u.g and k.rule_id = u.r and k.session_id = u.s and k.template = u.t and k.variant = u.v`
)

// findKeys finds the ids of keys, and makes those that are new. The caller holds the counter's lock.
func findKeys(ctx context.Context, a engine.Querier, wanted map[keyRef]int64) error {
	if len(wanted) == 0 {
		return nil
	}
	keys := slices.SortedFunc(maps.Keys(wanted), keyRef.compare)
	columns := func() engine.Columns {
		return engine.Columns{
			engine.Column(keys, func(k *keyRef) int64 { return int64(k.client) }), engine.Column(keys, func(k *keyRef) int64 { return int64(k.Sequence) }),
			engine.Column(keys, func(k *keyRef) int64 { return int64(k.Step) }), engine.Column(keys, func(k *keyRef) int64 { return int64(k.Campaign) }),
			engine.Column(keys, func(k *keyRef) int64 { return int64(k.Rule) }), engine.Column(keys, func(k *keyRef) int64 { return int64(k.Session) }),
			engine.Column(keys, func(k *keyRef) string { return k.Template }), engine.Column(keys, func(k *keyRef) int64 { return int64(k.Variant) }),
		}
	}
	if err := a.Query(ctx, `select k.id, `+keyColumns+` from `+keyList+` cross join result_key k where `+sameKey, []any{columns()}, func(r engine.Row) error {
		var id int64
		var k keyRef
		err := r.Scan(&id, &k.client, &k.Sequence, &k.Step, &k.Campaign, &k.Rule, &k.Session, &k.Template, &k.Variant)
		wanted[k] = id
		return err
	}); err != nil {
		return err
	}
	keys = slices.DeleteFunc(keys, func(k keyRef) bool { return wanted[k] != 0 })
	if len(keys) == 0 {
		return nil
	}
	last, err := engine.NextNumbers(ctx, a, "result", len(keys))
	if err != nil {
		return err
	}
	ids := make([]int64, len(keys))
	for i, k := range keys {
		ids[i] = last - int64(len(keys)-1-i)
		wanted[k] = ids[i]
	}
	_, err = a.Exec(ctx, `insert into result_key (id, client_id, sequence_id, step, campaign_id, rule_id, session_id, template, variant)
 select u.i, u.c, u.q, u.p, u.g, u.r, u.s, u.t, u.v from $u(i bigint, c bigint, q bigint, p integer, g bigint, r bigint, s bigint, t text, v integer)`, append(engine.Columns{ids}, columns()...))
	return err
}

const keyColumns = `k.client_id, k.sequence_id, k.step, k.campaign_id, k.rule_id, k.session_id, k.template, k.variant`

// bitLinks is the bit of result_key.told that says that one of the messages at least has tracked links.
const bitLinks = 4

// toldBits are the bits of result_key.told.
var toldBits = map[puntuale.ResultMarks]int64{puntuale.ResultDelivered: 1, puntuale.ResultRead: 2, puntuale.ResultClicked: bitLinks}

type toldKey struct {
	client puntuale.ClientID
	key    int64
	bit    int64
}

// noteTold stores what the network told about messages of keys, unless it is stored.
func noteTold(ctx context.Context, a engine.Querier, told map[toldKey]bool) error {
	if len(told) == 0 {
		return nil
	}
	all := slices.SortedFunc(maps.Keys(told), func(x, y toldKey) int {
		return cmp.Or(cmp.Compare(x.client, y.client), cmp.Compare(x.key, y.key), cmp.Compare(x.bit, y.bit))
	})
	for _, bit := range toldBits {
		some := slices.DeleteFunc(slices.Clone(all), func(k toldKey) bool { return k.bit != bit })
		if len(some) == 0 {
			continue
		}
		if _, err := a.Exec(ctx, `update result_key set told = told + $1 from $u(c bigint, k bigint) where result_key.client_id = u.c and result_key.id = u.k and (result_key.told & $1) = 0`,
			bit, engine.Columns{
				engine.Column(some, func(k *toldKey) int64 { return int64(k.client) }), engine.Column(some, func(k *toldKey) int64 { return k.key }),
			}); err != nil {
			return err
		}
	}
	return nil
}

// countedSteps is the JSON of run.steps: for each message of the run the id of its step, the name of its template, and
// which variant of the step it is. It survives the run's content.
type countedSteps struct {
	Steps     []int    `json:"steps,omitempty"`
	Templates []string `json:"templates,omitempty"`
	Variants  []int    `json:"variants,omitempty"` // from 1; 0: the step has none
}

// StepsOf returns what a run stores about its steps, so that its messages can be counted after its content was removed.
// It is written by hand, because every start does this.
func StepsOf(steps []puntuale.FrozenStep) string {
	named, numbered, varied := false, false, false
	for i := range steps {
		named, numbered, varied = named || templateOf(&steps[i].Content) != "", numbered || stepID(&steps[i]) != 0, varied || steps[i].Variant != 0
	}
	if !named && !numbered && !varied {
		return "{}"
	}
	text := appendNumbers(append(make([]byte, 0, 32+4*len(steps)), `{"steps":[`...), steps, stepID)
	if varied {
		text = appendNumbers(append(text, `,"variants":[`...), steps, func(s *puntuale.FrozenStep) int { return int(s.Variant) })
	}
	if named {
		names, err := json.Marshal(engine.Column(steps, func(s *puntuale.FrozenStep) string { return templateOf(&s.Content) }))
		if err == nil { // texts always marshal
			text = append(append(text, `,"templates":`...), names...)
		}
	}
	return string(append(text, '}'))
}

// appendNumbers appends a number of each step, and the end of the list.
func appendNumbers(text []byte, steps []puntuale.FrozenStep, of func(*puntuale.FrozenStep) int) []byte {
	for i := range steps {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(of(&steps[i])), 10)
	}
	return append(text, ']')
}

// stepID returns the id of a step; a step of an earlier version has its position instead.
func stepID(s *puntuale.FrozenStep) int {
	if s.ID > 0 {
		return int(s.ID) - 1
	}
	return s.Step
}

func templateOf(c *puntuale.Content) string {
	if c.Template == "" && c.Official != nil {
		return c.Official.Name
	}
	return c.Template
}

// frozenSteps remembers the steps of runs, because several messages of a run are often counted together.
type frozenSteps map[puntuale.RunRef]countedSteps

// of returns step, template and variant of a message. If they are unknown, because an earlier version stored the run and its
// content was removed, the step is the position in the run.
func (f frozenSteps) of(client puntuale.ClientID, run puntuale.RunID, position int, steps, content string) (step int, template string, variant int) {
	ref := puntuale.RunRef{Client: client, ID: run}
	c, ok := f[ref]
	if !ok {
		var frozen []puntuale.FrozenStep
		if steps == "" && json.Unmarshal([]byte(content), &frozen) == nil && len(frozen) > 0 {
			steps = StepsOf(frozen)
		}
		if json.Unmarshal([]byte(steps), &c) != nil {
			c.Steps = make([]int, position+1)
			c.Steps[position] = position
		}
		f[ref] = c
	}
	if position < len(c.Steps) {
		step = c.Steps[position]
	}
	if position < len(c.Templates) {
		template = c.Templates[position]
	}
	if position < len(c.Variants) {
		variant = c.Variants[position]
	}
	return step, template, variant
}
