package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// target is a bound that the product must keep. It applies to figure divided by divisor. If divisor is empty, it applies
// to figure alone.
type target struct {
	figure, divisor string
	lowest          float64 // 0: there is no lower bound
	highest         float64
}

// quickPending is how many pending messages a quick run uses instead of a million.
const quickPending = 200_000

// targets lists the targets of the project, in the order of the table.
var targets = []target{
	{figure: onEngine(groupedInsert, postgres), divisor: copyInsert, lowest: 0.65},
	{figure: onEngine(groupedInsert, postgres), divisor: riverInsert, lowest: 2},
	{figure: onEngine(ourDispatch, postgres), divisor: riverImmediate, lowest: 2},
	{figure: onEngine(ourDispatch, postgres), divisor: riverScheduled, lowest: 6},
	{figure: onEngine(ourDispatch, postgres), divisor: asynqFast, lowest: 4},
	{figure: onEngine(ourDispatch, postgres), divisor: asynqDurable, lowest: 20},
	{figure: onEngine(ourDispatch, sqlite), divisor: riverImmediate, lowest: 1},
	{figure: besidePending(1_000_000, postgres), divisor: besidePending(0, postgres), lowest: 0.85},
	{figure: besidePending(10_000_000, postgres), divisor: besidePending(0, postgres), lowest: 0.5},
	{figure: besidePending(1_000_000, sqlite), divisor: besidePending(0, sqlite), lowest: 0.85},
	{figure: besidePending(10_000_000, sqlite), divisor: besidePending(0, sqlite), lowest: 0.5},
	{figure: besidePending(quickPending, postgres), divisor: besidePending(0, postgres), lowest: 0.85},
	{figure: besidePending(quickPending, sqlite), divisor: besidePending(0, sqlite), lowest: 0.85},
	{figure: late(2000, "p50", postgres), highest: 2},
	{figure: late(2000, "p99", postgres), highest: 10},
	{figure: late(2000, "p99.9", postgres), highest: 40},
	{figure: late(10_000, "p50", postgres), highest: 2},
	{figure: late(10_000, "p99", postgres), highest: 10},
	{figure: late(10_000, "p99.9", postgres), highest: 40},
	{figure: late(2000, "p50", sqlite), highest: 2},
	{figure: late(2000, "p99", sqlite), highest: 10},
	{figure: late(2000, "p99.9", sqlite), highest: 40},
	{figure: late(10_000, "p50", sqlite), highest: 2},
	{figure: late(10_000, "p99", sqlite), highest: 10},
	{figure: late(10_000, "p99.9", sqlite), highest: 40},
	{figure: late(10_000, "earliest", postgres), lowest: 0.000001},
	{figure: late(10_000, "earliest", sqlite), lowest: 0.000001},
	{figure: call(64, postgres), divisor: call(64, noStore), lowest: 0.35},
	{figure: call(256, postgres), divisor: call(256, noStore), lowest: 0.40},
	{figure: call(64, sqlite), divisor: call(64, noStore), lowest: 0.30},
	{figure: call(256, sqlite), divisor: call(256, noStore), lowest: 0.35},
	{figure: wholeCall(64, postgres), divisor: call(64, postgres), lowest: 0.7},
	{figure: wholeCall(64, sqlite), divisor: call(64, sqlite), lowest: 0.7},
	{figure: resident(sqlite, 0), highest: 60},
	{figure: resident(sqlite, 1_000_000), highest: 250},
	{figure: resident(postgres, 0), highest: 60},
	{figure: resident(postgres, 1_000_000), highest: 250},
}

// verdict is a target with its measured value.
type verdict struct {
	target
	median, lowest, highest float64
	unit                    string  // "": the value is a ratio
	effort                  float64 // the divisor's processor time divided by the figure's processor time; 0: there is no divisor, or the times were not measured
	met                     bool
}

func (v verdict) name() string {
	if v.divisor == "" {
		return v.figure
	}
	return v.figure + " ÷ " + v.divisor
}

func (v verdict) bound() string {
	switch {
	case v.target.highest > 0:
		return fmt.Sprintf("≤ %g %s", v.target.highest, v.unit)
	case v.unit == millis:
		return "never early"
	}
	return strings.TrimSpace(fmt.Sprintf("≥ %g %s", v.target.lowest, v.unit))
}

// byEffort returns the ratio of processor times as text.
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

// share returns how well the figure keeps the bound. 1 means that the figure equals the bound; more is better.
// 0 means that the figure has no bar.
func (v verdict) share() float64 {
	switch {
	case v.target.highest > 0 && v.median > 0:
		return v.target.highest / v.median
	case v.unit == millis:
		return 0 // the picture shows no bar
	}
	return v.median / v.target.lowest
}

// verdicts compares all figures with their targets.
func (s *sheet) verdicts() (all []verdict) {
	for _, t := range slices.Concat(targets, campaignTargets(), replyTargets(), eventTargets(), automationTargets()) {
		v := verdict{target: t}
		var ok bool
		if t.divisor != "" {
			v.median, v.lowest, v.highest, ok = s.ratio(t.figure, t.divisor)
			v.effort = s.effort(t.divisor) / s.effort(t.figure)
		} else if f := s.find(t.figure); f != nil {
			v.unit = f.unit
			v.median, v.lowest, v.highest, ok = spread(f.values)
		}
		if !ok {
			continue
		}
		if t.highest > 0 {
			v.met = v.median <= t.highest
		} else {
			v.met = v.median >= t.lowest
		}
		all = append(all, v)
	}
	return all
}
