//go:build !nosocket

package socket

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.mau.fi/util/dbutil"
	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/store/sqlstore/upgrades"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
	waLog "go.mau.fi/whatsmeow/util/log"

	"puntuale"
	"puntuale/internal/clock"
)

// Database contains the keys of linked numbers. It has the library's tables, whose names begin with whatsmeow_, and two
// tables of this package.
type Database struct {
	DB       *sql.DB
	Postgres bool // false: SQLite
}

// ownTables creates two tables: one for the device of each session with its keys, and one for notes about the network.
const ownTables = `
create table if not exists socket_device (
 session_id bigint not null primary key, jid text not null unique, keys bytea not null);
create table if not exists socket_note (name text not null primary key, value text not null)`

// used reports whether the tables of linked numbers exist.
func (d Database) used(ctx context.Context) (bool, error) {
	text := `select count(*) from sqlite_schema where type = 'table' and name = 'socket_device'`
	if d.Postgres {
		text = `select count(*) from information_schema.tables where table_schema = current_schema() and table_name = 'socket_device'`
	}
	var n int
	if err := d.DB.QueryRowContext(ctx, text).Scan(&n); err != nil {
		return false, fmt.Errorf("look for the tables of linked numbers: %w", err)
	}
	return n > 0, nil
}

// upgradeTries is how often this node tries to migrate the tables. A try can fail because another node migrates the
// tables at the same time.
const upgradeTries = 5

// devices stores the keys and states of linked numbers. It is safe for concurrent use.
type devices struct {
	db     *sql.DB
	shared *dbutil.Database // db, in the type that the library uses
	inner  *sqlstore.Container
	sealer sealer
	clock  clock.Clock
	log    waLog.Logger
}

func openDevices(ctx context.Context, d Database, s sealer, c clock.Clock, log waLog.Logger) (*devices, error) {
	shared, inner, err := upgraded(ctx, d, log)
	if err != nil {
		return nil, err
	}
	return &devices{db: d.DB, shared: shared, inner: inner, sealer: s, clock: c, log: log}, nil
}

// MakeTables creates the tables of linked numbers, or migrates them to the present version. A restore then fills them.
func MakeTables(ctx context.Context, d Database) error {
	_, _, err := upgraded(ctx, d, waLog.Noop)
	return err
}

// upgraded migrates the tables to the present version and opens them.
func upgraded(ctx context.Context, d Database, log waLog.Logger) (*dbutil.Database, *sqlstore.Container, error) {
	dialect := "sqlite"
	if d.Postgres {
		dialect = "pgx"
	}
	shared, err := dbutil.NewWithDB(d.DB, dialect)
	if err != nil {
		return nil, nil, fmt.Errorf("use the database of linked numbers: %w", err)
	}
	shared.UpgradeTable, shared.VersionTable = upgrades.Table, "whatsmeow_version"
	inner := sqlstore.NewWithWrappedDB(shared, log)
	for try := 1; ; try++ {
		if err = inner.Upgrade(ctx); err == nil {
			_, err = d.DB.ExecContext(ctx, ownTables)
		}
		if err == nil {
			return shared, inner, nil
		}
		if try == upgradeTries || ctx.Err() != nil {
			return nil, nil, fmt.Errorf("bring the tables of linked numbers up to date: %w", err)
		}
	}
}

// secrets are the keys that prove that a device belongs to the number. They are stored as sealed JSON.
type secrets struct {
	Noise        []byte `json:"noise"`
	Identity     []byte `json:"identity"`
	SignedPreKey []byte `json:"signed_pre_key"`
	Adv          []byte `json:"adv"`
}

var errDamaged = errors.New("the keys of a linked number are not whole")

