package media

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"puntuale"
)

// special contains IANA's special-purpose registries, multicast and reserved ranges, as of 2026. No caller's file may
// be at such an address.
var special = []string{
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32",
	"::/128", "::1/128", "::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64",
	"100:0:0:1::/64", "2001::/23", "2001::/32", "2001:1::1/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48",
	"2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
	"4000::/3", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
}

// last returns the highest address of a range.
func last(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for i := p.Bits(); i < len(bytes)*8; i++ {
		bytes[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(bytes)
	return a
}

// TestSpecialAddresses tests the check of each connection, at both ends of each range.
func TestSpecialAddresses(t *testing.T) {
	t.Parallel()
	d := newDialer(Config{}.withDefaults())
	check := func(a netip.Addr) error {
		network := "tcp6"
		if a.Is4() {
			network = "tcp4"
		}
		return d.check(network, netip.AddrPortFrom(a, 443).String(), nil)
	}
	for _, text := range special {
		p := netip.MustParsePrefix(text)
		for _, a := range []netip.Addr{p.Addr(), p.Addr().Next(), last(p), last(p).Prev()} {
			if a.IsValid() && p.Contains(a) && check(a) == nil {
				t.Errorf("%s of %s may be reached", a, p)
			}
		}
	}
	for _, text := range []string{"64:ff9b::a9fe:a9fe", "2002:7f00:1::", "::127.0.0.1", "fe80::1%eth0", "2606:4700::1111%eth0", "::ffff:8.8.8.8"} {
		if check(netip.MustParseAddr(text)) == nil {
			t.Errorf("%s may be reached", text)
		}
	}
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255",
		"172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
		"2001:200::1", "2001:4860:4860::8888", "2003::1", "2606:4700::1111", "2a00::1", "3fff:1000::1",
	} {
		if err := check(netip.MustParseAddr(text)); err != nil {
			t.Errorf("%s may not be reached: %v", text, err)
		}
	}
	for _, to := range []struct{ network, address string }{{"tcp4", "1.1.1.1:25"}, {"tcp4", "1.1.1.1:8080"}, {"udp4", "1.1.1.1:443"}, {"tcp4", "nonsense"}} {
		if d.check(to.network, to.address, nil) == nil {
			t.Errorf("%s %s may be reached", to.network, to.address)
		}
	}
}

// victim counts the connections to one port on every address of this machine.
type victim struct {
	net.Listener
	port        string
	connections atomic.Int64
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	v := &victim{Listener: l, port: strconv.Itoa(l.Addr().(*net.TCPAddr).Port)}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			v.connections.Add(1)
			c.Close()
		}
	})
	t.Cleanup(func() { l.Close(); served.Wait() })
	return v
}

