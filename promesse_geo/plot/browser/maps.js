/* Maps of Promesse Geo in the browser. Texts from the data enter the page only as text nodes. */
const promesse = (() => {
  "use strict";

  document.documentElement.lang ||= "en";

  /* Paper shows the page as the screen does: in the size of the window, which printing changes. */
  const keepSize = () => {
    if (matchMedia("print").matches) return;
    const { style } = document.documentElement;
    style.setProperty("--promesse-width", `${innerWidth}px`);
    style.setProperty("--promesse-height", `${innerHeight}px`);
  };
  addEventListener("resize", keepSize);
  keepSize();

  const sums = (steps, scale) => {
    let sum = 0;
    return steps.map((step) => (sum += step) / scale);
  };

  /* Unpack one track per user: places, seconds since 1970 if known, for stays the seconds of departure, and whether
     nothing was recorded before a place. */
  const tracks = (data) => {
    const breaks = new Set(data.breaks);
    const [x, y] = [sums(data.x, data.scale), sums(data.y, data.scale)];
    const [times, ends] = [sums(data.times, 1), sums(data.ends, 1)];
    let next = 0;
    return data.counts.map((count, number) => {
      const first = next;
      next += count;
      return {
        user: data.users[number],
        places: y.slice(first, next).map((height, i) => [height, x[first + i]]),
        times: times.slice(first, next),
        ends: ends.slice(first, next),
        inks: (data.inks || []).slice(first, next),
        isBreak: (i) => breaks.has(first + i),
      };
    });
  };

  const clock = (zone) => {
    const styles = { dateStyle: "short", timeStyle: "medium" };
    try {
      const format = new Intl.DateTimeFormat("sv-SE", { ...styles, timeZone: zone || "UTC" });
      return (seconds) => format.format(1000 * seconds);
    } catch {
      const format = new Intl.DateTimeFormat("sv-SE", { ...styles, timeZone: "UTC" });
      return (seconds) => `${format.format(1000 * seconds)} UTC`;
    }
  };

  const textBox = (lines) => {
    const box = document.createElement("div");
    for (const line of lines.filter((each) => each !== undefined)) {
      box.appendChild(document.createElement("div")).textContent = line;
    }
    return box;
  };

  const bindTexts = (group) => {
    const lines = (layer) => textBox(layer.options.lines());
    group.bindTooltip(lines, { direction: "auto" }).bindPopup(lines);
  };

  /* The copy of a place that is nearest to another place, on a map that repeats with a period (0: it does not). */
  const nearest = (other, [height, x], period) => {
    const away = other[1] - x;
    return [height, period ? x + period * Math.sign(away) * Math.ceil(Math.abs(away) / period - 0.5) : x];
  };

  /* Split a track into pieces of one colour, at breaks, and so that none crosses the whole map. */
  const pieces = ({ places, inks, isBreak }, period) => {
    const all = [];
    places.forEach((place, i) => {
      const isJoined = i && !isBreak(i) && nearest(places[i - 1], place, period)[1] === place[1];
      const last = all[all.length - 1];
      if (isJoined && last.ink === inks[i]) last.path.push(place);
      else all.push({ ink: inks[i], path: isJoined ? [places[i - 1], place] : [place] });
    });
    return all;
  };

  /* Add the layers of a user to a group, as a part of it that can be hidden. */
  const addPart = (group, user, layers) => {
    const part = L.featureGroup(layers).addTo(group);
    group.promesse.parts.push({ user, part });
  };

  const records = (group, data) => {
    const time = clock(data.zone);
    const colour = (ink, { palette } = data) => palette[ink ?? 0];
    group.promesse = { byUser: data.byUser, period: data.period, tracks: tracks(data), parts: [] };
    for (const track of group.promesse.tracks) track.colour = data.byUser ? colour(track.inks[0]) : data.colour;
    const path = data.path && { ...data, ...data.path, times: [], ends: [] };
    for (const track of path ? tracks(path) : []) {
      const all = pieces(track, data.period);
      const lines = [...new Set(track.inks.length ? track.inks : [undefined])].map((ink) => {
        const style = { color: colour(ink, path), weight: data.width, opacity: data.shade, interactive: false };
        const paths = all.filter((piece) => piece.ink === ink).map(({ path }) => path);
        return L.polyline(paths, style);
      });
      addPart(group, track.user, lines);
    }
    for (const { user, places, times, inks } of group.promesse.tracks) {
      const dots = places.map((place, i) =>
        L.circleMarker(place, {
          radius: data.radius,
          stroke: false,
          fillColor: colour(inks[i]),
          fillOpacity: data.opacity,
          lines: () => [data.title, user, time(times[i])],
        })
      );
      addPart(group, user, dots);
    }
    bindTexts(group);
  };

  const pois = (group, data) => {
    const time = clock(data.zone);
    const icon = L.divIcon({ className: "promesse-poi", html: data.glyph, iconSize: [data.size, data.size] });
    group.promesse = { tracks: [], parts: [] };
    for (const { user, places, times, ends } of tracks(data)) {
      const markers = places.map((place, i) => {
        const when = times.length ? [`${time(times[i])} to ${time(ends[i])}`] : [];
        const lines = () => [data.title, user, ...when];
        return L.marker(place, { icon, keyboard: false, zIndexOffset: data.rank, lines });
      });
      addPart(group, user, markers);
    }
    bindTexts(group);
  };

  /* Draw lines and polygons below everything. */
  const background = (map, data) => {
    map.createPane("promesse-background").style.zIndex = 350;
    const paths = tracks({ ...data, times: [], ends: [], users: [] }).map(({ places }) => places);
    const style = { pane: "promesse-background", interactive: false, color: data.colour, weight: 1, opacity: 0.4 };
    let next = data.lines;
    L.polyline(paths.slice(0, next), style).addTo(map);
    for (const count of data.rings) {
      L.polygon(paths.slice(next, (next += count)), { ...style, fillOpacity: 0.12 }).addTo(map);
    }
  };

  const isShown = (map, user) => !map.promesse?.hidden?.has(user);

  /* Draw the records of a layer, of the users that are shown, as a heat map. */
  const heat = (map, layer, group) => {
    const draw = () => {
      const shown = group.promesse.tracks.filter(({ user }) => isShown(map, user));
      layer.setLatLngs(shown.flatMap(({ places }) => places));
    };
    const { simpleheat } = window;
    window.simpleheat = (canvas) => {
      canvas.getContext("2d", { willReadFrequently: true }); // browsers warn of slow reading otherwise
      return simpleheat(canvas);
    };
    map.on("promesse-users", draw);
    draw();
  };

  const collapse = (map) => {
    const { control } = map.promesse;
    control.options.collapsed = true;
    control.addTo(map);
  };

  /* Pixels that legend, remarks and slider cover: at the right, at the top, at the bottom, and there without remarks. */
  const covered = (map) => {
    const container = map.getContainer();
    const legend = container.querySelector(".leaflet-control-layers");
    const [note, slider] = [".promesse-note", ".promesse-slider"].map((name) => container.querySelector(name));
    const above = (box) => (box ? Math.ceil(container.getBoundingClientRect().bottom - box.getBoundingClientRect().top) : 0);
    const right = Math.max(legend.offsetWidth, note ? note.offsetWidth : 0);
    return { right, top: legend.offsetHeight, bottom: Math.max(above(note), above(slider)), foot: above(slider) };
  };

  /* The padding with which a view of the corners is largest and no control of any of the maps, which are of one size,
     covers anything; and by how much larger it would be without them. */
  const bestPadding = (maps, corners) => {
    const boxes = maps.map(covered);
    const most = (side) => Math.max(...boxes.map((box) => box[side]));
    const foot = Math.max(45, most("foot") + 15);
    const padding = { paddingTopLeft: [50, 25], paddingBottomRight: [25, foot] };
    const beside = { ...padding, paddingBottomRight: [most("right") + 20, foot] };
    const between = {
      paddingTopLeft: [50, most("top") + 20],
      paddingBottomRight: [25, Math.max(foot, most("bottom") + 20)],
    };
    const zoom = ({ paddingTopLeft: [left, top], paddingBottomRight: [right, bottom] }) => {
      const taken = L.point(left + right, top + bottom);
      const { x, y } = maps[0].getSize().subtract(taken);
      return Math.min(x, y) < 60 ? -Infinity : maps[0].getBoundsZoom(corners, false, taken);
    };
    const best = zoom(between) > zoom(beside) ? between : beside;
    const isPossible = zoom(best) > -Infinity;
    return { padding: isPossible ? best : padding, loss: isPossible ? zoom(padding) - zoom(best) : 0 };
  };

  /* Show all data. Legends that would leave less than half of the size for it open on hover. */
  const showAll = (maps) => {
    const { corners, closest } = maps[0].promesse;
    if (!corners) return;
    if (bestPadding(maps, corners).loss > 1) maps.forEach(collapse);
    const { padding } = bestPadding(maps, corners);
    maps[0].fitBounds(corners, { maxZoom: closest, animate: false, ...padding });
  };

  const colourScale = (scale) => {
    const box = textBox(["km/h:"]);
    box.className = "promesse-scale";
    for (const [colour, meaning] of scale) {
      const entry = box.appendChild(document.createElement("span"));
      entry.appendChild(document.createElement("i")).style.background = colour;
      entry.append(meaning);
    }
    return box;
  };

  /* Add scale and remarks, and show all data. A legend that would cover the zoom buttons opens on hover. */
  const addControls = (map, control, { corners, closest, remarks, scale }) => {
    map.promesse = { control, corners, closest };
    L.control.scale({ imperial: false }).addTo(map);
    const note = L.control({ position: "bottomright" });
    note.onAdd = () => {
      const box = L.Util.extend(textBox(remarks), { className: "promesse-note" });
      if (scale.length) box.prepend(colourScale(scale));
      return box;
    };
    if (remarks.length) note.addTo(map);
    if (control.getContainer().offsetWidth + 60 > map.getSize().x) collapse(map);
    showAll([map]);
    if (!corners) {
      const empty = map.getContainer().appendChild(document.createElement("div"));
      Object.assign(empty, { className: "promesse-empty", textContent: "No records to draw." });
    }
  };

  /* The place of a track at a time, interpolated between records; null before the first, after the last, in breaks. */
  const placeAt = ({ places, times, isBreak, period }, moment) => {
    const last = times.length - 1;
    if (last < 0 || moment < times[0] || moment > times[last]) return null;
    let [low, high] = [0, last];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= moment) low = middle;
      else high = middle;
    }
    if (isBreak(high) && moment > times[low] && moment < times[high]) return null;
    const passed = times[high] > times[low] ? (moment - times[low]) / (times[high] - times[low]) : 0;
    const to = nearest(places[low], places[high], period);
    return places[low].map((from, axis) => from + passed * (to[axis] - from));
  };

  const slider = (map, groups, zone) => {
    const time = clock(zone);
    const all = groups.flatMap(({ promesse }) => promesse.tracks.map((track) => ({ ...promesse, ...track })));
    const moments = all.flatMap(({ times }) => [times[0], times[times.length - 1]]);
    if (!moments.length) return;
    const [first, last] = [Math.min(...moments), Math.max(...moments)];
    const shown = all[all.length - 1];
    const pane = map.createPane("promesse-dots");
    pane.style.zIndex = 640;
    const renderer = L.svg({ pane: "promesse-dots", padding: 1 });
    const style = { renderer, className: "promesse-moving", color: "#fff", weight: 2, fillOpacity: 1 };
    const radius = all.length > 50 ? 5 : 8;
    const partners = new Map();
    const links = [];
    for (const track of all) {
      track.dot = L.circleMarker([0, 0], { ...style, radius, fillColor: track.colour });
      track.dot.bindTooltip(() => textBox([track.user]));
      if (partners.has(track.user)) {
        const line = L.polyline([], { renderer, className: "promesse-link", weight: 2, dashArray: "4 5" });
        links.push({ line, from: partners.get(track.user), to: track });
      }
      partners.set(track.user, track);
    }
    /* Show a layer at a place, or hide it if there is none. */
    const show = (layer, place, move) => (place ? layer[move](place).addTo(map) : layer.remove());
    const draw = (moment) => {
      for (const track of all) track.now = isShown(map, track.user) ? placeAt(track, moment) : null;
      for (const { line, from, to } of links) {
        show(line, from.now && to.now && [from.now, nearest(from.now, to.now, to.period)], "setLatLngs");
      }
      for (const track of all) show(track.dot, track.now, "setLatLng");
    };
    const control = L.control({ position: "bottomleft" });
    control.onAdd = () => {
      const box = L.DomUtil.create("div", "promesse-slider");
      const button = box.appendChild(document.createElement("button"));
      const range = box.appendChild(document.createElement("input"));
      const label = box.appendChild(document.createElement("output"));
      Object.assign(range, { type: "range", min: first, max: last, step: 1, value: shown.times[shown.times.length >> 1] });
      range.setAttribute("aria-label", "time");
      const move = () => {
        draw(Number(range.value));
        label.textContent = time(Number(range.value));
      };
      let playing = null;
      const stop = () => {
        clearInterval(playing);
        playing = null;
        button.textContent = "▶";
        button.title = "play";
      };
      const step = () => {
        range.value = Number(range.value) + Math.max(1, (last - first) / 600);
        move();
        if (Number(range.value) >= last) stop();
      };
      const play = () => {
        if (Number(range.value) >= last) range.value = first;
        playing = setInterval(step, 50);
        button.textContent = "⏸";
        button.title = "pause";
      };
      button.addEventListener("click", () => (playing === null ? play() : stop()));
      range.addEventListener("input", move);
      map.on("promesse-users", move);
      L.DomEvent.disableClickPropagation(box).disableScrollPropagation(box);
      stop();
      move();
      return box;
    };
    control.addTo(map);
    showAll([map]);
  };

  const moveTogether = (left, right) => {
    let busy = false;
    const follow = (leader, follower) =>
      leader.on("move", () => {
        if (busy) return;
        busy = true;
        follower.setView(leader.getCenter(), leader.getZoom(), { animate: false });
        busy = false;
      });
    follow(left, right);
    follow(right, left);
    showAll([left, right]);
    right.setView(left.getCenter(), left.getZoom(), { reset: true }); // without reset Leaflet pans by whole pixels
    right.getContainer().classList.add("promesse-pair");
  };

  return { records, pois, background, heat, addControls, slider, moveTogether };
})();
