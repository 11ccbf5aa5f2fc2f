// ---- Chats, kept in IndexedDB: one record each, {version, id, time, writer, title, name?, length, at, turns: [{role,
// content, parent, note?, tokens?, files?}]}; `name` is one that the user gave; branches.js says what `at` and `parent` are. Version 1 had neither, as each turn followed the one before. The index
// SUMMARY tells of each what a list needs, without its turns. A browser without IndexedDB keeps them until the page is left.
//
// The oldest chats make room for new ones, and of a very long chat the latest turns that are shown are kept.
const DATABASE = 'pagoda.chats';
const CHATS = 'chats';
const SUMMARY = 'summary';
const OLD_PREFIX = 'pagoda.chat.';  // of the keys in localStorage under which chats were kept before
const LEAVING = 'pagoda.leaving';  // the key in sessionStorage of what was not kept yet when the page was left
const CHAT_VERSION = 2;
const MAX_CHATS = 200;
const MAX_TURNS = 4096;  // as many messages as the server takes
const MAX_CHAT_CHARACTERS = 2_000_000;
const MAX_CHARACTERS = 20_000_000;
const MAX_NOTE_CHARACTERS = 1000;
const MAX_TITLE_CHARACTERS = 200;
const newId = () => Array.from(crypto.getRandomValues(new Uint32Array(2)), (word) => word.toString(36)).join('');
// `writers` are the names under which this page has read or written the chat.
const newChat = ({turns, at, name} = {turns: [], at: -1}) => ({id: newId(), writers: [], turns, at, name});
const titleOf = (turns) => turns.find((turn) => turn.role === 'user').content.slice(0, MAX_TITLE_CHARACTERS);
// Returns {name} of what came from outside, or {} if it has none.
const nameIn = ({name}) => (typeof name === 'string' && name.trim() ? {name: name.trim().slice(0, MAX_TITLE_CHARACTERS)} : {});
const charactersIn = ({content, files = []}) => files.reduce((sum, {text}) => sum + text.length, content.length);
const charactersOf = (turns) => turns.reduce((sum, turn) => sum + charactersIn(turn), 0);

function expect(holds, expected, got) {
  if (!holds) throw new Error(`expected ${expected}, got ${got && typeof got === 'object' ? 'object' : String(got).slice(0, 40)}`);
}
// Returns what came from outside, {version, turns, at}, as {turns, at} of today; throws what was expected and what was there.
function checkedTree({version, turns, at}) {
  expect(version === 1 || version === CHAT_VERSION, `version 1 or ${CHAT_VERSION}`, version);
  const checked = checkedTurns(turns, version);
  if (version === 1) return {turns: checked, at: checked.length - 1};
  expect(Number.isInteger(at) && at >= 0 && at < checked.length, `one of ${checked.length} turns as at`, at);
  return {turns: checked, at};
}
function checkedTurns(turns, version) {
  expect(Array.isArray(turns) && turns.length > 0 && turns.length <= MAX_TURNS, `a list of 1 to ${MAX_TURNS} turns`,
    Array.isArray(turns) ? turns.length : typeof turns);
  const checked = turns.map((turn, i) => {
    const where = ` in turn ${i + 1}`;
    expect(turn && ['user', 'assistant'].includes(turn.role), 'the role user or assistant' + where, turn?.role);
    expect(typeof turn.content === 'string' && turn.content !== '', 'a text as content' + where, typeof turn.content);
    const note = typeof turn.note === 'string' ? {note: turn.note.slice(0, MAX_NOTE_CHARACTERS)} : {};
    const tokens = Number.isSafeInteger(turn.tokens) && turn.tokens > 0 ? {tokens: turn.tokens} : {};
    const parent = version === 1 ? i - 1 : turn.parent;
    expect(Number.isInteger(parent) && parent >= -1 && parent < i, 'an earlier turn as parent' + where, parent);
    const files = turn.role === 'user' && turn.files !== undefined ? {files: checkedFiles(turn.files, where)} : {};
    return {role: turn.role, content: turn.content, parent, ...note, ...tokens, ...files};
  });
  expect(charactersOf(checked) <= MAX_CHAT_CHARACTERS, `at most ${MAX_CHAT_CHARACTERS} characters`, charactersOf(checked));
  expect(checked.some((turn) => turn.role === 'user'), 'a question', 'none');
  return checked;
}
// The chat of a record, or null if it is none.
function chatOf(record) {
  if (typeof record?.writer !== 'string') return null;
  try {
    return {id: record.id, writers: [record.writer], ...nameIn(record), ...checkedTree(record)};
  } catch { return null; }
}
const recordOf = (id, writer, {turns, at, name}, time = Date.now()) =>
  ({version: CHAT_VERSION, id, time, writer, title: name || titleOf(turns), ...(name ? {name} : {}), length: charactersOf(turns), at, turns});
