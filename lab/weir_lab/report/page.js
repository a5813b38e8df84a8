"use strict";
// This script adds hints, sorting and saving. The page is complete without it.
(() => {
  const files = JSON.parse(document.getElementById("files").textContent);

  const save = (name, blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const text = (content, type) => new Blob([content], {type: type + ";charset=utf-8"});

  const button = (label, title, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = label;
    made.title = title;
    made.addEventListener("click", act);
    return made;
  };
  const row = (parent) => {
    const made = document.createElement("p");
    made.className = "files";
    parent.append(made);
    return made;
  };

  // A saved picture has no page to take colours from, so it gets dark ink on white.
  const alone = (svg) => {
    const copy = svg.cloneNode(true);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.removeAttribute("class");
    copy.querySelectorAll(".ring").forEach((ring) => ring.remove());
    return copy.outerHTML.replace(/var\(--s\d, *(#[0-9a-f]{6})\)/gi, "$1")
      .replaceAll("currentColor", "#16191d").replaceAll("currentcolor", "#16191d");
  };
  const asPng = (svg, name) => {
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const canvas = document.createElement("canvas");
    canvas.width = width * 3;
    canvas.height = height * 3;
    const image = new Image();
    image.onload = () => {
      const ink = canvas.getContext("2d");
      ink.fillStyle = "#fff";
      ink.fillRect(0, 0, canvas.width, canvas.height);
      ink.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(name + ".png", blob));
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(alone(svg));
  };
  for (const part of document.querySelectorAll(".fold figure .scroll")) {
    const name = part.dataset.name, svg = part.querySelector("svg");
    row(part.parentElement).append(
      button("SVG", "save " + name + ".svg", () => save(name + ".svg", text(alone(svg), "image/svg+xml"))),
      button("PNG", "save " + name + ".png", () => asPng(svg, name)),
      button("CSV", "save " + name + ".csv", () => save(name + ".csv", text(files[name + ".csv"], "text/csv"))));
  }
  for (const part of document.querySelectorAll(".table")) {
    const name = part.dataset.file;
    row(part).append(button("CSV", "save " + name, () => save(name, text(files[name], "text/csv"))));
  }
  const whole = document.getElementById("whole");
  if (whole) {
    const data = document.getElementById("data").textContent;
    whole.append(
      button("Records (JSON)", "save data.json", () => save("data.json", text(data, "application/json"))));
  }

  // The value nearest to the pointer, or the next one by an arrow key.
  const hint = document.getElementById("hint");
  const NEAR = 28, RADIUS = 6;
  const show = (svg, circle, said) => {
    svg.querySelector(".ring")?.remove();
    hint.textContent = said ?? "";
    if (!circle) return;
    const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    ring.setAttribute("class", "ring");
    ring.setAttribute("cx", circle.getAttribute("cx"));
    ring.setAttribute("cy", circle.getAttribute("cy"));
    ring.setAttribute("r", RADIUS);
    svg.append(ring);
    const box = ring.getBoundingClientRect(), mine = hint.getBoundingClientRect();
    const left = Math.min(Math.max(4, box.left + box.width / 2 - mine.width / 2), innerWidth - mine.width - 4);
    const above = box.top - mine.height - 6;
    hint.style.left = left + "px";
    hint.style.top = (above > 4 ? above : box.bottom + 6) + "px";
  };
  for (const svg of document.querySelectorAll("figure svg")) {
    const circles = [...svg.querySelectorAll(".hints circle")];
    const said = circles.map((circle) => circle.textContent);
    const places = circles.map((c) => [Number(c.getAttribute("cx")), Number(c.getAttribute("cy"))]);
    circles.forEach((circle) => circle.style.pointerEvents = "none");
    if (!circles.length) continue;
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
      const x = (event.clientX - box.left) / scale, y = (event.clientY - box.top) / scale;
      let best = -1, least = NEAR / scale;
      places.forEach(([px, py], number) => {
        const far = Math.hypot(px - x, py - y);
        if (far < least) [best, least] = [number, far];
      });
      show(svg, circles[best], said[best]);
    });
    svg.addEventListener("pointerleave", () => show(svg));
    let at = -1;
    const part = svg.closest(".scroll");
    part.addEventListener("keydown", (event) => {
      const turn = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!turn || !svg.checkVisibility()) return;
      event.preventDefault();
      at = (at + turn + circles.length) % circles.length;
      show(svg, circles[at], said[at]);
    });
    part.addEventListener("blur", () => show(svg));
  }

  // On paper every fold is open; a link to a fold opens it.
  const folds = [...document.querySelectorAll("details")];
  let closed = [];
  const unfold = () => {
    closed = folds.filter((fold) => !fold.open);
    closed.forEach((fold) => fold.open = true);
  };
  const fold = () => closed.forEach((each) => each.open = false);
  addEventListener("beforeprint", unfold);
  addEventListener("afterprint", fold);
  const follow = () => {
    const goal = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const around = goal && goal.closest("details");
    if (around) around.open = true;
    if (around) goal.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  follow();
  const all = document.getElementById("all");
  all.append(button("Open everything", "open or close all parts of this page", (event) => {
    const open = folds.some((each) => !each.open);
    folds.forEach((each) => each.open = open);
    event.target.textContent = open ? "Close everything" : "Open everything";
  }));

  const value = (cell) => {
    const found = cell.textContent.replace(/,/g, "").match(/^[<>±]?\s*([+-]?\d+(\.\d+)?)/);
    return found ? Number(found[1]) : null;
  };
  const compare = (a, b, column) => {
    const x = a.cells[column], y = b.cells[column], p = value(x), q = value(y);
    if (p !== null && q !== null) return p - q;
    if (p !== null || q !== null) return p === null ? 1 : -1;
    return x.textContent.localeCompare(y.textContent);
  };
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0];
    if (body.rows.length < 3) continue;
    for (const head of table.tHead.rows[0].cells) {
      if (head.tagName !== "TH" || head.classList.contains("drawn")) continue;
      const made = button(head.textContent, "sort by this", () => {
        const turn = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", turn > 0 ? "ascending" : "descending");
        body.append(...[...body.rows].sort((a, b) => turn * compare(a, b, head.cellIndex)));
      });
      head.replaceChildren(made);
    }
  }
})();
