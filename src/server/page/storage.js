// ---- What is kept in this browser. Other pages of this address share the place, so all that is read is checked.
//
// A browser may have none, or forbid even to ask: then nothing is found and nothing kept.
const area = (name) => { try { return window[name]; } catch { return null; } };
const stored = (name, key) => { try { return area(name)?.getItem(key) ?? null; } catch { return null; } };
const store = (name, key, value) => { try { area(name).setItem(key, value); return true; } catch { return false; } };
const forget = (name, key) => { try { area(name).removeItem(key); } catch { /* there is none */ } };
function storedObject(name, key) {
  try {
    const value = JSON.parse(stored(name, key));
    return value && typeof value === 'object' && !Array.isArray(value) ? value : null;
  } catch { return null; }
}

// ---- Chats: one record each, {version, time, writer, turns: [{role, content, note?}]}. Browsers keep five million characters at
// least for an address; the oldest chats make room for new ones, and of a very long chat its latest turns are kept.
const CHAT_PREFIX = 'pagoda.chat.';
const CHAT_VERSION = 1;
const MAX_CHATS = 30;
const MAX_CHAT_CHARACTERS = 400_000;
const MAX_CHARACTERS = 1_500_000;
const newId = () => Array.from(crypto.getRandomValues(new Uint32Array(2)), (word) => word.toString(36)).join('');
const isTurn = (turn) => !!turn && ['user', 'assistant'].includes(turn.role) && typeof turn.content === 'string' && turn.content !== '';

function storedChat(id) {
  const record = storedObject('localStorage', CHAT_PREFIX + id);
  if (record?.version !== CHAT_VERSION || typeof record.writer !== 'string' || !Number.isFinite(record.time)) return null;
  if (!Array.isArray(record.turns) || !record.turns.every(isTurn) || !record.turns.some((turn) => turn.role === 'user')) return null;
  const turns = record.turns.map(({role, content, note}) => ({role, content, ...(typeof note === 'string' ? {note} : {})}));
  return {id, time: record.time, writer: record.writer, turns};
}
function chatIds() {
  try {
    return Object.keys(area('localStorage')).filter((key) => key.startsWith(CHAT_PREFIX)).map((key) => key.slice(CHAT_PREFIX.length));
  } catch { return []; }
}
// Latest first.
const storedChats = () => chatIds().map(storedChat).filter(Boolean).sort((a, b) => b.time - a.time);
const removeChat = (id) => forget('localStorage', CHAT_PREFIX + id);

function latestTurns(turns) {
  let first = turns.length;
  for (let total = 0; first > 0 && (total += turns[first - 1].content.length) <= MAX_CHAT_CHARACTERS;) --first;
  while (first < turns.length && turns[first].role !== 'user') ++first;
  return turns.slice(first);
}
// Keeps `chat`, {id, writer, turns}. Where another tab has written it since, this one goes on in a copy of its own.
function keepChat(chat) {
  const turns = latestTurns(chat.turns);
  if (!turns.length) return;
  const there = storedChat(chat.id);
  if (there && there.writer !== chat.writer) chat.id = newId();
  chat.writer = newId();
  const text = JSON.stringify({version: CHAT_VERSION, time: Date.now(), writer: chat.writer, turns});
  const others = chatIds().filter((id) => id !== chat.id).map((id) => ({
    id, time: storedChat(id)?.time ?? 0, length: stored('localStorage', CHAT_PREFIX + id)?.length ?? 0}));
  others.sort((a, b) => b.time - a.time);
  let total = text.length + others.reduce((sum, other) => sum + other.length, 0);
  const dropOldest = () => {
    const oldest = others.pop();
    total -= oldest.length;
    removeChat(oldest.id);
  };
  while (others.length && (others.length >= MAX_CHATS || total > MAX_CHARACTERS)) dropOldest();
  while (!store('localStorage', CHAT_PREFIX + chat.id, text) && others.length) dropOldest();
}
