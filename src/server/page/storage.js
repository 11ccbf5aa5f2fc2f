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
