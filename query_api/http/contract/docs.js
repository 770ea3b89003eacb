// Shows the node's own OpenAPI document. Requests are sent only when a person presses "Execute".
"use strict";

SwaggerUIBundle({
  url: "/openapi.json",
  domNode: document.getElementById("reference"),
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  filter: true,
  // Nothing is sent to a validator on another host.
  validatorUrl: null,
});
