// The API, drawn from the server's own OpenAPI document: what each address takes, with examples, and a form that sends it.

import { send } from "./api";
import { fill, h, type Child } from "./dom";
import { parts, t, type Key } from "./texts";
import { tryForm, typed, type Description, type Operation, type Schema } from "./try_form";

export async function referenceView(host: HTMLElement, base: string | undefined, signal: AbortSignal): Promise<void> {
  const description: Description = await (await send("/openapi.json")).json();
  if (signal.aborted) return;
  const token = h("input", { type: "password", autocomplete: "off", id: "try-token", maxlength: 1000, placeholder: t("api.otherToken.hint") });
  const groups = new Map<string, HTMLElement[]>();
  for (const [path, methods] of Object.entries(description.paths))
    for (const [method, operation] of Object.entries(methods)) {
      const tag = operation.tags?.[0] ?? "";
      groups.set(tag, [...(groups.get(tag) ?? []), shown(description, method, path, operation, base, () => token.value.trim())]);
    }
  fill(host, h("article", { class: "reading api" },
    h("h1", {}, t("api.title")),
    h("p", {}, parts("api.what", { link: h("a", { href: "/openapi.json" }, "openapi.json") })),
    h("p", {}, parts("api.chat", { chat: h("code", {}, `${location.origin}/v1`), agents: h("code", {}, `${location.origin}/mcp`) })),
    h("h2", {}, t("api.security")),
    h("dl", { class: "schemes" }, Object.values(description.components.securitySchemes ?? {}).map((scheme) => [
      h("dt", {}, h("code", {}, scheme.type === "http" ? "Authorization: Bearer TOKEN" : `Cookie: ${scheme.name}`)), h("dd", { class: "muted" }, scheme.description ?? "")])),
    h("p", {}, h("label", { for: "try-token" }, t("api.otherToken")), " ", token),
    [...groups].map(([tag, rows]) => [h("h2", {}, t(`tag.${tag}` as Key)), h("ul", { class: "reference" }, rows)])));
}

/** One address: what it does, what it takes and gives, and a form to try it; drawn when it is opened. */
function shown(description: Description, method: string, path: string, operation: Operation, base: string | undefined, token: () => string): HTMLElement {
  const inside = h("div", { class: "operation" });
  const made = h("details", {}, h("summary", {}, h("strong", { class: "verb" }, method.toUpperCase()), " ", h("code", {}, path), h("span", { class: "muted" }, ` ${(operation.description ?? operation.summary ?? "").split("\n")[0]}`)), inside);
  made.addEventListener("toggle", () => {
    if (!made.open || inside.childElementCount) return;
    const reply = Object.entries(operation.responses).find(([status]) => status.startsWith("2"));
    fill(inside, tryForm(description, method, path, operation, base, token),
      fieldsOf(description, t("api.takesFields"), operation.requestBody?.content["application/json"]?.schema),
      fieldsOf(description, t("api.gives", { status: reply?.[0] ?? "" }), reply?.[1].content?.["application/json"]?.schema));
  });
  return h("li", {}, made);
}

/** The fields of a value with their types and what they mean. */
function fieldsOf(description: Description, title: string, schema: Schema | undefined): Child {
  const fields = Object.entries(typed(description, typed(description, schema ?? {}).items ?? schema ?? {}).properties ?? {});
  if (!fields.length) return null;
  const required = new Set(typed(description, schema!).required ?? []);
  return h("details", { class: "raw" }, h("summary", {}, title), h("dl", {}, fields.map(([name, field]) => [
    h("dt", {}, h("code", {}, name), h("small", { class: "muted" }, ` ${kindOf(description, field)}${required.has(name) ? `, ${t("api.needed")}` : ""}`)),
    field.description && h("dd", { class: "muted" }, field.description)])));
}

function kindOf(description: Description, field: Schema): string {
  const schema = typed(description, field);
  if (field.anyOf) return field.anyOf.map((one) => kindOf(description, one)).join(" | ");
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.type === "array") return `${kindOf(description, schema.items ?? {})}[]`;
  return schema.title && field.$ref ? schema.title : String(schema.const ?? schema.type ?? "any");
}
