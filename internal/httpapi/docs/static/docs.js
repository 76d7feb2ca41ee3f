// This script shows /openapi.json. Keys stay in the page's memory, and are gone when the page is closed. The page sends
// requests only to this server.
"use strict";

const dark = matchMedia("(prefers-color-scheme: dark)");
const dress = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", dress);
dress();

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#operations",
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  validatorUrl: null,
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  persistAuthorization: false,
});
