// ---- Markdown. markdown-it takes a text apart into tokens; elements are made of them here, one by one: the model's text is
// never parsed as HTML.
//
// A text is a list of blocks, {tokens, start, key, open}, and each becomes one element. `open` says that more of the text is
// still to come: then what is not closed yet at its end is drawn as if it were, so that a stream does not jump.
const MAX_DEPTH = 64;  // of elements within one another; what is nested deeper stands in the last of them
const MAX_OPEN_MARKS = 32;  // stars and so on that get a partner at the end of a text that is still to come
const THOUGHT = /^\s*<think>([\s\S]*?)(?:(<\/think>)|$)/;
const TASK = /^\[([ xX])\](?:[ \t]+|$)/;
const PARTIAL_LINK = /!?\[(?!\^)([^[\]\n]{1,500})\](?:\([^\n()]{0,2000})?$/;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;

const markdown = markdownit({html: true, linkify: true});
// Without a scheme nothing is taken for an address, and of those with one http and https alone.
markdown.linkify.set({fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false});
for (const scheme of ['ftp:', 'mailto:', '//']) markdown.linkify.add(scheme, null);
// A mark behind a bare address ends it, as on GitHub; linkify itself leaves a colon in.
markdown.core.ruler.after('linkify', 'address_end', ({tokens, Token}) => {
  for (const {children} of tokens) {
    for (let i = (children?.length ?? 0) - 1; i >= 0; --i) {
      const [open, words] = [children[i], children[i + 1]];
      const behind = open.markup === 'linkify' && open.nesting > 0 ? /[:*_~'"?!.,;]+$/.exec(words.content)?.[0] : undefined;
      const href = open.attrGet('href');
      if (!behind || !href.endsWith(behind)) continue;
      open.attrSet('href', href.slice(0, -behind.length));
      words.content = words.content.slice(0, -behind.length);
      children.splice(i + 3, 0, Object.assign(new Token('text', '', 0), {content: behind}));
    }
  }
});
// The standard asks more of stars beside punctuation, and so misses much of what is written in languages without spaces.
markdown.inline.State = class extends markdown.inline.State {
  scanDelims(start, canSplitWord) {
    const found = super.scanDelims(start, canSplitWord);
    const before = this.src[start - 1] ?? ' ';
    const after = this.src[start + found.length] ?? ' ';
    if (canSplitWord && found.length > 1 && UNSPACED.test(before + after)) {
      found.can_open ||= /\S/.test(after);
      found.can_close ||= /\S/.test(before);
    }
    return found;
  }
};

// Tells whether a text has addresses or notes for what stands elsewhere in it.
const isReferredTo = (env) => !!(env.references || env.notes);
// The blocks of `text`, with where in it each starts; `env` takes up what it says of references.
function blocksOf(text, env) {
  const lines = text.split('\n');
  const tokens = [];
  markdown.block.parse(text, markdown, env, tokens);
  const references = isReferredTo(env) ? JSON.stringify([env.references, [...env.notes ?? []]]) : '';
  const found = [];
  let depth = 0;
  let line = 0;
  let start = 0;  // of that line
  for (const token of tokens) {
    if (token.type === 'reference_definition') continue;
    if (!depth) {
      while (line < token.map[0]) start += lines[line++].length + 1;
      const source = lines.slice(...token.map).join('\n');
      found.push({tokens: [], start, key: source.includes('[') ? source + '\n' + references : source});
    }
    found.at(-1).tokens.push(token);
    depth += token.nesting;
  }
  return found;
}

// ---- Tokens to elements.
const add = (parent, tag, className, text) => parent.appendChild(make(tag, className, text));
// Makes an element that shows `title` alone until it is opened; `words` takes what is folded away.
function makeFolded(title) {
  const folded = make('details', 'thought');
  return {folded, summary: add(folded, 'summary', '', title), words: add(folded, 'div')};
}
// Each function puts into `parent` the element of a token that opens something, and returns the one that takes what comes within.
const OPEN = {
  paragraph_open(parent, token) {
    if (!token.hidden) return add(parent, 'p');
    parent.className = 'tight';  // an item of a list without empty lines
    return parent;
  },
  heading_open: (parent, token) => add(parent, 'h' + Math.min(5, Number(token.tag[1]) + 2)),
  blockquote_open: (parent) => add(parent, 'blockquote'),
  bullet_list_open: (parent) => add(parent, 'ul'),
  ordered_list_open(parent, token) {
    const list = add(parent, 'ol');
    if (token.attrGet('start') !== null) list.start = token.attrGet('start');
    return list;
  },
  list_item_open: (parent) => add(parent, 'li'),
  table_open(parent) {
    const scroller = add(parent, 'div', 'table');
    Object.assign(scroller, {tabIndex: 0, role: 'group', ariaLabel: 'Table'});
    return add(scroller, 'table');
  },
  tr_open: (parent) => add(parent, 'tr'),
  th_open(parent, token) {
    const cell = add(parent, 'th');
    cell.scope = 'col';
    return align(cell, token);
  },
  td_open: (parent, token) => align(add(parent, 'td'), token),
  em_open: (parent) => add(parent, 'em'),
  strong_open: (parent) => add(parent, 'strong'),
  s_open: (parent) => add(parent, 'del'),
  link_open: (parent, token) => address(parent, token.attrGet('href'), token.attrGet('title')),
};
const LEAF = {
  hr: (parent) => add(parent, 'hr'),
  fence: (parent, token) => parent.append(codeBlock(languageOf(token), codeOf(token))),
  code_block: (parent, token) => parent.append(codeBlock('', codeOf(token))),
  html_block: (parent, token) => add(parent, 'p', 'raw', token.content.trimEnd()),
  text: (parent, token) => parent.append(token.content),
  code_inline: (parent, token) => add(parent, 'code', '', token.content),
  softbreak: (parent) => add(parent, 'br'),
  hardbreak: (parent) => add(parent, 'br'),
  html_inline(parent, token) {
    if (/^<br *\/?>$/i.test(token.content)) add(parent, 'br');
    else parent.append(token.content);
  },
  image(parent, token) {
    const words = wordsOf(token);
    if (parent.closest('a, span')) parent.append(words);  // within a link, be it one that leads nowhere
    else address(parent, token.attrGet('src'), token.attrGet('title')).append(words);
  },
};
const codeOf = (token) => token.content.replace(/\n$/, '');
const languageOf = (token) => markdown.utils.unescapeAll(token.info).trim().split(/\s/)[0];
const wordsOf = (image) => markdown.renderer.renderInlineAsText(image.children, markdown.options, {});
function align(cell, token) {
  cell.style.textAlign = /center|right/.exec(token.attrGet('style'))?.[0] ?? 'left';
  return cell;
}
// A link, if it leads to http or https. Any other says only on being pointed at where it would lead.
function address(parent, target, title) {
  const element = add(parent, /^https?:\/\//i.test(target) ? 'a' : 'span');
  if (element.matches('a')) {
    Object.assign(element, {href: target, target: '_blank', rel: 'noopener noreferrer nofollow'});
    if (title) element.title = title;
  } else if (target || title) {
    element.title = title ? `${target} "${title}"` : target;
  }
  return element;
}
function codeBlock(language, code) {
  const block = make('div', 'code');
  const head = make('div', 'head');
  const pre = make('pre');
  const text = make('code', language && 'language-' + language, code);
  drawnFrom.set(text, {language, code});
  head.append(make('span', '', language || 'code'), copyButton(() => text.textContent));
  Object.assign(pre, {tabIndex: 0, role: 'group', ariaLabel: 'Code'});
  pre.append(text);
  block.append(head, pre);
  return block;
}
function draw(parent, tokens, env, open = false) {
  const last = open ? lastInline(tokens) : -1;
  const parents = [];
  tokens.forEach((token, i) => {
    if (token.nesting < 0) {
      parent = parents.pop();
    } else if (token.nesting > 0) {
      parents.push(parent);
      if (parents.length <= MAX_DEPTH) parent = OPEN[token.type]?.(parent, token, env) ?? parent;
    } else if (token.type === 'inline') {
      const isFirstOfItem = tokens[i - 2]?.type === 'list_item_open';
      const text = isFirstOfItem ? token.content.replace(TASK, (_, box) => (box === ' ' ? '☐ ' : '☑ ')) : token.content;
      draw(parent, markdown.parseInline(i === last ? closedAtEnd(text, env) : text, env)[0].children, env);
      env.endOfOpen = 0;
    } else {
      LEAF[token.type]?.(parent, token);
    }
  });
}

// ---- Texts that are still to come.
// Returns the index in `tokens` at which the text goes on; -1 if not within a paragraph.
function lastInline(tokens) {
  return tokens.findLastIndex((token) => token.content || token.type === 'hr' || token.type === 'fence');
}
// `text` with a partner for each mark that waits for one, and without the address of a link that has not come in full. Sets
// `env.endOfOpen` to where the partners begin.
function closedAtEnd(text, env) {
  text = text.trimEnd();
  const ticks = openTicks(text);
  text = ticks ? text + ticks : text.slice(0, -3000) + text.slice(-3000).replace(PARTIAL_LINK, '$1');
  env.endOfOpen = text.length;
  const state = new markdown.inline.State(text, markdown, env, []);
  markdown.inline.tokenize(state);
  markdown.inline.ruler2.getRules('').forEach((rule) => rule(state));
  const waiting = state.delimiters.filter((mark) => mark.open && mark.end < 0).slice(-MAX_OPEN_MARKS);
  return text + waiting.reverse().map(({marker}) => (marker === 126 ? '~~' : String.fromCharCode(marker))).join('');
}
// The run of backticks in `text` that has no partner; '' if each has one.
function openTicks(text) {
  const runs = (text.match(/\\*`+/g) ?? []).map((run) => ({ticks: run.replaceAll('\\', '').length, slashes: run.indexOf('`')}));
  for (let i = 0; i < runs.length; ++i) {
    const ticks = runs[i].ticks - runs[i].slashes % 2;  // a slash takes the first away, but within code it is one of its own
    if (!ticks) continue;
    const start = i++;
    while (i < runs.length && runs[i].ticks !== ticks) ++i;
    if (i === runs.length) return '`'.repeat(runs[start].ticks - runs[start].slashes % 2);
  }
  return '';
}
// The lines without an end that may become anything: "-" an item, a rule or a number, "|" a table, which is one by its second
// line.
function unambiguous(lines) {
  const isTabular = (line) => !!line?.trimStart().startsWith('|');
  const last = lines.at(-1).replace(/^[\s>]+/, '').trimEnd();
  if (last.length < 100 && /^(?:[-*+=#_~`|: ]*|\d{1,9}[.)]?|<\/?[\w-]*)$/.test(last)) lines.pop();
  if (isTabular(lines.at(-1)) && !isTabular(lines.at(-2))) lines.pop();
  if (lines.length) lines.push(lines.pop().replace(/[*_~`\\]+$/, ''));
  return lines;
}

// ---- A text on the page that may grow.
let numViews = 0;
class MarkdownView {
  constructor(element) {
    this.element = element;
    this.id = ++numViews;
    this.drawn = [];  // the blocks on the page, one element each, behind the thoughts if there are any
    this.before = '';  // the text in front of the last block: what follows does not change how it is drawn
  }
  show(text, open = false) {
    const lines = text.replace(/\r\n?/g, '\n').replaceAll('\0', '\ufffd').split('\n');
    const known = (open ? unambiguous(lines) : lines).join('\n');
    const thought = THOUGHT.exec(known);
    if (thought) this.showThought(thought[1], !!thought[2], open);
    this.showBlocks(thought ? known.slice(thought[0].length) : known, open);
  }
  // Shows the thoughts that some models write before they answer.
  showThought(text, closed, open) {
    if (!this.thoughts) {
      this.thought = makeFolded();
      this.thoughts = new MarkdownView(this.thought.words);
      this.element.prepend(this.thought.folded);
    }
    this.thought.summary.textContent = closed ? 'Thoughts' : 'Thinking';
    this.thoughts.showBlocks(text, open && !closed);
    this.thought.folded.hidden = closed && !this.thoughts.drawn.length;
  }
  // Blocks that are as before stay as they are, and of others what is as before.
  showBlocks(text, open) {
    if (text === this.text && open === this.open) return;
    const [now, env] = this.parse(text, open);
    let same = 0;
    while (same < now.length && now[same].key === this.drawn[same]?.key && now[same].open === this.drawn[same].open) ++same;
    const first = this.thoughts ? 1 : 0;
    const fresh = make('div');
    for (const block of now.slice(same)) draw(fresh, block.tokens, env, block.open);
    redrawBlocks(this.element, first + same, [...fresh.children]);
    Object.assign(this, {text, open, drawn: now});
  }
  // The blocks of `text`, and what it says of references. Of a text that goes on, the last block alone is parsed again, unless
  // there are references, which may be to anything.
  parse(text, open) {
    let env = {open, view: this.id};
    let kept = open && this.before && text.startsWith(this.before) ? this.drawn.slice(0, -1) : [];
    let start = kept.length ? this.before.length : 0;
    let found = blocksOf(text.slice(start), env);
    const wasFormula = this.drawn.at(-1)?.tokens[0].meta?.isHalf && found[0]?.tokens[0].type !== 'formula_block';
    if (kept.length && (isReferredTo(env) || !found.length || wasFormula)) {
      [env, kept, start] = [{open, view: this.id}, [], 0];
      found = blocksOf(text, env);
    }
    found.forEach((block, i) => { block.open = open && i === found.length - 1; });
    this.before = isReferredTo(env) ? '' : text.slice(0, start + (found.at(-1)?.start ?? 0));
    return [[...kept, ...found], env];
  }
}
