// The page: a form for one row, a table for many.

const model = JSON.parse(document.getElementById("model").textContent);
const predict = predictor(model);
const $ = (id) => document.getElementById(id);
const SHOWN = 200, AT_ONCE = 50, MOST_INPUTS = 60;
const isClassifier = model.classes !== null, hasSpread = model.R !== null;

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const short = (value) => typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value);

// -- one row --------------------------------------------------------------------------------------

function answer(result) {
  const lines = [];
  if (isClassifier) {
    lines.push(element("p", String(result.label), {class: "label"}));
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

function parsed(text) {
  return text.trim() === "" ? NaN : Number(text.trim());
}

// The text of column j as predict takes it: null for a blank, a number, or the text itself.
function valueOf(text, j, number = parsed) {
  const {kind, blank} = model.fields[j];
  if (blank && model.blanks.includes(text.trim())) return null;
  return kind === "number" ? number(text) : text;
}

const isBad = (value) => typeof value === "number" && !Number.isFinite(value);

function answerForm() {
  const inputs = [...$("fields").querySelectorAll("input, select")];
  const values = inputs.map((input, j) => valueOf(input.value, j));
  inputs.forEach((input, j) => input.setAttribute("aria-invalid", String(isBad(values[j]))));
  try {
    const bad = values.findIndex(isBad);
    if (bad >= 0) throw new Error(`"${model.columns[bad]}": "${inputs[bad].value}" is not a number.`);
    $("answer").replaceChildren(...answer(predict([values])[0]));
  } catch (error) {
    $("answer").replaceChildren(element("p", error.message, {class: "problem"}));
  }
}

if (model.columns.length <= MOST_INPUTS) {
  model.columns.forEach((name, j) => {
    const field = element("div"), id = `field-${j}`;
    field.append(element("label", name, {for: id}));
    const {kind, choices} = model.fields[j], start = model.start[j] === null ? "" : short(model.start[j]);
    const named = kind === "truth" ? ["true", "false"] : choices;
    if (named === null) {
      const inputmode = kind === "number" ? "decimal" : "text", placeholder = kind === "date" ? "2024-03-01" : "";
      field.append(element("input", "", {id, inputmode, placeholder, autocomplete: "off", value: start}));
    } else {
      const select = element("select", "", {id});
      for (const choice of ["", ...named])
        select.append(element("option", choice, {value: choice}));
      select.value = start;
      field.append(select);
    }
    $("fields").append(field);
  });
  $("one").addEventListener("input", answerForm);
  $("one").addEventListener("submit", (event) => { event.preventDefault(); answerForm(); });
  answerForm();
} else {
  $("single").hidden = true;
}

// -- many rows ------------------------------------------------------------------------------------

// The cells of CSV text; quoted cells may contain separators, quotes ("") and line breaks.
function cells(text) {
  const head = text.slice(0, text.search(/[\r\n]|$/));
  const separator = ["\t", ";", ","].find((one) => head.includes(one)) ?? ",";
  const lines = [];
  let line = [], cell = "", quoted = false, any = false;
  const endCell = () => { line.push(cell); cell = ""; };
  const endLine = () => { endCell(); if (any) lines.push(line); line = []; any = false; };
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') { cell += '"'; i++; }
      else quoted = false;
    } else if (c === '"' && cell === "") { quoted = true; any = true; }
    else if (c === separator) { endCell(); any = true; }
    else if (c === "\n") endLine();
    else if (c !== "\r") { cell += c; any ||= c.trim() !== ""; }
  }
  endLine();
  return {lines, decimalComma: separator !== ","};
}

// A spreadsheet runs text that begins like this; with an apostrophe before it, it is text.
const FORMULA = /^'*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n]/, NUMBER = /^[+-]?[0-9]+\.?[0-9]*(e[+-]?[0-9]+)?$/i;
const writtenCell = (cell) => typeof cell === "string" && FORMULA.test(cell) && !NUMBER.test(cell) ? `'${cell}` : String(cell);
const readCell = (cell) => cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell;

