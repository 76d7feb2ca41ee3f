package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// target is a bound that the product must keep. It is for the ratio of two figures, or, if per is empty, for one figure.
type target struct {
	of, per string
	least   float64 // 0: none
	most    float64
}

// quickPending replaces a million in a quick run.
const quickPending = 200_000

// targets are the targets of the project, in the order of the table.
var targets = []target{
	{of: on(groupedInsert, postgres), per: copyInsert, least: 0.65},
	{of: on(groupedInsert, postgres), per: riverInsert, least: 2},
	{of: on(ourDispatch, postgres), per: riverImmediate, least: 2},
	{of: on(ourDispatch, postgres), per: riverScheduled, least: 6},
	{of: on(ourDispatch, postgres), per: asynqFast, least: 4},
	{of: on(ourDispatch, postgres), per: asynqDurable, least: 20},
	{of: on(ourDispatch, sqlite), per: riverImmediate, least: 1},
	{of: beside(1_000_000, postgres), per: beside(0, postgres), least: 0.85},
	{of: beside(10_000_000, postgres), per: beside(0, postgres), least: 0.5},
	{of: beside(1_000_000, sqlite), per: beside(0, sqlite), least: 0.85},
	{of: beside(10_000_000, sqlite), per: beside(0, sqlite), least: 0.5},
	{of: beside(quickPending, postgres), per: beside(0, postgres), least: 0.85},
	{of: beside(quickPending, sqlite), per: beside(0, sqlite), least: 0.85},
	{of: late(2000, "p50", postgres), most: 2},
	{of: late(2000, "p99", postgres), most: 10},
	{of: late(2000, "p99.9", postgres), most: 40},
	{of: late(10_000, "p50", postgres), most: 2},
	{of: late(10_000, "p99", postgres), most: 10},
	{of: late(10_000, "p99.9", postgres), most: 40},
	{of: late(2000, "p50", sqlite), most: 2},
	{of: late(2000, "p99", sqlite), most: 10},
	{of: late(2000, "p99.9", sqlite), most: 40},
	{of: late(10_000, "p50", sqlite), most: 2},
	{of: late(10_000, "p99", sqlite), most: 10},
	{of: late(10_000, "p99.9", sqlite), most: 40},
	{of: late(10_000, "earliest", postgres), least: 0.000001},
	{of: late(10_000, "earliest", sqlite), least: 0.000001},
	{of: call(64, postgres), per: call(64, noStore), least: 0.35},
	{of: call(256, postgres), per: call(256, noStore), least: 0.40},
	{of: call(64, sqlite), per: call(64, noStore), least: 0.30},
	{of: call(256, sqlite), per: call(256, noStore), least: 0.35},
	{of: wholeCall(64, postgres), per: call(64, postgres), least: 0.7},
	{of: wholeCall(64, sqlite), per: call(64, sqlite), least: 0.7},
	{of: resident(sqlite, 0), most: 60},
	{of: resident(sqlite, 1_000_000), most: 250},
	{of: resident(postgres, 0), most: 60},
	{of: resident(postgres, 1_000_000), most: 250},
}

// verdict is a target with its measured value.
type verdict struct {
	target
	median, least, most float64
	unit                string  // "" for a ratio
	effort              float64 // the ratio by processor time instead of rates; 0: not measured
	met                 bool
}

func (v verdict) name() string {
	if v.per == "" {
		return v.of
	}
	return v.of + " ÷ " + v.per
}

func (v verdict) bound() string {
	switch {
	case v.target.most > 0:
		return fmt.Sprintf("≤ %g %s", v.target.most, v.unit)
	case v.unit == millis:
		return "never early"
	}
	return strings.TrimSpace(fmt.Sprintf("≥ %g %s", v.target.least, v.unit))
}

// byEffort returns the ratio by processor time, as text.
func (v verdict) byEffort() string {
	if v.effort > 0 && !math.IsInf(v.effort, 0) {
		return shown(v.effort)
	}
	return ""
}

func (v verdict) word() string {
	if v.met {
		return "met"
	}
	return "MISSED"
}

// share returns how well the figure keeps the bound: 1 is the bound itself, and more is better.
func (v verdict) share() float64 {
	switch {
	case v.target.most > 0 && v.median > 0:
		return v.target.most / v.median
	case v.unit == millis:
		return 0 // the picture leaves it out
	}
	return v.median / v.target.least
}

// verdicts compares the figures with the targets.
func (s *sheet) verdicts() (all []verdict) {
	for _, t := range slices.Concat(targets, campaignTargets(), replyTargets(), eventTargets(), automationTargets()) {
		v := verdict{target: t}
		var ok bool
		if t.per != "" {
			v.median, v.least, v.most, ok = s.ratio(t.of, t.per)
			v.effort = s.effort(t.per) / s.effort(t.of)
		} else if f := s.find(t.of); f != nil {
			v.unit = f.unit
			v.median, v.least, v.most, ok = spread(f.values)
		}
		if !ok {
			continue
		}
		if t.most > 0 {
			v.met = v.median <= t.most
		} else {
			v.met = v.median >= t.least
		}
		all = append(all, v)
	}
	return all
}
