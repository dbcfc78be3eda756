// A convolutional network as a plain list of layers: see Layer in knowmore.images.networks.
//
// Maps are kept pixel by pixel, (h, w, channels), so that all loops go through memory in order.
// Sums are in double precision, which costs JavaScript nothing; what is kept is in single.

// Every output of every pixel: four outputs of two pixels at a time. `out` may be what it adds to.
function pointwise(x, {W, b, inputs, outputs, bounded}, pixels, added, out) {
  for (let o = 0; o < outputs; o += 4) {
    const w0 = o * inputs, w1 = w0 + inputs, w2 = w1 + inputs, w3 = w2 + inputs;
    const b0 = b[o], b1 = b[o + 1], b2 = b[o + 2], b3 = b[o + 3];
    for (let p = 0; p < pixels; p += 2) {
      // The last of an odd number goes with itself.
      const u = p * inputs, v = p + 1 < pixels ? u + inputs : u;
      let s0 = b0, s1 = b1, s2 = b2, s3 = b3, t0 = b0, t1 = b1, t2 = b2, t3 = b3;
      for (let i = 0; i < inputs; i++) {
        const one = x[u + i], other = x[v + i], q0 = W[w0 + i], q1 = W[w1 + i], q2 = W[w2 + i], q3 = W[w3 + i];
        s0 += one * q0; s1 += one * q1; s2 += one * q2; s3 += one * q3;
        t0 += other * q0; t1 += other * q1; t2 += other * q2; t3 += other * q3;
      }
      const at = p * outputs + o, to = v === u ? at : at + outputs;
      out[at] = s0; out[at + 1] = s1; out[at + 2] = s2; out[at + 3] = s3;
      out[to] = t0; out[to + 1] = t1; out[to + 2] = t2; out[to + 3] = t3;
    }
  }
  const n = pixels * outputs;
  if (bounded) for (let i = 0; i < n; i++) out[i] = out[i] < 0 ? 0 : out[i] > 6 ? 6 : out[i];
  if (added) for (let i = 0; i < n; i++) out[i] += added[i];
}

// Each map by itself. Taps outside are zeros: they are left out.
function depthwise(x, {W, b, k, stride, pads, outputs: n, bounded}, height, width, out) {
  const h = (height + pads[0] + pads[1] - k) / stride + 1 | 0, w = (width + pads[0] + pads[1] - k) / stride + 1 | 0;
  const sums = new Float64Array(n);
  for (let row = 0, to = 0; row < h; row++) {
    const top = row * stride - pads[0], y0 = Math.max(-top, 0), y1 = Math.min(height - top, k);
    for (let column = 0; column < w; column++, to += n) {
      const left = column * stride - pads[0], x0 = Math.max(-left, 0), x1 = Math.min(width - left, k);
      for (let c = 0; c < n; c++) sums[c] = b[c];
      for (let i = y0; i < y1; i++) {
        let from = ((top + i) * width + left + x0) * n, tap = (i * k + x0) * n, j = x0;
        // Three taps of a line at a time.
        for (; j + 3 <= x1; j += 3, from += 3 * n, tap += 3 * n) {
          for (let c = 0; c < n; c++)
            sums[c] += x[from + c] * W[tap + c] + x[from + n + c] * W[tap + n + c] + x[from + 2 * n + c] * W[tap + 2 * n + c];
        }
        for (; j < x1; j++, from += n, tap += n)
          for (let c = 0; c < n; c++) sums[c] += x[from + c] * W[tap + c];
      }
      for (let c = 0; c < n; c++) {
        const sum = sums[c];
        out[to + c] = !bounded ? sum : sum < 0 ? 0 : sum > 6 ? 6 : sum;
      }
    }
  }
}

// Any other convolution: here, the first layer alone.
function convolution(x, {W, b, k, stride, pads, inputs, outputs, bounded}, height, width, out) {
  const h = (height + pads[0] + pads[1] - k) / stride + 1 | 0, w = (width + pads[0] + pads[1] - k) / stride + 1 | 0;
  const sums = new Float64Array(outputs);
  for (let row = 0, to = 0; row < h; row++) {
    for (let column = 0; column < w; column++, to += outputs) {
      sums.set(b);
      for (let i = 0; i < k; i++) {
        const y = row * stride - pads[0] + i;
        if (y < 0 || y >= height) continue;
        for (let j = 0; j < k; j++) {
          const left = column * stride - pads[0] + j;
          if (left < 0 || left >= width) continue;
          for (let c = 0; c < inputs; c++) {
            const value = x[(y * width + left) * inputs + c];
            let tap = ((i * k + j) * inputs + c) * outputs;
            for (let o = 0; o < outputs; o++) sums[o] += value * W[tap++];
          }
        }
      }
      for (let o = 0; o < outputs; o++) {
        const sum = sums[o];
        out[to + o] = !bounded ? sum : sum < 0 ? 0 : sum > 6 ? 6 : sum;
      }
    }
  }
}

// description: {layers, mean, std}; numbers: the weights W (o, i, k, k) and b (o,) of all layers, one
// after the other. Returns a function from a picture {data, width, height} to its vector.
function network({layers: described, mean, std}, numbers) {
  let at = 0;
  const layers = described.map(({inputs, outputs, k, ...rest}) => {
    const given = numbers.subarray(at, at += outputs * inputs * k * k), b = numbers.subarray(at, at += outputs);
    // Taps first, and of the first layer maps last, unless a layer has one tap.
    const taps = k * k, W = taps === 1 ? given : new Float32Array(given.length);
    if (taps > 1)
      for (let o = 0, from = 0; o < outputs; o++)
        for (let i = 0; i < inputs; i++)
          for (let t = 0; t < taps; t++) W[(t * inputs + i) * outputs + o] = given[from++];
    return {inputs, outputs, k, ...rest, W, b};
  });

  return ({data, width, height}) => {
    let x = new Float32Array(3 * width * height), h = height, w = width;
    for (let p = 0, from = 0; p < x.length; p += 3, from += 4)
      for (let c = 0; c < 3; c++) x[p + c] = (data[from + c] / 255 - mean[c]) / std[c];
    const before = [x];
    for (const layer of layers) {
      const {k, stride, pads, outputs, back} = layer, spread = pads[0] + pads[1] - k;
      const [to, across] = [(h + spread) / stride + 1 | 0, (w + spread) / stride + 1 | 0];
      const out = new Float32Array(to * across * outputs);
      if (k === 1) pointwise(x, layer, h * w, back ? before.at(-back) : null, out);
      else (layer.groups > 1 ? depthwise : convolution)(x, layer, h, w, out);
      [x, h, w] = [out, to, across];
      before.push(x);
      // No layer adds what is further back than three layers.
      if (before.length > 3) before.shift();
    }
    const n = layers.at(-1).outputs, vector = new Float64Array(n);
    for (let i = 0; i < x.length; i++) vector[i % n] += x[i];
    return vector.map((sum) => sum / (h * w));
  };
}
