// ---- The theme: style.css has two colours for each use, of which the browser takes the one that `color-scheme` says.
const THEME = 'pagoda.theme';
const barColors = [...document.querySelectorAll('meta[name="theme-color"]')].map((meta) => ({meta, color: meta.content}));  // light, dark
function applyTheme(kept = stored('localStorage', THEME)) {
  const theme = ['light', 'dark'].includes(kept) ? kept : 'system';
  document.documentElement.style.colorScheme = theme === 'system' ? '' : theme;
  for (const {meta, color} of barColors) meta.content = theme === 'system' ? color : barColors[theme === 'light' ? 0 : 1].color;
  $('theme').value = theme;
}
$('theme').addEventListener('change', () => {
  store('localStorage', THEME, $('theme').value);
  applyTheme($('theme').value);
});
addEventListener('storage', () => applyTheme());  // another tab's choice
applyTheme();
