/* Order of search results. Sphinx puts this file (html_search_scorer) into its language_data.js, which is read after its
   searchtools.js. Sphinx itself shows only pages that have all words of the query, and knows no frequencies. So `rank` takes the place of its search for words: a page may
   lack words, and a word counts more if fewer pages have it. Titles and keywords count most, and how-tos are above the
   reference, which is above benchmarks and the list of changes. A function such as ripwrap.grep is above a how-to, and an
   attribute of a class below it. */
const FOLDERS = {
  "how-to/": 6,
  "tutorial": 4,
  "migration/": 3,
  "project/": -12,
  "benchmarks": -12,
  "retrieval": -12,
  "agents-benchmark": -12,
};
const TEXT = 20; // all words of the query are in the text of a page
const TITLE = 14; // or in its title, or in that of one of its sections
const KEYWORDS = 24; // or in its keywords
const FUNCTION = 30;
const ATTRIBUTE = -5;

/* Words of readers that are not in the titles of the page that they look for. */
const KEYWORDS_OF = {
  "explanation/cancellation": "kill process leak zombie",
  "explanation/encodings": "utf-8 utf-16 latin1 unicode bytes charset",
  "explanation/security": "injection untrusted",
  "how-to/agent-frameworks": "pydantic-ai langchain openai llamaindex smolagents crewai autogen",
  "how-to/agents": "llm ai model",
  "how-to/air-gapped": "offline proxy mirror wheel",
  "how-to/blocking": "thread threads synchronous django flask",
  "how-to/code-index": "embedding embeddings semantic vector sqlite",
  "how-to/collect": "count only names paths list context",
  "how-to/data-frames": "pandas polars arrow parquet",
  "how-to/docker": "image kubernetes alpine",
  "how-to/early-exit": "break limit first",
  "how-to/frozen": "exe bundle executable",
  "how-to/items": "pdf docx s3 memory stdin",
  "how-to/mcp": "claude cursor codex editor",
  "how-to/notebooks": "jupyter ipython html",
  "how-to/places": "where source",
  "how-to/rank": "question relevance bm25 score",
  "how-to/references": "definition caller call calls symbol usage",
  "how-to/remote": "ssh podman host server",
  "how-to/replace": "undo edit sed rename",
  "how-to/scan": "secret secrets token gitleaks sarif pre-commit",
  "how-to/structure": "ast syntax tree sitter",
  "how-to/tables": "csv json sqlite export",
  "how-to/tests": "mock fake pytest fixture",
  "how-to/timeouts": "slow hang ctrl-c deadline",
  "how-to/verify": "hash checksum sha256 pin supply",
  "how-to/watch": "changes live inotify",
  "reference/command-line": "cli terminal shell exit code completion",
  "reference/extras": "pip dependencies optional",
  "reference/finding-rg": "binary download path version",
  "reference/options": "flag follow symlink case pcre2 lookahead engine config depth threads",
};

/* Other words for the same thing, with which a page may be found. */
const SYNONYMS = {
  archive: ["zip", "tar"],
  config: ["configuration"],
  configuration: ["config"],
  lookahead: ["look-around", "pcre2"],
  lookbehind: ["look-around", "pcre2"],
  lookaround: ["look-around", "pcre2"],
  backreference: ["backreferences", "pcre2"],
  directory: ["folder"],
  folder: ["directory"],
  filename: ["file", "name"],
  filenames: ["file", "name"],
  regex: ["pattern"],
  regexp: ["pattern"],
  ripgreprc: ["config", "configuration"],
  symlink: ["symbolic", "link"],
  symlinks: ["symbolic", "link"],
};

const stems = (text) => {
  const stemmer = new Stemmer();
  return splitQuery(text.toLowerCase()).map((word) => stemmer.stemWord(word));
};

/* Return the documents of an index of Sphinx that have a word, or, if none has it, a longer word with it. */
const documents = (index, word) => {
  const longer = (key) => word.length > 2 && key.includes(word);
  const keys = Object.hasOwn(index, word) ? [word] : Object.keys(index).filter(longer);
  return new Set(keys.flatMap((key) => index[key]));
};

/* Return the titles of each document: sets of words, and the anchors of sections. */
const titlesOfDocuments = () => {
  const found = Search._index.docnames.map(() => []);
  for (const [title, places] of Object.entries(Search._index.alltitles))
    for (const [file, id] of places) {
      const main = Search._index.titles[file] === title;
      found[file].push({ title, words: new Set(stems(title)), anchor: main ? "" : `#${id}`, main });
    }
  return found;
};

/* Return all pages that have a word of the query, as Sphinx's performTermsSearch returns those that have all. */
const rank = (searchTerms, excludedTerms) => {
  const { terms, titleterms, docnames, filenames, titles } = Search._index;
  const asked = wordsOfQuery();
  const words = [...searchTerms].map((word) => {
    const original = asked.find((one) => stems(one)[0] === word) || word;
    const options = [word, ...(SYNONYMS[original] || []).flatMap(stems)];
    const found = new Set(options.flatMap((one) => [...documents(terms, one), ...documents(titleterms, one)]));
    return { options, found, weight: Math.log(1 + docnames.length / (1 + found.size)) };
  });
  // Options are written with underscores: "ignore case" is ignore_case.
  const name = asked.length > 1 ? stems(asked.join("_"))[0] : "";
  const excluded = [...excludedTerms].map((word) => documents(terms, word));
  const all = words.reduce((sum, word) => sum + word.weight, 0);
  const sections = titlesOfDocuments();
  const share = (has) => words.reduce((sum, word) => sum + (word.options.some(has) ? word.weight : 0), 0) / all;
  return docnames.flatMap((docname, file) => {
    const text = words.reduce((sum, word) => sum + (word.found.has(file) ? word.weight : 0), 0) / all;
    if (!text || excluded.some((files) => files.has(file))) return [];
    const main = sections[file].find((one) => one.main)?.words || new Set();
    const keywords = new Set(stems(KEYWORDS_OF[docname] || ""));
    const named = docname === "reference/options" && Object.hasOwn(terms, name) ? 1 : 0;
    const scored = sections[file].map((one) => {
      const alone = share((word) => one.words.has(word)) * (one.main ? 1 : 0.9);
      const together = 0.85 * share((word) => one.words.has(word) || main.has(word)); // with the title of the page
      return { ...one, score: Math.max(alone, together) / (1 + 0.01 * one.words.size) };
    });
    const best = scored.reduce((one, other) => (other.score > one.score ? other : one), { score: 0, anchor: "", main: true });
    const known = share((word) => keywords.has(word));
    const score = TEXT * text * text + TITLE * Math.max(best.score, named) + KEYWORDS * Math.max(known, named);
    const shown = best.main || !best.anchor ? titles[file] : `${titles[file]} > ${best.title}`;
    return [[docname, shown, best.main ? "" : best.anchor, null, score, filenames[file], "text"]];
  });
};

const wordsOfQuery = () =>
  splitQuery((new URLSearchParams(window.location.search).get("q") || "").toLowerCase()).filter((word) => word);

Search.performTermsSearch = rank;

var Scorer = {
  score: (result) => {
    const [docname, title, anchor, descr, score, filename, kind] = result;
    const folder = Object.keys(FOLDERS).find((name) => docname.startsWith(name));
    const depth = title.split(".").length;
    const object = kind === "object" ? (depth > 2 ? ATTRIBUTE : FUNCTION) : 0;
    return score + object + (folder ? FOLDERS[folder] : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