// Returns the part of a chat that is kept, {turns, at}: all, or of a very long one the latest turns that are shown.
function keptOf(which) {
  const {turns, at} = which;
  if (turns.length <= MAX_TURNS && charactersOf(turns) <= MAX_CHAT_CHARACTERS) return {turns: turns.map((turn) => ({...turn})), at};
  const latest = latestTurns(shownTurns(which)).map((turn, i) => ({...turn, parent: i - 1}));
  return {turns: latest, at: latest.length - 1};
}
function latestTurns(turns) {
  let first = turns.length;
  for (let total = 0; first > 0 && turns.length - first < MAX_TURNS && (total += charactersIn(turns[first - 1])) <= MAX_CHAT_CHARACTERS;) --first;
  while (first < turns.length && turns[first].role !== 'user') ++first;
  return turns.slice(first);
}

// ---- The two places. What list() tells of each chat, latest first, is {id, time, title, length}.
const resultOf = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});
class Database {
  static async open() {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(CHATS, {keyPath: 'id'})
      .createIndex(SUMMARY, ['time', 'title', 'length']);
    const database = new Database();
    database.connection = await resultOf(request);
    // A page of a later version may change the database's form once no other has it open.
    database.connection.onversionchange = () => database.connection.close();
    await database.list();  // throws where somebody else's database has the name
    return database;
  }
  // Resolves to what the request that `act` makes has given, once it is kept.
  async within(mode, act) {
    const transaction = this.connection.transaction(CHATS, mode);
    const ended = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
    });
    const request = act(transaction.objectStore(CHATS));
    await ended;
    return request.result;
  }
  async list() {
    const found = [];
    await this.within('readonly', (chats) => {
      const request = chats.index(SUMMARY).openKeyCursor(null, 'prev');
      request.onsuccess = () => {
        const cursor = request.result;
        if (!cursor) return;
        const [time, title, length] = cursor.key;
        if (typeof time === 'number' && typeof title === 'string' && typeof length === 'number') {
          found.push({id: cursor.primaryKey, time, title: title.slice(0, MAX_TITLE_CHARACTERS), length});
        }
        cursor.continue();
      };
      return request;
    });
    return found;
  }
  get(id) { return this.within('readonly', (chats) => chats.get(id)); }
  put(record) { return this.within('readwrite', (chats) => chats.put(record)); }
  // Calls `act` with each record.
  each(act) {
    return this.within('readonly', (chats) => {
      const request = chats.openCursor();
      request.onsuccess = () => {
        if (!request.result) return;
        act(request.result.value);
        request.result.continue();
      };
      return request;
    });
  }
  remove(id) { return this.within('readwrite', (chats) => chats.delete(id)); }
}
class Memory {
  constructor() { this.records = new Map(); }
  async list() { return [...this.records.values()].sort((a, b) => b.time - a.time); }
  async get(id) { return this.records.get(id); }
  async each(act) { this.records.forEach(act); }
  async put(record) { this.records.set(record.id, record); }
  async remove(id) { this.records.delete(id); }
}