// spellings returns addresses that lead, or could lead, to hosts that the fetcher must not reach.
func spellings(port string) (all []string) {
	var hosts []string
	for _, ip := range []string{"127.0.0.1", "127.1.2.3", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1",
		"169.254.169.254", "100.64.0.1", "100.100.100.200", "198.18.0.1", "192.0.2.1", "240.0.0.1", "255.255.255.255", "224.0.0.1"} {
		a := netip.MustParseAddr(ip).As4()
		n := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
		low, high := n&0xffff, n>>16
		hosts = append(hosts, ip, ip+".",
			fmt.Sprintf("%d", n), fmt.Sprintf("0x%08x", n), fmt.Sprintf("0X%X", n), fmt.Sprintf("0%o", n),
			fmt.Sprintf("%d.%d", a[0], n&0xffffff), fmt.Sprintf("%d.%d.%d", a[0], a[1], low),
			fmt.Sprintf("0%o.0%o.0%o.0%o", a[0], a[1], a[2], a[3]), fmt.Sprintf("0x%x.0x%x.0x%x.0x%x", a[0], a[1], a[2], a[3]),
			fmt.Sprintf("[::ffff:%s]", ip), fmt.Sprintf("[::ffff:%x:%x]", high, low), fmt.Sprintf("[0:0:0:0:0:ffff:%s]", ip),
			fmt.Sprintf("[::%s]", ip), fmt.Sprintf("[64:ff9b::%s]", ip), fmt.Sprintf("[64:ff9b::%x:%x]", high, low),
			fmt.Sprintf("[2002:%x:%x::]", high, low), fmt.Sprintf("[::ffff:0:%s]", ip),
			strings.NewReplacer("1", "１", "2", "２", "0", "０").Replace(ip), strings.ReplaceAll(ip, ".", "。"),
		)
	}
	hosts = append(hosts, "localhost", "LOCALHOST", "localhost.", "inside.example", "%31%32%37.0.0.1", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]",
		"[fe80::1]", "[fe80::1%25lo]", "[fd00::8]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[2001:db8::1]", "[100::1]", "[2001::1]", "[3fff::1]", "[5f00::1]")
	for _, h := range hosts {
		all = append(all, "http://"+h+":"+port+"/foto.jpg")
	}
	for _, h := range []string{"127.0.0.1", "[::1]", "localhost"} {
		all = append(all,
			"https://"+h+":"+port+"/foto.jpg", "HTTP://"+h+":"+port+"/foto.jpg", "http://user@"+h+":"+port+"/foto.jpg",
			"http://user:password@"+h+":"+port+"/foto.jpg", "http://example.com@"+h+":"+port+"/foto.jpg",
			"http://example.com:80@"+h+":"+port+"/foto.jpg", "http://"+h+":"+port+"#@example.com/foto.jpg", "http://"+h+":25/foto.jpg",
			"http://"+h+":0/foto.jpg", "http://"+h+":99999/foto.jpg", "http://"+h+":/foto.jpg", "ftp://"+h+":"+port+"/foto.jpg",
			"gopher://"+h+":"+port+"/foto.jpg", "ws://"+h+":"+port+"/foto.jpg", "http:"+h+":"+port+"/foto.jpg")
	}
	return append(all, "file:///etc/passwd.jpg", "file://127.0.0.1/etc/passwd.jpg", "data:image/jpeg;base64,AAAA", "javascript:alert(1)//a.jpg",
		"http:///foto.jpg", "//foto.jpg", "foto.jpg", "", "http://", "jar:http://127.0.0.1!/a.jpg", "unix:/run/docker.sock/a.jpg", "http://[::1/a.jpg")
}

// TestForbiddenSpellings passes each spelling to the fetcher itself, and to a public host that redirects to this
// spelling with each code. There must be no connection to the victim.
func TestForbiddenSpellings(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.FormValue("code"))
		w.Header()["Location"] = []string{r.FormValue("to")}
		w.WriteHeader(code)
	})
	port, _ := strconv.Atoi(v.port)
	// All names resolve to the victim, and so do the spellings that only some systems consider addresses.
	resolver := names(t, func(string, int64) []netip.Addr { return []netip.Addr{netip.MustParseAddr("127.0.0.1")} })
	f := newFetcher(t, Config{Resolver: resolver, Ports: []uint16{uint16(port), 443}, MaxConcurrent: 64, PerHost: 64, PerClient: 64}, h.addr)
	all := spellings(v.port)
	if len(all) < 300 {
		t.Fatalf("only %d spellings", len(all))
	}
	var final atomic.Int64
	one := func(address string) {
		m, err := f.Fetch(within(t), request(address))
		if err == nil {
			m.Close()
			t.Errorf("%s was fetched", address)
			return
		}
		if e := puntuale.AsSendError(err); e != nil && e.Kind == puntuale.Final && e.Reason.Code == puntuale.ReasonFileAddress {
			final.Add(1)
		} else if name := (*net.DNSError)(nil); !errors.As(err, &name) { // Go considers the host neither a name nor an address
			t.Errorf("%s: %v: %v", address, err, errors.Unwrap(err))
		}
	}
	work := make(chan string)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for address := range work {
				one(address)
			}
		})
	}
	tries := 0
	for _, to := range all {
		work <- to
		tries++
		for _, code := range []int{301, 302, 303, 307, 308} {
			u := "/?code=" + strconv.Itoa(code) + "&to=" + url.QueryEscape(to)
			if relative(to) {
				continue // a redirect to this spelling leads back to the host itself
			}
			work <- h.under(u)
			tries++
		}
	}
	close(work)
	workers.Wait()
	if n := v.connections.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	t.Logf("%d spellings, %d tries, %d refused for good", len(all), tries, final.Load())
	if int(final.Load()) < tries*3/4 {
		t.Errorf("only %d of %d tries were refused for good", final.Load(), tries)
	}
}

func relative(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == ""
}

// TestVictimIsThere: the victim of TestForbiddenSpellings counts connections that reach it.
func TestVictimIsThere(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	to := netip.MustParseAddrPort("127.0.0.1:" + v.port)
	f := newFetcher(t, Config{}, to)
	fails(t, f, request("http://"+to.String()+"/foto.jpg"), puntuale.Transient, reasonUnreachable)
	if v.connections.Load() == 0 {
		t.Error("no connection was counted")
	}
}

