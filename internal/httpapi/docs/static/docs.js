// This script shows /openapi.json. Keys stay in the page's memory, and are gone when the page is closed. The page sends
// requests only to this server. It offers the key's header only, so no key gets into an address or a sample line.
"use strict";

const dark = matchMedia("(prefers-color-scheme: dark)");
const dress = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", dress);
dress();

// Returns the document with the key's header as the only way to give a key.
function withHeaderOnly(spec) {
  delete spec.components.securitySchemes.query;
  delete spec.servers; // it is this server, so there is nothing to choose
  for (const methods of Object.values(spec.paths)) {
    for (const operation of Object.values(methods)) {
      operation.security = (operation.security || []).filter((way) => !("query" in way));
    }
  }
  return spec;
}

// Search finds every operation that has all words in its subject, path, name or texts.
function search(tagged, phrase) {
  const words = phrase.toLowerCase().split(/\s+/).filter(Boolean);
  return tagged
    .map((group, tag) => group.update("operations", (all) => all.filter((one) => {
      const said = ["operationId", "summary", "description"].map((name) => one.getIn(["operation", name], ""));
      const text = [tag, one.get("method"), one.get("path"), ...said].join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    })))
    .filter((group) => group.get("operations").size > 0);
}

// The component of the webhooks knows no search, so their entries are hidden here.
function searchWebhooks(phrase) {
  const words = phrase.toLowerCase().split(/\s+/).filter(Boolean);
  for (const hook of document.querySelectorAll(".webhooks .opblock")) {
    hook.hidden = !words.every((word) => hook.textContent.toLowerCase().includes(word));
  }
}

const plugin = {
  fn: { opsFilter: search },
  wrapComponents: {
    FilterContainer: (_, { React }) => ({ layoutSelectors, layoutActions }) => {
      const phrase = layoutSelectors.currentFilter();
      return React.createElement("div", { className: "wrapper search" },
        React.createElement("input", {
          type: "search", "aria-label": "Cerca · Search", placeholder: "Cerca · Search: start, webhook, /api/contacts …",
          value: typeof phrase === "string" ? phrase : "", onChange: (event) => {
            layoutActions.updateFilter(event.target.value);
            searchWebhooks(event.target.value);
          },
        }));
    },
    curl: (Original, { React }) => ({ request, ...props }) => React.createElement(Original, {
      ...props, request: request.hasIn(["headers", "Authorization"]) ? request.setIn(["headers", "Authorization"], "Bearer YOUR_KEY") : request,
    }),
  },
};

fetch("/openapi.json").then((answer) => answer.json()).then((spec) => SwaggerUIBundle({
  spec: withHeaderOnly(spec),
  dom_id: "#operations",
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [plugin],
  layout: "BaseLayout",
  filter: true,
  validatorUrl: null,
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: -1,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  persistAuthorization: false,
}));
