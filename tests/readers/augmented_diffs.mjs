// Reads augmented diffs with osm-adiff-parser, and compares its result with a plain parse of the XML by saxes:
// augmented_diffs.mjs [--picture OUT.png] FILE.adiff...
//
// The packages are those of NODE_PATH. Exits with 1 if the reader finds something else than the XML says or if the
// picture has no feature, with 2 if the readers cannot be started.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const INTEGERS = new Set(["id", "ref", "version", "changeset", "uid"]);
const PAGE = fileURLToPath(new URL("augmented_diffs_page.mjs", import.meta.url));
const SIZE = { width: 1200, height: 800 };
const MOST_DIFFERENCES = 10;

/** Ends the program because it cannot do its work. */
function fail(message) {
  console.error(`tests/readers/augmented-diffs: ${message}`);
  process.exit(2);
}

/** Returns a package, or ends the program. */
function load(name) {
  try {
    return createRequire(import.meta.url)(name);
  } catch (error) {
    fail(error.message);
  }
}

/** Returns the root element of a document. An element has a name, attributes as text, and the elements in it. */
function parsePlainly(xml) {
  const root = { elements: [], text: "" };
  const open = [root];
  const parser = new saxes.SaxesParser();
  parser.on("error", ({ message }) => {
    throw new Error(`saxes: ${message}`);
  });
  parser.on("opentag", ({ name, attributes }) => {
    const element = { name, attributes, elements: [], text: "" };
    open.at(-1).elements.push(element);
    open.push(element);
  });
  parser.on("text", (text) => (open.at(-1).text += text));
  parser.on("closetag", () => open.pop());
  parser.write(xml).close();
  return root.elements[0];
}

const elementsOf = (element, name) => element.elements.filter((inner) => inner.name === name);

/** Returns attributes with the types that the reader gives them. An integer that has no exact number is a BigInt. */
function typed(attributes) {
  const entries = Object.entries(attributes).map(([name, text]) => {
    const number = Number(text);
    if (name === "lat" || name === "lon") return [name, number];
    if (INTEGERS.has(name)) return [name, String(number) === text ? number : BigInt(text)];
    return [name, name === "visible" ? text === "true" : text];
  });
  return Object.fromEntries(entries);
}

const nodesOf = (element) => elementsOf(element, "nd").map((nd) => typed(nd.attributes));

/** Returns a node, way or relation as the reader has to give it. It leaves out the bounds. */
function expectedObject(element) {
  const tags = elementsOf(element, "tag").map(({ attributes }) => [attributes.k, attributes.v]);
  const object = { type: element.name, ...typed(element.attributes), tags: Object.fromEntries(tags) };
  if (element.name === "way") object.nodes = nodesOf(element);
  if (element.name === "relation") {
    object.members = elementsOf(element, "member").map((member) => ({
      ...typed(member.attributes),
      nodes: nodesOf(member),
    }));
  }
  return object;
}

/** Returns an action as the reader has to give it. */
function expectedAction(element) {
  const { type } = element.attributes;
  const side = (name) => expectedObject(elementsOf(element, name)[0].elements[0]);
  return type === "create"
    ? { type, new: expectedObject(element.elements[0]) }
    : { type, old: side("old"), new: side("new") };
}

/** Lists the places at which two values differ. The order of keys does not count. */
function* differences(found, expected, place) {
  const areObjects = [found, expected].every((value) => typeof value === "object" && value !== null);
  if (!areObjects || Array.isArray(found) !== Array.isArray(expected)) {
    if (!Object.is(found, expected)) {
      const show = (value) => (typeof value === "bigint" ? `${value}` : `${JSON.stringify(value)}`).slice(0, 200);
      yield `${place}: the reader gives ${show(found)}, the XML says ${show(expected)}`;
    }
    return;
  }
  for (const key of new Set([...Object.keys(expected), ...Object.keys(found)])) {
    yield* differences(found[key], expected[key], `${place}.${key}`);
  }
}

/** Reads a file with both parsers. Returns what the reader gives; undefined if it is not what the XML says. */
async function compare(path) {
  const xml = readFileSync(path, "utf8");
  const root = parsePlainly(xml);
  const diff = await parseAugmentedDiff(xml).catch(({ message }) => {
    throw new Error(`osm-adiff-parser: ${message.split("\n", 1)}`);
  });
  const actions = elementsOf(root, "action");
  const note = elementsOf(root, "note")[0]?.text;
  const found = [...differences({ ...diff, actions: diff.actions.length }, { note, actions: actions.length }, path)];
  for (const [at, element] of actions.entries()) {
    if (found.length >= MOST_DIFFERENCES) break;
    const expected = expectedAction(element);
    const { type, id } = expected.new;
    found.push(...differences(diff.actions[at], expected, `${path} ${expected.type} ${type}/${id}`));
  }
  const count = (type) => `${type}=${diff.actions.filter((action) => action.type === type).length}`;
  console.log(path, count("create"), count("modify"), count("delete"));
  found.slice(0, MOST_DIFFERENCES).forEach((line) => console.error(line));
  return found.length === 0 ? diff : undefined;
}

