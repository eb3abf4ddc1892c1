// A small query language: `label:home -done priority<=2 milk`.

export function tokenize(text) {
  const tokens = [];
  let word = '';
  let quoted = false;
  for (const c of text) {
    if (c === '"') {
      quoted = !quoted;
    } else if (c === ' ' && !quoted) {
      if (word) tokens.push(word);
      word = '';
    } else {
      word += c;
    }
  }
  if (word) tokens.push(word);
  return tokens;
}

export function parse(text) {
  return tokenize(text).map((token) => {
    const negated = token.startsWith('-');
    const body = negated ? token.slice(1) : token;
    const compare = /^(\w+)(<=|>=|<|>)(\d+)$/.exec(body);
    if (compare) {
      return { kind: 'compare', field: compare[1], op: compare[2], value: Number(compare[3]), negated };
    }
    const colon = body.indexOf(':');
    if (colon > 0) {
      return { kind: 'field', field: body.slice(0, colon), value: body.slice(colon + 1), negated };
    }
    return { kind: 'word', value: body.toLowerCase(), negated };
  });
}

function compares(left, op, right) {
  switch (op) {
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    default:
      return left >= right;
  }
}

export function matches(task, term) {
  let hit;
  if (term.kind === 'compare') {
    hit = compares(task[term.field], term.op, term.value);
  } else if (term.kind === 'field') {
    hit = term.field === 'label' ? task.labels.includes(term.value) : String(task[term.field]) === term.value;
  } else if (term.value === 'done') {
    hit = task.done;
  } else {
    hit = task.title.toLowerCase().includes(term.value);
  }
  return term.negated ? !hit : hit;
}

export function search(tasks, text) {
  const terms = parse(text);
  return tasks.filter((task) => terms.every((term) => matches(task, term)));
}

export function paginate(items, page, size) {
  const pages = Math.ceil(items.length / size);
  const current = Math.min(Math.max(page, 1), Math.max(pages, 1));
  const start = (current - 1) * size;
  return { items: items.slice(start, start + size), page: current, pages };
}
