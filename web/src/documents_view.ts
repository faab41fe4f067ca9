// Documents: upload, list, ask, and read with the quoted span marked.

import * as api from "./api";
import { announce, button, fill, h, marked } from "./dom";
import { questionForm } from "./question_form";
import { go, href } from "./route";
import { link } from "./conversation";

export async function documentsView(
  host: HTMLElement, base: api.BaseDetails, given: URLSearchParams, signal: AbortSignal, reload: () => void,
): Promise<void> {
  const name = given.get("doc");
  if (name) { await read(host, base, name, given.get("piece"), given.get("quote")); return; }
  if (!base.documents) {
    fill(host, h("div", { class: "question asked" }, h("h1", {}, "Documents"), h("p", { class: "muted" },
      "This base takes no uploads. Start the server with ", h("code", {}, "--documents FOLDER"), " for one that does.")));
    return;
  }
  const list = h("ul", { class: "files", "aria-label": "Documents" }), state = h("p", { class: "muted", role: "status" });
  const progress = h("progress", { max: 1, hidden: true, "aria-label": "Build" });
  const problem = h("p", { class: "error", role: "alert", hidden: true });
  const input = h("input", { type: "file", multiple: true, id: "upload", class: "hidden-input" });
  const drop = h("label", { class: "drop", for: "upload" }, h("strong", {}, "Drop files here"), h("span", { class: "muted" }, " or choose them: PDF, Word, Markdown, HTML, text, tables"), input);
  const ask = h("div", {});
  let ready = base.ready;
  const draw = (found: api.Documents) => {
    input.accept = found.accepts.join(",");
    const { build } = found;
    const busy = build.state === "running" || build.state === "waiting";
    progress.hidden = !busy;
    if (build.total) progress.value = build.done / build.total; else progress.removeAttribute("value");
    state.textContent = busy ? `building: ${build.stage || "waiting"}` : build.state === "failed" ? "" : found.documents.length ? "ready" : "no documents yet";
    problem.hidden = build.state !== "failed" && !build.skipped.length;
    problem.textContent = build.error ?? build.skipped.map((one) => `${one.file}: ${one.reason}`).join("; ");
    fill(list, found.documents.map((file) => h("li", {},
      file.indexed ? h("a", { href: href("documents", { base: base.name, doc: file.name }) }, file.name) : h("span", {}, file.name),
      h("small", { class: "muted" }, `${(file.bytes / 1000).toFixed(1)} kB${file.indexed ? "" : ", not read yet"}`),
      button("Delete", async () => { await act(() => api.remove(base.name, file.name)); }, { class: "quiet", "aria-label": `Delete ${file.name}` }))));
    return busy;
  };
  const watch = async () => {
    while (!signal.aborted) {
      const busy = draw(await api.documents(base.name));
      if (!busy) {
        const now = await api.details(base.name);
        if (now.ready !== ready || now.nodes !== base.nodes) { ready = now.ready; announce("The documents are ready"); reload(); return; }
        return;
      }
      await new Promise((done) => setTimeout(done, 400));
    }
  };
  const act = async (work: () => Promise<unknown>) => {
    try { await work(); } catch (failure) { problem.hidden = false; problem.textContent = (failure as Error).message; return; }
    await watch();
  };
  const take = (files: Iterable<File>) => act(async () => { for (const file of files) await api.upload(base.name, file); });
  input.addEventListener("change", () => void take([...(input.files ?? [])]));
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); void take([...(event.dataTransfer?.files ?? [])]); });
  if (base.ready) fill(ask, questionForm(base, {}, (asked) => go(link(base.name, asked))).element);
  fill(host, h("div", { class: "question asked" }, h("h1", {}, "Documents"), ask, drop, progress, state, problem, list));
  await watch();
}

async function read(host: HTMLElement, base: api.BaseDetails, name: string, piece: string | null, quote: string | null): Promise<void> {
  const document = await api.reading(base.name, name);
  let page: number | null = null;
  fill(host, h("article", { class: "reading" },
    h("p", {}, h("a", { href: href("documents", { base: base.name }) }, "← Documents")),
    h("h1", {}, document.title), h("p", { class: "muted" }, document.name),
    document.pieces.map((one) => {
      const turned = one.page !== null && one.page !== page;
      page = one.page;
      const cited = one.key === piece;
      return [turned && h("h2", { class: "page" }, `page ${one.page}`),
        h(one.type === "table" ? "pre" : "p", { class: cited ? "piece cited" : "piece", id: cited ? "cited" : null }, marked(one.text, cited ? quote?.trim() ?? null : null))];
    })));
  const target = host.querySelector("#quote") ?? host.querySelector("#cited");
  target?.scrollIntoView({ block: "center" });
}
