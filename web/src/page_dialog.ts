// A page of an uploaded PDF as it is printed, the lines of a quotation marked; Escape closes it.

import * as api from "./api";
import { button, fill, h } from "./dom";
import { t } from "./texts";

const MOST_BOXES = 100; // where there are more, the server marks all lines of the passage

let dialog: HTMLDialogElement | null = null;

export async function showPage(base: api.BaseDetails, piece: api.Evidence, address: string): Promise<void> {
  if (!dialog) {
    dialog = h("dialog", { class: "printed", "aria-labelledby": "page-name" });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog!.close(); });
    document.body.append(dialog);
  }
  const open = dialog, host = h("div", { class: "sheet" }, h("p", { class: "muted" }, t("page.drawing")));
  fill(open,
    h("header", { class: "row" },
      h("div", {}, h("h2", { id: "page-name" }, t("page.of", { file: piece.file ?? "", page: piece.page ?? "" })), piece.section && h("p", { class: "muted" }, piece.section)),
      button("×", () => open.close(), { class: "quiet close", "aria-label": t("close") })),
    host,
    h("footer", { class: "row wrap" }, h("a", { href: address, onclick: () => open.close() }, t("page.text"))));
  if (!open.open) open.showModal();
  try {
    const boxes = (piece.boxes ?? []).map((box) => box.join(","));
    const url = URL.createObjectURL(await api.page(base.name, piece.node!.key, boxes.length <= MOST_BOXES ? boxes : []));
    const picture = h("img", { src: url, alt: t("page.alt", { page: piece.page ?? "", file: piece.file ?? "" }) });
    picture.addEventListener("load", () => {
      URL.revokeObjectURL(url);
      const first = Math.min(...(piece.boxes ?? []).map((box) => box[1]));
      if (Number.isFinite(first)) open.scrollTop = Math.max(0, picture.offsetTop + (first * SCALE * picture.clientWidth) / picture.naturalWidth - open.clientHeight / 2);
    });
    fill(host, picture);
  } catch (failure) {
    fill(host, h("p", { class: "error", role: "alert" }, (failure as Error).message));
  }
}

const SCALE = 1.5; // pixels of the picture for a point of the page
