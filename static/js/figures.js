// Draws every [data-figure] once it comes near the viewport; the library is fetched with the first.
(() => {
  const library = document.currentScript.dataset.plotly;
  let loading = null;

  const load = () => {
    loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = library;
      script.onload = () => resolve(window.Plotly);
      script.onerror = () => reject(new Error("the drawing library did not load"));
      document.head.append(script);
    });
    return loading;
  };

  const template = () => {
    const narrow = innerWidth < 700;
    const style = getComputedStyle(document.documentElement);
    const ink = (name) => style.getPropertyValue(name).trim();
    const axis = {
      gridcolor: ink("--hair"), linecolor: ink("--line"), zerolinecolor: ink("--line"),
      tickcolor: ink("--line"), automargin: true, title: { standoff: 8 },
    };
    return {
      layout: {
        paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
        font: { family: ink("--sans"), size: 12, color: ink("--ink") },
        xaxis: axis, yaxis: axis,
        margin: { t: 16, r: 16, b: 48, l: 56 },
        legend: narrow ? { orientation: "h", y: -0.3, yanchor: "top", font: { size: 11 } } : { font: { size: 11 } },
        hoverlabel: { bgcolor: ink("--panel"), bordercolor: ink("--line"), font: { color: ink("--ink") } },
      },
    };
  };

  const tool = (text, act) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "theme";
    button.textContent = text;
    button.addEventListener("click", act);
    return button;
  };

  // A picture stands alone: with its title, its address and paper of its theme.
  const saved = (figure, plot) => {
    const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    const address = new URL(figure.dataset.figure.replace(".json", ""), location.href);
    const says = (text, size) => ({ text: escaped(text), font: { size } });
    const paper = getComputedStyle(document.documentElement).getPropertyValue("--paper").trim();
    const title = {
      ...says(plot.getAttribute("aria-label"), 15), subtitle: says(address.href, 11),
      x: 0.02, yref: "container", yanchor: "top", pad: { t: 14, b: 40 }, automargin: true,
    };
    return { data: plot.data, layout: { ...plot.layout, title, paper_bgcolor: paper } };
  };

  // Long names would leave a narrow figure no room for what it shows.
  const shortNames = (data, axis) => {
    const along = (trace) => trace[axis] ?? (trace.type === "box" ? [trace.name] : []);
    const names = [...new Set(data.flatMap(along))].filter((name) => typeof name === "string");
    const cut = (end) => (name) =>
      name.length > 20 ? `${name.slice(0, 19 - end)}…${name.slice(name.length - end)}` : name;
    // What tells them apart may stand at their ends.
    const apart = [0, 10, 14].find((end) => new Set(names.map(cut(end))).size === names.length);
    const short = cut(apart ?? 0);
    return names.length ? { tickmode: "array", tickvals: names, ticktext: names.map(short) } : {};
  };

  const draw = async (figure) => {
    const plot = figure.querySelector(".plot");
    try {
      const [Plotly, answer] = await Promise.all([load(), fetch(figure.dataset.figure)]);
      if (!answer.ok) throw new Error(`the figure's data answered ${answer.status}`);
      const spec = await answer.json();
      if (!spec.data.length) {
        plot.textContent = "Nothing to show yet.";
        figure.dataset.drawn = "empty";
        return;
      }
      plot.textContent = "";
      plot.classList.remove("waiting");
      const layout = { ...spec.layout, template: template() };
      if (innerWidth < 700) {
        layout.yaxis = { ...layout.yaxis, ...shortNames(spec.data, "y") };
        // Slanting names would end beyond the frame.
        if (layout.xaxis?.tickangle) layout.xaxis = { ...layout.xaxis, ...shortNames(spec.data, "x"), tickangle: -90 };
      }
      // When the window changes its size the plot takes its height from here.
      if (layout.height) plot.style.minHeight = `${layout.height}px`;
      await Plotly.newPlot(plot, spec.data, layout, { responsive: true, displayModeBar: false });
      figure.dataset.drawn = "yes";
      const tools = figure.querySelector(".tools");
      for (const format of ["png", "svg"]) {
        const size = { format, width: 1200, height: (layout.height ?? 640) + 60, filename: figure.dataset.name };
        tools.append(tool(format.toUpperCase(), () => Plotly.downloadImage(saved(figure, plot), size)));
      }
    } catch (error) {
      plot.textContent = `Not drawn: ${error.message}. The table holds the same numbers.`;
    }
  };

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watcher.unobserve(entry.target);
      draw(entry.target);
    }
  }, { rootMargin: "400px" });
  document.querySelectorAll("[data-figure]").forEach((figure) => {
    figure.querySelector(".plot").textContent = "Drawing…"; // not the note for those without scripts
    watcher.observe(figure);
  });

  const repaint = () => {
    if (!window.Plotly) return;
    document.querySelectorAll("[data-drawn=yes] .plot").forEach((plot) => {
      window.Plotly.relayout(plot, { template: template() });
    });
  };
  document.addEventListener("themechange", repaint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
})();
