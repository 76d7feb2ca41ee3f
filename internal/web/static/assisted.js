// The app for a phone on which a person sends messages by hand; docs/device.md describes its calls. The app shows the due
// messages. After a tap it takes a message, opens WhatsApp with the message, and reports the outcome that the person
// chooses. It first stores each report on the phone, and sends the report until the server answers.
(() => {
  const lease = 900; // how many seconds the phone holds a message; renewed while the page is open
  const pause = 25_000; // milliseconds between two requests for the due messages
  const patience = 20_000; // how many milliseconds a call may take
  const maxReports = 100; // how many reports one call may have

  // The phone's database. "kept" contains the device, and the ids of takes that have begun. "held" contains the messages
  // that the phone took. "reports" contains the reports that the server has not answered yet, in order.
  const opened = new Promise((resolve, reject) => {
    const request = indexedDB.open("phone", 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("kept");
      request.result.createObjectStore("held", { keyPath: "attempt" });
      request.result.createObjectStore("reports", { keyPath: "id", autoIncrement: true });
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const base64url = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const inStores = async (names, act) => {
    const change = (await opened).transaction(names, "readwrite", { durability: "strict" });
    const request = act(...names.map((name) => change.objectStore(name)));
    await new Promise((resolve, reject) => {
      change.oncomplete = resolve;
      change.onabort = () => reject(change.error);
    });
    return request?.result;
  };
  const keep = (name, value) => inStores(["kept"], (kept) => { kept.put(value, name); });
  const recall = (name) => inStores(["kept"], (kept) => kept.get(name));
  const all = (store) => inStores([store], (from) => from.getAll());

  class Lost extends Error {} // thrown if the server did not answer
  class Refused extends Error {
    constructor(status) {
      super(`status ${status}`);
      this.status = status;
    }
  }
  // After a failed call, the page already shows a text. Any other error is a bug in this script.
  const failed = (error) => {
    if (!(error instanceof Lost || error instanceof Refused)) throw error;
  };
  const call = async (token, method, path, body) => {
    let answer, content;
    try {
      answer = await fetch(path, {
        method, credentials: "omit", cache: "no-store", signal: AbortSignal.timeout(patience),
        headers: { ...token && { Authorization: `Bearer ${token}` }, ...body && { "Content-Type": "application/json" } },
        body: body && JSON.stringify(body),
      });
      content = await answer.json();
    } catch {
      if (!answer || answer.ok) throw new Lost();
    }
    if (!answer.ok) throw new Refused(answer.status);
    return content;
  };

  // The names of the person's choices in the details of a message. They are Italian, like all such texts of the
  // service.
  const details = { skipped: "saltato", wrong: "numero sbagliato", group: "i messaggi a un gruppo non si possono inviare dalla pagina del telefono" };

  const random = () => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");

  // The text with which WhatsApp opens: the message's text, and then a link to its location or file.
  const words = (m) => {
    const degrees = (n) => Number((n ?? 0).toFixed(6));
    const place = m.latitude ?? m.longitude;
    return [m.text, place === undefined ? "" : `https://maps.google.com/?q=${degrees(m.latitude)},${degrees(m.longitude)}`, m.media_url].filter(Boolean).join("\n");
  };
  const moment = (text) => {
    const at = new Date(text), today = at.toDateString() === new Date().toDateString();
    return at.toLocaleString(document.documentElement.lang, { hour: "2-digit", minute: "2-digit", ...!today && { weekday: "short", day: "numeric", month: "short" } });
  };

  const soon = (text) => text && new Date(text) - Date.now() < 6 * 3600_000; // a message that ends within six hours shows when it ends

  // card returns a message in the form that a card shows.
  const card = (m) => ({
    ...m, name: m.name ?? "", number: m.phone.replace(/^(\+39)(3\d\d)(\d{3})(\d{3,4})$/, "$1 $2 $3 $4"), group: m.phone.endsWith("@g.us"), words: words(m), place: (m.latitude ?? m.longitude) !== undefined,
    link: `https://wa.me/${m.phone.replace(/\D/g, "")}?text=${encodeURIComponent(words(m))}`,
    until: soon(m.valid_until) ? moment(m.valid_until) : "", over: false, opened: false,
  });

  const phoneName = async (other) => {
    const hints = await navigator.userAgentData?.getHighEntropyValues?.(["model"]).catch(() => null);
    return hints?.model || navigator.userAgent.match(/iPhone|iPad|Android|Macintosh|Windows|Linux/)?.[0].replace("Macintosh", "Mac") || other;
  };

  document.addEventListener("alpine:init", () => Alpine.data("assisted", () => ({
    view: "", // "link" or "list"; "" until it is known
    token: "", device: null,
    due: [], held: [], waiting: 0, stuck: true, looked: false,
    taking: "", // the message that is being taken now
    offline: !navigator.onLine, notice: "", ended: false, broken: false,
    code: "", name: "", fault: "", working: false,
    told: false, tells: false, installer: null,
    changes: 0, // number of changes of the held messages; an answer is out of date if the number changed after its request

    async init() {
      this.texts = JSON.parse(this.$root.dataset.texts);
      try {
        const kept = await recall("device");
        if (kept) [this.token, this.device] = [kept.token, kept.device];
        this.held = (await all("held")).map(card);
        await this.count();
      } catch {
        this.broken = true;
        this.view = "link";
        return;
      }
      this.name = await phoneName(this.texts.name);
      this.view = this.token ? "list" : "link";
      this.takeCode();
      this.listen();
      await this.work();
    },

    listen() {
      addEventListener("hashchange", () => this.takeCode());
      addEventListener("online", () => this.work());
      addEventListener("offline", () => { this.offline = true; });
      addEventListener("beforeinstallprompt", (event) => {
        event.preventDefault();
        this.installer = event;
      });
      document.addEventListener("visibilitychange", () => {
        if (document.visibilityState !== "visible") return;
        if (this.stale && this.view === "list") location.reload();
        else this.work();
      });
      const worker = navigator.serviceWorker;
      const first = worker && !worker.controller;
      const install = () => worker?.register("/phone/worker.js", { scope: "/phone", updateViaCache: "none" }).catch(() => {});
      setInterval(() => {
        this.work();
        if (!worker?.controller) install(); // the installation fails if a file did not arrive
      }, pause);
      if (!worker) return;
      worker.addEventListener("controllerchange", () => { this.stale = !first; });
      worker.addEventListener("message", () => this.work());
      install();
      // A worker that starts while the page loads does not control the page, so the page asks for it.
      worker.ready.then(({ active }) => { if (!worker.controller) active.postMessage("claim"); });
    },

    // takeCode copies a code from the page's address into the form, and removes the code from the browser's history.
    takeCode() {
      const code = new URLSearchParams(location.hash.slice(1)).get("code");
      if (!code) return;
      history.replaceState(null, "", location.pathname + location.search);
      this.code = code;
      this.view = "link";
    },

    get from() { return this.device?.session?.name ?? ""; },
    get called() { return this.device?.name ?? ""; },
    get heading() { return this.view === "list" ? this.texts.list : this.texts.link; },
    get nothing() { return this.looked && !this.offline && this.due.length === 0 && this.held.length === 0; },
    get tellable() { return Boolean(this.device?.push_key) && "serviceWorker" in navigator && "PushManager" in window && "Notification" in window; },
    get toScreen() { return /iPhone|iPad/.test(navigator.userAgent) && !navigator.standalone; },
    get waits() { return this.number(this.waiting, "waiting"); },
    get left() { return this.number(this.waiting, "left"); },
    number(n, key) { return this.texts[n === 1 ? `${key}_1` : `${key}_n`].replace("#", n); },

    // work runs at each interval. It sends reports first, so that the server's list of messages already considers them.
    async work() {
      if (!this.token) return;
      await this.send();
      await this.renew();
      if (document.visibilityState === "visible") await this.look();
    },

    async ask(method, path, body) {
      try {
        const answer = await call(this.token, method, path, body);
        this.offline = false;
        return answer;
      } catch (error) {
        if (error instanceof Lost) this.offline = true;
        else if (error.status === 401) await this.end();
        throw error;
      }
    },

    async look() {
      const before = this.changes;
      try {
        if (!this.looked) {
          const device = await this.ask("GET", "/device");
          await keep("device", { token: this.token, device });
          this.device = device;
          if (this.dress()) return;
          await this.tellAgain();
        }
        const found = await this.ask("GET", "/device/due");
        if (before === this.changes) await this.show(found);
        this.looked = true;
      } catch (error) { failed(error); }
    },

    async show({ messages, held }) {
      const declared = new Set((await all("reports")).map((r) => r.attempt));
      const ours = held.filter((m) => !declared.has(m.attempt));
      await inStores(["held"], (kept) => {
        kept.clear();
        for (const m of ours) kept.put(m);
      });
      const before = new Map(this.held.map(({ attempt, over, opened }) => [attempt, { over, opened }]));
      this.held = ours.map((m) => ({ ...card(m), ...before.get(m.attempt) }));
      this.due = messages.map(card);
      const takes = await recall("takes") ?? {}, there = new Set(messages.map((m) => m.message_id));
      await keep("takes", Object.fromEntries(Object.entries(takes).filter(([id]) => there.has(id))));
    },

    // take takes a message. It stores the id of the take first. If the answer is lost, the next call with this id gets
    // the same message.
    async take(m) {
      if (this.taking || this.offline) return;
      this.taking = m.message_id;
      this.notice = "";
      try {
        const takes = await recall("takes") ?? {};
        takes[m.message_id] ??= random();
        await keep("takes", takes);
        const { messages } = await this.ask("POST", "/device/take", { take: takes[m.message_id], message_id: m.message_id, lease });
        if (messages.length === 0) throw new Refused(409);
        await this.taken(messages[0]);
      } catch (error) {
        await this.notTaken(m, error);
      } finally {
        this.taking = "";
      }
    },

    async taken(message) {
      this.changes++;
      await inStores(["held"], (held) => { held.put(message); });
      this.due = this.due.filter((m) => m.message_id !== message.message_id);
      const m = card(message);
      if (m.group) {
        await this.refuseGroup(m);
        this.notice = this.texts.group_done;
        return;
      }
      this.held = [m, ...this.held];
      await this.$nextTick();
      const link = document.getElementById(`open-${m.attempt}`);
      if (navigator.userActivation?.isActive ?? true) link.click(); // without a recent tap, the browser would block the window; the person can use the link
      link.closest("li").focus();
    },

    async notTaken(m, error) {
      failed(error);
      if (error instanceof Lost || error.status === 401) return;
      const gone = error.status === 409 || error.status === 404;
      this.notice = gone ? this.texts.gone.replace("#", m.phone) : this.texts.later;
      if (!gone) return;
      this.due = this.due.filter((other) => other.message_id !== m.message_id);
      await this.look();
    },

    launched(m) {
      const held = this.held.find((other) => other.attempt === m.attempt);
      if (held) held.opened = true;
    },

    async share(m) {
      try {
        await navigator.share({ text: m.words });
        this.launched(m);
      } catch { /* the person closed the browser's dialog for sharing */ }
    },
    get shares() { return "share" in navigator; },

    // declare stores a report with the outcome that the person chose for a message, and then sends the report.
    sent(m) { return this.declare(m, "sent", ""); },
    skip(m) { return this.declare(m, "refused", details.skipped); },
    wrong(m) { return this.declare(m, "refused", details.wrong); },
    putBack(m) { return this.declare(m, "returned", ""); },
    unknown(m) { return this.declare(m, "unknown", ""); },
    refuseGroup(m) { return this.declare(m, "refused", details.group); },
    async declare(m, outcome, detail) {
      this.changes++;
      this.notice = "";
      await inStores(["reports", "held"], (reports, held) => {
        reports.add({ attempt: m.attempt, outcome, detail });
        held.delete(m.attempt);
      });
      this.held = this.held.filter((other) => other.attempt !== m.attempt);
      await this.count();
      document.querySelector(".assisted h1").focus();
      await this.work();
    },

    async count() { this.waiting = await inStores(["reports"], (reports) => reports.count()); },

    // send sends the stored reports to the server, in order. It removes a report after any answer of the server about it.
    async send() {
      this.more = true;
      if (this.sending) return;
      this.sending = true;
      try {
        while (this.more && this.token) {
          this.more = false;
          for (let part; (part = (await all("reports")).slice(0, maxReports)).length > 0;) {
            const { results } = await this.ask("POST", "/device/report", { reports: part.map(({ attempt, outcome, detail }) => ({ attempt, outcome, detail })) });
            await inStores(["reports"], (reports) => { for (const { id } of part) reports.delete(id); });
            const late = results.filter(({ result }) => result === "late").length;
            if (late > 0) this.notice = this.number(late, "late");
          }
        }
        this.stuck = false;
      } catch (error) {
        this.stuck = true;
        failed(error);
      } finally {
        this.sending = false;
        await this.count();
      }
    },

    async renew() {
      const attempts = this.held.filter((m) => !m.over).map((m) => m.attempt);
      if (attempts.length === 0 || this.offline || !this.token) return;
      try {
        const { lost } = await this.ask("POST", "/device/renew", { attempts, lease });
        for (const m of this.held) if (lost.includes(m.attempt)) m.over = true;
      } catch (error) { failed(error); }
    },

    async link() {
      this.fault = "";
      const code = this.code.trim(), name = this.name.trim();
      if (!code || !name) {
        this.fault = code ? this.texts.no_name : this.texts.no_code;
        return;
      }
      this.working = true;
      try {
        if (this.token && await this.owes()) {
          this.fault = this.texts.owes;
          return;
        }
        const { device_token, device } = await call("", "POST", "/device/link", { code, name, dedupes: false, assisted: true });
        if (this.token) call(this.token, "POST", "/device/unlink", {}).catch(() => {});
        [this.token, this.device, this.code, this.ended, this.looked, this.notice] = [device_token, device, "", false, false, ""];
        await keep("device", { token: device_token, device });
        navigator.storage?.persist?.();
        this.view = "list";
        await this.work();
      } catch (error) {
        this.fault = error instanceof Lost ? this.texts.no_network : this.texts[{ 404: "code_over", 409: "full", 422: "code_over" }[error.status] ?? "later"];
        failed(error);
      } finally {
        this.working = false;
        if (this.fault) this.$nextTick(() => document.getElementById("assisted-code")?.focus());
      }
    },

    // dress opens the page with the brand of the phone's partner, unless the page shows this brand, or its address names
    // one. It returns true if the browser leaves this page.
    dress() {
      const { brand } = this.device, leaves = Boolean(brand) && brand !== this.$root.dataset.brand && !new URLSearchParams(location.search).has("p");
      if (leaves) location.replace(`/phone?${new URLSearchParams({ p: brand })}`);
      return leaves;
    },

    // owes returns true if the phone still holds messages, or stores reports that were not sent to the server.
    async owes() {
      await this.send();
      return this.waiting > 0 || this.held.length > 0;
    },

    stay() {
      this.code = this.fault = "";
      this.view = "list";
    },

    async unlink() {
      this.working = true;
      try {
        await this.send();
        if (this.waiting > 0) throw new Lost();
        await this.ask("POST", "/device/unlink", {});
        await this.forget();
        this.notice = this.texts.unlinked;
      } catch (error) {
        if (error.status !== 401) this.notice = this.texts.not_unlinked;
      } finally {
        this.working = false;
        document.getElementById("unlink").close();
      }
    },

    // end runs when the server no longer knows the phone. The stored reports stay on the phone until the person deletes
    // them.
    async end() {
      if (!this.token) return;
      this.ended = true;
      await this.forget();
    },

    async forget() {
      this.changes++;
      this.token = "";
      this.device = null;
      this.due = [];
      this.held = [];
      this.view = "link";
      await inStores(["kept", "held"], (kept, held) => {
        kept.clear();
        held.clear();
      });
      const subscription = await this.subscribed();
      await subscription?.unsubscribe().catch(() => {});
      this.tells = false;
    },

    async dropReports() {
      await inStores(["reports"], (reports) => { reports.clear(); });
      await this.count();
    },

    async subscribed() {
      if (!("serviceWorker" in navigator) || !("PushManager" in window)) return null;
      const worker = await navigator.serviceWorker.getRegistration("/phone");
      return await worker?.pushManager.getSubscription() ?? null;
    },

    // Push: tell sends to the server the address at which the browser receives push messages for this phone. The server
    // sends no part of a message to this address.
    async tell() {
      this.notice = "";
      try {
        if (await Notification.requestPermission() !== "granted") throw new Error("not allowed");
        const worker = await navigator.serviceWorker.ready;
        await this.subscribe(worker);
        this.tells = true;
      } catch {
        this.notice = this.texts.no_push;
      }
    },
    async subscribe(worker) {
      const former = await worker.pushManager.getSubscription();
      const key = former?.options?.applicationServerKey;
      if (key && base64url(key) !== this.device.push_key) await former.unsubscribe(); // the server has another key now
      const subscription = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: this.device.push_key });
      const { endpoint, keys } = subscription.toJSON();
      await this.ask("PUT", "/device/push", { endpoint, p256dh: keys.p256dh, auth: keys.auth });
    },
    // The browser may change its address for push messages, and the server may change its key. So the phone subscribes
    // again at each start of the app.
    async tellAgain() {
      this.tells = Boolean(this.device.push);
      if (!this.device.push || !this.tellable || Notification.permission !== "granted") return;
      await this.subscribe(await navigator.serviceWorker.ready).catch(() => { this.tells = false; });
    },
    async hush() {
      try {
        await this.ask("DELETE", "/device/push");
        await (await this.subscribed())?.unsubscribe();
        this.tells = false;
      } catch (error) { failed(error); }
    },

    async install() {
      await this.installer.prompt();
      this.installer = null;
    },
  })));
})();
