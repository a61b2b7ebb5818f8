// The page works without this: it shows results in place, and puts names where the cursor is.
"use strict";

const form = document.getElementById("query");
const editor = document.getElementById("editor");
const outcome = document.getElementById("outcome");
const format = document.getElementById("format");
let running = null;

// Rows beyond this are for programs, not for a page.
const ROWS_SHOWN = 1000;

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function cell(value, isNumber) {
  if (value === null || value === undefined) return element("td", "");
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  const made = element("td", undefined, isNumber ? "n" : "");
  if (/^https?:\/\/[^\s]+$/.test(text)) {
    const link = element("a", text);
    link.href = text;
    link.rel = "noopener noreferrer";
    made.append(link);
  } else {
    made.textContent = text;
  }
  return made;
}

const NUMBERS = new Set(["unsignedByte", "short", "int", "long", "float", "double"]);

function table(result) {
  const made = element("table", undefined, "result");
  const head = made.createTHead().insertRow();
  const isNumber = result.metadata.map((column) => NUMBERS.has(column.datatype) && !column.arraysize);
  for (const column of result.metadata) {
    const title = element("th", column.name);
    title.title = [column.description, column.ucd].filter(Boolean).join("\n");
    if (column.unit) title.append(element("small", column.unit));
    head.append(title);
  }
  const body = made.createTBody();
  for (const row of result.data.slice(0, ROWS_SHOWN)) {
    const line = body.insertRow();
    row.forEach((value, at) => line.append(cell(value, isNumber[at])));
  }
  return made;
}

function tell(result, elapsed) {
  const shown = Math.min(result.data.length, ROWS_SHOWN);
  let text = `${result.data.length} rows in ${elapsed} ms`;
  if (shown < result.data.length) text += `; the first ${shown} are shown`;
  if (result.overflow) text += "; more were withheld";
  outcome.replaceChildren(element("p", text), table(result));
  if (result.error) outcome.prepend(element("pre", result.error));
}

async function run() {
  if (running) running.abort();
  const mine = new AbortController();
  running = mine;
  outcome.replaceChildren(element("p", "The query runs ..."));
  const begun = performance.now();
  try {
    const fields = new URLSearchParams(new FormData(form));
    fields.set("RESPONSEFORMAT", "json");
    const response = await fetch(form.action, { method: "POST", body: fields, signal: mine.signal });
    const text = await response.text();
    let answer;
    try {
      answer = JSON.parse(text);
    } catch {
      answer = { message: text || response.statusText };
    }
    if (response.ok && answer.data) tell(answer, Math.round(performance.now() - begun));
    else outcome.replaceChildren(element("pre", answer.message || response.statusText));
  } catch (error) {
    if (error.name !== "AbortError") outcome.replaceChildren(element("pre", String(error)));
  }
}

form.addEventListener("submit", (event) => {
  if (format.value !== "html") return;
  event.preventDefault();
  run();
});

editor.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit();
  }
});

document.addEventListener("click", (event) => {
  const name = event.target.closest("[data-name]");
  if (name) {
    event.preventDefault();
    editor.setRangeText(name.dataset.name, editor.selectionStart, editor.selectionEnd, "end");
    editor.focus();
    return;
  }
  const example = event.target.closest("[data-query]");
  if (example) {
    event.preventDefault();
    editor.value = example.dataset.query;
    editor.focus();
  }
});
