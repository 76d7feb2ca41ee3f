package puntuale_test

import (
	"strings"
	"testing"
	"time"

	"puntuale"
)

// TestWay: the order is free text within the 24-hour window, Direct Send, the template, and a refusal.
func TestWay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	free, official := puntuale.Content{Text: "Ciao"}, &puntuale.Approved{Name: "promo", Language: "it"}
	both := puntuale.Content{Text: "Ciao", Official: official}
	pause := func(kind puntuale.PauseKind, code int, after time.Duration) []puntuale.OfficialPause {
		return []puntuale.OfficialPause{{Kind: kind, Code: code, Until: now.Add(after)}}
	}
	ways := func(s puntuale.WaySettings, pauses ...puntuale.OfficialPause) puntuale.OfficialWays {
		return puntuale.OfficialWays{WaySettings: s, Pauses: pauses}
	}
	on := ways(puntuale.WaySettings{DirectSend: true})
	off := ways(puntuale.WaySettings{DirectSend: true}, pause(puntuale.PauseDirectSend, puntuale.CodeNotEnabled, time.Hour)...)
	blocked := ways(puntuale.WaySettings{DirectSend: true}, pause(puntuale.PauseDirectSend, 139200, time.Hour)...)
	marketing := puntuale.NetworkTemplate{Category: puntuale.CategoryMarketing}
	linked := puntuale.NetworkTemplate{Parts: []puntuale.TemplatePart{{Kind: "BUTTONS", Buttons: []puntuale.TemplateButton{{Kind: "URL"}}}}}
	for name, x := range map[string]struct {
		q      puntuale.WayQuery
		way    puntuale.MessageWay
		reason string
	}{
		"open":                         {puntuale.WayQuery{Content: free, Open: true}, puntuale.WayFreeText, "way.window_open"},
		"open, both":                   {puntuale.WayQuery{Content: both, Open: true}, puntuale.WayFreeText, "way.window_open"},
		"open, Direct Send":            {puntuale.WayQuery{Content: both, Open: true, Ways: on}, puntuale.WayFreeText, "way.window_open"},
		"open, marketing":              {puntuale.WayQuery{Content: both, Open: true, Purpose: puntuale.PurposeMarketing}, puntuale.WayTemplate, "way.template_shows"},
		"open, marketing free text":    {puntuale.WayQuery{Content: free, Open: true, Purpose: puntuale.PurposeMarketing}, puntuale.WayFreeText, "way.window_open"},
		"open, link button":            {puntuale.WayQuery{Content: both, Open: true, Template: linked}, puntuale.WayTemplate, "way.template_shows"},
		"closed":                       {puntuale.WayQuery{Content: free}, puntuale.WayRefused, "way.no_template"},
		"closed, both":                 {puntuale.WayQuery{Content: both}, puntuale.WayTemplate, "way.window_closed"},
		"direct":                       {puntuale.WayQuery{Content: free, Ways: on}, puntuale.WayDirectSend, "way.direct_send"},
		"direct before the template":   {puntuale.WayQuery{Content: both, Ways: on}, puntuale.WayDirectSend, "way.direct_send"},
		"direct, link button":          {puntuale.WayQuery{Content: both, Ways: on, Template: linked}, puntuale.WayTemplate, "way.window_closed"},
		"direct, marketing":            {puntuale.WayQuery{Content: free, Ways: on, Purpose: puntuale.PurposeMarketing}, puntuale.WayRefused, "way.no_template"},
		"direct, campaign":             {puntuale.WayQuery{Content: free, Ways: on, Campaign: true}, puntuale.WayRefused, "way.direct_send_unfit"},
		"direct, hidden number":        {puntuale.WayQuery{Content: free, Ways: on, To: "US.13491208655302741918"}, puntuale.WayRefused, "way.direct_send_unfit"},
		"direct, file":                 {puntuale.WayQuery{Content: puntuale.Content{Text: "x", MediaURL: "https://example.com/a.jpg"}, Ways: on}, puntuale.WayRefused, "way.direct_send_unfit"},
		"direct, long":                 {puntuale.WayQuery{Content: puntuale.Content{Text: strings.Repeat("è", 1025)}, Ways: on}, puntuale.WayRefused, "way.direct_send_unfit"},
		"direct failed":                {puntuale.WayQuery{Content: both, Ways: on, Failed: true}, puntuale.WayTemplate, "way.window_closed"},
		"direct off":                   {puntuale.WayQuery{Content: free, Ways: off}, puntuale.WayRefused, "way.direct_send_off"},
		"direct off, both":             {puntuale.WayQuery{Content: both, Ways: off}, puntuale.WayTemplate, "way.window_closed"},
		"direct blocked":               {puntuale.WayQuery{Content: free, Ways: blocked}, puntuale.WayRefused, "way.direct_send_blocked"},
		"direct blocked, both":         {puntuale.WayQuery{Content: both, Ways: blocked}, puntuale.WayTemplate, "way.window_closed"},
		"marketing":                    {puntuale.WayQuery{Content: both, Template: marketing}, puntuale.WayTemplate, "way.window_closed"},
		"marketing path":               {puntuale.WayQuery{Content: both, Template: marketing, Ways: ways(puntuale.WaySettings{Marketing: true})}, puntuale.WayTemplate, "way.marketing_path"},
		"marketing path demanded":      {puntuale.WayQuery{Content: both, Template: marketing, Ways: ways(puntuale.WaySettings{}, pause(puntuale.PauseCategory, 131063, time.Hour)...)}, puntuale.WayTemplate, "way.marketing_path"},
		"marketing path, past demand":  {puntuale.WayQuery{Content: both, Template: marketing, Ways: ways(puntuale.WaySettings{}, pause(puntuale.PauseCategory, 131063, 0)...)}, puntuale.WayTemplate, "way.window_closed"},
		"marketing path stopped":       {puntuale.WayQuery{Content: both, Template: marketing, Ways: ways(puntuale.WaySettings{Marketing: true}, pause(puntuale.PauseMarketingPath, 134102, time.Hour)...)}, puntuale.WayTemplate, "way.window_closed"},
		"marketing path, not for them": {puntuale.WayQuery{Content: both, Ways: ways(puntuale.WaySettings{Marketing: true})}, puntuale.WayTemplate, "way.window_closed"},
	} {
		if x.q.To == "" {
			x.q.To = "+393331111111"
		}
		x.q.Now = now
		if way, reason := x.q.Way(); way != x.way || string(reason) != x.reason {
			t.Errorf("%s: %s, %s, want %s, %s", name, way, reason, x.way, x.reason)
		}
	}
}
