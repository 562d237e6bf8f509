/* Order of search results: how-tos are above the reference, which is above benchmarks and the list of changes. Sphinx
   puts this file before its own searchtools.js (html_search_scorer). Only objName… differ from its values: an object
   of exactly this name is above a how-to that mentions it. */
const FOLDERS = {
  "how-to/": 6,
  "tutorial": 4,
  "migration/": 3,
  "project/": -12,
  "benchmarks": -12,
  "retrieval": -12,
  "agents-benchmark": -12,
};
const SECTION = 5; // all words of the query are in one title

const wordsOfQuery = () =>
  (new URLSearchParams(window.location.search).get("q") || "").toLowerCase().split(/\s+/).filter((word) => word);

/* Return the section of a page, as [title, id], whose title has all words of the query. */
const sectionWithWords = (docname) => {
  const words = wordsOfQuery();
  for (const [title, places] of Object.entries(Search._index.alltitles))
    if (words.every((word) => title.toLowerCase().includes(word)))
      for (const [file, id] of places) if (id !== null && Search._index.docnames[file] === docname) return [title, id];
  return null;
};

var Scorer = {
  score: (result) => {
    const [docname, title, anchor, descr, score, filename, kind] = result;
    const section = kind === "text" ? sectionWithWords(docname) : null;
    if (section) [result[1], result[2]] = [`${title} > ${section[0]}`, `#${section[1]}`];
    const folder = Object.keys(FOLDERS).find((name) => docname.startsWith(name));
    return score + (folder ? FOLDERS[folder] : 0) + (section ? SECTION : 0);
  },
  objNameMatch: 20,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
