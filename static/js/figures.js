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
        legend: { font: { size: 11 } },
        hoverlabel: { namelength: -1, bgcolor: ink("--panel"), bordercolor: ink("--line"), font: { color: ink("--ink") } },
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

  // Labels are written for Plotly, which reads a little HTML in them.
  const plain = (text) => new DOMParser().parseFromString(String(text ?? ""), "text/html").body.textContent;

  // Who stands out in all figures of the page, by the name of a model; part of the address.
  let pinned = decodeURIComponent(location.hash.match(/^#pin=(.*)/)?.[1] ?? "");

  const whose = (trace) => plain(trace.meta ?? trace.legendgroup ?? trace.name);

  const stress = (figure) => {
    const plot = figure.querySelector(".plot");
    const known = plot.data.some((trace) => whose(trace) === pinned);
    const opacity = plot.data.map((trace, i) => (known && whose(trace) !== pinned ? 0.12 : figure.opacities[i]));
    window.Plotly.restyle(plot, { opacity });
    figure.querySelectorAll(".keys button").forEach((key) => key.setAttribute("aria-pressed", key.dataset.of === pinned));
  };

  const pin = (name) => {
    pinned = pinned === name ? "" : name;
    history.replaceState(null, "", pinned ? `#pin=${encodeURIComponent(pinned)}` : location.pathname + location.search);
    document.querySelectorAll("[data-drawn=yes]").forEach(stress);
  };

  const shape = (name, fill) => {
    const drawn = document.createElementNS("http://www.w3.org/2000/svg", name === "circle" ? "circle" : "path");
    const paths = {
      diamond: "M14 1 19 6 14 11 9 6Z", "triangle-up": "M14 1 19 10 9 10Z", x: "M10 2 18 10M18 2 10 10",
      star: "M14 0 15.5 4.5 20 4.5 16.4 7.2 17.8 11.6 14 9 10.2 11.6 11.6 7.2 8 4.5 12.5 4.5Z", cross: "M14 1V11M9 6H19",
    };
    if (name === "circle") for (const [key, value] of [["cx", 14], ["cy", 6], ["r", 4.5]]) drawn.setAttribute(key, value);
    else drawn.setAttribute("d", paths[name] ?? "M9.5 1.5H18.5V10.5H9.5Z");
    drawn.setAttribute("fill", fill);
    return drawn;
  };

  // A trace as a small drawing: its line, its mark, its colour.
  const swatch = (trace) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const one = (value) => (Array.isArray(value) ? value[0] : value);
    const colour = one(trace.marker?.color) ?? trace.line?.color ?? "currentColor";
    svg.setAttribute("viewBox", "0 0 28 12");
    svg.setAttribute("aria-hidden", "true");
    svg.setAttribute("stroke", trace.line?.color ?? colour);
    if (trace.type === "scatter" && trace.mode?.includes("lines")) {
      const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
      line.setAttribute("d", "M0 6H28");
      line.setAttribute("stroke-width", "2");
      const dashes = { dot: "2 3", dash: "6 3", longdash: "10 3", dashdot: "7 3 2 3" };
      if (dashes[trace.line?.dash]) line.setAttribute("stroke-dasharray", dashes[trace.line.dash]);
      svg.append(line);
    }
    const symbol = trace.type === "scatter" ? (trace.mode?.includes("markers") ? one(trace.marker?.symbol) ?? "circle" : "") : "square";
    if (symbol) svg.append(shape(symbol.replace("-open", ""), symbol.endsWith("-open") ? "none" : colour));
    return svg;
  };

  // The legend is below the plot, never over it: a button for each name, which makes it stand out.
  const legend = (figure, plot) => {
    const list = document.createElement("ul");
    list.className = "keys";
    for (const trace of plot.data) {
      if (trace.showlegend === false || !trace.name) continue;
      const key = document.createElement("button");
      key.type = "button";
      key.dataset.of = whose(trace);
      key.append(swatch(trace), plain(trace.name));
      key.addEventListener("click", () => pin(key.dataset.of));
      const item = document.createElement("li");
      item.append(key);
      list.append(item);
    }
    plot.after(list);
  };

  // Points that have an address lead there, by mouse and by keyboard.
  const leading = (figure, plot) => {
    const points = plot.data.flatMap((trace, curveNumber) =>
      (trace.customdata ?? []).map((to, pointNumber) => ({ trace, curveNumber, pointNumber, to })));
    const links = points.filter(({ to }) => typeof to === "string" && to.startsWith("/"));
    if (!links.length) return;
    const open = (to) => {
      const address = new URL(to, location.href);
      if (address.origin === location.origin) location.assign(address);
    };
    plot.on("plotly_click", ({ points: [point] }) => point.customdata && open(point.customdata));
    plot.on("plotly_hover", ({ points: [point] }) => plot.classList.toggle("leads", Boolean(point.customdata)));
    const says = document.createElement("p");
    says.className = "small quiet";
    says.setAttribute("aria-live", "polite");
    says.textContent = "A point leads to what it shows. By keyboard: arrows walk, Enter opens.";
    plot.after(says);
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    let at = -1;
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    plot.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && links[at]) open(links[at].to);
      if (!steps[event.key]) return;
      event.preventDefault();
      at = at < 0 ? 0 : (at + steps[event.key] + links.length) % links.length;
      const { trace, curveNumber, pointNumber } = links[at];
      const told = [trace.text?.[pointNumber], trace.y?.[pointNumber], trace.x?.[pointNumber]];
      const words = told.filter((word) => word !== undefined && word !== "").map(plain);
      says.textContent = `${plain(trace.name)}: ${words.join(", ")} (${at + 1} of ${links.length}; Enter opens)`;
      if (trace.type !== "box") window.Plotly.Fx.hover(plot, [{ curveNumber, pointNumber }]);
    });
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
    const showlegend = figure.querySelector(".keys") !== null;
    return { data: plot.data, layout: { ...plot.layout, title, showlegend, paper_bgcolor: paper } };
  };

  const namesAlong = (data, axis) => {
    const along = (trace) => trace[axis] ?? (trace.type === "box" ? [trace.name] : []);
    return [...new Set(data.flatMap(along))].filter((name) => typeof name === "string");
  };

  const ticksOf = (names, short) => ({ tickmode: "array", tickvals: names, ticktext: names.map(short) });

  // Long names would leave a narrow figure no room for what it shows.
  const shortNames = (names) => {
    const count = (name) => name.match(/, n = \d+$/)?.[0].length ?? 0; // of how many they are
    const cut = (least) => (name) => {
      const end = Math.max(least, count(name));
      return name.length > 20 ? `${name.slice(0, 19 - end)}…${name.slice(name.length - end)}` : name;
    };
    // What tells them apart may stand at their ends.
    const apart = [0, 10, 14].find((end) => new Set(names.map(cut(end))).size === names.length);
    return names.length ? ticksOf(names, cut(apart ?? 0)) : {};
  };

  // Of a model's row: who, and below it what tells it from others of the same model.
  const rowName = /^(.+) \(([^()]+)\)(, n = \d+)?$/;
  const inTwoLines = (names) => ticksOf(names, (name) => {
    const [, who, which, count = ""] = name.match(rowName);
    const line = (text, end = "") => (text.length + end.length > 26 ? `${text.slice(0, 25 - end.length)}…` : text) + end;
    return `${line(who)}<br>${line(which.replace("submission", "no."), count)}`;
  });

  // Marks on a logarithmic axis as far apart as their numbers need, 1 and other powers of ten first.
  const fewerTicks = ({ range: [low, high], tickvals, ticktext }, width) => {
    const at = (value) => (width * (Math.log10(value) - low)) / (high - low);
    const order = (value) => (value === 1 ? -1 : { 1: 0, 2: 1, 5: 1 }[value.toExponential().split("e")[0]] ?? 2);
    const kept = [];
    for (const value of [...tickvals].sort((a, b) => order(a) - order(b))) {
      if (kept.every((other) => Math.abs(at(value) - at(other)) >= 28)) kept.push(value);
    }
    return { tickvals: kept, ticktext: kept.map((value) => ticktext[tickvals.indexOf(value)]), tickangle: 0 };
  };

  const onNarrow = (data, layout, width) => {
    const names = namesAlong(data, "y");
    const isOfModels = names.length > 0 && names.every((name) => rowName.test(name));
    layout.yaxis = { ...layout.yaxis, ...(isOfModels ? inTwoLines : shortNames)(names) };
    if (isOfModels && layout.height) layout.height = Math.max(layout.height, 36 * names.length + 90);
    const { xaxis } = layout;
    // Slanting names would end beyond the frame.
    if (xaxis?.tickangle) layout.xaxis = { ...xaxis, ...shortNames(namesAlong(data, "x")), tickangle: -90 };
    // Names of rows take some 150 of the pixels.
    if (xaxis?.ticktext && xaxis.range) layout.xaxis = { ...xaxis, ...fewerTicks(xaxis, width - (names.length ? 170 : 70)) };
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
      const named = spec.layout.showlegend ?? spec.data.length > 1;
      const layout = { ...spec.layout, showlegend: false, template: template() };
      if (innerWidth < 700) onNarrow(spec.data, layout, plot.clientWidth);
      // When the window changes its size the plot takes its height from here.
      if (layout.height) plot.style.minHeight = `${layout.height}px`;
      await Plotly.newPlot(plot, spec.data, layout, { responsive: true, displayModeBar: false });
      figure.opacities = spec.data.map((trace) => trace.opacity ?? 1);
      figure.dataset.drawn = "yes";
      leading(figure, plot);
      if (named) legend(figure, plot);
      if (pinned) stress(figure);
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
