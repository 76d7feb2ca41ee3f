package metrics

import (
	"cmp"
	"context"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"puntuale"
	"puntuale/internal/clock"
)

// The figures in this file are for alerts.

// Backlog describes the messages that are due and have not left.
type Backlog struct {
	Messages int64
	Oldest   time.Time // due time of the oldest of these messages; zero if there are none
}

// backlogs contains the figures about messages that are due and have not left, from the last count.
type backlogs struct {
	clock                 clock.Clock
	messages, oldest, age *prometheus.Desc

	mu     sync.Mutex
	at     time.Time // the time of the last count; zero before the first count
	counts map[string]Backlog
}

func newBacklogs(c clock.Clock) *backlogs {
	return &backlogs{
		clock: c,
		messages: prometheus.NewDesc("puntuale_backlog_messages",
			"Open messages of the whole installation that are due, by whether their session can send. Each server shows the same: take the maximum.", []string{"session"}, nil),
		oldest: prometheus.NewDesc("puntuale_backlog_oldest_seconds",
			"How long the first of them has been due; 0 without any.", []string{"session"}, nil),
		age: prometheus.NewDesc("puntuale_backlog_age_seconds", "How long ago they were counted.", nil, nil),
	}
}

func (b *backlogs) set(at time.Time, ready, waiting Backlog) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at, b.counts = at, map[string]Backlog{"ready": ready, "not_linked": waiting}
}

func (b *backlogs) Describe(to chan<- *prometheus.Desc) {
	to <- b.messages
	to <- b.oldest
	to <- b.age
}

func (b *backlogs) Collect(to chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.IsZero() {
		return
	}
	now := b.clock.Now()
	for session, count := range b.counts {
		oldest := 0.0
		if !count.Oldest.IsZero() {
			oldest = max(0, now.Sub(count.Oldest).Seconds())
		}
		to <- prometheus.MustNewConstMetric(b.messages, prometheus.GaugeValue, float64(count.Messages), session)
		to <- prometheus.MustNewConstMetric(b.oldest, prometheus.GaugeValue, oldest, session)
	}
	to <- prometheus.MustNewConstMetric(b.age, prometheus.GaugeValue, max(0, now.Sub(b.at).Seconds()))
}

// alerts contains figures that are set when something happens.
type alerts struct {
	ready        *prometheus.GaugeVec
	taskFailures *prometheus.CounterVec
	taskDone     *prometheus.GaugeVec
	deliveries   *prometheus.CounterVec
	pushes       *prometheus.CounterVec
	mails        *prometheus.CounterVec
	mailWaits    prometheus.Gauge
	diskFree     *prometheus.GaugeVec
	diskSize     *prometheus.GaugeVec
}

// registerOperation registers the figures for alerts.
func (m *Meter) registerOperation(version string) {
	m.alerts.ready = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "puntuale_ready", Help: "1 while a part of this server does its work, 0 while it does not: the store, the dispatcher.",
	}, []string{"part"})
	m.alerts.taskFailures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "puntuale_task_failures_total", Help: "Background tasks that failed: refill, maintenance, archive, backlog, check, disk, push, events, mail.",
	}, []string{"task"})
	m.alerts.taskDone = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "puntuale_task_success_timestamp_seconds", Help: "When a background task last succeeded.",
	}, []string{"task"})
	m.alerts.deliveries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "puntuale_webhook_deliveries_total",
		Help: "What networks delivered, by result: accepted, refused (not signed, or not understood) or failed (it could not be stored; Meta repeats it, a gateway does not).",
	}, []string{"network", "result"})
	m.alerts.pushes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "puntuale_pushes_total",
		Help: "Web Pushes to people's devices, by result: arrived (at the push service), gone (the device wants none any more) or failed (it is tried again).",
	}, []string{"result"})
	for _, result := range []string{"arrived", "gone", "failed"} {
		m.alerts.pushes.WithLabelValues(result) // the figure is 0 until the first push
	}
	m.alerts.mails = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "puntuale_mails_total",
		Help: "Attempts to send an e-mail, by result: taken (by the mail server), failed (it is tried again) or given_up.",
	}, []string{"result"})
	for _, result := range []string{"taken", "failed", "given_up"} {
		m.alerts.mails.WithLabelValues(result) // the figure is 0 until the first e-mail
	}
	m.alerts.mailWaits = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "puntuale_mail_oldest_seconds", Help: "How long the e-mail of the whole installation that has waited longest has waited, also between two attempts; 0 without any.",
	})
	m.alerts.diskFree = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "puntuale_disk_free_bytes", Help: "Free space of the disks that this server writes on.",
	}, []string{"holds"})
	m.alerts.diskSize = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "puntuale_disk_size_bytes", Help: "Size of these disks.",
	}, []string{"holds"})
	for _, network := range []string{"official", "gateway", "chatwoot"} {
		for _, result := range []string{"accepted", "refused", "failed"} {
			m.alerts.deliveries.WithLabelValues(network, result) // the figure is 0 until the first delivery
		}
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "puntuale_build_info", Help: "Always 1: the release, the commit and Go's version are in the labels.", ConstLabels: buildLabels(version),
	})
	build.Set(1)
	m.registry.MustRegister(m.alerts.ready, m.alerts.taskFailures, m.alerts.taskDone, m.alerts.deliveries, m.alerts.pushes, m.alerts.mails, m.alerts.mailWaits, m.alerts.diskFree, m.alerts.diskSize, build)
}

