// The theme: that of the system, or the one that was chosen.

const NAME = 'lariat-console-theme';
const select = document.getElementById('theme');

function apply() {
  if (select.value) document.documentElement.dataset.theme = select.value;
  else delete document.documentElement.dataset.theme;
}

select.onchange = () => {
  apply();
  try {
    localStorage.setItem(NAME, select.value);
  } catch {
    // Without storage it holds until the page is loaded again.
  }
};

try {
  select.value = localStorage.getItem(NAME) ?? '';
} catch {
  // As above.
}
apply();
