// What a filter form does beyond site.js: folded filters stay open from page to page.
const stored = (name, value) => {
  try {
    if (value !== undefined) sessionStorage.setItem(name, value);
    return sessionStorage.getItem(name);
  } catch {
    return null; // storage is switched off: nothing is kept
  }
};

for (const fold of document.querySelectorAll("details[data-kept-open]")) {
  const name = `open-${fold.dataset.keptOpen}`;
  fold.open = stored(name) === "yes";
  fold.addEventListener("toggle", () => stored(name, fold.open ? "yes" : "no"));
}

// A form that applies itself takes the focus away; the next page gives it back.
for (const form of document.querySelectorAll("form[data-filters]")) {
  form.addEventListener("submit", () => stored("focus", document.activeElement?.id ?? ""));
  const before = stored("focus");
  if (before) {
    form.querySelector(`#${CSS.escape(before)}`)?.focus({ preventScroll: true });
    stored("focus", "");
  }
}
