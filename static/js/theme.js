// Loaded in the head, before anything is painted: a stored choice never flashes.
(() => {
  const choices = ["auto", "light", "dark"];
  const root = document.documentElement;

  const stored = () => {
    try {
      const choice = localStorage.getItem("theme");
      return choices.includes(choice) ? choice : "auto";
    } catch {
      return "auto"; // storage is switched off: follow the system
    }
  };

  const show = (choice) => {
    if (choice === "auto") delete root.dataset.theme;
    else root.dataset.theme = choice;
  };

  show(stored());

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("[data-theme-toggle]");
    let choice = stored();
    const name = () => {
      button.textContent = `Theme: ${choice}`;
    };
    name();
    button.hidden = false;
    button.addEventListener("click", () => {
      choice = choices[(choices.indexOf(choice) + 1) % choices.length];
      try {
        localStorage.setItem("theme", choice);
      } catch {
        button.title = "This browser does not keep the choice";
      }
      show(choice);
      name();
      document.dispatchEvent(new Event("themechange"));
    });
  });
})();
