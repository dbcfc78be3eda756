// The page of a model of pictures: from a disk, the clipboard or a camera.

// A worker of a page on a disk must be a plain script, without modules.
const worker = new Worker(URL.createObjectURL(new Blob([$("worker").textContent], {type: "text/javascript"})));
// Questions that wait for an answer, by number; the worker itself is number 0.
const waiting = new Map();
let asked = 0, turn = 0, stream = null, facing = "environment", done = [], thumbnails = [];

worker.onmessage = ({data: {number, problem, ...answered}}) => {
  const {resolve, reject} = waiting.get(number);
  waiting.delete(number);
  if (problem === undefined) resolve(answered);
  else reject(new Error(problem));
};
const ready = new Promise((resolve, reject) => {
  waiting.set(0, {resolve, reject});
  worker.onerror = (event) => reject(new Error(event.message || "The model could not be started."));
});
worker.postMessage({model, described: JSON.parse($("described").textContent), weights: $("weights").textContent});
$("weights").remove();

function say(text, isProblem = false) {
  $("message").textContent = text;
  $("message").className = isProblem ? "problem" : "quiet";
}

async function ask(picture) {
  await ready;
  const number = ++asked;
  return new Promise((resolve, reject) => {
    waiting.set(number, {resolve, reject});
    worker.postMessage({number, picture}, [picture.data.buffer]);
  });
}

// -- pixels ---------------------------------------------------------------------------------------

const scratch = document.createElement("canvas");

// The pixels of a picture or a frame; what is transparent is laid on white.
function pixelsOf(source, width, height) {
  scratch.width = width;
  scratch.height = height;
  const context = scratch.getContext("2d", {willReadFrequently: true});
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.drawImage(source, 0, 0);
  return {data: context.getImageData(0, 0, width, height).data, width, height};
}

// Draw the middle of a picture, as a square.
function drawMiddle(canvas, source, width, height) {
  const side = Math.min(width, height), context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(source, (width - side) / 2, (height - side) / 2, side, side, 0, 0, canvas.width, canvas.height);
}

async function decoded(file) {
  try {
    // Colours as they are in the file, as the model learnt them; upright.
    return await createImageBitmap(file, {colorSpaceConversion: "none", imageOrientation: "from-image"});
  } catch {
    throw new Error(`"${file.name}" cannot be read: it is no picture that this browser knows. Give a JPEG, PNG, WebP or GIF.`);
  }
}

// -- answers --------------------------------------------------------------------------------------

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const spoken = (result) => isClassifier ? `${result.unknown ? `unknown, looks like ${result.label}` : result.label}, ${percent(result.probability)}`
  : `${[result.value].flat().map(short).join(", ")}`;

function show({result, milliseconds}) {
  $("answer").replaceChildren(...answer(result));
  say(`Answered in ${Math.round(milliseconds)} ms.`);
}

async function answerFiles(files) {
  endCamera();
  const mine = ++turn;
  done = [];
  thumbnails = [];
  $("many").hidden = true;
  for (const [i, file] of files.entries()) {
    if (files.length > 1) say(`Picture ${i + 1} of ${files.length}…`);
    let line = [file.name];
    const small = element("canvas", "", {width: 48, height: 48, "aria-hidden": "true"});
    try {
      const bitmap = await decoded(file), {width, height} = bitmap;
      if (mine !== turn) return;
      drawMiddle($("seen"), bitmap, width, height);
      drawMiddle(small, bitmap, width, height);
      $("seen").setAttribute("aria-label", file.name);
      $("hint").hidden = true;
      const picture = pixelsOf(bitmap, width, height);
      bitmap.close();
      const answered = await ask(picture);
      if (mine !== turn) return;
      show(answered);
      $("said").textContent = spoken(answered.result);
      line = [file.name, ...columnsOf(answered.result)];
    } catch (error) {
      if (mine !== turn) return;
      // Among several it stands beside its file, and the answer to another stays.
      if (files.length === 1) {
        $("answer").replaceChildren();
        say(error.message, true);
      }
      line = [file.name, ...header.map((_, j) => j ? "" : error.message)];
      line.problem = error.message;
    }
    done.push(line);
    thumbnails.push(small);
    if (files.length > 1) {
      fillTable("picture", done, (row) => [thumbnails[row]]);
      $("many").hidden = false;
    }
  }
  const bad = done.filter((line) => line.problem).length;
  if (bad && files.length > 1) say(`${bad} of ${files.length} files cannot be read: see the table.`, true);
}

