// Where clusters and links stand on the map: sources left of what they feed. Pure: no elements.

const ROW = 44; // for an edge with two lines of text
const TALL = 36;
const APART = 14;
const FOLDED = 6; // more clusters that are alike become one box
const SWEEPS = 4;
const DENSE = 2.5; // more edges than this for each cluster are lines that nobody can follow

const byName = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
const clusters = (edges) => [...new Set(edges.flatMap((edge) => [edge.source, edge.destination]))].sort(byName);

export const isDense = (edges) => edges.length > 8 && edges.length > DENSE * clusters(edges).length;

// Clusters with the same neighbors and equally urgent links are one box, if they are many.
function folded(edges) {
  const alike = new Map();
  for (const name of clusters(edges)) {
    const around = edges.flatMap((edge) => [
      ...(edge.source === name ? [["to", edge.destination, edge.badge.level]] : []),
      ...(edge.destination === name ? [["from", edge.source, edge.badge.level]] : [])]);
    const key = JSON.stringify(around);
    alike.set(key, [...(alike.get(key) ?? []), name]);
  }
  const box = new Map();
  for (const names of alike.values()) for (const name of names) box.set(name, names.length > FOLDED ? names : [name]);
  return box;
}

function merged(edges, box) {
  const found = new Map();
  for (const edge of edges) {
    const [from, to] = [box.get(edge.source)[0], box.get(edge.destination)[0]];
    const key = JSON.stringify([from, to]);
    const before = found.get(key);
    if (!before) found.set(key, { ...edge, from, to, of: 1 });
    else found.set(key, { ...before, of: before.of + 1, links: before.links + edge.links,
      names: [...before.names, ...edge.names],
      pooled: before.pooled + edge.pooled,
      rate_unknown: before.rate_unknown + edge.rate_unknown,
      records_per_second: before.records_per_second === null ? edge.records_per_second
        : before.records_per_second + (edge.records_per_second ?? 0),
      lag_seconds: Math.max(before.lag_seconds ?? -1, edge.lag_seconds ?? -1),
      seconds_to_loss: Math.min(before.seconds_to_loss ?? Infinity, edge.seconds_to_loss ?? Infinity),
      pools: [...new Set([...before.pools, ...edge.pools])] });
  }
  return [...found.values()];
}

// The edges that lead back to where one came from are drawn from right to left.
function turned(names, edges) {
  const out = new Map(names.map((name) => [name, edges.filter((edge) => edge.from === name)]));
  const fed = (name) => edges.filter((edge) => edge.to === name).length;
  const order = [...names].sort((one, other) => fed(one) - fed(other) || out.get(other).length - out.get(one).length
    || byName(one, other));
  const [open, done] = [new Set(), new Set()];
  const visit = (name) => {
    open.add(name);
    for (const edge of out.get(name)) {
      edge.back = open.has(edge.to);
      if (!edge.back && !done.has(edge.to)) visit(edge.to);
    }
    open.delete(name);
    done.add(name);
  };
  for (const name of order) if (!done.has(name)) visit(name);
}

function columns(names, edges) {
  const column = new Map(names.map((name) => [name, 0]));
  for (let turn = 0; turn < names.length; turn += 1) {
    for (const { left, right } of edges) column.set(right, Math.max(column.get(right), column.get(left) + 1));
  }
  return column;
}

const mean = (values, otherwise) => (values.length ? values.reduce((sum, one) => sum + one, 0) / values.length : otherwise);

// Each in its column as near as possible to those with which it is connected, so that few lines cross.
function sorted(layers, pieces) {
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const [ends, order] = sweep % 2 ? [["left", "right"], [...layers].reverse()] : [["right", "left"], layers];
    for (const layer of order) {
      const place = new Map(layers.flatMap((each) => each.map((one, at) => [one.id, at / each.length])));
      const wanted = new Map(layer.map((one) => [one.id, mean(
        pieces.filter((piece) => piece[ends[0]] === one.id).map((piece) => place.get(piece[ends[1]])), place.get(one.id))]));
      layer.sort((one, other) => wanted.get(one.id) - wanted.get(other.id) || byName(one.id, other.id));
    }
  }
}

// `edges` as the server gives them; `room`: { box, gap }, the widths of a box and between two columns, and at least `width`.
// Gives boxes { names, x, y, width, height }, edges with `points` (pairs of ends of curves), and the size of all.
export function layout(given, { box: wide, gap: least, width }, all = false) {
  const box = all ? new Map(clusters(given).map((name) => [name, [name]])) : folded(given);
  const edges = merged(given, box);
  const names = [...new Set(edges.flatMap((edge) => [edge.from, edge.to]))].sort(byName);
  turned(names, edges);
  for (const edge of edges) Object.assign(edge, edge.back ? { left: edge.to, right: edge.from } : { left: edge.from, right: edge.to });
  const column = columns(names, edges.filter((edge) => edge.left !== edge.right));
  const count = Math.max(0, ...column.values()) + 1;
  const layers = Array.from({ length: count }, (_, at) => names.filter((name) => column.get(name) === at).map((id) => ({ id })));
  // An edge over several columns gets a place in each of those between.
  const pieces = [];
  edges.forEach((edge, number) => {
    let before = edge.left;
    edge.pieces = [];
    for (let at = column.get(edge.left) + 1; at <= column.get(edge.right); at += 1) {
      const last = at === column.get(edge.right);
      const id = last ? edge.right : ` ${number} ${at}`;
      if (!last) layers[at].push({ id, passing: true });
      const piece = { left: before, right: id };
      pieces.push(piece);
      edge.pieces.push(piece);
      before = id;
    }
  });
  sorted(layers, pieces);
  const gap = count > 1 ? Math.max(least, Math.min(2 * least, (width - count * wide) / (count - 1))) : 0;
  const found = new Map();
  layers.forEach((layer, at) => {
    let y = 0;
    for (const one of layer) {
      const many = (end) => pieces.filter((piece) => piece[end] === one.id).length;
      const height = one.passing ? ROW : Math.max(TALL, ROW * Math.max(many("left"), many("right")));
      found.set(one.id, { ...one, x: at * (wide + gap), y, width: wide, height, names: box.get(one.id) ?? [] });
      y += height + APART;
    }
    layer.height = y - APART;
  });
  const height = Math.max(TALL, ...layers.map((layer) => layer.height));
  for (const layer of layers) for (const { id } of layer) found.get(id).y += (height - layer.height) / 2;
  ports(found, pieces);
  for (const edge of edges) edge.points = edge.pieces.map(({ from, to }) => [from, to]);
  return { boxes: [...found.values()].filter((one) => !one.passing), edges: edges.filter((edge) => edge.pieces.length),
    width: count * wide + (count - 1) * gap, height, gap };
}

// Where on a box's side each edge ends: in the order of the other ends.
function ports(found, pieces) {
  const middle = (id) => found.get(id).y + found.get(id).height / 2;
  for (const [end, other, at, x] of [["left", "right", "from", (one) => one.x + one.width], ["right", "left", "to", (one) => one.x]]) {
    for (const one of found.values()) {
      const here = pieces.filter((piece) => piece[end] === one.id);
      here.sort((a, b) => middle(a[other]) - middle(b[other]));
      const step = Math.min(ROW, one.height / here.length);
      here.forEach((piece, number) => {
        piece[at] = { x: x(one), y: middle(one.id) + (number - (here.length - 1) / 2) * step };
      });
    }
  }
}
