// Filters apply as soon as they change, and leave their defaults out of the address.
for (const form of document.querySelectorAll("form[data-filters]")) {
  form.addEventListener("change", () => form.requestSubmit());
  form.addEventListener("submit", () => {
    for (const control of form.elements) {
      if (control.name && control.value === (control.dataset.default ?? "")) control.disabled = true;
    }
  });
}
for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(new URL(button.dataset.copy || location.href, location.href));
    button.textContent = "Copied";
  });
}
