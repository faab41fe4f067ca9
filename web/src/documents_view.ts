// Documents: a desk of files with how each stands, a question, and reading with the quoted span marked.

import * as api from "./api";
import { link } from "./conversation";
import { announce, button, fill, h, marked, nameOf, notice } from "./dom";
import { questionForm } from "./question_form";
import { go, href } from "./route";
import { counted, parts, t } from "./texts";

export async function documentsView(host: HTMLElement, base: api.BaseDetails, given: URLSearchParams, signal: AbortSignal): Promise<void> {
  const name = given.get("doc"), form = (now: api.BaseDetails) => questionForm(now, {}, (asked) => go(link(now.name, asked))).element;
  if (name) {
    const document = await api.reading(base.name, name);
    if (!signal.aborted) read(host, base.name, document, given.get("piece"), given.get("quote"));
    return;
  }
  if (!base.documents && base.node_types.some((one) => one.name === "document")) {
    const { documents } = await api.documents(base.name);
    if (signal.aborted) return;
    fill(host, h("div", { class: "question asked" }, h("h1", {}, t("view.documents")), form(base),
      h("ul", { class: "files", "aria-label": t("view.documents") }, documents.map((file) => h("li", {}, fileLink(base.name, file))))));
    return;
  }
  if (!base.documents) {
    fill(host, h("div", { class: "question asked" }, h("h1", {}, t("view.documents")), h("p", { class: "muted" },
      parts("docs.noUploads", { option: h("code", {}, "--documents FOLDER") }))));
    return;
  }
  const desk = new Desk(base, signal, (now) => { // nothing else is drawn anew: somebody may be at work there
    desk.element.parentElement!.querySelector("form.ask")?.remove();
    if (now.ready) desk.element.before(form(now));
  });
  fill(host, h("div", { class: "question asked" }, h("h1", {}, t("view.documents")), base.ready && form(base), desk.element));
  await desk.watch();
}

/** All files that were dropped, those in folders, too. */
async function dropped(data: DataTransfer | null): Promise<File[]> {
  const entries = [...(data?.items ?? [])].map((item) => item.webkitGetAsEntry()), plain = [...(data?.files ?? [])];
  if (!entries.some((entry) => entry?.isDirectory)) return plain;
  const inside = async (entry: FileSystemEntry | null): Promise<File[]> => {
    if (!entry || entry.name.startsWith(".")) return [];
    if (entry.isFile) return [await new Promise<File>((done, failed) => (entry as FileSystemFileEntry).file(done, failed))];
    const reader = (entry as FileSystemDirectoryEntry).createReader(), found: File[] = [];
    for (;;) { // some hundred at a time
      const some = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
      if (!some.length) return found;
      for (const one of some) found.push(...(await inside(one)));
    }
  };
  return (await Promise.all(entries.map(inside))).flat();
}

interface Sending { file: File; state: "waiting" | "sending" | "failed"; error: string; stop: AbortController }

const sending = new Map<string, Map<string, Sending>>(); // base → name: what is on its way outlives a redrawing of the page

class Desk {
  readonly element: HTMLElement;
  private list = h("ul", { class: "files", "aria-label": t("view.documents") });
  private state = h("p", { class: "muted", role: "status" });
  private progress = h("progress", { max: 1, hidden: true, "aria-label": t("docs.build") });
  private problem = h("div", {});
  private input = h("input", { type: "file", multiple: true, id: "upload", class: "hidden-input" });
  private found: api.Documents | null = null;
  private sent: Map<string, Sending>;
  private isSending = false;

