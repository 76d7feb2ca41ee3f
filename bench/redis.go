package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// redis is the name of the database of peers that do not use PostgreSQL.
const redis = "Redis"

// redisServer is a separate Redis on a socket in a temporary folder. It starts without persistence, because asynq is
// fastest in this way. The method fsync makes it sync every write.
type redisServer struct {
	socket string
	folder string
	cmd    *exec.Cmd
	ended  chan error
}

func (r *redisServer) pid() int {
	if r.cmd == nil {
		return 0
	}
	return r.cmd.Process.Pid
}

func (r *redisServer) start(ctx context.Context, service string) (err error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return errNoRedis
	}
	if r.folder, err = os.MkdirTemp(service, "redis-"); err != nil {
		return err
	}
	r.socket = filepath.Join(r.folder, "s")
	r.cmd = exec.Command(program, "--port", "0", "--unixsocket", r.socket, "--dir", r.folder, "--save", "", "--appendonly", "no", "--logfile", filepath.Join(r.folder, "log"))
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // Redis must end when the bench ends
	if err := r.cmd.Start(); err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	r.ended = make(chan error, 1)
	go func() { r.ended <- r.cmd.Wait() }()
	c := r.client()
	defer c.Close()
	for deadline := time.Now().Add(10 * time.Second); c.Ping(ctx).Err() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			r.stop()
			return errors.New("redis-server does not answer")
		}
	}
	return nil
}

var errNoRedis = errors.New("redis-server was not found; asynq is left out")

func (r *redisServer) client() *goredis.Client {
	return goredis.NewClient(&goredis.Options{Network: "unix", Addr: r.socket})
}

// fsync makes Redis sync its log before it answers a write. It waits until that log is complete.
func (r *redisServer) fsync(ctx context.Context) error {
	c := r.client()
	defer c.Close()
	for _, set := range [][2]string{{"appendfsync", "always"}, {"appendonly", "yes"}} {
		if err := c.ConfigSet(ctx, set[0], set[1]).Err(); err != nil {
			return fmt.Errorf("set Redis's %s: %w", set[0], err)
		}
	}
	for {
		info, err := c.InfoMap(ctx, "persistence").Result()
		if err != nil {
			return err
		}
		p := info["Persistence"]
		if p["aof_enabled"] == "1" && p["aof_rewrite_in_progress"] == "0" && p["aof_rewrite_scheduled"] == "0" {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (r *redisServer) stop() {
	if r.cmd == nil {
		return
	}
	_ = r.cmd.Process.Kill() // its data are not needed any more
	<-r.ended
	r.cmd = nil
	_ = os.RemoveAll(r.folder)
}
