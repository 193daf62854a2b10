// What a filter form does beyond site.js: a slider says its value and waits until it rests, and
// folded filters stay open from page to page.
for (const slider of document.querySelectorAll("form[data-filters] input[type=range]")) {
  const output = slider.form.querySelector(`output[for="${slider.id}"]`);
  const say = () => {
    output.textContent = slider.value + output.dataset.unit;
    slider.setAttribute("aria-valuetext", output.textContent);
  };
  let rest = null;
  say();
  slider.addEventListener("input", say);
  slider.form.addEventListener("reset", () => setTimeout(say));
  slider.addEventListener("change", (event) => {
    event.stopPropagation(); // an arrow key changes it too: the page waits for the last one
    clearTimeout(rest);
    rest = setTimeout(() => slider.form.requestSubmit(), 500);
  });
}

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
