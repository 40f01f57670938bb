// The functions and constants that the scripts of all pages share.
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const by_id = id => document.getElementById(id);
const kinds = ['nodes', 'ways', 'relations'];
const color = kind => getComputedStyle(document.documentElement).getPropertyValue('--' + kind).trim();

const number = value => String(value).replace(/\B(?=(\d{3})+$)/g, ',');
const counted = (value, one, more = one + 's') => number(value) + ' ' + (value === 1 ? one : more);
const percent = (part, whole) => whole ? (100 * part / whole).toFixed(part === whole || part === 0 ? 0 : 1) + ' %' : '–';
function bytes(value) {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  for (; value >= 1000 && unit < 4; unit++) value /= 1000;
  return unit ? value.toFixed(1) + ' ' + units[unit] : value + ' bytes';
}
function brief(value) {
  const units = ['', ' k', ' M', ' G'];
  let unit = 0;
  for (; value >= 1000 && unit < 3; unit++) value /= 1000;
  return (value < 10 && value % 1 ? value.toFixed(1) : Math.round(value)) + units[unit];
}
function element(name, attributes = {}, text) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
function drawn(name, attributes, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
// A cell of a table with text of any length. Where the column is narrow, a word breaks after a punctuation mark before a
// letter, or after 16 characters.
function cell(text) {
  const made = element('td');
  for (const part of String(text).split(/(?<=[_:/=;&?.@])(?=\p{L})/u).flatMap(part => part.match(/\S{1,16}|\s+/gu) || [])) {
    if (made.firstChild) made.append(element('wbr'));
    made.append(part);
  }
  return made;
}
function rows(table, entries) {
  for (const [name, value] of entries) {
    const row = element('tr');
    row.append(element('td', {}, name), cell(value));
    table.append(row);
  }
}

// A chart of stacked columns. A column is [[height, colour], …]; `say` describes the column at an index.
function columns(target, stacks, labels, show, say, note) {
  const height = 190, base = height - 22;
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = '12px system-ui, sans-serif';
  const wide_of = text => pen.measureText(text).width;
  const draw = () => {
    const width = target.clientWidth, top = stacks.reduce((top, stack) => Math.max(top, stack.reduce((sum, [part]) => sum + part, 0)), 1);
    const svg = drawn('svg', {viewBox: `0 0 ${width} ${height}`, height, role: 'img', 'aria-label': target.previousElementSibling.textContent});
    const left = Math.max(66, ...[0.5, 1].map(share => wide_of(show(top * share)) + 8));
    for (const share of [0.5, 1]) {
      const at = base - (base - 12) * share;
      svg.append(drawn('line', {x1: left, x2: width, y1: at, y2: at, stroke: '#e4e1d8'}));
      svg.append(drawn('text', {x: left - 6, y: at + 4, 'text-anchor': 'end'}, show(top * share)));
    }
    const step = (width - left) / stacks.length, wide = step > 3 ? step - 1 : step;
    stacks.forEach((stack, index) => {
      let at = base;
      for (const [value, fill] of stack) {
        const tall = (base - 12) * value / top;
        if (tall > 0) svg.append(drawn('rect', {x: left + index * step, y: at - tall, width: wide, height: tall, fill}));
        at -= tall;
      }
    });
    svg.append(drawn('line', {x1: left, x2: width, y1: base + 0.5, y2: base + 0.5, stroke: '#9aa1a8'}));
    let free = -Infinity;
    for (const [index, text] of labels) {
      const at = left + index * step, end = at + 2 + wide_of(text);
      if (at < free || end > width) continue;
      free = end + 8;
      svg.append(drawn('line', {x1: at, x2: at, y1: base, y2: base + 4, stroke: '#9aa1a8'}));
      svg.append(drawn('text', {x: at + 2, y: height - 5}, text));
    }
    svg.addEventListener('mousemove', event => {
      const index = Math.floor((event.offsetX - left) / step);
      note.textContent = stacks[index] ? say(index) : '';
    });
    target.replaceChildren(svg);
  };
  draw();
  return draw;
}

// A table of keys with bars. An entry is {key, count, PART…}; `parts` are the names of the parts, which have colours.
function bars(table, title, entries, parts, say) {
  if (!entries.length) return;
  const head = element('tr');
  head.append(element('th', {}, title), element('th', {class: 'number'}, 'objects'), element('th'));
  table.append(head);
  const longest = entries.reduce((most, {count}) => Math.max(most, count), 1);
  for (const entry of entries) {
    const row = element('tr'), bar = element('td', {class: 'bar'}), all = element('div');
    parts.forEach(part => all.append(element('i', {style: `width: ${100 * entry[part] / longest}%; background: var(--${part})`})));
    all.title = parts.map(part => say(entry[part], part)).join(', ');
    bar.append(all);
    row.append(cell(entry.key), element('td', {class: 'number'}, number(entry.count)), bar);
    table.append(row);
  }
}

// Says how many of the keys or users of a list are shown.
function share({distinct, top}, one) {
  if (!distinct) return '';
  return top.length < distinct ? `The first ${number(top.length)} of ${counted(distinct, one)}` : counted(distinct, one);
}

// Fills each legend with the names of what has a colour.
function legends(names) {
  for (const legend of document.querySelectorAll('.kinds')) {
    for (const name of legend.dataset.more ? [...names, legend.dataset.more] : names) {
      const entry = element('span');
      entry.append(element('i', {style: `background: var(--${name})`}), name === 'other' ? 'several kinds' : name);
      legend.append(entry);
    }
  }
}

// A chart of months, days or hours. `counts` has a list of numbers for each; `name` names the one at an index.
function ages(target, counts, parts, name, labels, say, note) {
  return columns(target, counts.map(of => of.map((count, at) => [count, color(parts[at])])), labels, brief,
    index => `${name(index)}: ` + parts.map((part, at) => say(counts[index][at], part)).join(', '), note);
}

// The square of the Mercator projection, with the zero meridian and the equator in its middle.
const x_of = lon => lon / 360;
const y_of = lat => {
  const sin = Math.sin(Math.max(-85.05, Math.min(85.05, lat)) * Math.PI / 180);
  return -Math.log((1 + sin) / (1 - sin)) / (4 * Math.PI);
};

// A map of the cells of a grid, which have a place and counts. `least` is the smallest width of a cell in pixels,
// `shade(counts)` its colour or null, `say(counts)` a text, and `over(map, pen)` draws more.
class CellMap {
  constructor(density, {least, shade, say, over}) {
    Object.assign(this, {least, shade, say, over});
    this.canvas = by_id('map');
    this.edge = 360 / 2 ** density.level;
    // The place of the middle of the projection in the window, and the width of the projection, in pixels.
    [this.x, this.y, this.size] = [0, 0, 1];
    this.shows_all = false;
    this.cells = density.cells.map(([column, row, ...counts]) => {
      const west = column * this.edge - 180, south = row * this.edge - 90;
      return {left: x_of(west), right: x_of(west + this.edge), top: y_of(south + this.edge), bottom: y_of(south), west, south, counts,
        count: counts.reduce((sum, count) => sum + count, 0)};
    });
    this.count = this.cells.reduce((sum, cell) => sum + cell.count, 0);
    this.listen();
  }

  // The edge of a cell, along a meridian.
  get width() {
    const meters = this.edge * 111195;
    return meters >= 1000 ? brief(meters / 1000) + ' km' : Math.max(1, Math.round(meters)) + ' m';
  }

  // The bounds along an axis; without `all`, of all but the outermost thousandth on each side.
  range(from, to, all) {
    if (!this.cells.length) return [-0.5, 0.5];
    const sorted = [...this.cells].sort((a, b) => a[from] - b[from]), skipped = all ? 0 : this.count / 1000;
    let before = 0, first = 0, last = sorted.length - 1;
    while ((before += sorted[first].count) < skipped) first++;
    for (before = 0; (before += sorted[last].count) < skipped;) last--;
    return [sorted[first][from], sorted[last][to]];
  }

  bounds(all) {
    return [this.range('left', 'right', all), this.range('top', 'bottom', all)];
  }

  // Whether the first view leaves something out.
  get is_cut() {
    return String(this.bounds(true)) !== String(this.bounds(false));
  }

  fit(all = this.shows_all) {
    by_id('frame').hidden = !this.count;
    if (!this.count) return;
    this.shows_all = all;
    const [[left, right], [top, bottom]] = this.bounds(all), room = 28;
    const {clientWidth: width, clientHeight: height} = this.canvas;
    this.size = Math.min((width - 2 * room) / (right - left), (height - 2 * room) / (bottom - top));
    this.x = width / 2 - (left + right) / 2 * this.size;
    this.y = height / 2 - (top + bottom) / 2 * this.size;
    this.draw();
  }

  // Zooms around a place of the window, its middle by default.
  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    factor = Math.max(200, Math.min(2 ** 31, this.size * factor)) / this.size;
    this.x = x + (this.x - x) * factor;
    this.y = y + (this.y - y) * factor;
    this.size *= factor;
    this.draw();
  }

  draw() {
    const ratio = window.devicePixelRatio || 1, {clientWidth: width, clientHeight: height} = this.canvas;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    const pen = this.canvas.getContext('2d');
    pen.scale(ratio, ratio);
    pen.fillStyle = '#fbfaf7';
    pen.fillRect(0, 0, width, height);
    this.grid(pen, width, height);
    for (const cell of this.cells) {
      const left = this.x + cell.left * this.size, top = this.y + cell.top * this.size;
      const right = this.x + cell.right * this.size, bottom = this.y + cell.bottom * this.size;
      const fill = left > width || top > height || right < 0 || bottom < 0 ? null : this.shade(cell.counts);
      if (!fill) continue;
      pen.fillStyle = fill;
      pen.fillRect(left, top, Math.max(this.least, right - left + 0.3), Math.max(this.least, bottom - top + 0.3));
    }
    if (this.over) this.over(this, pen);
  }

  // The place of a box of west, south, east and north in 1e-7 degree: left, top, width and height in the window.
  place([west, south, east, north]) {
    const left = this.x + x_of(west / 1e7) * this.size, top = this.y + y_of(north / 1e7) * this.size;
    const right = this.x + x_of(east / 1e7) * this.size, bottom = this.y + y_of(south / 1e7) * this.size;
    return [left, top, Math.max(1, right - left), Math.max(1, bottom - top)];
  }

  grid(pen, width, height) {
    const lon_of = left => (left - this.x) / this.size * 360;
    const lat_of = top => Math.atan(Math.sinh(-(top - this.y) / this.size * 2 * Math.PI)) * 180 / Math.PI;
    const [west, east, south, north] = [lon_of(0), lon_of(width), lat_of(height), lat_of(0)];
    const steps = [90, 60, 30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005];
    const step = steps.find(step => Math.max((east - west) / width, (north - south) / height) * 130 >= step) || 0.0005;
    const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
    pen.font = '12px system-ui, sans-serif';
    pen.lineWidth = 1;
    pen.strokeStyle = '#e4e1d8';
    pen.fillStyle = '#7a828a';
    const lines = (from, to, names, draw) => {
      for (let at = Math.ceil(from / step); at * step <= to; at++) {
        const name = at ? ' ' + names[at < 0 ? 0 : 1] : '';
        pen.beginPath();
        draw(at * step, Math.abs(at * step).toFixed(digits) + '°' + name);
        pen.stroke();
      }
    };
    lines(Math.max(-180, west), Math.min(180, east), 'WE', (lon, text) => {
      const left = Math.round(this.x + x_of(lon) * this.size) + 0.5;
      pen.moveTo(left, 0);
      pen.lineTo(left, height);
      pen.fillText(text, left + 3, height - 5);
    });
    lines(Math.max(-85, south), Math.min(85, north), 'SN', (lat, text) => {
      const top = Math.round(this.y + y_of(lat) * this.size) + 0.5;
      pen.moveTo(0, top);
      pen.lineTo(width, top);
      if (top > 16 && top < height - 20) pen.fillText(text, 4, top - 3);
    });
  }

  listen() {
    const {canvas} = this;
    let drag = null;
    canvas.addEventListener('pointerdown', event => {
      drag = [event.clientX - this.x, event.clientY - this.y];
      canvas.setPointerCapture(event.pointerId);
    });
    for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, () => drag = null);
    canvas.addEventListener('pointermove', event => {
      if (drag) {
        [this.x, this.y] = [event.clientX - drag[0], event.clientY - drag[1]];
        this.draw();
      } else {
        this.describe(event.offsetX, event.offsetY);
      }
    });
    canvas.addEventListener('wheel', event => {
      // The wheel scrolls the page. It zooms only if the map was clicked or a key is held.
      if (!event.ctrlKey && !event.shiftKey && document.activeElement !== canvas) return;
      event.preventDefault();
      this.zoom(2 ** (-(event.deltaY || event.deltaX) / 240), event.offsetX, event.offsetY);
    }, {passive: false});
    by_id('in').addEventListener('click', () => this.zoom(2));
    by_id('out').addEventListener('click', () => this.zoom(0.5));
    by_id('all').addEventListener('click', () => this.fit(!this.shows_all));
  }

  // Says what is at a place of the window.
  describe(left, top) {
    const x = (left - this.x) / this.size, y = (top - this.y) / this.size, near = 3 / this.size;
    const cell = this.cells.find(cell => x > cell.left - near && x < cell.right + near && y > cell.top - near && y < cell.bottom + near);
    const digits = Math.max(0, Math.min(5, Math.ceil(-Math.log10(this.edge * 8))));
    const degrees = (value, names) => Math.abs(value).toFixed(digits) + '° ' + names[value < 0 ? 0 : 1];
    const middle = this.edge / 2;
    by_id('map-note').textContent = cell
      ? `${degrees(cell.south + middle, 'SN')}, ${degrees(cell.west + middle, 'WE')}: ${this.say(cell.counts)}`
      : '';
  }
}

// Draws everything, again whenever the window changes its size.
function finish(drawings, program) {
  by_id('credit').append('Made by ' + program + '. Data © ',
    element('a', {href: 'https://www.openstreetmap.org/copyright', rel: 'noreferrer'}, 'OpenStreetMap'), ' contributors, if it is theirs.');
  let waiting = 0;
  addEventListener('resize', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => drawings.forEach(draw => draw()), 80);
  });
  document.body.dataset.done = 'yes';
}