// TestRebinding: a name resolves to a public address during the first check, and to a private address during the
// connection. The test also tries the opposite order. Each connection must be checked separately.
func TestRebinding(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	h := newHost(t, serving("image/jpeg", []byte("jpeg")))
	_, public, _ := strings.Cut(h.addr.String(), ":")
	inside, outside := netip.MustParseAddr("127.0.0.2"), h.addr.Addr()
	port, _ := strconv.Atoi(v.port)
	reached := 0
	for _, even := range []bool{true, false} {
		resolver := names(t, func(_ string, n int64) []netip.Addr {
			if (n%2 == 0) == even {
				return []netip.Addr{outside}
			}
			return []netip.Addr{inside}
		})
		f := newFetcher(t, Config{Resolver: resolver, Ports: []uint16{uint16(port)}}, h.addr)
		for n := range 20 {
			r := request("http://rebind.example:" + public + "/foto.jpg")
			r.Run = puntuale.RunID(n + 1)
			if m, err := f.Fetch(within(t), r); err == nil {
				m.Close()
				reached++
			} else if e := puntuale.AsSendError(err); e.Kind != puntuale.Final || e.Reason.Code != puntuale.ReasonFileAddress {
				t.Errorf("%v: %v", e, e.Err)
			}
			fails(t, f, request("http://rebind.example:"+v.port+"/foto.jpg"), puntuale.Final, puntuale.ReasonFileAddress)
		}
	}
	if reached == 0 || reached == 40 {
		t.Errorf("reached %d times of 40: the answers did not alternate", reached)
	}
	if n := v.connections.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// TestNamesWithin: a caller cannot distinguish a name that only our network can resolve from a name that does not
// exist.
func TestNamesWithin(t *testing.T) {
	t.Parallel()
	resolver := names(t, func(name string, _ int64) []netip.Addr {
		if strings.HasPrefix(name, "intranet") {
			return []netip.Addr{netip.MustParseAddr("10.0.0.7")}
		}
		return nil
	})
	f := newFetcher(t, Config{Resolver: resolver})
	known := fails(t, f, request("http://intranet.example/foto.jpg"), puntuale.Final, puntuale.ReasonFileAddress)
	unknown := fails(t, f, request("http://nessuno.example/foto.jpg"), puntuale.Final, puntuale.ReasonFileAddress)
	if !reflect.DeepEqual(known.Reason, unknown.Reason) || !reflect.DeepEqual(known.Detail, unknown.Detail) || known.Kind != unknown.Kind {
		t.Errorf("%+v, and %+v", known, unknown)
	}
}

// TestMixedAnswers: if a name has a public address and private ones, only the public one is used.
func TestMixedAnswers(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	h := newHost(t, serving("image/jpeg", []byte("jpeg")))
	_, port, _ := strings.Cut(h.addr.String(), ":")
	resolver := names(t, func(string, int64) []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("127.0.0.9"), netip.MustParseAddr("10.0.0.1"), h.addr.Addr()}
	})
	f := newFetcher(t, Config{Resolver: resolver}, h.addr)
	if content, _ := fetch(t, f, request("http://mixed.example:"+port+"/foto.jpg")); content != "jpeg" {
		t.Errorf("got %q", content)
	}
	h.Close() // a host that is down may work again later
	r := request("http://mixed.example:" + port + "/foto.jpg")
	r.Run++
	fails(t, f, r, puntuale.Transient, reasonUnreachable)
	if n := v.connections.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// TestProxyIsIgnored: the fetcher ignores a proxy in the environment, because a proxy would make connections without a
// check.
func TestProxyIsIgnored(t *testing.T) {
	proxy := newHost(t, serving("image/jpeg", []byte("from the proxy")))
	h := newHost(t, serving("image/jpeg", []byte("jpeg")))
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	_, port, _ := strings.Cut(h.addr.String(), ":")
	resolver := names(t, func(string, int64) []netip.Addr { return []netip.Addr{h.addr.Addr()} })
	f := newFetcher(t, Config{Resolver: resolver}, h.addr, proxy.addr)
	fetch(t, f, request("http://files.example:"+port+"/foto.jpg"))
	if n := proxy.requests.Load(); n != 0 {
		t.Errorf("the proxy was asked %d times", n)
	}
}
