// A form for one address of the API: its parameters, its body, what to type in a shell, and what the server replies.

import { reply as sent } from "./api";
import { announce, copyButton, fill, h, save, type Child } from "./dom";
import { parts, t } from "./texts";

export interface Schema {
  $ref?: string; type?: string; title?: string; description?: string; default?: unknown; const?: unknown; enum?: unknown[];
  items?: Schema; anyOf?: Schema[]; properties?: Record<string, Schema>; required?: string[];
}
interface Parameter { name: string; in: "path" | "query"; required?: boolean; description?: string; schema: Schema }
interface Content { schema?: Schema; examples?: Record<string, { summary: string; value: unknown }> }
export interface Operation {
  summary?: string; description?: string; tags?: string[]; parameters?: Parameter[]; security?: unknown[];
  requestBody?: { content: Record<string, Content> }; responses: Record<string, { content?: Record<string, Content> }>;
}
export interface Description {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; securitySchemes?: Record<string, { type: string; name?: string; description?: string }> };
}

/** A schema itself where it is named elsewhere. */
export const typed = (description: Description, schema: Schema): Schema =>
  schema.$ref ? description.components.schemas[schema.$ref.split("/").at(-1)!] ?? {} : schema;

const MOST_SHOWN = 100_000; // characters of a reply

export function tryForm(description: Description, method: string, path: string, operation: Operation, base: string | undefined, token: () => string): HTMLElement {
  const inputs = (operation.parameters ?? []).map((one): [Parameter, HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement] => [one, parameterInput(description, one, base)]);
  const json = operation.requestBody?.content["application/json"], takesFile = operation.requestBody !== undefined && !json;
  const examples = Object.values(json?.examples ?? {});
  const body = json && h("textarea", { rows: 8, spellcheck: false, class: "body", "aria-label": t("api.body") });
  const use = (place: number) => { if (body) body.value = JSON.stringify(examples[place]?.value ?? {}, null, 2); };
  use(0);
  const file = h("input", { type: "file", "aria-label": t("api.file") }), choose = h("select", { "aria-label": t("api.examples") }, examples.map((one, place) => h("option", { value: place }, one.summary)));
  choose.addEventListener("change", () => use(Number(choose.value)));
  const result = h("div", { class: "reply", "aria-live": "polite" });
  const address = () => {
    const query = new URLSearchParams();
    let filled = path;
    for (const [one, input] of inputs) {
      if (one.in === "path") filled = filled.replace(`{${one.name}}`, encodeURIComponent(input.value));
      else for (const value of isList(description, one) ? input.value.split("\n") : [input.value]) if (value) query.append(one.name, value);
    }
    return query.size ? `${filled}?${query}` : filled;
  };
  const request = (): RequestInit => ({ method: method.toUpperCase(), ...(body && { headers: { "content-type": "application/json" }, body: body.value }), ...(takesFile && file.files?.[0] && { body: file.files[0] }) });
  const form = h("form", { class: "try", onsubmit: async (event: Event) => {
    event.preventDefault();
    const waiting = h("p", { class: "muted" }, t("api.waiting")), begun = performance.now();
    fill(result, waiting);
    const shown = await sent(address(), request(), token()).then((found) => shownReply(found, begun))
      .catch((failure: Error): Child => h("p", { class: "error", role: "alert" }, failure.message));
    if (waiting.isConnected) fill(result, shown); // else it was sent once more meanwhile
  } },
    inputs.map(([one, input]) => h("label", {}, h("code", {}, one.name), one.description && h("small", { class: "muted" }, ` ${one.description}`), input)),
    examples.length > 1 && h("label", {}, t("api.examples"), choose), body, takesFile && file,
    h("div", { class: "row wrap" }, h("button", { type: "submit", class: "primary" }, t("api.send")),
      copyButton(() => inShell(address(), method, body?.value, takesFile ? file.files?.[0]?.name ?? "FILE" : undefined, (operation.security ?? []).length > 0), t("api.copyCurl")),
      method !== "get" && h("small", { class: "muted" }, t("api.real"))));
  return h("div", {}, form, result);
}

const isList = (description: Description, one: Parameter): boolean => typed(description, one.schema).type === "array" || (one.schema.anyOf ?? []).some((kind) => kind.type === "array");

function parameterInput(description: Description, one: Parameter, base: string | undefined): HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement {
  const schema = typed(description, one.schema), required = Boolean(one.required), first = schema.default === undefined || schema.default === null ? "" : String(schema.default);
  const choices = schema.enum ?? (schema.type === "boolean" ? [false, true] : null);
  if (choices) {
    const made = h("select", {}, !required && first === "" && h("option", { value: "" }, ""), choices.map((choice) => h("option", { value: String(choice) }, String(choice))));
    made.value = first || made.value;
    return made;
  }
  if (isList(description, one)) return h("textarea", { rows: 2, required, placeholder: t("api.oneALine") });
  return h("input", { type: schema.type === "integer" ? "number" : "text", required, value: one.name === "base" ? base ?? "" : first });
}

/** What the server said: status and time, and the content as text, as a picture, or to be saved. */
async function shownReply(reply: Response, begun: number): Promise<Child> {
  const kind = reply.headers.get("content-type")?.split(";")[0] ?? "", content = await reply.blob();
  const line = t("api.said", { status: `${reply.status} ${reply.statusText}`.trim(), time: Math.round(performance.now() - begun), kind: kind || t("nothing") });
  announce(line);
  const head = h("p", { class: reply.ok ? "status-line" : "status-line error" }, line);
  if (/^image\/(png|jpeg)$/.test(kind)) return [head, h("img", { src: URL.createObjectURL(content), alt: t("api.picture") })];
  if (!/json|^text\/|xml/.test(kind)) return [head, content.size > 0 && h("button", { type: "button", onclick: () => save("reply", content) }, t("api.save"))];
  const text = await content.text();
  let shown = text;
  if (/json$/.test(kind)) try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* as it came */ }
  return [head, h("pre", { tabindex: 0 }, shown.slice(0, MOST_SHOWN)), shown.length > MOST_SHOWN && h("p", { class: "muted" }, parts("api.cut", { save: h("button", { type: "button", onclick: () => save("reply.txt", content) }, t("api.save")) }))];
}

/** The same in a shell; a token has to be put in by hand. */
function inShell(address: string, method: string, body: string | undefined, file: string | undefined, mayNeedToken: boolean): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  return ["curl", method === "get" ? "" : `-X ${method.toUpperCase()}`, quoted(location.origin + address), mayNeedToken ? `-H ${quoted("Authorization: Bearer TOKEN")}` : "",
    body === undefined ? "" : `-H ${quoted("content-type: application/json")} -d ${quoted(body)}`, file === undefined ? "" : `--data-binary ${quoted(`@${file}`)}`].filter(Boolean).join(" ");
}
