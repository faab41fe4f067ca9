// Where names are written so that none lies on another: below its dot, above, to the right or to the left, or not at all.

export interface Label { x: number; y: number; radius: number; width: number; height: number; must?: boolean } // must: shown whatever it covers
export type Box = [left: number, top: number, right: number, bottom: number];
export interface Placed { x: number; y: number } // the middle of the text

/** Places for labels inside the frame, the most important first, that cover nothing drawn; null where there is no room. */
export function placed(labels: Label[], drawn: Box[] = [], frame?: Box): (Placed | null)[] {
  const cell = 80 * (labels[0] ? labels[0].height / 16 : 1), taken = new Map<string, Box[]>();
  const cells = ([x0, y0, x1, y1]: Box): string[] => {
    const names: string[] = [];
    for (let i = Math.floor(x0 / cell); i <= Math.floor(x1 / cell); i++)
      for (let j = Math.floor(y0 / cell); j <= Math.floor(y1 / cell); j++) names.push(`${i} ${j}`);
    return names;
  };
  const isFree = (box: Box) => cells(box).every((name) => (taken.get(name) ?? []).every((other) =>
    box[2] <= other[0] || other[2] <= box[0] || box[3] <= other[1] || other[3] <= box[1]));
  const take = (box: Box) => { for (const name of cells(box)) taken.set(name, [...(taken.get(name) ?? []), box]); };
  drawn.forEach(take);
  return labels.map(({ x, y, radius, width, height, must }) => {
    const down = radius + 0.6 * height, across = radius + width / 2 + 0.25 * height;
    for (const [dx, dy] of [[0, down], [0, -down], [across, 0], [-across, 0]] as const) {
      const shift = frame && dx === 0 ? Math.max(0, frame[0] - (x - width / 2)) + Math.min(0, frame[2] - (x + width / 2)) : 0; // back into the picture
      const middle = x + dx + shift, box: Box = [middle - width / 2, y + dy - height / 2, middle + width / 2, y + dy + height / 2];
      const isInside = !frame || (box[0] >= frame[0] - 1e-6 && box[2] <= frame[2] + 1e-6);
      if (Math.abs(shift) > width / 2 || !isInside || !isFree(box)) continue;
      take(box);
      return { x: middle, y: y + dy };
    }
    const into = frame ? Math.max(0, frame[0] - (x - width / 2)) + Math.min(0, frame[2] - (x + width / 2)) : 0;
    return must ? { x: x + into, y: y + down } : null;
  });
}
