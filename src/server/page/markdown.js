// ---- Markdown, as much as answers need. Elements are made one by one: the model's text is never parsed as HTML.
//
// A text becomes a list of blocks, {kind, source, ...}; draw() makes one element of each. `open` says that more of the text
// is still to come: then what is not closed yet at its end is drawn as if it were, so that a stream does not jump.
const MAX_NESTING = 8;  // of lists and quotes; deeper ones are plain text
const MAX_OPEN_MARKS = 32;  // stars and so on that wait for their partner in one paragraph
const FENCE = /^( *)(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ *(#{1,6}) +(.*)$/;
const RULE = /^ *([-*_])(?: *\1){2,} *$/;
const QUOTE = /^ *> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:( +)(.*)|$)/;
const TABLE_RULE = /^\|?(?: *:?-+:? *\|)+(?: *:?-+:? *)?$|^\| *:?-+:? *$/;
const LINK = /(!?)\[([^[\]\n]{1,500})\]\(<?(https?:\/\/[^\s()<>]{1,2000}(?:\([^\s()<>]{0,200}\)[^\s()<>]{0,500}){0,8})>?(?: "[^"\n]{0,500}")?\)/y;
const PARTIAL_LINK = /!?\[([^[\]\n]{1,500})\](?:\([^\s()]{0,2000})?$/y;
const ADDRESS = /https?:\/\/[^\s<>`]{1,2000}/y;
const MARK = /\\[\\`*_~|#>+.!-]|`+|\*+|_+|~~|!?\[|<br *\/?>|https?:\/\/|\n/gi;

const isBlank = (line) => !line.trim();
const indentOf = (line) => line.length - line.trimStart().length;
const startsBlock = (line) => FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line);
const closesFence = (line, fence) => line.trim().startsWith(fence[2]) && !line.trim().replaceAll(fence[2][0], '');
// A number of four digits after a line of text is more likely a year.
const interrupts = (line) => startsBlock(line) || /^ *(?:[-*+]|\d{1,3}[.)]) +\S/.test(line);

function blocks(lines, depth = 0) {
  const found = [];
  for (let at = 0; at < lines.length;) {
    if (isBlank(lines[at])) {
      ++at;
      continue;
    }
    const block = oneBlock(lines, at, depth);
    block.source = lines.slice(at, block.end).join('\n');
    at = block.end;
    found.push(block);
  }
  return found;
}
function oneBlock(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  const heading = HEADING.exec(line);
  if (fence) return fencedCode(lines, at, fence);
  if (heading) return {kind: 'heading', level: heading[1].length, text: heading[2].trim().replace(/ #+$/, ''), end: at + 1};
  if (RULE.test(line)) return {kind: 'rule', end: at + 1};
  if (depth < MAX_NESTING && QUOTE.test(line)) return quote(lines, at, depth);
  if (depth < MAX_NESTING && ITEM.test(line)) return list(lines, at, depth);
  if (isTable(lines, at)) return table(lines, at);
  if (depth === 0 && at === 0 && line === '<think>') return thought(lines);
  let end = at + 1;
  while (end < lines.length && !isBlank(lines[end]) && !interrupts(lines[end]) && !isTable(lines, end)) ++end;
  return {kind: 'paragraph', text: lines.slice(at, end).map((each) => each.trim()).join('\n'), end};
}
function fencedCode(lines, at, fence) {
  let end = at + 1;
  while (end < lines.length && !closesFence(lines[end], fence)) ++end;
  const code = lines.slice(at + 1, end).map((line) => line.slice(Math.min(indentOf(line), fence[1].length)));
  return {kind: 'code', language: fence[3].trim().split(/\s/)[0], code: code.join('\n'), end: Math.min(end + 1, lines.length)};
}
function quote(lines, at, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) ++end;
  return {kind: 'quote', children: blocks(lines.slice(at, end).map((line) => line.replace(QUOTE, '')), depth + 1), end};
}
function list(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  const ordered = /\d/.test(first[2]);
  const items = [];
  for (let next = at; next < lines.length;) {
    const marker = ITEM.exec(lines[next]);
    const indent = indentOf(lines[next]) - first[1].length;
    if (!marker || indent < 0 || indent > 1 || ordered !== /\d/.test(marker[2]) || RULE.test(lines[next])) break;
    const item = itemLines(lines, next, marker);
    item.lines[0] = item.lines[0].replace(/^\[([ xX])\] /, (_, box) => (box === ' ' ? '☐ ' : '☑ '));
    items.push(blocks(item.lines, depth + 1));
    at = next = item.end;
    while (next < lines.length && isBlank(lines[next])) ++next;
  }
  return {kind: 'list', ordered, start: parseInt(first[2], 10), items, end: at};
}
// An item's lines without its marker and indentation. More generous than the standard: two spaces are enough under a number.
function itemLines(lines, at, marker) {
  const indent = marker[1].length;
  let shift = indent + marker[2].length + (marker[3]?.length <= 4 ? marker[3].length : 1);
  const taken = [marker[4] ?? ''];
  let fence = FENCE.exec(taken[0]);
  let isFirst = true;
  let end = at + 1;
  for (; end < lines.length; ++end) {
    let next = end;
    while (!fence && next < lines.length && isBlank(lines[next])) ++next;
    if (!fence) {
      const belongs = next < lines.length && indentOf(lines[next]) >= indent + 2;
      const goesOn = next === end && !isBlank(lines[end - 1]) && !interrupts(lines[end]);
      if (!belongs && !goesOn) break;
      if (belongs && isFirst) shift = Math.min(shift, indentOf(lines[next]));
      isFirst &&= !belongs;
    }
    for (; end < next; ++end) taken.push('');
    const line = lines[end].slice(Math.min(indentOf(lines[end]), shift));
    taken.push(line);
    fence = fence ? (closesFence(line, fence) ? null : fence) : FENCE.exec(line);
  }
  return {lines: taken, end};
}
function cells(line) {
  const row = line.trim().replace(/^\|/, '').replaceAll('\\|', '\0').split('|');
  if (row.length > 1 && !row.at(-1).trim()) row.pop();
  return row.map((cell) => cell.trim().replaceAll('\0', '|'));
}
function isTable(lines, at) {
  const rule = lines[at + 1]?.trim();
  return !!rule && lines[at].includes('|') && TABLE_RULE.test(rule) && cells(rule).length === cells(lines[at]).length;
}
function table(lines, at) {
  let end = at + 2;
  while (end < lines.length && lines[end].includes('|') && !isBlank(lines[end])) ++end;
  const aligned = cells(lines[at + 1]).map((rule) => (rule.endsWith(':') ? (rule.startsWith(':') ? 'center' : 'right') : 'left'));
  return {kind: 'table', aligned, rows: [lines[at], ...lines.slice(at + 2, end)].map(cells), end};
}
// What some models write before they answer; linesOf() has given the two tags lines of their own.
function thought(lines) {
  const end = lines.indexOf('</think>');
  const closed = end >= 0;
  return {kind: 'thought', closed, children: blocks(lines.slice(1, closed ? end : lines.length), 1), end: closed ? end + 1 : lines.length};
}

// ---- Blocks to elements.
const DRAW = {
  paragraph: (block, open) => inline(make('p'), block.text, open),
  heading: (block, open) => inline(make('h' + Math.min(5, block.level + 2)), block.text, open),
  rule: () => make('hr'),
  code: (block) => codeBlock(block.language, block.code),
  quote: (block, open) => drawInto(make('blockquote'), block.children, open),
  list(block, open) {
    const element = make(block.ordered ? 'ol' : 'ul');
    if (block.ordered) element.start = block.start;
    block.items.forEach((item, i) => element.append(drawInto(make('li'), item, open && i === block.items.length - 1)));
    return element;
  },
  table(block, open) {
    const scroller = make('div', 'table');
    Object.assign(scroller, {tabIndex: 0, role: 'region', ariaLabel: 'Table'});
    const body = scroller.appendChild(make('table'));
    block.rows.forEach((cellsOfRow, i) => {
      const row = body.appendChild(make('tr'));
      block.aligned.forEach((side, column) => {
        const isLast = i === block.rows.length - 1 && column === cellsOfRow.length - 1;
        const cell = inline(make(i ? 'td' : 'th'), cellsOfRow[column] ?? '', open && isLast);
        if (!i) cell.scope = 'col';
        cell.style.textAlign = side;
        row.append(cell);
      });
    });
    return scroller;
  },
  thought(block, open) {
    const element = make('details', 'thought');
    element.append(make('summary', '', block.closed ? 'Thoughts' : 'Thinking'));
    element.hidden = block.closed && !block.children.length;
    return drawInto(element, block.children, open);
  },
};
function drawInto(element, children, open) {
  children.forEach((child, i) => element.append(DRAW[child.kind](child, open && i === children.length - 1)));
  return element;
}
function codeBlock(language, code) {
  const block = make('div', 'code');
  const head = make('div', 'head');
  const pre = make('pre');
  const text = make('code', '', code);
  head.append(make('span', '', language || 'code'), copyButton(() => text.textContent));
  Object.assign(pre, {tabIndex: 0, role: 'region', ariaLabel: 'Code'});
  pre.append(text);
  block.append(head, pre);
  return block;
}

// ---- Within a paragraph. Appends `text` to `parent` and returns it.
function inline(parent, text, open) {
  const marks = [];  // those that may still get a partner: {node, mark, count}
  const noFurther = new Set();  // runs of backticks of these lengths have no partner up to the end
  let at = 0;
  MARK.lastIndex = 0;
  for (let found = MARK.exec(text); found; found = MARK.exec(text)) {
    parent.append(text.slice(at, found.index));
    at = found.index + found[0].length;
    const mark = found[0];
    if (mark[0] === '\\') parent.append(mark[1]);
    else if (mark === '\n' || /^<br/i.test(mark)) parent.append(make('br'));
    else if (mark[0] === '`') at = codeSpan(parent, text, at, mark, noFurther, open);
    else if (mark.endsWith('[') || /^http/i.test(mark)) at = address(parent, text, found.index, mark, open);
    else emphasis(parent, text, found.index, mark, marks);
    MARK.lastIndex = at;
  }
  parent.append(text.slice(at));
  if (open) {
    while (marks.length) closeAtEnd(parent, marks.pop());
  }
  return parent;
}
function codeSpan(parent, text, at, ticks, noFurther, open) {
  let end = -1;
  if (!noFurther.has(ticks.length)) {
    const runs = /`+/g;
    runs.lastIndex = at;
    for (let run = runs.exec(text); run && end < 0; run = runs.exec(text)) {
      if (run[0] === ticks) end = run.index;
    }
    if (end < 0) noFurther.add(ticks.length);
  }
  if (end < 0 && !open) {
    parent.append(ticks);
    return at;
  }
  const code = text.slice(at, end < 0 ? text.length : end).replaceAll('\n', ' ');
  parent.append(make('code', '', /^ .*\S.* $/.test(code) ? code.slice(1, -1) : code));
  return end < 0 ? text.length : end + ticks.length;
}
// [words](https://...) or https://..., and nothing else: returns where the text goes on.
function address(parent, text, at, mark, open) {
  const isBare = !mark.endsWith('[');
  const pattern = isBare ? ADDRESS : LINK;
  pattern.lastIndex = PARTIAL_LINK.lastIndex = at;
  const found = pattern.exec(text);
  const partial = open && !found && PARTIAL_LINK.exec(text);
  if (partial) {
    parent.append(partial[1]);
    return text.length;
  }
  let target = isBare ? found?.[0] : found?.[3];
  while (isBare && target && (/[.,;:!?'"*_~|\]]$/.test(target) || (target.endsWith(')') && !target.includes('(')))) target = target.slice(0, -1);
  if (!target) {
    parent.append(mark);
    return at + mark.length;
  }
  const link = make('a');
  Object.assign(link, {href: target, target: '_blank', rel: 'noopener noreferrer nofollow'});
  parent.append(link);
  if (isBare) link.textContent = target;
  else inline(link, found[2]).querySelectorAll('a').forEach((inner) => inner.replaceWith(inner.textContent));
  return at + (isBare ? target.length : found[0].length);
}
const TAG_OF = (mark, count) => (mark === '~' ? 'del' : count === 2 ? 'strong' : 'em');
function emphasis(parent, text, at, run, marks) {
  const isSpace = (character) => !character || /\s/.test(character);
  const isPunctuation = (character) => !!character && /[\p{P}\p{S}]/u.test(character);
  const before = text[at - 1];
  const after = text[at + run.length];
  // The standard asks more of stars beside punctuation, and so misses much of what is written in languages without spaces.
  const loose = run[0] !== '_' && run.length > 1;
  let opens = !isSpace(after) && (loose || !isPunctuation(after) || isSpace(before) || isPunctuation(before));
  let closes = !isSpace(before) && (loose || !isPunctuation(before) || isSpace(after) || isPunctuation(after));
  if (run[0] === '_') [opens, closes] = [opens && (!closes || isPunctuation(before)), closes && (!opens || isPunctuation(after))];
  let count = run.length;
  while (closes && count) {
    const opener = marks.findLastIndex((each) => each.mark === run[0] && (each.mark !== '~' || count > 1));
    if (opener < 0) break;
    const {node, mark, count: waiting} = marks[opener];
    const used = Math.min(count, waiting, 2);
    const element = make(TAG_OF(mark, used));
    while (node.nextSibling) element.append(node.nextSibling);
    parent.append(element);
    marks.length = opener + 1;
    count -= used;
    shorten(marks, used);
  }
  const rest = parent.appendChild(document.createTextNode(run.slice(0, count)));
  if (opens && count && marks.length < MAX_OPEN_MARKS) marks.push({node: rest, mark: run[0], count});
}
function shorten(marks, used) {
  const opener = marks.at(-1);
  opener.count -= used;
  opener.node.data = opener.node.data.slice(used);
  if (!opener.count) marks.pop().node.remove();
}
function closeAtEnd(parent, {node, mark, count}) {
  const element = make(TAG_OF(mark, Math.min(count, 2)));
  while (node.nextSibling) element.append(node.nextSibling);
  node.replaceWith(element);
}

// ---- A text on the page that may grow.
class MarkdownView {
  constructor(element) {
    this.element = element;
    this.drawn = [];  // the blocks on the page, one element each
  }
  // Blocks that are as before stay as they are, with what the reader has selected or scrolled in them.
  show(text, open = false) {
    const now = blocks(open ? settled(linesOf(text)) : linesOf(text));
    now.forEach((block, i) => { block.open = open && i === now.length - 1; });
    let same = 0;
    while (same < now.length && now[same].source === this.drawn[same]?.source && now[same].open === this.drawn[same].open) ++same;
    const [before, block] = [this.drawn[same], now[same]];
    if (before?.kind === 'code' && block?.kind === 'code' && before.language === block.language) {
      this.element.children[same++].querySelector('pre code').textContent = block.code;
    } else if (before?.kind === 'thought' && block?.kind === 'thought') {
      const thoughts = DRAW.thought(block, block.open);
      thoughts.open = this.element.children[same].open;
      this.element.children[same++].replaceWith(thoughts);
    }
    while (this.element.children.length > same) this.element.lastChild.remove();
    drawInto(this.element, now.slice(same), open);
    this.drawn = now;
  }
}
// Outside code an indentation is in spaces; within it tabs stay, as they are copied from there.
function linesOf(text) {
  if (/^\s*<think>/.test(text)) text = text.replace(/^\s*<think>/, '<think>\n').replace('</think>', '\n</think>\n');
  let fence = null;
  return text.replaceAll('\r\n', '\n').split('\n').map((line) => {
    const spaced = fence ? line : line.replace(/^[ \t]+/, (indent) => indent.replaceAll('\t', '    '));
    fence = fence ? (closesFence(line, fence) ? null : fence) : FENCE.exec(spaced);
    return spaced;
  });
}
// The lines of a text that is still coming, without an end that may become anything: "-" an item, a rule or a number, "|" a
// table, which is one by its second line.
function settled(lines) {
  const isTabular = (line) => !!line?.trimStart().startsWith('|');
  const last = lines.at(-1).replace(/^[\s>]+/, '').trimEnd();
  if (last.length < 100 && /^(?:[-*+#_~`|: ]*|\d{1,9}[.)]?|<t?h?i?n?k?|<\/t?h?i?n?k?)$/.test(last)) lines.pop();
  if (isTabular(lines.at(-1)) && !isTabular(lines.at(-2))) lines.pop();
  if (lines.length) lines.push(lines.pop().replace(/[*_~`]+$/, ''));
  return lines;
}
