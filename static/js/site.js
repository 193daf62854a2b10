// Filters apply as soon as they change, and leave their defaults out of the address. What a page
// chose to go with the old hardware is no wish about the new.
for (const form of document.querySelectorAll("form[data-filters]")) {
  form.querySelector("button[type=submit]").hidden = true;
  form.addEventListener("change", (event) => {
    for (const control of form.elements) {
      if (control.dataset.follows === event.target.name) control.disabled = true;
    }
    form.requestSubmit();
  });
  form.addEventListener("submit", () => {
    for (const control of form.elements) {
      if (control.name && control.value === (control.dataset.default ?? "")) control.disabled = true;
    }
  });
  // Who comes back finds the page as its address says, not as it was left.
  addEventListener("pageshow", () => {
    form.reset();
    for (const control of form.elements) control.disabled = false;
  });
}
// A contents list that covers the page folds once it was used.
for (const toc of document.querySelectorAll("details.toc")) {
  toc.addEventListener("click", (event) => {
    if (event.target.closest("a")) toc.open = false;
  });
}
// What waits is asked for again, unless nobody looks, or somebody marks text or writes.
const waits = document.querySelector("[data-refresh]");
if (waits) {
  setInterval(() => {
    if (!document.hidden && getSelection().isCollapsed) location.reload();
  }, waits.dataset.refresh * 1000);
}
const copies = (button, told) => button.addEventListener("click", async () => {
  await navigator.clipboard.writeText(await told());
  button.textContent = "Copied";
  button.removeAttribute("aria-label");
});
if (navigator.clipboard) {
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    copies(button, () => new URL(button.dataset.copy || location.href, location.href).href);
  }
  for (const button of document.querySelectorAll("[data-copy-source]")) {
    button.hidden = false;
    copies(button, async () => (await (await fetch(button.dataset.copySource)).json()).source);
  }
  // Code is copied without what the page writes beside it.
  for (const block of document.querySelectorAll("pre.command, .source:not(.diff)")) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "theme copy", textContent: "Copy" });
    const label = block.getAttribute("aria-label");
    if (label) button.setAttribute("aria-label", `Copy: ${label}`);
    copies(button, () => {
      const code = (block.querySelector("pre") ?? block).cloneNode(true);
      for (const beside of code.querySelectorAll(".linenos, mark")) beside.remove();
      return code.textContent;
    });
    block.before(button);
  }
}