// -- the camera -----------------------------------------------------------------------------------

function endCamera() {
  stream?.getTracks().forEach((track) => track.stop());
  stream = $("video").srcObject = null;
  $("video").hidden = $("other").hidden = true;
  $("seen").hidden = false;
  $("camera").textContent = "Use the camera";
}

async function startCamera() {
  const mine = ++turn;
  endCamera();
  try {
    if (!navigator.mediaDevices) throw new Error("Open this page from a disk or over https: elsewhere browsers give no camera.");
    const opened = await navigator.mediaDevices.getUserMedia({
      audio: false, video: {facingMode: facing, width: {ideal: 640}, height: {ideal: 480}}});
    if (mine !== turn) return opened.getTracks().forEach((track) => track.stop());
    stream = $("video").srcObject = opened;
    $("seen").hidden = $("hint").hidden = true;
    $("video").hidden = false;
    $("many").hidden = true;
    $("camera").textContent = "Stop the camera";
    await $("video").play();
    const cameras = (await navigator.mediaDevices.enumerateDevices()).filter(({kind}) => kind === "videoinput");
    $("other").hidden = cameras.length < 2;
    await watch(mine);
  } catch (error) {
    if (mine !== turn) return;
    endCamera();
    const why = error.name === "NotAllowedError" ? "the browser was not allowed to use it" : error.message;
    say(`The camera cannot be used: ${why}`, true);
  }
}

// Answer one frame after the other; only a new label is read out.
async function watch(mine) {
  let last;
  while (mine === turn) {
    const {videoWidth: width, videoHeight: height} = $("video");
    if (width) {
      const answered = await ask(pixelsOf($("video"), width, height));
      if (mine !== turn) return;
      show(answered);
      const now = isClassifier ? `${answered.result.label}${answered.result.unknown ?? ""}` : "";
      if (now !== last) $("said").textContent = spoken(answered.result);
      last = now;
    }
    // None comes while the page is hidden.
    await new Promise(requestAnimationFrame);
  }
}

function stopCamera() {
  turn++;
  drawMiddle($("seen"), $("video"), $("video").videoWidth, $("video").videoHeight);
  $("seen").setAttribute("aria-label", "The last picture of the camera");
  endCamera();
}

// -- what people do -------------------------------------------------------------------------------

const pictures = (files) => [...files].filter((file) => file.size > 0);

function take(files) {
  const given = pictures(files ?? []);
  if (given.length) answerFiles(given);
}

$("file").addEventListener("change", () => { take($("file").files); $("file").value = ""; });
$("camera").addEventListener("click", () => stream ? stopCamera() : startCamera());
$("other").addEventListener("click", () => { facing = facing === "user" ? "environment" : "user"; startCamera(); });
$("download").addEventListener("click", () => downloadAnswers("picture", done));
document.addEventListener("paste", (event) => take(event.clipboardData?.files));
document.addEventListener("dragover", (event) => { event.preventDefault(); $("stage").classList.add("over"); });
document.addEventListener("dragleave", () => $("stage").classList.remove("over"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  $("stage").classList.remove("over");
  take(event.dataTransfer.files);
});
ready.then(() => { if ($("message").textContent.startsWith("Loading")) say("Ready."); }, (error) => say(error.message, true));
