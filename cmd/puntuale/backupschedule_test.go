package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"puntuale/internal/mail/mailtest"
	"puntuale/internal/objectstore/s3test"
)

// TestBackupsBySchedule: a server stores an encrypted backup in S3 and rehearses it. Then its disk is lost: only the
// access to S3 and the identity are left, and restore makes the installation of them, with its key.
func TestBackupsBySchedule(t *testing.T) {
	t.Parallel()
	storage := s3test.New(t)
	owner, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	const secret = "the-secret-of-the-access-key"
	env := map[string]string{
		"PUNTUALE_BACKUP_TO": "s3://bucket/studio", "PUNTUALE_BACKUP_RECIPIENT": owner.Recipient().String(),
		"PUNTUALE_S3_ENDPOINT": storage.URL, "PUNTUALE_S3_ACCESS_KEY": s3test.AccessKey, "PUNTUALE_S3_SECRET_KEY": secret,
	}
	term := newConsole(t, env)
	_, out, _ := term.runs("", "partner", "create", "--name", "A", "--email", "a@b", "--password", "una frase lunga 42", "--json")
	key := field(t, out, "api_key")
	server := start(t, term, "serve", "--sandbox", "--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0")
	figures := "http://" + server.logged.waitFor(t, `"serving figures","addr":"([^"]+)"`)
	server.logged.waitFor(t, `"job":"rehearsal","result":"(puntuale-[^"]+ was restored into SQLite: [0-9,]+ rows, 0 messages, equal)"`)
	_, body := answer(t, "GET", figures+"/metrics")
	for _, want := range []string{"puntuale_backup_scheduled 1", `puntuale_backup_failing{work="rehearsal"} 0`, `puntuale_backup_success_timestamp_seconds{work="rehearsal"} 1.`} {
		if !strings.Contains(body, "\n"+want) {
			t.Errorf("there is no %s", want)
		}
	}
	status, page := answer(t, "GET", figures+"/operator")
	if status != 200 || !strings.Contains(page, "messages, equal.") || !strings.Contains(page, "last backup") || strings.Contains(page, "<script") {
		t.Errorf("the operator's page: %d\n%s", status, page)
	}
	server.end()
	objects := storage.Objects()
	if len(objects) != 1 || !strings.HasPrefix(objects[0], "bucket/studio/puntuale-") || !strings.HasSuffix(objects[0], ".zip.age") {
		t.Fatalf("stored: %v", objects)
	}
	if log := server.logged.String(); strings.Contains(log, secret) || strings.Contains(log, "AGE-SECRET") || strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("a secret, or an error, is in the log:\n%s", log)
	}
	if code, out, errs := term.runs("", "config"); code != exitDone || strings.Contains(out+errs, secret) {
		t.Errorf("config shows the secret: %d\n%s", code, out)
	}

	fresh := newConsole(t, env) // a new machine
	says := func(code int, said string, args ...string) {
		t.Helper()
		if got, out, errs := fresh.runs("", args...); got != code || !strings.Contains(out+errs, said) {
			t.Fatalf("puntuale %v: exit code %d, %s%s", args, got, out, errs)
		}
	}
	fresh.file(t, "identity.txt", owner.String()+"\n")
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	fresh.file(t, "other.txt", other.String()+"\n")
	fresh.file(t, "started/puntuale.db.key", strings.Repeat("x", 40)) // as the first start of a server leaves it
	says(exitDone, objects[0][len("bucket/studio/"):], "backups")
	says(exitFailed, "give the secret key with --identity", "restore", "--from", "s3://bucket/studio/")
	says(exitFailed, "no given identity opens it", "restore", "--from", "s3://bucket/studio/", "--identity", "other.txt")
	says(exitFailed, "there is no backup", "restore", "--from", "s3://bucket/nowhere/", "--identity", "identity.txt")
	says(exitDone, "The newest backup is puntuale-", "restore", "--from", "s3://bucket/studio/", "--identity", "identity.txt")
	if rest, err := filepath.Glob(filepath.Join(fresh.dir, "puntuale-data", "fetched*")); err != nil || len(rest) > 0 {
		t.Errorf("left behind: %v, %v", rest, err)
	}
	if text, err := os.ReadFile(filepath.Join(fresh.dir, "puntuale-data", "puntuale.db.key")); err != nil || len(text) < 32 {
		t.Errorf("the key file: %q, %v", text, err)
	}
	if code, out, said := fresh.runs(key+"\n", "key", "rotate"); code != exitDone || !strings.Contains(out, "pk_") {
		t.Errorf("the old key: exit code %d, %s", code, said)
	}
	says(exitFailed, "move the folder aside", "restore", "--from", "s3://"+objects[0], "--identity", "identity.txt", "--data", "started")
	if code, out, said := fresh.runs(owner.String()+"\n", "restore", "--from", "s3://"+objects[0], "--identity", "-", "--data", "again"); code != exitDone {
		t.Errorf("the identity from the standard input: exit code %d, %s%s", code, out, said)
	}
}

