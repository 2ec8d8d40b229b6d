// No validator badge, no configuration from the address bar, no token kept after the page is left.
window.ui = SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#page",
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "list",
  persistAuthorization: false,
  queryConfigEnabled: false,
  validatorUrl: null,
});
