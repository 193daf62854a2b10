// Follows one run: asks for its JSON every 2 s (10 s in a hidden tab) and stops when it has ended.
(() => {
  const page = document.querySelector("[data-run]");
  if (!page) return;
  const ENDED = ["done", "failed", "cancelled"];
  let etag = null;

  const fill = (name, value) => {
    const place = page.querySelector(`[data-field="${name}"]`);
    if (place) place.textContent = value ?? "–";
  };

  // As leaderboard/kit/durations.py writes it: `3 min 20 s`.
  const spelt = (seconds) => {
    let rest = Math.floor(seconds);
    const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].map(([size, unit]) => {
      const count = Math.floor(rest / size);
      rest %= size;
      return [count, unit];
    });
    const first = parts.findIndex(([count]) => count);
    if (first < 0) return "0 s";
    const told = parts.slice(first, first + 2).filter(([count]) => count);
    return told.map((part) => part.join(" ")).join(" ");
  };

  // The page is the same for everybody, so who may cancel is asked for, again with each status: its
  // owner may only while it waits.
  const cancel = page.querySelector("[data-cancel]");
  let asked = null;
  const offer = async (status) => {
    if (!cancel || status === asked) return;
    asked = status;
    try {
      const answer = await fetch(`${cancel.firstElementChild.getAttribute("href")}.json`);
      cancel.hidden = !(await answer.json()).may_cancel;
    } catch {
      cancel.hidden = true;
    }
  };
  offer(page.querySelector('[data-field="status"]').textContent);

  const show = (run) => {
    fill("status", run.status);
    fill("queue_position", run.queue_position);
    fill("waiting", run.waiting_s == null ? null : spelt(run.waiting_s));
    fill("host", run.host || null);
    fill("message", run.message);
    const { done, total } = run.progress ?? {};
    fill("steps", total ? `${done} of ${total}` : null);
    const bar = page.querySelector("progress");
    if (total) {
      bar.max = total;
      bar.value = done;
    } else bar.removeAttribute("value");
    fill("elapsed", run.elapsed_s == null ? null : spelt(run.elapsed_s));
    fill("tried", run.tried ?? "");
    page.querySelector("[data-tried]").hidden = !run.tried;
    fill("no_host", run.no_host ?? "");
    page.querySelector("[data-unserved]").hidden = !run.no_host;
    fill("waits_for", run.waits_for ?? "");
    page.querySelector("[data-waits]").hidden = !run.waits_for;
    const declined = page.querySelector("[data-declined]");
    declined.hidden = !run.declines.length;
    declined.firstElementChild.replaceChildren(
      ...run.declines.map(({ host, reason }) => {
        const line = document.createElement("p");
        line.textContent = `${host} declined: ${reason}`;
        return line;
      }),
    );
    offer(run.status);
    let past = true;
    for (const step of page.querySelectorAll("[data-phase]")) {
      const here = step.dataset.phase === (run.phase || run.status);
      if (here) past = false;
      step.classList.toggle("past", past && run.status === "running");
      if (here) step.setAttribute("aria-current", "step");
      else step.removeAttribute("aria-current");
    }
  };

  const ask = async () => {
    try {
      const headers = etag ? { "If-None-Match": etag } : {};
      const answer = await fetch(page.dataset.run, { headers, cache: "no-store" });
      if (answer.status === 200) {
        etag = answer.headers.get("ETag");
        const run = await answer.json();
        show(run);
        if (ENDED.includes(run.status)) {
          location.reload(); // the finished page carries the evidence and has no data-run
          return;
        }
      }
      fill("connection", answer.ok || answer.status === 304 ? "" : `The site answered ${answer.status}; asking again.`);
    } catch {
      fill("connection", "No connection; asking again.");
    }
    setTimeout(ask, document.hidden ? 10000 : 2000);
  };
  setTimeout(ask, 1000);
})();