// ---- What the page asks for. All that changes something happens in the order in which it was asked.
let chatsOutlivePage = true;
const place = (async () => {
  const opened = await Database.open().catch(() => new Memory());
  chatsOutlivePage = opened instanceof Database;
  if (chatsOutlivePage) await takeOver(opened);
  return opened;
})();
const channel = new BroadcastChannel(DATABASE);  // tells other tabs that the list has changed
let changing = Promise.resolve();
const unkept = new Map();  // of each chat whose last state is not kept yet that state; it stays there if there is no room, say
function inOrder(act) {
  return changing = changing.then(act).then(() => channel.postMessage('changed'), () => { /* as unkept says */ });
}
const listedChats = async () => (await place).list().catch(() => []);
const storedChat = async (id) => chatOf(await (await place).get(id).catch(() => null));
function removeChat(id) {
  for (const chat of unkept.keys()) if (chat.id === id) unkept.delete(chat);
  return inOrder(async () => (await place).remove(id));
}
// Gives a chat `name`; an empty one is that of its first question. Its date and its writer stay.
const renameChat = (id, name) => inOrder(async () => {
  const chats = await place;
  const record = await chats.get(id);
  const chat = chatOf(record);
  if (chat) await chats.put(recordOf(id, record.writer, {...chat, name: nameIn({name}).name}, record.time));
});
// The ids of the chats that have each of the `words` in their name or a message.
async function idsWith(words) {
  const wanted = words.toLowerCase().split(/\s+/);
  const found = new Set();
  await (await place).each(({id, title, turns}) => {
    const texts = [title, ...(Array.isArray(turns) ? turns : []).map((turn) => turn?.content)];
    const text = texts.join('\n').toLowerCase();
    if (wanted.every((word) => text.includes(word))) found.add(id);
  }).catch(() => {});
  return found;
}

// Keeps `chat` as it is now. Where another tab has written it since, this one goes on in a copy of its own.
function keepChat(chat) {
  const kept = keptOf(chat);
  unkept.set(chat, kept);
  return inOrder(async () => {
    await (kept.turns.length ? put(chat, kept) : (await place).remove(chat.id));
    if (unkept.get(chat) === kept) unkept.delete(chat);
  });
}
async function put(chat, kept) {
  const chats = await place;
  const there = await chats.get(chat.id);
  if (there && !chat.writers.includes(there.writer)) chat.id = newId();
  if (there) chat.name = nameIn(there).name;  // another tab may have given it
  const record = recordOf(chat.id, newId(), {...kept, name: chat.name});
  chat.writers = [...chat.writers.slice(-8), record.writer];
  const others = (await chats.list()).filter((other) => other.id !== chat.id);
  let total = record.length + others.reduce((sum, other) => sum + other.length, 0);
  while (others.length && (others.length >= MAX_CHATS || total > MAX_CHARACTERS)) {
    const oldest = others.pop();
    total -= oldest.length;
    await chats.remove(oldest.id);
  }
  await chats.put(record);
}
// Chats that stand in localStorage, where they were kept before, are moved.
async function takeOver(database) {
  let keys = [];
  try { keys = Object.keys(area('localStorage')).filter((key) => key.startsWith(OLD_PREFIX)); } catch { /* there is none */ }
  for (const key of keys) {
    const record = storedObject('localStorage', key);
    const chat = chatOf(record);
    const id = key.slice(OLD_PREFIX.length);
    try {
      if (chat && Number.isFinite(record.time) && !await database.get(id)) await database.put(recordOf(id, record.writer, chat, record.time));
      forget('localStorage', key);
    } catch { /* there is no room: it stays where it is */ }
  }
}
// A browser ends what a page that is left has begun to keep: the tab's next page finds the chats that were under way then. Where not all of
// them have room, the last are left out.
function keepLeft(shown, others) {
  const left = [shown, ...others].filter(({turns}) => turns.length)
    .map((chat) => ({id: chat.id, writers: chat.writers, name: chat.name, isShown: chat === shown, version: CHAT_VERSION, ...keptOf(chat)}));
  while (left.length && !store('sessionStorage', LEAVING, JSON.stringify({left}))) left.pop();
}
// Keeps them, and resolves to the one that was shown, or to null if it is none of them.
async function takeUpLeft() {
  const {left} = storedObject('sessionStorage', LEAVING) ?? {};
  forget('sessionStorage', LEAVING);
  let shown = null;
  for (const each of Array.isArray(left) ? left : []) {
    const chat = leftChat(each);
    if (!chat) continue;
    await keepChat(chat);
    if (each.isShown) shown = chat;
  }
  return shown;
}
function leftChat(left) {
  try {
    const {id, writers} = left;
    return typeof id === 'string' && Array.isArray(writers) ? {id, writers, ...nameIn(left), ...checkedTree(left)} : null;
  } catch { return null; }
}
