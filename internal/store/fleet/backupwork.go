package fleet

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Any node may do a job of the backups by schedule, but only one at a time. An attempt has a deadline, which its node
// moves on. After the deadline another node may begin an attempt, which has another token. A node that lost its attempt
// notices this when it moves the deadline on, and when it ends the job. All these times are of the database's clock.

const backupColumns = `planned, token, began_at, until, tries, done, done_at, result, fault, fault_at, opener`

func backupFields(s *puntuale.BackupState) []any {
	return []any{engine.ScanTime(&s.Planned), &s.Token, engine.ScanTime(&s.Began), engine.ScanTime(&s.Until), &s.Tries, engine.ScanTime(&s.Done),
		engine.ScanTime(&s.DoneAt), &s.Result, &s.Fault, engine.ScanTime(&s.FaultAt), &s.Opener}
}

// BackupState returns how far a job is.
func (s *Fleet) BackupState(ctx context.Context, job puntuale.BackupJob) (state puntuale.BackupState, err error) {
	if _, err := engine.QueryOne(ctx, s.CallReads, `select `+backupColumns+` from backup_work where kind = $1`, []any{int64(job)}, backupFields(&state)...); err != nil {
		return state, engine.PublicError(fmt.Errorf("read the state of the %s: %w", job, err))
	}
	return state, nil
}

// BeginBackupJob begins an attempt at the job for a planned moment, unless the job is done for this moment, another
// attempt runs, or the wait after a failure has not ended. The attempt's deadline is the lease from now on.
func (s *Fleet) BeginBackupJob(ctx context.Context, job puntuale.BackupJob, planned time.Time, lease time.Duration) (state puntuale.BackupState, begun bool, err error) {
	err = s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
		state = puntuale.BackupState{}
		if _, err := a.Exec(ctx, `insert into backup_work (kind) values ($1) on conflict (kind) do nothing`, int64(job)); err != nil {
			return err
		}
		begun, err = engine.QueryOne(ctx, a, `update backup_work set tries = case when planned = $2::bigint then tries else 0 end, planned = $2::bigint,
 token = token + 1, began_at = $clock, until = $clock + $3::bigint where kind = $1 and done < $2::bigint and until <= $clock returning `+backupColumns,
			[]any{int64(job), engine.Micros(planned), lease.Microseconds()}, backupFields(&state)...)
		return err
	})
	return state, begun, err
}

// HoldBackupJob moves the deadline of an attempt on. [puntuale.ErrFenced]: another attempt has begun.
func (s *Fleet) HoldBackupJob(ctx context.Context, job puntuale.BackupJob, token int64, lease time.Duration) error {
	return s.changeBackupJob(ctx, `until = $clock + $3::bigint`, job, token, lease.Microseconds())
}

// EndBackupJob stores the result of an attempt that succeeded. The opener is what opens an encrypted backup; a rehearsal
// that succeeded deletes it. [puntuale.ErrFenced]: another attempt has begun.
func (s *Fleet) EndBackupJob(ctx context.Context, job puntuale.BackupJob, token int64, result string, opener []byte) error {
	if opener == nil {
		opener = []byte{}
	}
	return s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `update backup_work set done = planned, done_at = $clock, until = 0, tries = 0, result = $3, fault = '', opener = $4 where kind = $1 and token = $2`,
			int64(job), token, result, opener)
		if err != nil {
			return err
		}
		if n == 0 {
			return puntuale.ErrFenced
		}
		if job == puntuale.JobRehearsal {
			_, err = a.Exec(ctx, `update backup_work set opener = $3 where kind = $1 and done = (select done from backup_work where kind = $2)`,
				int64(puntuale.JobBackup), int64(job), []byte{})
		}
		return err
	})
}

// FailBackupJob stores why an attempt failed, and how long no other attempt begins. [puntuale.ErrFenced]: another
// attempt has begun.
func (s *Fleet) FailBackupJob(ctx context.Context, job puntuale.BackupJob, token int64, fault string, wait time.Duration) error {
	return s.changeBackupJob(ctx, `until = $clock + $3::bigint, tries = tries + 1, fault_at = $clock, fault = $4`, job, token, wait.Microseconds(), fault)
}

// FreeBackupJob lets another attempt begin at once, because this node stops. [puntuale.ErrFenced]: another attempt has
// begun.
func (s *Fleet) FreeBackupJob(ctx context.Context, job puntuale.BackupJob, token int64) error {
	return s.changeBackupJob(ctx, `until = 0`, job, token)
}

func (s *Fleet) changeBackupJob(ctx context.Context, change string, job puntuale.BackupJob, token int64, more ...any) error {
	return s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `update backup_work set `+change+` where kind = $1 and token = $2`, append([]any{int64(job), token}, more...)...)
		if err == nil && n == 0 {
			return puntuale.ErrFenced
		}
		return err
	})
}
