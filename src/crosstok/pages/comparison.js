// With a script, Tab goes from line to line and the arrow keys from token to token.  Without one,
// every token is a stop of the Tab key.
"use strict";
const tokens = [...document.querySelectorAll(".lines .token")];
const side = (token) => token.closest(".native") ? "native" : "target";
const rows = { native: [], target: [] };
const place = new Map();
for (const token of tokens) {
  const row = rows[side(token)];
  place.set(token, row.length);
  row.push(token);
  token.tabIndex = -1;
}
for (const line of document.querySelectorAll(".lines li")) line.querySelector(".token").tabIndex = 0;

function across(token) {
  // The token of the other row that has most in common with the middle of this one.
  const other = token.closest(".block").querySelectorAll(
    side(token) === "native" ? ".target .token" : ".native .token");
  const box = token.getBoundingClientRect();
  const middle = (box.left + box.right) / 2;
  return [...other].find((next) => next.getBoundingClientRect().right >= middle) ?? other[0];
}

function next(token, key) {
  const row = rows[side(token)];
  const inLine = row.filter((other) => other.closest("li") === token.closest("li"));
  switch (key) {
    case "ArrowRight": return row[place.get(token) + 1];
    case "ArrowLeft": return row[place.get(token) - 1];
    case "Home": return inLine[0];
    case "End": return inLine[inLine.length - 1];
    case "ArrowUp": return side(token) === "target" ? across(token) : undefined;
    case "ArrowDown": return side(token) === "native" ? across(token) : undefined;
    default: return undefined;
  }
}

document.addEventListener("keydown", (event) => {
  if (!place.has(event.target) || event.ctrlKey || event.altKey || event.metaKey) return;
  const goal = next(event.target, event.key);
  if (goal === undefined) return;
  event.preventDefault();
  for (const token of event.target.closest("li").querySelectorAll(".token")) token.tabIndex = -1;
  for (const token of goal.closest("li").querySelectorAll(".token")) token.tabIndex = -1;
  goal.tabIndex = 0;
  const left = event.target.closest("li");
  if (left !== goal.closest("li")) left.querySelector(".token").tabIndex = 0;
  goal.focus();
});