// find returns a session's device, or nil if the session has none.
func (d *devices) find(ctx context.Context, session puntuale.SessionID) (*store.Device, error) {
	var text string
	var sealed []byte
	err := d.db.QueryRowContext(ctx, `select jid, keys from socket_device where session_id = $1`, int64(session)).Scan(&text, &sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a session's device: %w", err)
	}
	jid, err := types.ParseJID(text)
	if err != nil {
		return nil, fmt.Errorf("read a session's device: %w", err)
	}
	device, err := d.inner.GetDevice(ctx, jid)
	if err != nil || device == nil {
		return nil, err
	}
	plain, err := d.sealer.open(session, sealed)
	if err != nil {
		return nil, err
	}
	var s secrets
	if json.Unmarshal(plain, &s) != nil || len(s.Noise) != 32 || len(s.Identity) != 32 || len(s.SignedPreKey) != 32 {
		return nil, errDamaged // err is left out, because its text would contain a part of the keys
	}
	device.NoiseKey = keys.NewKeyPairFromPrivateKey([32]byte(s.Noise))
	device.IdentityKey = keys.NewKeyPairFromPrivateKey([32]byte(s.Identity))
	device.SignedPreKey.KeyPair = *keys.NewKeyPairFromPrivateKey([32]byte(s.SignedPreKey))
	device.AdvSecretKey = s.Adv
	d.wrap(device, session)
	return device, nil
}

// fresh returns a new device that belongs to no number yet. The library stores the device once it is linked.
func (d *devices) fresh(session puntuale.SessionID) *store.Device {
	device := d.inner.NewDevice()
	device.Container = container{d, session, new(atomic.Bool)}
	return device
}

// forget removes a session's device and all data of the device.
func (d *devices) forget(ctx context.Context, session puntuale.SessionID) error {
	var jid string
	err := d.db.QueryRowContext(ctx, `select jid from socket_device where session_id = $1`, int64(session)).Scan(&jid)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = d.drop(ctx, jid)
	}
	if err != nil {
		return fmt.Errorf("forget a linked number: %w", err)
	}
	return nil
}

// drop removes a device. Because of foreign keys, the database then also removes the device's rows in the library's
// tables. Only whatsmeow_privacy_tokens has no foreign key.
func (d *devices) drop(ctx context.Context, jid string) error {
	for _, text := range []string{
		`delete from socket_device where jid = $1`, // remove the keys first, because all other data are useless without them
		`delete from whatsmeow_privacy_tokens where our_jid = $1`,
		`delete from whatsmeow_device where jid = $1`,
	} {
		if _, err := d.db.ExecContext(ctx, text, jid); err != nil {
			return err
		}
	}
	return nil
}

// sessions returns the sessions that have a device.
func (d *devices) sessions(ctx context.Context) ([]puntuale.SessionID, error) {
	rows, err := d.db.QueryContext(ctx, `select session_id from socket_device`)
	if err != nil {
		return nil, fmt.Errorf("list linked numbers: %w", err)
	}
	defer rows.Close()
	var all []puntuale.SessionID
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("list linked numbers: %w", err)
		}
		all = append(all, puntuale.SessionID(id))
	}
	return all, rows.Err()
}

// note stores a value under a name. The method noted returns that value, or "" if there is none.
func (d *devices) note(ctx context.Context, name, value string) error {
	_, err := d.db.ExecContext(ctx, `insert into socket_note (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value`, name, value)
	return err
}

