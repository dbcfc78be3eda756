// Predicts with a model that is plain data: see Description in knowmore.export for the formulas.

const ORDERS = {"matern-1/2": 0.5, "matern-3/2": 1.5, "matern-5/2": 2.5};

function numbers(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new Float64Array(bytes.buffer);
}

function accumulated(kind, parts) {
  return parts.reduce((all, one) => kind === "sum" ? all.map((a, i) => a + one[i])
                                                   : all.map((a, i) => a * one[i]));
}

const DATES = {
  "d.m.y": [/^(\d{1,2})\.(\d{1,2})\.(\d{4})$/, [3, 2, 1]],
  "d/m/y": [/^(\d{1,2})\/(\d{1,2})\/(\d{4})$/, [3, 2, 1]],
  "m/d/y": [/^(\d{1,2})\/(\d{1,2})\/(\d{4})$/, [3, 1, 2]],
};
const ISO = /^(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?)?$/;

// Days since 1970 of a date in ISO 8601 or another form, without a time zone; NaN if it is none.
function days(text, form) {
  const iso = ISO.exec(text), [pattern, order] = DATES[form] ?? [null];
  const found = iso ?? pattern?.exec(text) ?? null;
  if (found === null) return NaN;
  const [year, month, day] = (iso ? [1, 2, 3] : order).map((i) => Number(found[i]));
  const moment = new Date(Date.UTC(year, month - 1, day));
  if (year < 1 || moment.getUTCMonth() !== month - 1 || moment.getUTCDate() !== day) return NaN;
  const [hours, minutes, seconds] = (iso ? iso.slice(4, 7) : []).map((part) => Number(part ?? 0));
  if (hours > 23 || minutes > 59 || seconds >= 60) return NaN;
  return (moment.getTime() / 1000 + ((hours ?? 0) * 60 + (minutes ?? 0)) * 60 + (seconds ?? 0)) / 86400;
}

// What stands before the model, by its kind: from a row to the next, see Stage in knowmore.export.
const STAGES = {
  scaled: ({shift, scale}) => (x) => x.map((value, j) => (value - shift[j]) / scale[j]),
  clipped: ({low, high}) => (x) => x.map((value) => Math.max(Math.min(value, high), low)),
  projected: ({shift, columns}) => (x) => columns.map(
    (column) => column.reduce((sum, w, j) => sum + (x[j] - shift[j]) * w, 0)),
  encoded: ({columns}) => (cells) => columns.flatMap(({kind, levels, fill, blank}, j) => {
    const cell = cells[j], isGap = cell === null || Number.isNaN(cell);
    const values = kind === "category" ? levels.map((level) => Number(level === cell))
                                       : [isGap ? fill : cell];
    return blank ? [...values, Number(isGap)] : values;
  }),
  filled: ({kept, values}) => (x) => kept.map((j, i) => Number.isNaN(x[j]) ? values[i] : x[j]),
};

