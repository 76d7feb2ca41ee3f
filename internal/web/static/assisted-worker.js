// The service worker of the phone app. The server adds a line above, with the page and the files to cache. Messages are
// never cached. Each version has a cache with its own name, so a page never gets the files of another version.
const kept = `phone-${shell.version}`;

addEventListener("install", (event) => event.waitUntil((async () => {
  const cache = await caches.open(kept);
  await cache.addAll([shell.page, ...shell.files].map((address) => new Request(address, { cache: address === shell.page ? "reload" : "default" })));
  await skipWaiting();
})()));

addEventListener("activate", (event) => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (name.startsWith("phone-") && name !== kept) await caches.delete(name);
  await clients.claim();
})()));

// The only message is that a page is not controlled yet.
addEventListener("message", (event) => event.waitUntil(clients.claim()));

// The page comes from the network if the network answers within a few seconds, and otherwise from the cache. Files come
// from the cache, because a file at an address with a hash never changes.
addEventListener("fetch", (event) => {
  const { request } = event;
  const address = new URL(request.url);
  if (request.method !== "GET" || address.origin !== location.origin) return;
  if (request.mode === "navigate" && address.pathname === shell.page) event.respondWith(page(request));
  else if (shell.files.includes(address.pathname)) event.respondWith(file(request));
});

const stored = async (address) => (await caches.open(kept)).match(address, { ignoreSearch: true, ignoreVary: true });

const page = async (request) => {
  try {
    const answer = await fetch(request, { signal: AbortSignal.timeout(5000) });
    if (answer.status < 500) return answer;
    return await stored(shell.page) ?? answer;
  } catch {
    return await stored(shell.page) ?? Response.error();
  }
};

const file = async (request) => await stored(request.url) ?? fetch(request);

// A push message from the server contains no number and no text. The notice only says that a message is due.
addEventListener("push", (event) => event.waitUntil((async () => {
  const open = await pages();
  for (const one of open) one.postMessage("due");
  if (open.some((one) => one.visibilityState === "visible")) return;
  await registration.showNotification(shell.title, { body: shell.body, icon: shell.icon, tag: "due", renotify: true });
})()));

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil((async () => {
    const [open] = await pages();
    await (open ? open.focus() : clients.openWindow(shell.page));
  })());
});

const pages = async () => (await clients.matchAll({ type: "window" })).filter((one) => new URL(one.url).pathname === shell.page);