  constructor(private base: api.BaseDetails, private signal: AbortSignal, private onReady: (now: api.BaseDetails) => void) {
    this.sent = sending.get(base.name) ?? new Map();
    sending.set(base.name, this.sent);
    const drop = h("label", { class: "drop", for: "upload" }, h("strong", {}, t("docs.drop")), h("span", { class: "muted" }, ` ${t("docs.choose")}`), this.input);
    this.input.addEventListener("change", () => { this.take([...(this.input.files ?? [])]); this.input.value = ""; });
    drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); void dropped(event.dataTransfer).then((files) => this.take(files)); });
    this.element = h("div", { class: "desk" }, drop, this.progress, this.state, this.problem, this.list);
  }

  /** Until nothing is under way, here or on a desk that was left meanwhile; says where the base has changed. */
  async watch(): Promise<void> {
    while (!this.signal.aborted) {
      this.found = await api.documents(this.base.name);
      this.draw();
      if (!this.isBusy && !this.isUnderWay) {
        const now = await api.details(this.base.name), was = this.base;
        this.base = now;
        if (now.ready !== was.ready || now.nodes !== was.nodes) announce(t("docs.announced"));
        if (now.ready !== was.ready) this.onReady(now);
        return;
      }
      await new Promise((done) => setTimeout(done, 400));
    }
  }

  private get isUnderWay(): boolean { return [...this.sent.values()].some((one) => one.state !== "failed"); }
  private get isBusy(): boolean { return this.found?.build.state === "running" || this.found?.build.state === "waiting"; }

  private take(files: File[]): void {
    for (const file of files) this.sent.set(file.name, { file, state: "waiting", error: "", stop: new AbortController() });
    void this.send();
  }

  /** One file after another; one that is refused keeps none of the others waiting. */
  private async send(): Promise<void> {
    if (this.isSending) return;
    this.isSending = true;
    for (let next = this.next(); next; next = this.next()) {
      next.state = "sending";
      this.draw();
      try { await api.upload(this.base.name, next.file, next.stop.signal); this.sent.delete(next.file.name); }
      catch (failure) { next.state = "failed"; next.error = (failure as Error).message; } // one that was cancelled is in the list no more
    }
    this.isSending = false;
    await this.watch();
  }

  private next(): Sending | undefined { return [...this.sent.values()].find((one) => one.state === "waiting"); }

  private async change(work: () => Promise<unknown>): Promise<void> {
    fill(this.problem);
    try { await work(); } catch (failure) { fill(this.problem, notice((failure as Error).message)); }
    await this.watch();
  }

  private draw(): void {
    if (!this.found) return;
    const { build, documents, deleted, accepts } = this.found;
    this.input.accept = accepts.join(",");
    this.progress.hidden = !this.isBusy;
    if (build.total) this.progress.value = build.done / build.total; else this.progress.removeAttribute("value");
    const failed = [...this.sent.values()].filter((one) => one.state === "failed").length + build.skipped.length;
    this.state.textContent = this.isBusy ? t("docs.building", { stage: build.stage || t("docs.waiting") }) : build.state === "failed" ? t("docs.failed", { why: build.error ?? t("docs.noReason") })
      : failed ? counted("docs.notReady", failed) : documents.length ? t("docs.ready") : t("docs.none");
    const skipped = new Map(build.skipped.map((one) => [one.file, one.reason])), known = new Set(documents.map((one) => one.name));
    fill(this.list,
      [...this.sent.values()].filter((one) => !known.has(one.file.name) || one.state !== "waiting").map((one) => this.sendingRow(one)),
      documents.map((file) => this.row(file, skipped.get(file.name))),
      deleted.map((name) => h("li", { class: "gone" }, nameOf(name), status(t("docs.deleted")),
        button(t("undo"), () => void this.change(() => api.restore(this.base.name, name)), { class: "quiet", "aria-label": t("docs.undo", { name }) }))));
  }

  private sendingRow(one: Sending): HTMLElement {
    const name = one.file.name;
    return h("li", {}, nameOf(name), status(one.state === "failed" ? t("docs.refused", { why: one.error }) : one.state === "sending" ? t("docs.sending") : t("docs.waits"), one.state === "failed"),
      one.state !== "failed" && button(t("cancel"), () => { this.sent.delete(name); one.stop.abort(); this.draw(); }, { class: "quiet", "aria-label": t("cancel.named", { name }) }),
      one.state === "failed" && [
        button(t("retry"), () => { Object.assign(one, { state: "waiting", stop: new AbortController() }); void this.send(); }, { class: "quiet", "aria-label": t("retry.named", { name }) }),
        button(t("dismiss"), () => { this.sent.delete(name); this.draw(); }, { class: "quiet", "aria-label": t("dismiss.named", { name }) })]);
  }

  private row(file: api.Documents["documents"][number], reason: string | undefined): HTMLElement {
    const isRead = file.indexed && !reason, size = `${((file.bytes ?? 0) / 1000).toFixed(1)} kB`;
    return h("li", {},
      isRead ? fileLink(this.base.name, file) : nameOf(file.name),
      status(reason ? t("docs.unusable", { why: reason }) : `${t(isRead ? "docs.ready" : this.isBusy ? "docs.reading" : "docs.unread")} · ${size}`, Boolean(reason)),
      button(t("delete"), () => void this.change(() => api.remove(this.base.name, file.name)), { class: "quiet", "aria-label": t("delete.named", { name: file.name }) }));
  }
}

function fileLink(base: string, { name, title }: api.Documents["documents"][number]): HTMLElement {
  const isTitled = title && title !== name && title !== name.replace(/\.\w+$/, "");
  return h("span", { class: "file" }, h("a", { href: href("documents", { base, doc: name }) }, nameOf(name)), isTitled && h("small", { class: "muted" }, nameOf(title)));
}

const status = (text: string, isWrong = false): HTMLElement => h("small", { class: isWrong ? "error file-status" : "muted file-status" }, text);

function read(host: HTMLElement, base: string, document: api.Reading, piece: string | null, quote: string | null): void {
  let page: number | null = null;
  fill(host, h("article", { class: "reading" },
    h("p", {}, h("a", { href: href("documents", { base }) }, `← ${t("view.documents")}`)),
    h("h1", {}, nameOf(document.title)), h("p", { class: "muted" }, nameOf(document.name)),
    document.pieces.map((one) => {
      const turned = one.page !== null && one.page !== page;
      page = one.page;
      const cited = one.key === piece;
      return [turned && h("h2", { class: "page" }, t("docs.page", { page: one.page ?? "" })),
        h(one.type === "table" ? "pre" : "p", { class: cited ? "piece cited" : "piece", dir: "auto", id: cited ? "cited" : null }, marked(one.text, cited ? quote?.trim() ?? null : null))];
    })));
  const target = host.querySelector("#quote") ?? host.querySelector("#cited");
  target?.scrollIntoView({ block: "center" });
}
