'use strict';
/* function commented() { */
const brace = '}{';
const pattern = /[/}"]{/g;
const inc = (x) => x + 1;

const load = async (
  path,
  { encoding = 'utf8' } = {},
) => {
  const text = await read(path);
  return text.split(/\n/).map((line) => {
    return line.trim();
  });
};

export default class Shop extends Base {
  #items = [];
  static count = 0;

  constructor(name) {
    super(name);
  }

  get size() { return this.#items.length; }

  async *all() {
    for (const item of this.#items) {
      yield item;
    }
  }

  handle = (event) => {
    if (event) {
      return `${event.name} } {
      function no() {`;
    }
  };
}

function outer(a, b) {
  function inner() {
    return a;
  }
  return inner() / b / 2;
}

const api = {
  list(query) {
    return query;
  },
  find: function (id) {
    return id;
  },
  remove: async (id) => {
    await id;
  },
};

describe('shop', () => {
  it('adds', function adds() {
    expect(1);
  });
});

module.exports = function () {
  return api;
};

var later = function named() {
  return 1
}
const last = 1
