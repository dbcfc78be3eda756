// Pictures as the model gets them: reduced and cut out as Pillow does it, number by number.
//
// A picture is {data, width, height}: red, green, blue and a byte that is ignored, row by row.

// Keys' cubic convolution with a = -1/2.
function cubic(x) {
  x = Math.abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

// For each of `size` pixels from `begin` to `end` of a line: its first pixel there, and whole
// weights in units of 2^-22.
function shares(length, begin, end, size) {
  const scale = Math.fround(Math.fround(end) - Math.fround(begin)) / size;
  const wide = Math.max(scale, 1), support = 2 * wide;
  return Array.from({length: size}, (_, at) => {
    const centre = Math.fround(begin) + (at + 0.5) * scale, values = [];
    const first = Math.max(Math.trunc(centre - support + 0.5), 0);
    const last = Math.min(Math.trunc(centre + support + 0.5), length);
    for (let i = first; i < last; i++) values.push(cubic((i - centre + 0.5) * (1 / wide)));
    const total = values.reduce((all, one) => all + one, 0);
    return {first, values: values.map((one) => Math.trunc(one / total * 2 ** 22 + (one < 0 ? -0.5 : 0.5)))};
  });
}

const byte = (sum) => Math.min(Math.max(Math.floor((sum + 2 ** 21) / 2 ** 22), 0), 255);

// One pass: each line, which begins at a byte of both pictures, by the weights of its new pixels;
// pixels of a line are `step` bytes apart.
function pass(from, to, lines, weights, step) {
  for (let [begin, target] of lines) {
    for (const {first, values} of weights) {
      let r = 0, g = 0, b = 0, at = begin + first * step;
      for (let i = 0; i < values.length; i++, at += step) {
        const w = values[i];
        r += w * from[at];
        g += w * from[at + 1];
        b += w * from[at + 2];
      }
      to[target] = byte(r);
      to[target + 1] = byte(g);
      to[target + 2] = byte(b);
      to[target + 3] = 255;
      target += step;
    }
  }
}

const picture = (width, height) => ({data: new Uint8ClampedArray(4 * width * height), width, height});

function narrowed(given, weights) {
  const made = picture(weights.length, given.height);
  const lines = Array.from({length: given.height}, (_, y) => [4 * y * given.width, 4 * y * made.width]);
  pass(given.data, made.data, lines, weights, 4);
  return made;
}

function lowered(given, weights) {
  const made = picture(given.width, weights.length);
  const lines = Array.from({length: given.width}, (_, x) => [4 * x, 4 * x]);
  pass(given.data, made.data, lines, weights, 4 * given.width);
  return made;
}

// The part of a picture in a box [left, top, right, bottom], in another size; both passes round.
function resized(given, width, height, box = [0, 0, given.width, given.height]) {
  const {width: w, height: h} = given;
  const across = shares(w, box[0], box[2], width), down = shares(h, box[1], box[3], height);
  // What loses far more rows than columns loses the rows first.
  const first = h > height && h - height > 2 * (w - width);
  return first ? narrowed(lowered(given, down), across) : lowered(narrowed(given, across), down);
}

// Means of boxes of across x down pixels; what is left over on the right and below makes smaller boxes.
function reduced(given, across, down) {
  const made = picture(Math.ceil(given.width / across), Math.ceil(given.height / down));
  for (let y = 0, to = 0; y < made.height; y++) {
    const y1 = Math.min((y + 1) * down, given.height);
    for (let x = 0; x < made.width; x++, to += 4) {
      const x1 = Math.min((x + 1) * across, given.width), n = (x1 - x * across) * (y1 - y * down);
      // Pillow multiplies by this instead of dividing by n.
      const part = Math.floor(2 ** 24 / n);
      for (let c = 0; c < 3; c++) {
        let sum = n >> 1;
        for (let i = y * down; i < y1; i++)
          for (let j = x * across; j < x1; j++) sum += given.data[4 * (i * given.width + j) + c];
        made.data[to + c] = Math.floor(sum * part / 2 ** 24);
      }
      made.data[to + 3] = 255;
    }
  }
  return made;
}

// The whole number on either side for which the ratio is nearest.
function nearest(value, distance) {
  const [low, high] = [Math.floor(value), Math.ceil(value)];
  return Math.max(distance(low) <= distance(high) ? low : high, 1);
}

// The picture within so many pixels along both sides, as `Image.thumbnail` makes it.
function thumbnail(given, longest) {
  const {width: w, height: h} = given, aspect = w / h;
  if (w <= longest && h <= longest) return given;
  const width = aspect <= 1 ? nearest(longest * aspect, (n) => Math.abs(aspect - n / longest)) : longest;
  const height = aspect <= 1 ? longest
    : nearest(longest / aspect, (n) => n === 0 ? 0 : Math.abs(aspect - longest / n));
  // Much larger pictures are first reduced by whole factors.
  const across = Math.trunc(w / width / 2) || 1, down = Math.trunc(h / height / 2) || 1;
  if (across === 1 && down === 1) return resized(given, width, height);
  return resized(reduced(given, across, down), width, height, [0, 0, w / across, h / down]);
}

// The box around the centre that is a part of the shorter side.
function centre({width: w, height: h}, part) {
  const side = Math.min(w, h) * part;
  return [(w - side) / 2, (h - side) / 2, (w + side) / 2, (h + side) / 2];
}
