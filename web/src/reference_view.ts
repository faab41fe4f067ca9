// The API in short, drawn from the server's own OpenAPI document.

import { send } from "./api";
import { fill, h } from "./dom";
import { parts, t } from "./texts";

export async function referenceView(host: HTMLElement): Promise<void> {
  const document = await (await send("/openapi.json")).json();
  const rows = Object.entries<any>(document.paths).flatMap(([path, methods]) =>
    Object.entries<any>(methods).map(([method, one]) => h("li", {},
      h("p", {}, h("strong", { class: "verb" }, method.toUpperCase()), " ", h("code", {}, path)),
      h("p", { class: "muted" }, one.description ?? one.summary ?? ""),
      examplesOf(one).map(([summary, value]) => h("details", { class: "raw" }, h("summary", {}, summary), h("pre", { tabindex: 0 }, JSON.stringify(value, null, 2)))),
      (one.parameters ?? []).length > 0 && h("p", { class: "muted" }, t("api.takes", { names: one.parameters.map((p: any) => p.name).join(", ") })))));
  const scheme = document.components?.securitySchemes?.token;
  fill(host, h("article", { class: "reading" },
    h("h1", {}, t("api.title")),
    h("p", {}, parts("api.what", { link: h("a", { href: "/openapi.json" }, "openapi.json") })),
    h("p", {}, parts("api.chat", { chat: h("code", {}, `${location.origin}/v1`), agents: h("code", {}, `${location.origin}/mcp`) })),
    scheme && h("p", {}, parts("api.token", { header: h("code", {}, "Authorization: Bearer TOKEN") })),
    h("ul", { class: "reference" }, rows)));
}

/** What may be sent, as the description says it. */
const examplesOf = (operation: any): [string, unknown][] =>
  Object.values<any>(operation.requestBody?.content?.["application/json"]?.examples ?? {}).map((one) => [one.summary, one.value]);
