// Questions to the server. An answer is an object; a refusal is an Error whose message is a sentence.

const token = new URLSearchParams(location.search).get("token") ?? "";

export const byId = (id) => document.getElementById(id);

async function send(method, path, body, type) {
  const headers = { "X-Orbitune-Token": token };
  if (type) headers["Content-Type"] = type;
  let response, answer;
  try {
    response = await fetch(path, { method, headers, body });
    answer = await response.json();
  } catch {
    throw new Error("The server does not answer. Is “orbitune app” still running?");
  }
  if (!response.ok) throw new Error(sentence(answer.error));
  return answer;
}

export const get = (path) => send("GET", path);
export const post = (path, values = {}) => send("POST", path, JSON.stringify(values), "application/json");
export const postFile = (path, file) => send("POST", path, file, "application/octet-stream");

// Larger files would be refused anyway, after a long wait.
export function checkSize(file, limit) {
  const megabytes = (bytes) => `${(bytes / 2 ** 20).toFixed(0)} MB`;
  if (file.size > limit) throw new Error(`${file.name} is too large: ${megabytes(file.size)}, at most ${megabytes(limit)} are taken.`);
}

// Do something that may fail, and show why in an element; true if it went well.
export async function attempt(place, action) {
  try {
    await action();
    place.hidden = true;
    return true;
  } catch (error) {
    place.textContent = error.message;
    place.hidden = false;
    return false;
  }
}

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function sentence(text) {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(begun) ? begun : begun + ".";
}