// TestOperatorIsTold: the operator gets an e-mail if no backup succeeds.
func TestOperatorIsTold(t *testing.T) {
	t.Parallel()
	storage := s3test.New(t)
	storage.Refuse(func(method, _ string) bool { return method == "POST" || method == "PUT" })
	came := make(chan string, 9)
	post := mailtest.New(t, mailtest.Options{NoTLS: true, Open: true})
	post.Took(func(to string) { came <- to })
	term := newConsole(t, map[string]string{
		"PUNTUALE_BACKUP_TO": "s3://bucket/studio", "PUNTUALE_S3_ENDPOINT": storage.URL, "PUNTUALE_S3_ACCESS_KEY": s3test.AccessKey, "PUNTUALE_S3_SECRET_KEY": "segreta",
		"PUNTUALE_SMTP": "smtp://" + post.Addr(), "PUNTUALE_MAIL_FROM": "no-reply@example.com", "PUNTUALE_MAIL_OPERATOR": "ops@example.com", "PUNTUALE_PUBLIC_URL": "https://wa.example.com",
	})
	server := start(t, term, "serve", "--sandbox", "--addr", "127.0.0.1:0")
	server.logged.waitFor(t, `"task":"(backup)"`)
	server.end()
	server = start(t, term, "serve", "--sandbox", "--addr", "127.0.0.1:0") // it tells at once, if the first one did not
	if to := <-came; to != "ops@example.com" {
		t.Errorf("to %s", to)
	}
	server.end()
	all := post.Received()
	if len(all) != 1 {
		t.Fatalf("%d e-mails", len(all))
	}
	if m := all[0]; m.Subject != "Puntuale: backups of wa.example.com are too old" || !strings.Contains(m.Text, "There was never a good backup. The last attempt failed: ") ||
		!strings.Contains(m.Text, "AccessDenied") || !strings.Contains(m.Text, "s3://bucket/studio") || strings.Contains(m.Text, "segreta") {
		t.Errorf("%s\n%s", m.Subject, m.Text)
	}
}

// TestBackupToFolder: without a recipient, backups are files of a folder without the key. restore takes the newest one.
func TestBackupToFolder(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	server := start(t, term, "serve", "--sandbox", "--addr", "127.0.0.1:0", "--backup-to", "backups")
	server.logged.waitFor(t, `"job":"(rehearsal)","result"`)
	server.end()
	if code, _, errs := term.runs("", "restore", "--from", "backups", "--data", "two"); code != exitDone || !strings.Contains(errs, "The backup has no key") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	files, err := filepath.Glob(filepath.Join(term.dir, "backups", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if code, out, _ := term.runs("", "backups", "--in", "backups"); code != exitDone || !strings.Contains(out, filepath.Base(files[0])) {
		t.Errorf("listed: %s", out)
	}
}

// TestBackupSettings: a server does not start with a wrong setting, and says what is wrong.
func TestBackupSettings(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--backup-at 25:00": "must be a time of day", "--backup-keep 7": "is not a number of days", "--backup-recipient age1x": "is no recipient",
		"--backup-to s3://": "s3://bucket/folder", "--backup-to s3://b": "needs s3-access-key", "--s3-secret-file nowhere": "cannot be read", "--mail-operator ops@example.com": "needs backup-to",
		"--smtp smtp://127.0.0.1 --public-url https://e.com --mail-from a@e.com --backup-to b --mail-operator ops": "mail-operator",
	} {
		term := newConsole(t, nil)
		if code, _, errs := term.runs("", append([]string{"config"}, strings.Fields(args)...)...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", args, code, errs)
		}
	}
}
