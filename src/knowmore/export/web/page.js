// The page: a form for one row, a table for many.

const predict = predictor(model);
const SHOWN = 200, AT_ONCE = 50, MOST_INPUTS = 60;

// -- one row --------------------------------------------------------------------------------------

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
    fillTable("row", done.slice(0, SHOWN));
    say(`${rows.length} ${rows.length === 1 ? "row" : "rows"}` +
        (rows.length > SHOWN ? `; the first ${SHOWN} are shown, the download has all.` : "."));
    $("results").hidden = $("download").hidden = false;
  } catch (error) {
    say(error.message, true);
  }
}

async function read(file) {
  $("text").value = "";
  await answerTable(await file.text());
}

$("many").addEventListener("submit", (event) => { event.preventDefault(); answerTable($("text").value); });
$("file").addEventListener("change", () => { if ($("file").files.length) read($("file").files[0]); });
$("download").addEventListener("click", () => downloadAnswers("row", done));
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files.length) read(event.dataTransfer.files[0]);
});
$("columns").textContent = model.columns.slice(0, 30).join(", ") + (model.columns.length > 30 ? ", …" : "");
