// How nodes push each other apart: pair by pair, or for many nodes by a grid in which a cell counts as one heavy node, to the
// nodes of cells close by, and farther away to other cells.

const FAR = 800, CELL = 90, CLOSE = 2, MOST_CELLS = 20_000; // beyond the first nobody is felt; cells that touch are taken node by node, then so many cell by node
const MANY = 600; // nodes from which on the grid is faster
const HARDEST = 14;

/** Adds the forces on every node to fx and fy. */
export function repel(x: Float64Array, y: Float64Array, weight: Float64Array, strength: number, fx: Float64Array, fy: Float64Array, isExact = x.length < MANY): void {
  if (isExact) pairs(x, y, weight, strength, fx, fy); else byGrid(x, y, weight, strength, fx, fy);
}

function push(i: number, j: number, x: Float64Array, y: Float64Array, weight: Float64Array, strength: number, fx: Float64Array, fy: Float64Array): void {
  let dx = x[i]! - x[j]!, dy = y[i]! - y[j]!;
  let square = dx * dx + dy * dy;
  if (square > FAR * FAR) return;
  if (square < 1) { dx = (i % 7) - 3 || 1; dy = (j % 5) - 2; square = dx * dx + dy * dy; }
  const force = Math.min((strength * weight[i]! * weight[j]!) / square, HARDEST) / Math.sqrt(square);
  fx[i]! += dx * force; fy[i]! += dy * force; fx[j]! -= dx * force; fy[j]! -= dy * force;
}

function pairs(x: Float64Array, y: Float64Array, weight: Float64Array, strength: number, fx: Float64Array, fy: Float64Array): void {
  for (let i = 0; i < x.length; i++) for (let j = i + 1; j < x.length; j++) push(i, j, x, y, weight, strength, fx, fy);
}

interface Cell { place: number; x: number; y: number; weight: number; fx: number; fy: number; nodes: number[] }

function byGrid(x: Float64Array, y: Float64Array, weight: Float64Array, strength: number, fx: Float64Array, fy: Float64Array): void {
  let left = Infinity, right = -Infinity, top = Infinity, bottom = -Infinity;
  for (let i = 0; i < x.length; i++) { left = Math.min(left, x[i]!); right = Math.max(right, x[i]!); top = Math.min(top, y[i]!); bottom = Math.max(bottom, y[i]!); }
  const side = Math.max(CELL, Math.sqrt(((right - left) * (bottom - top)) / MOST_CELLS)), reach = Math.ceil(FAR / side);
  const rows = Math.floor((bottom - top) / side) + 1 + 2 * reach; // with a margin, so that every cell has all its neighbours
  const grid: (Cell | undefined)[] = new Array(rows * (Math.floor((right - left) / side) + 1 + reach)).fill(undefined), all: Cell[] = [];
  for (let i = 0; i < x.length; i++) {
    const place = Math.floor((x[i]! - left) / side) * rows + Math.floor((y[i]! - top) / side) + reach;
    let cell = grid[place];
    if (!cell) all.push((cell = grid[place] = { place, x: 0, y: 0, weight: 0, fx: 0, fy: 0, nodes: [] }));
    cell.x += x[i]! * weight[i]!; cell.y += y[i]! * weight[i]!; cell.weight += weight[i]!; cell.nodes.push(i);
  }
  for (const cell of all) { cell.x /= cell.weight; cell.y /= cell.weight; }
  for (const cell of all) {
    for (let a = 0; a < cell.nodes.length; a++) for (let b = a + 1; b < cell.nodes.length; b++) push(cell.nodes[a]!, cell.nodes[b]!, x, y, weight, strength, fx, fy);
    for (let across = 0; across <= reach; across++) for (let down = across ? -reach : 1; down <= reach; down++) { // each pair of cells once
      const other = grid[cell.place + across * rows + down], apart = Math.max(across, Math.abs(down));
      if (!other) continue;
      if (apart <= 1) { for (let a = 0; a < cell.nodes.length; a++) for (let b = 0; b < other.nodes.length; b++) push(cell.nodes[a]!, other.nodes[b]!, x, y, weight, strength, fx, fy); continue; }
      const dx = cell.x - other.x, dy = cell.y - other.y, square = dx * dx + dy * dy;
      if (square > FAR * FAR) continue;
      if (apart <= CLOSE) { far(cell, other, x, y, weight, strength, fx, fy); far(other, cell, x, y, weight, strength, fx, fy); continue; }
      const field = strength / (square * Math.sqrt(square)); // on each unit of weight
      cell.fx += dx * field * other.weight; cell.fy += dy * field * other.weight; other.fx -= dx * field * cell.weight; other.fy -= dy * field * cell.weight;
    }
  }
  for (const cell of all) for (const i of cell.nodes) { fx[i]! += cell.fx * weight[i]!; fy[i]! += cell.fy * weight[i]!; }
}

/** Every node of a cell is pushed by another cell as if that were one node. */
function far(cell: Cell, from: Cell, x: Float64Array, y: Float64Array, weight: Float64Array, strength: number, fx: Float64Array, fy: Float64Array): void {
  for (let a = 0; a < cell.nodes.length; a++) {
    const i = cell.nodes[a]!;
    const dx = x[i]! - from.x, dy = y[i]! - from.y, square = dx * dx + dy * dy;
    const force = (strength * weight[i]! * from.weight) / (square * Math.sqrt(square));
    fx[i]! += dx * force; fy[i]! += dy * force;
  }
}