func (d *devices) noted(ctx context.Context, name string) (string, error) {
	var value string
	err := d.db.QueryRowContext(ctx, `select value from socket_note where name = $1`, name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return value, err
}

// container stores the device of one session. The library's own table requires keys of a certain length. So container
// writes zeros there, and the sealed keys into socket_device.
type container struct {
	*devices
	session puntuale.SessionID
	removed *atomic.Bool // the same variable as in the device's stores
}

func (c container) PutDevice(ctx context.Context, device *store.Device) error {
	if device.ID == nil {
		return sqlstore.ErrDeviceIDMustBeSet
	}
	bare := *device
	bare.NoiseKey = &keys.KeyPair{Pub: new([32]byte), Priv: new([32]byte)}
	bare.IdentityKey = bare.NoiseKey
	bare.SignedPreKey = &keys.PreKey{KeyPair: *bare.NoiseKey, KeyID: device.SignedPreKey.KeyID, Signature: device.SignedPreKey.Signature}
	bare.AdvSecretKey = []byte{}
	if bare.Account == nil {
		bare.Account = &waAdv.ADVSignedDeviceIdentity{}
	}
	if err := c.inner.PutDevice(ctx, &bare); err != nil {
		return err
	}
	s, err := json.Marshal(secrets{device.NoiseKey.Priv[:], device.IdentityKey.Priv[:], device.SignedPreKey.Priv[:], device.AdvSecretKey})
	if err != nil {
		return fmt.Errorf("write a device's keys: %w", err)
	}
	if !device.Initialized { // the device was just linked, so every earlier link of the session is over
		if err := c.replace(ctx, device.ID.String()); err != nil {
			return err
		}
	}
	if _, err := c.db.ExecContext(ctx, `insert into socket_device (session_id, jid, keys) values ($1, $2, $3)
 on conflict (session_id) do update set jid = excluded.jid, keys = excluded.keys`, int64(c.session), device.ID.String(), c.sealer.seal(c.session, s)); err != nil {
		return fmt.Errorf("store a device's keys: %w", err)
	}
	if !device.Initialized {
		adopt(device, &bare)
		c.wrap(device, c.session)
	}
	return nil
}

// replace removes the session's earlier device. If the session had none, replace unlinks this device from any other
// session.
func (c container) replace(ctx context.Context, jid string) error {
	var old string
	err := c.db.QueryRowContext(ctx, `select jid from socket_device where session_id = $1`, int64(c.session)).Scan(&old)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		_, err = c.db.ExecContext(ctx, `delete from socket_device where jid = $1`, jid)
	case err == nil && old != jid:
		err = c.drop(ctx, old)
	}
	if err != nil {
		return fmt.Errorf("replace a session's device: %w", err)
	}
	return nil
}

// adopt copies the stores of bare into device. The library opened these stores.
func adopt(device, bare *store.Device) {
	device.Identities, device.Sessions, device.PreKeys, device.SenderKeys = bare.Identities, bare.Sessions, bare.PreKeys, bare.SenderKeys
	device.AppStateKeys, device.AppState, device.Contacts, device.ChatSettings = bare.AppStateKeys, bare.AppState, bare.Contacts, bare.ChatSettings
	device.MsgSecrets, device.PrivacyTokens, device.NCTSalt, device.EventBuffer = bare.MsgSecrets, bare.PrivacyTokens, bare.NCTSalt, bare.EventBuffer
	device.LIDs, device.Initialized = bare.LIDs, true
}

// errRemoved says that DeleteDevice removed a device from the database.
var errRemoved = errors.New("the device is removed")

// DeleteDevice removes the device and returns errRemoved. If it returned nil, the library would empty the device in
// memory without a lock, while its own goroutines still read it.
func (c container) DeleteDevice(ctx context.Context, device *store.Device) error {
	if device.ID == nil {
		return sqlstore.ErrDeviceIDMustBeSet
	}
	c.removed.Store(true)
	if err := c.drop(ctx, device.ID.String()); err != nil {
		return err
	}
	return errRemoved
}

// wrap replaces the stores of a device with stores that seal their data.
func (d *devices) wrap(device *store.Device, session puntuale.SessionID) {
	removed := new(atomic.Bool)
	p := secretAddress{d.sealer, session}
	device.Container = container{d, session, removed}
	device.PreKeys = manyPreKeys{device.PreKeys, d.shared, new(sync.Mutex)}
	t := newContactLocks(d.clock)
	device.Sessions = sealedSessions{lockedSessions{device.Sessions, t}, p}
	device.SenderKeys = sealedSenderKeys{device.SenderKeys, p}
	device.AppStateKeys = sealedAppStateKeys{device.AppStateKeys, p}
	device.MsgSecrets = sealedMessageSecrets{device.MsgSecrets, p}
	device.PrivacyTokens = sealedPrivacyTokens{device.PrivacyTokens, p, removed}
	device.NCTSalt = sealedSalt{device.NCTSalt, p}
	device.EventBuffer = sealedEvents{lockedEvents{device.EventBuffer, t}, p}
}
