// What the pages share: answers as people read them, as tables, and as CSV.

const model = JSON.parse(document.getElementById("model").textContent);
const $ = (id) => document.getElementById(id);
const isClassifier = model.classes !== null, hasSpread = model.R !== null;

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const short = (value) => typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value);

function answer(result) {
  const lines = [];
  if (isClassifier) {
    lines.push(element("p", result.unknown ? "unknown" : String(result.label), {class: result.unknown ? "label unknown" : "label"}));
    if (result.unknown) lines.push(element("p", `It looks like no class that was learnt; most like ${result.label}.`));
    const shares = result.probabilities;
    const order = shares.map((_, c) => c).sort((a, b) => shares[b] - shares[a]).slice(0, 8);
    const list = element("ul");
    for (const c of order) {
      const item = element("li"), name = String(model.classes[c]);
      const figure = `${(100 * shares[c]).toFixed(1)} %`;
      item.append(element("span", name));
      item.append(element("meter", figure, {min: 0, max: 1, value: shares[c], "aria-label": name}));
      item.append(element("span", figure, {class: "number"}));
      list.append(item);
    }
    lines.push(list);
    if (hasSpread) lines.push(element("p", `Standard deviation of a score: ${short(result.std)}`, {class: "quiet"}));
  } else {
    const values = [result.value].flat(), spreads = [result.std].flat();
    values.forEach((value, c) => lines.push(element("p", `${short(value)} ± ${short(spreads[c])}`, {class: "label"})));
    lines.push(element("p", "The value and its standard deviation.", {class: "quiet"}));
  }
  return lines;
}

// A spreadsheet runs text that begins like this; with an apostrophe before it, it is text.
const FORMULA = /^'*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n]/, NUMBER = /^[+-]?[0-9]+\.?[0-9]*(e[+-]?[0-9]+)?$/i;
const writtenCell = (cell) => typeof cell === "string" && FORMULA.test(cell) && !NUMBER.test(cell) ? `'${cell}` : String(cell);
const readCell = (cell) => cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell;

const width = model.flat || isClassifier ? 1 : model.width;
const tells = Boolean(model.judge);
const header = isClassifier ? ["label", "probability", hasSpread ? "std" : "score", ...tells ? ["unknown"] : []]
  : width === 1 ? ["value", "std"]
  : [...Array(width).keys()].flatMap((c) => [`value_${c}`, `std_${c}`]);

function columnsOf(result) {
  if (isClassifier)
    return [result.label, result.probability, hasSpread ? result.std : result.score, ...tells ? [result.unknown] : []];
  const values = [result.value].flat(), spreads = [result.std].flat();
  return values.flatMap((value, c) => [value, spreads[c]]);
}

const quoted = (cell) => /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;

// A class, or that it is unknown and what it looks like.
function labelCell(label, unknown) {
  const cell = element("td", "", {"data-name": "label"}), said = element("span", unknown ? "" : short(label));
  if (unknown) said.append(element("span", "unknown", {class: "unknown"}), ` (looks like ${short(label)})`);
  cell.append(said);
  return cell;
}

// A table of answers, each behind a name; `before` gives what stands before a name. A line with a
// `problem` has that instead of an answer.
function fillTable(what, done, before = () => []) {
  const names = header.filter((name) => name !== "unknown"), top = element("tr");
  for (const name of [what, ...names])
    top.append(element("th", name, {scope: "col", class: [what, "label"].includes(name) ? "" : "number"}));
  $("top").replaceChildren(top);
  $("body").replaceChildren(...done.map((line, i) => {
    const made = element("tr"), named = element("th", line[0], {scope: "row"});
    named.prepend(...before(i));
    made.append(named);
    if (line.problem) made.append(element("td", line.problem, {class: "problem", colspan: names.length}));
    else names.forEach((name, j) => made.append(name === "label" ? labelCell(line[1], tells && line.at(-1))
      : element("td", short(line[j + 1]), {class: "number", "data-name": name})));
    return made;
  }));
}

// Give a file of answers, each behind a name; `what` the names are of.
function downloadAnswers(what, done) {
  const lines = [[what, ...header], ...done].map((line) => line.map((cell) => quoted(writtenCell(cell))).join(","));
  const link = element("a", "", {download: "predictions.csv"});
  link.href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], {type: "text/csv"}));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
