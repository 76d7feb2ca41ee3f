package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"puntuale"
)

const (
	lowSpace    = 5 << 30 // bytes; less is low if it is also less than a tenth
	scarceSpace = 512 << 20
)

func lookAtServer(ctx context.Context, cfg *Config) []Finding {
	if cfg.Server == nil {
		return nil
	}
	if err := cfg.Server(ctx); err != nil {
		return found("server", Warning, fmt.Sprintf("No ready server answers on this machine: %v.", err), "Start it with puntuale serve, or with systemctl start puntuale. If it runs with another --addr, give the same here.")
	}
	return found("server", OK, "It runs, and is ready.", "")
}

func lookAtClock(_ context.Context, cfg *Config) []Finding {
	if cfg.Clock == nil {
		return nil
	}
	switch err := cfg.Clock(); {
	case errors.Is(err, ErrUnsynchronised):
		return found("clock", Warning, "Nothing keeps this machine's clock right, as far as the kernel knows. Messages leave at the times of this clock.", "Install chrony, or enable systemd-timesyncd. In a container, look at the host.")
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case err != nil:
		return found("clock", Warning, fmt.Sprintf("Whether the clock is right could not be found out: %v.", err), "")
	}
	return found("clock", OK, "It is synchronised.", "")
}

func lookAtDisks(_ context.Context, cfg *Config) (all []Finding) {
	for _, use := range slices.Sorted(maps.Keys(cfg.Folders)) {
		folder, subject := cfg.Folders[use], "disk of "+use
		if cfg.Open != nil && cfg.Open(folder) {
			all = append(all, Finding{subject, Warning, "Other users of this machine can open " + folder + ".", "Run chmod 700 " + folder + "."})
		}
		free, size, err := cfg.Space(folder)
		if errors.Is(err, errors.ErrUnsupported) {
			continue
		}
		text := fmt.Sprintf("%.1f of %.1f GiB are free for %s.", float64(free)/(1<<30), float64(size)/(1<<30), folder)
		switch {
		case err != nil:
			all = append(all, Finding{subject, Fault, fmt.Sprintf("%s cannot be looked at: %v.", folder, err), "Create the folder, and make the server's user its owner."})
		case free < scarceSpace:
			all = append(all, Finding{subject, Fault, text, "Make room: with a full disk the server accepts nothing."})
		case free < lowSpace && free < size/10:
			all = append(all, Finding{subject, Warning, text, "Make room, or move the folder to a larger disk."})
		default:
			all = append(all, Finding{subject, OK, text, ""})
		}
	}
	return all
}

func lookAtKey(_ context.Context, cfg *Config) []Finding {
	const subject, keep = "key", "Keep a copy elsewhere than the database and its backups."
	switch k := cfg.Key; {
	case k.Given:
		return found(subject, OK, "It is in the environment. "+keep, "")
	case k.File == "":
		return found(subject, Fault, "There is no second key: who can read the database can read every secret in it.", "Make one with openssl rand -base64 32, and give it to every server with --key-file.")
	case k.Absent:
		return found(subject, Warning, "There is no "+k.File+" yet.", "On SQLite the first start makes it. If a server ran here before, put the file back.")
	case k.Open:
		return found(subject, Fault, "Other users of this machine can read "+k.File+".", "Run chmod 600 "+k.File+".")
	}
	return found(subject, OK, cfg.Key.File+" can be read only by its owner. "+keep, "")
}

func lookAtDatabase(ctx context.Context, cfg *Config) []Finding {
	if cfg.Database == nil {
		return nil
	}
	const subject = "database"
	d, err := cfg.Database(ctx)
	switch {
	case err != nil:
		return found(subject, Fault, err.Error()+".", "Look for this text in docs/troubleshooting.md.")
	case d.Damage != nil:
		return found(subject, Fault, fmt.Sprintf("%s is damaged: %v.", d.Name, d.Damage), "Repair the database, or restore a backup.")
	case d.Old:
		return found(subject, Fault, d.Made+" is too old.", "Use PostgreSQL 15 or later.")
	case d.Ahead != 0:
		return found(subject, Warning, fmt.Sprintf("The clock of %s is %v ahead of this machine's.", d.Name, d.Ahead.Round(time.Second)), "Let both machines set their clocks from the network.")
	}
	return found(subject, OK, fmt.Sprintf("%s (%s) has the tables of this version, and writes safely to its disk.", d.Name, d.Made), "")
}