/** Starts Chromium, calls `work` with a function that sends commands of the DevTools protocol, and ends Chromium. */
async function withBrowser(work) {
  const programs = ["chromium", "chromium-browser", "google-chrome"];
  const program = programs.find((name) => spawnSync(name, ["--version"]).status === 0);
  if (!program) fail("no Chromium on the PATH");
  const profile = mkdtempSync(join(tmpdir(), "augmented-diffs-"));
  const flags = ["--headless=new", "--no-sandbox", "--hide-scrollbars", "--remote-debugging-pipe"];
  // WebGL without a graphics card.
  flags.push("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader");
  const browser = spawn(program, [...flags, `--user-data-dir=${profile}`], {
    stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
  });
  const ended = new Promise((resolve) => browser.once("close", resolve));
  const waiting = new Map();
  let [last, session, rest] = [0, undefined, ""];
  browser.stdio[4].setEncoding("utf8").on("data", (data) => {
    const messages = (rest + data).split("\0");
    rest = messages.pop();
    for (const { id, result, error } of messages.map((message) => JSON.parse(message))) {
      const { resolve, reject } = waiting.get(id) ?? {};
      waiting.delete(id);
      error ? reject?.(new Error(error.message)) : resolve?.(result);
    }
  });
  const tell = (method, params = {}) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      browser.stdio[3].write(`${JSON.stringify({ id: last, sessionId: session, method, params })}\0`);
    });
  ended.then(() => waiting.forEach(({ reject }) => reject(new Error("Chromium has ended"))));
  try {
    const { targetId } = await tell("Target.createTarget", { url: "about:blank" });
    session = (await tell("Target.attachToTarget", { targetId, flatten: true })).sessionId;
    return await work(tell);
  } finally {
    browser.kill();
    await ended;
    rmSync(profile, { recursive: true, force: true });
  }
}

/** Draws a diff. Returns whether anything of it is visible. */
async function draw(diff, picture) {
  const bundle = await load("esbuild").build({
    entryPoints: [PAGE],
    nodePaths: [process.env.NODE_PATH],
    bundle: true,
    write: false,
    outdir: ".",
    loader: { ".css": "text" },
  });
  const [counts, image] = await withBrowser(async (tell) => {
    const evaluate = async (expression) => {
      const { result, exceptionDetails } = await tell("Runtime.evaluate", {
        expression,
        awaitPromise: true,
        returnByValue: true,
      });
      if (exceptionDetails) {
        const message = exceptionDetails.exception?.description ?? exceptionDetails.text;
        throw new Error(`maplibre-adiff-viewer: ${message.split("\n", 1)}`);
      }
      return result.value;
    };
    await tell("Emulation.setDeviceMetricsOverride", { ...SIZE, deviceScaleFactor: 1, mobile: false });
    await evaluate(bundle.outputFiles[0].text);
    const counts = await evaluate(`draw(${JSON.stringify(diff)})`);
    return [counts, (await tell("Page.captureScreenshot", { format: "png" })).data];
  });
  writeFileSync(picture, Buffer.from(image, "base64"));
  const total = Object.values(counts).reduce((sum, count) => sum + count);
  const parts = Object.entries(counts).map(([action, count]) => `${action}=${count}`);
  console.log(picture, `features=${total}`, ...parts);
  return total > 0;
}

let given;
try {
  given = parseArgs({ options: { picture: { type: "string" } }, allowPositionals: true });
} catch (error) {
  fail(error.message);
}
const { positionals: paths, values } = given;
if (paths.length === 0) fail("no FILE.adiff is given");
if (values.picture && paths.length > 1) fail("--picture draws one FILE.adiff");
const parseAugmentedDiff = load("@osmcha/osm-adiff-parser");
const saxes = load("saxes");
let isEqual = true;
for (const path of paths) {
  try {
    const diff = await compare(path);
    isEqual &&= diff !== undefined;
    if (values.picture && diff) isEqual &&= await draw(diff, values.picture);
  } catch (error) {
    console.error(`${path} error: ${error.message}`);
    isEqual = false;
  }
}
process.exit(isEqual ? 0 : 1);
