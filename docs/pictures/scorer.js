/* Order of search results: how-tos are above the reference, which is above benchmarks and the list of changes. A function
   such as ripwrap.grep is above a how-to, and an attribute of a class below it. Sphinx puts this file before its own
   searchtools.js (html_search_scorer); the numbers at the end are those of Sphinx. */
const FOLDERS = {
  "how-to/": 6,
  "tutorial": 4,
  "migration/": 3,
  "project/": -12,
  "benchmarks": -12,
  "retrieval": -12,
  "agents-benchmark": -12,
};
const TITLE = 8; // all words of the query are in the title of a page
const SECTION = 5; // or in the title of a section
const FUNCTION = 12;
const ATTRIBUTE = -5;

const wordsOfQuery = () =>
  (new URLSearchParams(window.location.search).get("q") || "").toLowerCase().split(/\s+/).filter((word) => word);

const hasWords = (title) => wordsOfQuery().every((word) => title.toLowerCase().includes(word));

/* Return the section of a page, as [title, id], whose title has all words of the query. */
const sectionWithWords = (docname) => {
  for (const [title, places] of Object.entries(Search._index.alltitles))
    if (hasWords(title))
      for (const [file, id] of places) if (id !== null && Search._index.docnames[file] === docname) return [title, id];
  return null;
};

var Scorer = {
  score: (result) => {
    const [docname, title, anchor, descr, score, filename, kind] = result;
    const named = kind === "text" && hasWords(title);
    const section = kind === "text" && !named ? sectionWithWords(docname) : null;
    if (section) [result[1], result[2]] = [`${title} > ${section[0]}`, `#${section[1]}`];
    const folder = Object.keys(FOLDERS).find((name) => docname.startsWith(name));
    const depth = title.split(".").length;
    const object = kind === "object" ? (depth > 2 ? ATTRIBUTE : FUNCTION) : 0;
    return score + object + (folder ? FOLDERS[folder] : 0) + (named ? TITLE : section ? SECTION : 0);
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
