/* Buttons of the maps: choose the users that are drawn, and save a picture. */
Object.assign(promesse, (() => {
  "use strict";

  const make = (parent, name, properties = {}) => Object.assign(parent.appendChild(document.createElement(name)), properties);

  /* Draw the first layers below the others again, after some were added. */
  const putInOrder = (groups) => {
    const parts = groups.flatMap(({ promesse }) => promesse.parts).reverse();
    parts.forEach(({ part }) => part.bringToBack());
  };

  /* Draw the users that are not hidden. */
  const drawUsers = (maps, groups, hidden) => {
    for (const group of groups) {
      for (const { user, part } of group.promesse.parts) {
        if (group.hasLayer(part) === hidden.has(user)) group[hidden.has(user) ? "removeLayer" : "addLayer"](part);
      }
    }
    putInOrder(groups);
    for (const map of maps) {
      map.promesse.hidden = hidden;
      map.fire("promesse-users");
    }
  };

  /* A list of users to tick, with a search: those are drawn that are ticked and whose names have the text. */
  const listUsers = (box, users, colours, changed) => {
    const title = make(box, "summary", { title: "choose users" });
    title.innerHTML = '<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M2 3h12l-5 6v5l-2-1.500V9z"/></svg>';
    const panel = make(box, "div", { className: "promesse-panel" });
    const search = make(panel, "input", { type: "search", placeholder: "search users" });
    search.setAttribute("aria-label", "search users");
    const head = make(panel, "label");
    const all = make(head, "input", { type: "checkbox", checked: true });
    const count = make(head, "output");
    const list = make(panel, "div", { className: "promesse-users" });
    const rows = users.map((user) => {
      const row = make(list, "label");
      const tick = make(row, "input", { type: "checkbox", checked: true });
      if (colours.has(user)) make(row, "i").style.background = colours.get(user);
      row.append(user);
      return { user, row, tick, name: user.toLowerCase() };
    });
    const update = () => {
      const text = search.value.trim().toLowerCase();
      for (const { row, name } of rows) row.hidden = !name.includes(text);
      const listed = rows.filter(({ row }) => !row.hidden);
      const shown = listed.filter(({ tick }) => tick.checked);
      all.checked = shown.length === listed.length;
      all.indeterminate = !all.checked && shown.length > 0;
      count.textContent = `${shown.length} of ${users.length} users`;
      const kept = new Set(shown.map(({ user }) => user));
      changed(new Set(users.filter((user) => !kept.has(user))));
    };
    all.addEventListener("change", () => {
      for (const { row, tick } of rows) if (!row.hidden) tick.checked = all.checked;
      update();
    });
    list.addEventListener("change", update);
    search.addEventListener("input", update);
    count.textContent = `${users.length} of ${users.length} users`;
  };

  /* A copy of a map for a picture: canvases become images, and buttons are left out. */
  const copyOf = (map, left) => {
    const box = map.getContainer();
    const { x, y } = map.getSize();
    const copy = box.cloneNode(true);
    const canvases = copy.querySelectorAll("canvas");
    box.querySelectorAll("canvas").forEach((canvas, i) => {
      const image = new Image();
      image.src = canvas.toDataURL();
      image.style.cssText = `${canvas.style.cssText}; position: absolute; width: ${canvas.clientWidth}px; height: ${canvas.clientHeight}px`;
      canvases[i].replaceWith(image);
    });
    copy.querySelectorAll(".leaflet-control-zoom, .promesse-tools, .promesse-slider button").forEach((each) => each.remove());
    copy.style.cssText = `position: absolute; left: ${left}px; top: 0; width: ${x}px; height: ${y}px`;
    return copy;
  };

  const asData = async (address) => {
    const reader = new FileReader();
    reader.readAsDataURL(await (await fetch(address)).blob());
    await new Promise((done) => (reader.onload = done));
    return reader.result;
  };

  /* Draw maps side by side, in light colours, on a canvas. */
  const draw = async (maps) => {
    const widths = maps.map((map) => map.getSize().x);
    const [width, height] = [widths.reduce((sum, each) => sum + each, 0), maps[0].getSize().y];
    const page = document.createElement("div");
    const style = make(page, "style");
    style.textContent = [...document.querySelectorAll("style")].map((each) => each.textContent).join("\n")
      .replaceAll("prefers-color-scheme: dark", "width: 0");
    maps.forEach((map, i) => page.append(copyOf(map, i ? widths[i - 1] : 0)));
    for (const tile of page.querySelectorAll("img.leaflet-tile")) {
      tile.src = await asData(tile.src).catch(() => "data:,"); // a server may refuse copies of its tiles
    }
    page.style.cssText = `position: relative; width: ${width}px; height: ${height}px; color-scheme: light`;
    page.style.font = getComputedStyle(maps[0].getContainer()).font;
    const xml = new XMLSerializer().serializeToString(page).replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "");
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><foreignObject width="100%" height="100%">${xml}</foreignObject></svg>`;
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas;
  };

  const savePicture = async (maps) => {
    const canvas = await draw(maps);
    const link = Object.assign(document.createElement("a"), { href: canvas.toDataURL("image/png"), download: "map.png" });
    link.click();
  };

  const addTools = (maps, groups) => {
    const tools = L.control({ position: "topleft" });
    tools.onAdd = () => {
      const bar = L.DomUtil.create("div", "leaflet-bar promesse-tools");
      const save = make(bar, "a", { href: "#", title: "save as PNG" });
      save.setAttribute("role", "button");
      save.innerHTML = '<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M7 2h2v6h3l-4 4-4-4h3zM2 13h12v1.500H2z"/></svg>';
      save.addEventListener("click", (event) => {
        event.preventDefault();
        savePicture(maps).catch(() => window.print()); // browsers that draw no pages on a canvas
      });
      const users = [...new Set(groups.flatMap(({ promesse }) => promesse.parts.map(({ user }) => user)))];
      if (users.length > 1) {
        const tracks = groups.flatMap(({ promesse }) => (promesse.byUser ? promesse.tracks : []));
        const colours = new Map(tracks.map(({ user, colour }) => [user, colour]));
        listUsers(make(bar, "details"), users, colours, (hidden) => drawUsers(maps, groups, hidden));
      }
      L.DomEvent.disableClickPropagation(bar).disableScrollPropagation(bar);
      return bar;
    };
    tools.addTo(maps[0]);
    for (const map of maps) map.on("overlayadd", () => putInOrder(groups));
  };

  return { addTools };
})());