func buildLabels(version string) prometheus.Labels {
	labels := prometheus.Labels{"version": cmp.Or(version, "development"), "commit": "", "go": ""}
	if info, ok := debug.ReadBuildInfo(); ok {
		labels["go"] = info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				labels["commit"] = s.Value
			}
		}
	}
	return labels
}

// Backlog sets the figures about messages that were due at the time at. ready is about sessions that can send, and
// notLinked is about all other sessions.
func (m *Meter) Backlog(at time.Time, ready, notLinked Backlog) { m.backlog.set(at, ready, notLinked) }

// Disk sets how much of a disk is free, in bytes. use says what the server stores on this disk.
func (m *Meter) Disk(use string, free, size uint64) {
	m.alerts.diskFree.WithLabelValues(use).Set(float64(free))
	m.alerts.diskSize.WithLabelValues(use).Set(float64(size))
}

// Task registers a background task, with 0 failures.
func (m *Meter) Task(name string) { m.alerts.taskFailures.WithLabelValues(name) }

// TaskFailed counts a failure of a background task.
func (m *Meter) TaskFailed(name string) { m.alerts.taskFailures.WithLabelValues(name).Inc() }

// TaskDone records the time at which a background task last succeeded.
func (m *Meter) TaskDone(name string, at time.Time) {
	m.alerts.taskDone.WithLabelValues(name).Set(float64(at.Unix()))
}

// Mailed counts an attempt to send an e-mail by its result: taken, failed or given_up.
func (m *Meter) Mailed(result string) { m.alerts.mails.WithLabelValues(result).Inc() }

// MailWaits sets how long the oldest e-mail in the queue has waited; 0: none waits.
func (m *Meter) MailWaits(d time.Duration) { m.alerts.mailWaits.Set(max(0, d.Seconds())) }

// Pushed counts a Web Push by its result: arrived, gone or failed.
func (m *Meter) Pushed(result string) { m.alerts.pushes.WithLabelValues(result).Inc() }

// Ready sets whether a part of the server works.
func (m *Meter) Ready(part string, yes bool) {
	m.alerts.ready.WithLabelValues(part).Set(indicator(yes))
}

// Delivered counts the answers to a network's webhook requests. It ignores GET requests, by which Meta verifies our
// address.
func (m *Meter) Delivered(network, route string, status int) {
	if !strings.HasPrefix(route, http.MethodPost+" ") {
		return
	}
	result := "accepted"
	switch {
	case status >= http.StatusInternalServerError:
		result = "failed"
	case status >= http.StatusBadRequest:
		result = "refused"
	}
	m.alerts.deliveries.WithLabelValues(network, result).Inc()
}

// backupJobs are the figures of backups by schedule, read at each request for the figures.
type backupJobs struct {
	scheduled                 bool
	state                     func(context.Context, puntuale.BackupJob) (_ puntuale.BackupState, messages int64, err error)
	on, done, fault, messages *prometheus.Desc
}

// WatchBackupJobs registers the figures of backups by schedule. scheduled says whether this server's settings name a place
// for backups. messages is how many messages the last success contained.
func (m *Meter) WatchBackupJobs(scheduled bool, state func(context.Context, puntuale.BackupJob) (_ puntuale.BackupState, messages int64, err error)) {
	m.registry.MustRegister(&backupJobs{
		scheduled: scheduled, state: state,
		on:       prometheus.NewDesc("puntuale_backup_scheduled", "1 if this server's settings name a place for a daily backup.", nil, nil),
		done:     prometheus.NewDesc("puntuale_backup_success_timestamp_seconds", "When the daily backup, or its rehearsal, last succeeded, in seconds since 1970; 0: never.", []string{"work"}, nil),
		fault:    prometheus.NewDesc("puntuale_backup_failing", "1 while the last attempt at the job failed; the log and the operator's page say why.", []string{"work"}, nil),
		messages: prometheus.NewDesc("puntuale_backup_messages", "Messages in the last daily backup, and in the last one that was rehearsed.", []string{"work"}, nil),
	})
}

func (b *backupJobs) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{b.on, b.done, b.fault, b.messages} {
		to <- d
	}
}

func (b *backupJobs) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(b.on, prometheus.GaugeValue, indicator(b.scheduled))
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, job := range []puntuale.BackupJob{puntuale.JobBackup, puntuale.JobRehearsal} {
		state, messages, err := b.state(ctx, job)
		if err != nil {
			return
		}
		at := 0.0
		if !state.DoneAt.IsZero() {
			at = float64(state.DoneAt.UnixMilli()) / 1000
		}
		to <- prometheus.MustNewConstMetric(b.done, prometheus.GaugeValue, at, job.String())
		to <- prometheus.MustNewConstMetric(b.fault, prometheus.GaugeValue, indicator(state.Fault != ""), job.String())
		to <- prometheus.MustNewConstMetric(b.messages, prometheus.GaugeValue, float64(messages), job.String())
	}
}

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
