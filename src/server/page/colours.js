// ---- Colours of code. A language is a list of patterns, each with the class of what it finds; text between is plain. A pattern
// begins and ends by itself, so that code that grows is looked at again from its last line on alone.
const UNTIL_END = String.raw`(?![\s\S])`;
const between = (open, close) => String.raw`${open}[\s\S]*?(?:${close}|${UNTIL_END})`;
const quoted = (quote, before = '') => String.raw`${before}${quote}(?:\\[\s\S]|[^${quote}\\\n])*${quote}?`;
const listed = (words, flags = '') => ({words: new Set(words.split(' ')), flags});
const STARRED = between(String.raw`\/\*`, String.raw`\*\/`);
const SLASHES = ['comment', String.raw`\/\/.*|` + STARRED];
const HASHES = ['comment', '#.*'];
const DASHES = ['comment', '--.*'];
const STRINGS = ['string', `${quoted('"')}|${quoted("'")}`];
const LONG_STRINGS = ['string', `${between('"""', '"""')}|${between("'''", "'''")}`];
const TEMPLATES = ['string', String.raw`${'`'}(?:\\[\s\S]|[^${'`'}\\])*${'`'}?`];
const NUMERALS = ['number', String.raw`(?<![\w.])(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+\-]?\d+)?)[a-zA-Z%]*`];
const WORDS = ['word', String.raw`[\p{L}_$][\p{L}\p{N}_$]*`];
const MARKS = ['call', String.raw`@[\w.]+`];  // decorators and annotations
const CONSTANTS = new Set('true false null nil none undefined nan inf self this super True False None NULL nullptr TRUE FALSE'.split(' '));

const C_WORDS = 'auto break case const continue default do else enum extern for goto if inline register return sizeof static struct switch typedef ' +
  'union volatile while char double float int long short signed unsigned void bool size_t';
const JS_WORDS = 'as async await break case catch class const continue debugger default delete do else export extends finally for from function get if ' +
  'import in instanceof let new of return set static switch throw try typeof var void while with yield';
const TS_WORDS = ' abstract any boolean declare enum implements interface is keyof namespace never number object private protected public readonly string type ' +
  'unknown infer satisfies';
const JAVA_WORDS = 'abstract assert boolean break byte case catch char class const continue default do double else enum extends final finally float for if ' +
  'implements import instanceof int interface long native new package private protected public record return sealed short static switch synchronized throw ' +
  'throws transient try var void volatile while yield';
const REGEXPS = ['string', String.raw`(?=\/)(?<=(?:^|[=(,:\[!&|?{};]|\breturn)[ \t]*)\/(?![*\/])(?:\\.|\[(?:\\.|[^\]\\\n]){0,100}\]|[^\/\\\n\[]){1,100}\/[a-z]*`];
const JAVASCRIPT = [SLASHES, STRINGS, TEMPLATES, REGEXPS, MARKS, NUMERALS, WORDS];
const LANGUAGES = {
  python: [listed('and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal ' +
    'not or pass raise return try while with yield int float str bool list dict set tuple bytes'),
  HASHES, ['string', `(?:[rbfuRBFU]{0,2})(?:${LONG_STRINGS[1]}|${STRINGS[1]})`], MARKS, NUMERALS, WORDS],
  javascript: [listed(JS_WORDS), ...JAVASCRIPT],
  typescript: [listed(JS_WORDS + TS_WORDS), ...JAVASCRIPT],
  java: [listed(JAVA_WORDS), SLASHES, LONG_STRINGS, STRINGS, MARKS, NUMERALS, WORDS],
  kotlin: [listed('as break by catch class companion const constructor continue data do else enum finally for fun if import in inline interface internal is ' +
    'lateinit object open operator out override package private protected public return sealed suspend throw try typealias val var when where while'),
  SLASHES, LONG_STRINGS, STRINGS, MARKS, NUMERALS, WORDS],
  c: [listed(C_WORDS), ['keyword', String.raw`^[ \t]*#[ \t]*\w+`], SLASHES, STRINGS, NUMERALS, WORDS],
  cpp: [listed(C_WORDS + ' alignas catch class co_await co_return co_yield concept consteval constexpr constinit decltype delete explicit export final friend ' +
    'mutable namespace new noexcept operator override private protected public requires static_assert static_cast template throw try typename using virtual'),
  ['keyword', String.raw`^[ \t]*#[ \t]*\w+`], SLASHES, ['string', between(String.raw`R"\(`, String.raw`\)"`)], STRINGS, NUMERALS, WORDS],
  csharp: [listed(JAVA_WORDS + ' as async await base bool checked decimal delegate event explicit fixed foreach get goto implicit in init internal is lock ' +
    'namespace nameof object operator out override params readonly ref sbyte set sizeof string struct typeof uint ulong using virtual when where'),
  SLASHES, ['string', `[@$]{0,2}(?:${STRINGS[1]})`], NUMERALS, WORDS],
  go: [listed('break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch ' +
    'type var bool byte error float32 float64 int int32 int64 rune string uint uint8 uint64 any'), SLASHES, STRINGS, TEMPLATES, NUMERALS, WORDS],
  rust: [listed('as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return static struct trait ' +
    'type unsafe use where while bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize'),
  SLASHES, ['string', `${between('r#"', '"#')}|${quoted('"', 'b?')}|` + String.raw`'(?:\\[^'\n]+|[^'\\\n])'`], ['type', String.raw`'[a-z_]\w*`], NUMERALS, WORDS],
  swift: [listed('actor as associatedtype async await break case catch class continue default defer deinit do else enum extension fallthrough fileprivate for func ' +
    'guard if import in indirect init inout internal is let mutating open operator private protocol public repeat rethrows return some static struct subscript ' +
    'switch throw throws try typealias var where while'), SLASHES, LONG_STRINGS, STRINGS, MARKS, NUMERALS, WORDS],
  php: [listed('abstract and array as break case catch class clone const continue declare default do echo else elseif empty enum extends final finally fn for ' +
    'foreach function global if implements include instanceof interface isset match namespace new or print private protected public readonly require ' +
    'require_once return static switch throw trait try unset use var while yield'), SLASHES, HASHES, STRINGS, ['keyword', String.raw`<\?(?:php)?|\?>`], NUMERALS, WORDS],
  ruby: [listed('alias and begin break case class def defined? do else elsif end ensure for if in module next not or redo rescue retry return then undef unless ' +
    'until when while yield require attr_accessor attr_reader'), HASHES, STRINGS, ['string', String.raw`(?<![:\w]):[a-z_]\w*[?!]?`], NUMERALS, WORDS],
  lua: [listed('and break do else elseif end for function goto if in local not or repeat return then until while'),
    ['comment', between(String.raw`--\[\[`, String.raw`\]\]`)], DASHES, STRINGS, NUMERALS, WORDS],
  r: [listed('break else for function if in next repeat return while library'), HASHES, STRINGS, NUMERALS, WORDS],
  scala: [listed('abstract case catch class def do else enum extends final finally for given if implicit import lazy match new object override package private ' +
    'protected return sealed then throw trait try type using val var while with yield'), SLASHES, LONG_STRINGS, STRINGS, MARKS, NUMERALS, WORDS],
  dart: [listed(JAVA_WORDS + ' async await dynamic export external factory get in is late library mixin on operator part required set show String typedef with'),
    SLASHES, LONG_STRINGS, STRINGS, MARKS, NUMERALS, WORDS],
  haskell: [listed('case class data deriving do else if import in infix infixl infixr instance let module newtype of qualified then type where'),
    ['comment', between(String.raw`\{-`, String.raw`-\}`)], DASHES, ['string', quoted('"')], NUMERALS, WORDS],
  sql: [listed('add all alter and any as asc begin between by case cast char check column commit constraint create cross database default delete desc ' +
    'distinct drop else end exists foreign from full group having if in index inner insert int integer into is join key left like limit not null ' +
    'offset on or order outer over partition primary references returning right rollback row select set table text then timestamp transaction union ' +
    'unique update using values varchar view when where with', 'i'), ['comment', '--.*|' + STARRED], STRINGS, NUMERALS, WORDS],
  bash: [listed('case do done elif else esac export fi for function if in local return select set source then until while'),
    ['comment', String.raw`(?<=^|\s)#.*`], ['string', `${quoted('"')}|` + String.raw`'[^']*'?`], ['type', String.raw`\$(?:\w+|[@#?*$!]|\{[^}\n]{0,200}\})|(?<=\s)--?[\w\-]+`],
    ['command', String.raw`(?=[\w.\/\-])(?<=^[ \t]*(?:[$>] )?|[|;&(][ \t]*|\bsudo )[\w.\/\-]+(?![\w=])`], WORDS],
  powershell: [listed('begin break catch class continue do else elseif end exit filter finally for foreach function if in param process return switch throw try ' +
    'until using while', 'i'), ['comment', between('<#', '#>')], HASHES, STRINGS, ['call', String.raw`\b[A-Z][a-z]+-[A-Z]\w+`], NUMERALS, WORDS],
  dockerfile: [listed('ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL RUN SHELL STOPSIGNAL USER VOLUME WORKDIR'), HASHES, STRINGS,
    ['type', String.raw`\$(?:\w+|\{[^}\n]{0,200}\})`], WORDS],
  makefile: [listed('define else endef endif export ifdef ifeq ifndef ifneq include'), HASHES, ['call', String.raw`^[^\s:=#][^:=#\n]*(?=:(?!=))`],
    ['type', String.raw`\$(?:[@<^*?]|[({][^)}\n]{0,200}[)}])`], WORDS],
  json: [listed(''), ['type', String.raw`"(?:\\.|[^"\\\n])*"(?=[ \t]*:)`], SLASHES, ['string', quoted('"')], NUMERALS, WORDS],
  yaml: [listed('yes no on off'), ['comment', String.raw`(?<=^|\s)#.*`], ['type', String.raw`(?=[\w."'\/\-])(?<=^[ \t]*(?:- +){0,8})[\w."'\/\-]+(?=:(?:\s|$))`], STRINGS, NUMERALS, WORDS],
  ini: [listed(''), ['comment', String.raw`^[ \t]*[;#].*|(?<=\s)#.*`], ['keyword', String.raw`^[ \t]*\[.*\]`], ['type', String.raw`^[ \t]*[\w."\-]+(?=[ \t]*=)`],
    LONG_STRINGS, STRINGS, NUMERALS, WORDS],
  xml: [listed(''), ['comment', between('<!--', '-->')], ['keyword', String.raw`<[\/?!]?[\w:.\-]+|[\/?]?>`], ['type', String.raw`(?<=\s)[\w:@.\-]+(?=[ \t]*=[ \t]*["'{])`],
    ['string', String.raw`(?=["'])(?<==[ \t]*)(?:"[^"]*"?|'[^']*'?)`], ['number', String.raw`&[#\w]+;`]],
  css: [listed(''), ['comment', STARRED], STRINGS, ['keyword', String.raw`@[\w\-]+|!important`], ['type', String.raw`(?<![\w\-])[\w\-]{1,60}(?=[ \t]*:[^{:;}\n]{1,200}(?:[;}]|$))`],
    ['number', String.raw`#[\da-fA-F]{3,8}\b|(?<![\w\-])-?\d*\.?\d+[a-z%]*`], ['call', String.raw`[.#][\w\-]+`]],
  diff: [listed(''), ['keyword', '^(?:@@.*|diff .*|index .*|--- .*|[+]{3} .*)'], ['added', '^[+].*'], ['removed', '^-.*']],
};
const OTHER_NAMES = {
  python: 'py python3 pycon', javascript: 'js jsx mjs node', typescript: 'ts tsx', kotlin: 'kt', c: 'h', cpp: 'c++ cc cxx hpp cuda', csharp: 'cs c#', go: 'golang',
  rust: 'rs', ruby: 'rb', sql: 'mysql postgresql sqlite plsql', bash: 'sh shell zsh console shell-session terminal', powershell: 'ps1 pwsh',
  dockerfile: 'docker containerfile', makefile: 'make mk', json: 'json5 jsonc jsonl', yaml: 'yml', ini: 'toml conf properties', xml: 'html svg vue xhtml rss',
  css: 'scss less sass', diff: 'patch', haskell: 'hs',
};
const NAMES = new Map(Object.keys(LANGUAGES).map((name) => [name, name]));
for (const [name, others] of Object.entries(OTHER_NAMES)) others.split(' ').forEach((other) => NAMES.set(other, name));

const lexers = new Map();  // those in use
function lexerOf(language) {
  const name = NAMES.get(language.toLowerCase());
  if (!name) return undefined;
  if (!lexers.has(name)) {
    const [{words, flags}, ...patterns] = LANGUAGES[name];
    const pattern = new RegExp(patterns.map(([, source]) => `(${source})`).join('|'), 'gmu');
    lexers.set(name, {words, ignoresCase: flags === 'i', kinds: patterns.map(([kind]) => kind), pattern});
  }
  return lexers.get(name);
}
// The class of a word that stands before `rest`; '' for plain.
function kindOfWord({words, ignoresCase}, word, code, end) {
  if (words.has(ignoresCase ? word.toLowerCase() : word)) return 'keyword';
  if (CONSTANTS.has(word)) return 'number';
  if (/^!?\(/.test(code.slice(end, end + 2))) return 'call';
  return /^[A-Z]\w*[a-z]/.test(word) ? 'type' : '';
}
const painted = new WeakMap();  // what an element of code shows: the text, its language, and its parts with where each ends
// Shows `code` in an element that this function alone fills. Parts that end before the last line stay as they are while the code
// grows, but for one that may not have ended yet.
function paint(element, language, code) {
  let {text = '', parts = [], language: before} = painted.get(element) ?? {};
  if (before !== language) {
    element.textContent = '';
    [text, parts] = ['', []];
  }
  const known = text.lastIndexOf('\n') + 1;
  const stays = code.startsWith(text.slice(0, known)) ? known : 0;
  const mayGrow = ({end, node}) => end > stays || (end === text.length && node.className);
  const again = [];  // nodes of parts that are looked at again, in their order
  while (parts.length && mayGrow(parts.at(-1))) again.unshift(parts.pop().node);
  const lastLine = code.lastIndexOf('\n') + 1;
  const put = (end, kind) => {
    const start = parts.at(-1)?.end ?? 0;
    if (start === end) return;
    if (!kind && start < lastLine && lastLine < end) put(lastLine, '');
    const words = code.slice(parts.at(-1)?.end ?? 0, end);
    let node = again[0];
    if (node && (node.className ?? '') === kind) {
      redrawText(kind ? again.shift().firstChild : again.shift(), words);
    } else {
      node = kind ? make('span', kind, words) : document.createTextNode(words);
      element.insertBefore(node, again[0] ?? null);
    }
    parts.push({end, node});
  };
  const lexer = lexerOf(language);
  if (lexer) {
    lexer.pattern.lastIndex = parts.at(-1)?.end ?? 0;
    for (let found; (found = lexer.pattern.exec(code));) {
      const end = lexer.pattern.lastIndex;
      if (!found[0]) {
        ++lexer.pattern.lastIndex;
        continue;
      }
      const kind = lexer.kinds[found.findIndex((part, i) => i && part !== undefined) - 1];
      const isWord = kind === 'word' || kind === 'command';
      const shown = isWord ? kindOfWord(lexer, found[0], code, end) || (kind === 'command' ? 'call' : '') : kind;
      if (!shown) continue;
      put(found.index, '');
      put(end, shown);
    }
  }
  put(code.length, '');
  again.forEach((node) => node.remove());
  painted.set(element, {text: code, parts, language});
}