func lookAtBackups(ctx context.Context, cfg *Config) (all []Finding) {
	if cfg.Backup == nil {
		return nil
	}
	const subject = "backup"
	b, err := cfg.Backup(ctx)
	if err != nil {
		return found(subject, Warning, fmt.Sprintf("The last backup could not be looked up: %v.", err), "")
	}
	add := func(level Level, text, do string) { all = append(all, Finding{subject, level, text, do}) }
	const see = "Set --backup-to, or run puntuale backup each day."
	switch age := cfg.Now.Sub(b.Last); {
	case b.Last.IsZero():
		add(Fault, "There was never a backup.", see)
	case age > puntuale.BackupTooOld:
		do := see
		if b.Scheduled {
			do = "Look at the log of the servers with the role dispatch."
		}
		add(Fault, fmt.Sprintf("The last good backup is %s old.", ageText(age)), do)
	default:
		add(OK, fmt.Sprintf("The last good backup is %s old.", ageText(age)), "")
	}
	if b.Fault != "" {
		add(Fault, "The last attempt failed: "+b.Fault+".", "It is tried again by itself. Correct what the text names.")
	}
	if !b.Scheduled {
		return all
	}
	switch {
	case b.Failed != "":
		all = append(all, Finding{"rehearsal", Fault, "The newest backup could not be restored on trial: " + b.Failed + ".", "Correct what the text names. Until then nobody knows whether the backup is good."})
	case b.Rehearsed.IsZero():
		all = append(all, Finding{"rehearsal", Warning, "No backup was restored on trial yet.", ""})
	case cfg.Now.Sub(b.Rehearsed) > puntuale.BackupTooOld:
		all = append(all, Finding{"rehearsal", Fault, fmt.Sprintf("The last trial of a restore is %s old.", ageText(cfg.Now.Sub(b.Rehearsed))), "Look at the log of the servers with the role dispatch."})
	default:
		all = append(all, Finding{"rehearsal", OK, "Rehearsed at " + b.Rehearsed.UTC().Format("15:04 MST") + ": " + b.RehearsalIs + ".", ""})
	}
	if b.Remote && !b.Encrypted {
		add(Warning, "Backups are stored on another machine, and are not encrypted.", "Make a key with age-keygen, keep it elsewhere, and set --backup-recipient.")
	}
	if !b.Remote {
		add(Warning, "Backups are in a folder of this machine.", "Let another disk or machine hold the folder, or set --backup-to to S3.")
	}
	return all
}

func ageText(d time.Duration) string {
	if d < 48*time.Hour {
		return fmt.Sprintf("%.1f hours", max(0, d.Hours()))
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}

func lookAtStorage(ctx context.Context, cfg *Config) []Finding {
	const subject = "files"
	if cfg.Storage == nil {
		return nil
	}
	if err := cfg.Storage(ctx); err != nil {
		return found(subject, Fault, fmt.Sprintf("The storage of uploaded files cannot be used: %v.", err), "Check files-to, and for S3 the endpoint, the region and the key: it must be allowed to put, get and delete objects. Until then no file is uploaded, and no message with such a file leaves.")
	}
	return found(subject, OK, "The storage of uploaded files takes, returns and removes a file.", "")
}

func lookAtMail(ctx context.Context, cfg *Config) []Finding {
	const subject = "e-mail"
	if !cfg.Mails {
		return found(subject, Warning, "No mail server is set: people cannot reset a password by themselves, and get no notices by e-mail.", "Set --smtp and --mail-from.")
	}
	if cfg.Mail == nil {
		return nil
	}
	if err := cfg.Mail(ctx); err != nil {
		return found(subject, Fault, fmt.Sprintf("The mail server accepts nothing: %v.", err), "Check the address, the user and the password in --smtp, and whether this machine may connect to the port.")
	}
	return found(subject, OK, "The mail server lets this server sign in.", "")
}

func lookAtScanner(ctx context.Context, cfg *Config) []Finding {
	const subject = "virus scanner"
	if cfg.Scanner == nil {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := cfg.Scanner(within); err != nil {
		return found(subject, Fault, fmt.Sprintf("clamd does not answer, so nobody can upload a file, and files of replies wait: %v.", err), "Start clamd, and check its address in --clamd.")
	}
	return found(subject, OK, "clamd answers.", "")
}

func lookAtLimits(_ context.Context, cfg *Config) []Finding {
	if cfg.Files == 0 {
		return nil
	}
	if cfg.Files < cfg.Needed {
		return found("open files", Warning, fmt.Sprintf("This process may open %d files, and needs up to %d.", cfg.Files, cfg.Needed), "Raise the limit: LimitNOFILE in the systemd unit, or ulimit -n.")
	}
	return found("open files", OK, fmt.Sprintf("This process may open %d files.", cfg.Files), "")
}
