package result

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/store/engine"
)

// A page reads at most looks rows of the period, looked at a time. So it may be short or empty although a next page
// exists.
const (
	looked = 5000
	looks  = 4
)

const messagesOfDays = `select x.message_id, x.day, x.marks, x.words, x.key_id from result_message x
 where x.client_id = $1 and (x.day, x.message_id) > ($2, $3) and x.day <= $4 order by x.day, x.message_id limit $5`

// ResultMessages lists the messages behind a count, by the days on which they were due. Messages in the archive are left
// out. A page may be short although a next one exists. Codes: invalid (the cursor).
func (s Reports) ResultMessages(ctx context.Context, f puntuale.ResultMessages, p puntuale.Page) ([]puntuale.ResultMessage, string, error) {
	day, id, err := resultCursor(p)
	if err != nil {
		return nil, "", err
	}
	limit := p.Limit
	if limit <= 0 {
		limit = engine.DefaultLimit
	}
	if p.Cursor == "" {
		day = f.Start.Int()
	}
	a := s.lists()
	keys, err := s.keys(ctx, a)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("read what results belong to: %w", err))
	}
	chosen := map[int64]*storedKey{}
	varied := map[puntuale.CampaignID]bool{} // campaigns with several texts, which are counted as steps
	for i := range keys {
		if k := &keys[i]; k.Sequence == 0 && k.Campaign != 0 && k.Step > 0 {
			varied[k.Campaign] = true
		}
		if keys[i].Step != stepOfBookings && matches(&f.ResultFilter, &keys[i].Key) {
			chosen[keys[i].id] = &keys[i]
		}
	}
	var found []puntuale.ResultMessage
	for range looks {
		read := 0
		if err := a.Query(ctx, messagesOfDays, []any{s.client, day, id, f.End.Int(), looked}, func(r engine.Row) error {
			if len(found) > limit {
				return nil
			}
			var m puntuale.ResultMessage
			var words string
			var key int64
			if err := r.Scan(&id, &day, &m.Marks, &words, &key); err != nil {
				return err
			}
			read++
			k := chosen[key]
			if k == nil || m.Marks&f.Is != f.Is || m.Marks&f.Not != 0 || !hasWords(words, &f) {
				return nil
			}
			m.Told, m.Sequence, m.Step, m.Campaign, m.Variant = k.tells, k.Sequence, k.Step, k.Campaign, k.Variant
			if varied[k.Campaign] && k.Sequence == 0 {
				m.Variant = k.Step + 1
			}
			if f.Not.Untold(k.tells) != 0 && m.Marks&puntuale.ResultSent != 0 {
				return nil // nobody knows whether the person did this
			}
			m.ID, m.Day = puntuale.MessageID(id), puntuale.DateFromInt(day)
			found = append(found, m)
			return nil
		}); err != nil {
			return nil, "", engine.PublicError(fmt.Errorf("list messages behind a count: %w", err))
		}
		switch {
		case len(found) > limit:
			found = found[:limit]
			last := found[limit-1]
			return found, resultCursorAt(last.Day.Int(), int64(last.ID)), nil
		case read < looked:
			return found, "", nil
		}
	}
	return found, resultCursorAt(day, id), nil
}

// hasWords reports whether a message has the reason and the button of the filter.
func hasWords(words string, f *puntuale.ResultMessages) bool {
	if f.Reason == "" && f.Button == "" {
		return true
	}
	all := strings.Split(words, "\n")
	return (f.Reason == "" || slices.Contains(all, wordReason+f.Reason)) && (f.Button == "" || slices.Contains(all, wordButton+f.Button))
}

func resultCursorAt(day int, id int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte("result:" + strconv.Itoa(day) + ":" + strconv.FormatInt(id, 10)))
}

func resultCursor(p puntuale.Page) (day int, id int64, err error) {
	if p.Cursor == "" {
		return 0, 0, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err == nil {
		if _, err = fmt.Sscanf(string(text), "result:%d:%d", &day, &id); err == nil && resultCursorAt(day, id) == p.Cursor {
			return day, id, nil
		}
	}
	return 0, 0, engine.BadCursor(p)
}