function predictor(model) {
  const {columns, fields, classes, kernel, n, d, noise, temperature, vanished} = model;
  const M = model.width, stages = model.before.map((stage) => STAGES[stage.kind](stage));
  const [X, A, b, squares] = ["X", "A", "b", "squares"].map((name) => numbers(model[name]));
  const R = model.R === null ? null : numbers(model.R);

  // -- kernels: kappa(x, X), (n,), and kappa(x, x) ------------------------------------------------

  function between({kind, numbers: c, parts}, x) {
    if (kind === "sum" || kind === "product")
      return accumulated(kind, parts.map((part) => between(part, x)));
    const k = new Float64Array(n);
    if (kind === "constant") return k.fill(c[0]);
    if (kind === "white") return k;
    const order = ORDERS[kind];
    for (let i = 0, at = 0; i < n; i++, at += d) {
      let s = 0;
      if (kind === "dot") {
        for (let j = 0; j < d; j++) s += X[at + j] * x[j];
        k[i] = s + c[0];
      } else if (kind === "intersection") {
        for (let j = 0; j < d; j++) s += Math.min(X[at + j], x[j]);
        k[i] = s;
      } else if (kind === "chi-squared" || kind === "city-block") {
        for (let j = 0; j < d; j++) {
          const apart = Math.abs(X[at + j] - x[j]);
          if (apart > 0) s += kind === "city-block" ? apart : apart * apart / (X[at + j] + x[j]);
        }
        k[i] = Math.exp(-c[0] * s);
      } else {
        for (let j = 0; j < d; j++) {
          const apart = (X[at + j] - x[j]) / (c.length > 1 ? c[j] : c[0]);
          s += apart * apart;
        }
        if (kind === "rbf") {
          k[i] = Math.exp(-s / 2);
        } else {
          const z = Math.min(Math.sqrt(2 * order * s), vanished);
          const polynomial = order === 0.5 ? 1 : order === 1.5 ? 1 + z : 1 + z + z * z / 3;
          k[i] = polynomial * Math.exp(-z);
        }
      }
    }
    return k;
  }

  function itself({kind, numbers: c, parts}, x) {
    if (kind === "sum") return parts.reduce((all, part) => all + itself(part, x), 0);
    if (kind === "product") return parts.reduce((all, part) => all * itself(part, x), 1);
    if (kind === "constant" || kind === "white") return c[0];
    if (kind === "dot") return x.reduce((all, one) => all + one * one, 0) + c[0];
    return kind === "intersection" ? x.reduce((all, one) => all + one, 0) : 1;
  }

  const histograms = ["intersection", "chi-squared", "city-block"];
  const counts = (node) => histograms.includes(node.kind) || node.parts.some(counts);
  const onlyCounts = kernel !== null && stages.length === 0 && counts(kernel);

  // -- scores, variance, probabilities ------------------------------------------------------------

  function scored(k) {
    const scores = Array.from(b);
    for (let i = 0; i < k.length; i++)
      for (let c = 0; c < M; c++) scores[c] += k[i] * A[i * M + c];
    return scores;
  }

  // |R k|^2; of the triangle R the rows are stored one after the other, without the zeros.
  function quadratic(k) {
    let q = 0;
    for (let i = 0, at = 0; i < k.length; i++) {
      let h = 0;
      const [first, last] = model.lower ? [0, i] : [i, k.length - 1];
      for (let j = first; j <= last; j++) h += R[at++] * k[j];
      q += h * h;
    }
    return q;
  }

  function probabilities(scores, variance) {
    const most = Math.max(...scores), size = Math.sqrt(1 + variance);
    const chances = scores.map((score) => Math.exp((score - most) / size / temperature));
    const total = chances.reduce((all, one) => all + one, 0);
    return chances.map((one) => one / total);
  }

  // -- rows of no class ---------------------------------------------------------------------------

  const judge = model.judge && {...model.judge, S: numbers(model.judge.S), Q: numbers(model.judge.Q)};

  // See ExportedJudge in knowmore.export.
  function isUnknown(x, k, variance) {
    const {S, Q, weights, threshold, largest, least, empty} = judge, own = itself(kernel, x);
    const alone = (least !== null && own < least && (k.every((one) => one === 0) || k.every((one) => one === own)))
      || (empty && x.every((one) => one === 0));
    const m = new Float64Array(M), projected = new Float64Array(M);
    if (!alone)
      for (let i = 0; i < n; i++)
        for (let c = 0; c < M; c++) m[c] += k[i] * S[i * M + c];
    for (let r = 0; r < M; r++)
      for (let c = 0; c < M; c++) projected[r] += Q[r * M + c] * m[c];
    let nearest = Infinity;
    for (let c = 0; c < M; c++) {
      let square = 0;
      for (let r = 0; r < M; r++) square += (projected[r] - Q[r * M + c]) ** 2;
      nearest = Math.min(nearest, square);
    }
    const parts = [Math.sqrt(nearest), -Math.hypot(...m), Math.sqrt(alone ? largest : variance)];
    return parts.reduce((all, part, i) => all + part * weights[i], 0) > threshold;
  }

  // -- rows ---------------------------------------------------------------------------------------

  const isBlank = (value) => value === null || value === undefined || Number.isNaN(value)
    || (typeof value === "string" && model.blanks.includes(value.trim()));

  // A cell as a number, NaN for a blank; or of a category as text, null for a blank.
  function cell(value, {kind, blank, form}, where) {
    if (blank && isBlank(value)) return kind === "category" ? null : NaN;
    if (kind === "category" && ["string", "number", "boolean"].includes(typeof value))
      return String(value).trim();
    if (kind === "truth") {
      const found = ["false", "true"].indexOf(String(value).trim().toLowerCase());
      if (found < 0) throw new Error(`${where}: "${value}" is neither true nor false.`);
      return found;
    }
    if (kind === "date") {
      const found = days(String(value).trim(), form);
      if (Number.isNaN(found))
        throw new Error(`${where}: "${value}" is not a date. Write it as 2024-03-01.`);
      return found;
    }
    if (kind === "category" || typeof value !== "number" || !Number.isFinite(value))
      throw new Error(`${where}: "${value}" is not ${kind === "category" ? "text" : "a finite number"}.`);
    return value;
  }

  function checked(row, number) {
    const values = Array.isArray(row) || ArrayBuffer.isView(row) ? Array.from(row)
      : columns.map((name) => {
        if (row === null || typeof row !== "object" || !Object.hasOwn(row, name))
          throw new Error(`Row ${number} has no "${name}". Give a value for each feature.`);
        return row[name];
      });
    if (values.length !== columns.length)
      throw new Error(`Row ${number} has ${values.length} values, but the model has ` +
                      `${columns.length} features.`);
    return values.map((value, j) => {
      const where = `Row ${number}, "${columns[j]}"`, found = cell(value, fields[j], where);
      if (onlyCounts && found < 0)
        throw new Error(`${where}: ${value} is negative, but this model compares counts.`);
      return found;
    });
  }

  function one(row, number) {
    const x = stages.reduce((values, stage) => stage(values), checked(row, number));
    const k = kernel === null ? x.map((value, j) => value - X[j]) : between(kernel, x);
    const scores = scored(k);
    let variance = null;
    if (R !== null) {
      const q = quadratic(k);
      variance = (kernel === null ? q : Math.max(itself(kernel, x) - q, 0)) + noise;
    }
    if (!scores.every(Number.isFinite) || (variance !== null && !Number.isFinite(variance)))
      throw new Error(`The answer to row ${number} is beyond the range of numbers: scale it.`);
    if (classes === null) {
      const std = Array.from(squares, (square) => Math.sqrt(variance * square));
      return model.flat ? {value: scores[0], std: std[0]} : {value: scores, std};
    }
    const best = scores.indexOf(Math.max(...scores));
    const chances = probabilities(scores, variance ?? 0);
    const answer = {label: classes[best], probability: chances[best]};
    if (variance !== null) answer.std = Math.sqrt(variance);
    if (judge) answer.unknown = isUnknown(x, k, variance);
    return {...answer, score: scores[best], scores, probabilities: chances};
  }

  // rows: each an array of values, or an object of values by the names of columns: numbers, text for
  // a category or a date, true or false, null or NaN where a column may be blank.
  // A classifier answers {label, probability, std, unknown, score, scores, probabilities} for each row
  // (a least-squares SVM has no std, and only a GPClassifier tells what is unknown), a regressor
  // {value, std}.
  return (rows) => {
    if (!Array.isArray(rows)) throw new Error("Give an array of rows.");
    return rows.map(one);
  };
}