// The rows of CSV text as numbers, and a name for each: its cell in a column "id", or its number.
function table(text) {
  const {lines, decimalComma} = cells(text.replace(/^\uFEFF/, ""));
  if (!lines.length) throw new Error("There is nothing to read. Paste rows of numbers.");
  const number = (cell) => parsed(decimalComma ? cell.replace(",", ".") : cell);
  const first = lines[0].map((cell) => readCell(cell.trim()));
  const read = (line, j, column) => valueOf(readCell(line[j]), column, number);
  // Where other columns than those of numbers are, words do not tell the first line from the rest.
  const words = model.fields.some((field) => field.kind !== "number");
  const named = words || !first.every((cell) => Number.isFinite(number(cell)));
  const at = named ? model.columns.map((name) => first.indexOf(name.trim())) : model.columns.map((_, j) => j);
  const missing = model.columns.filter((_, j) => at[j] < 0);
  if (missing.length)
    throw new Error(`The first line does not name ${missing.slice(0, 5).map((one) => `"${one}"`).join(", ")}` +
                    `${missing.length > 5 ? ` and ${missing.length - 5} more` : ""}. Give a column for each feature.`);
  const id = named && !model.columns.includes("id") ? first.indexOf("id") : -1;
  const rows = lines.slice(named ? 1 : 0);
  rows.forEach((line, i) => {
    if (line.length !== first.length || (!named && line.length !== model.columns.length))
      throw new Error(`Row ${i + 1} has ${line.length} cells, but ${named ? first.length : model.columns.length} are expected.`);
    at.forEach((j, column) => {
      if (isBad(read(line, j, column)))
        throw new Error(`Row ${i + 1}, "${model.columns[column]}": "${line[j]}" is not a number.`);
    });
  });
  return {rows: rows.map((line) => at.map((j, column) => read(line, j, column))),
          names: rows.map((line, i) => id < 0 ? String(i + 1) : readCell(line[id]))};
}

const width = model.flat || isClassifier ? 1 : model.width;
const header = isClassifier ? ["label", "probability", hasSpread ? "std" : "score"]
  : width === 1 ? ["value", "std"]
  : [...Array(width).keys()].flatMap((c) => [`value_${c}`, `std_${c}`]);

function columnsOf(result) {
  if (isClassifier) return [result.label, result.probability, hasSpread ? result.std : result.score];
  const values = [result.value].flat(), spreads = [result.std].flat();
  return values.flatMap((value, c) => [value, spreads[c]]);
}

const quoted = (cell) => /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
let done = [], turn = 0;

function say(text, isProblem = false) {
  $("message").textContent = text;
  $("message").className = isProblem ? "problem" : "quiet";
}

async function answerTable(text) {
  const mine = ++turn;
  done = [];
  $("results").hidden = $("download").hidden = true;
  try {
    const {rows, names} = table(text);
    for (let begin = 0; begin < rows.length; begin += AT_ONCE) {
      say(`${begin} of ${rows.length} rows`);
      await new Promise((resume) => setTimeout(resume));
      if (mine !== turn) return;
      predict(rows.slice(begin, begin + AT_ONCE))
        .forEach((result, i) => done.push([names[begin + i], ...columnsOf(result)]));
    }
    const top = element("tr");
    for (const name of ["row", ...header])
      top.append(element("th", name, {scope: "col", class: ["row", "label"].includes(name) ? "" : "number"}));
    $("top").replaceChildren(top);
    $("body").replaceChildren(...done.slice(0, SHOWN).map((line) => {
      const made = element("tr");
      line.forEach((cell, j) => made.append(j ? element("td", short(cell), typeof cell === "number" ? {class: "number"} : {})
                                              : element("th", cell, {scope: "row"})));
      return made;
    }));
    say(`${rows.length} ${rows.length === 1 ? "row" : "rows"}` +
        (rows.length > SHOWN ? `; the first ${SHOWN} are shown, the download has all.` : "."));
    $("results").hidden = $("download").hidden = false;
  } catch (error) {
    say(error.message, true);
  }
}

function download() {
  const lines = [["row", ...header], ...done].map((line) => line.map((cell) => quoted(writtenCell(cell))).join(","));
  const link = element("a", "", {download: "predictions.csv"});
  link.href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], {type: "text/csv"}));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function read(file) {
  $("text").value = "";
  await answerTable(await file.text());
}

$("many").addEventListener("submit", (event) => { event.preventDefault(); answerTable($("text").value); });
$("file").addEventListener("change", () => { if ($("file").files.length) read($("file").files[0]); });
$("download").addEventListener("click", download);
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files.length) read(event.dataTransfer.files[0]);
});
$("columns").textContent = model.columns.slice(0, 30).join(", ") + (model.columns.length > 30 ? ", …" : "");
