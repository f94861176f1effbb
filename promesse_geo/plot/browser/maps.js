/* Maps of Promesse Geo in the browser. Texts from the data enter the page only as text nodes. */
const promesse = (() => {
  "use strict";

  document.documentElement.lang ||= "en";

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

  /* Split a track into pieces at breaks, and so that none crosses the whole map. */
  const pieces = ({ places, isBreak }, period) => {
    const all = [];
    places.forEach((place, i) => {
      if (i && !isBreak(i) && nearest(places[i - 1], place, period)[1] === place[1]) all[all.length - 1].push(place);
      else all.push([place]);
    });
    return all;
  };

  const records = (group, data) => {
    const time = clock(data.zone);
    group.promesse = { colour: data.colour, period: data.period, tracks: tracks(data) };
    if (data.lines) {
      for (const track of group.promesse.tracks) {
        const style = { color: data.colour, weight: data.width, opacity: data.shade, interactive: false };
        L.polyline(pieces(track, data.period), style).addTo(group);
      }
    }
    for (const { user, places, times } of group.promesse.tracks) {
      places.forEach((place, i) => {
        L.circleMarker(place, {
          radius: data.radius,
          stroke: false,
          fillColor: data.colour,
          fillOpacity: data.opacity,
          lines: () => [data.title, user, time(times[i])],
        }).addTo(group);
      });
    }
    bindTexts(group);
  };

  const pois = (group, data) => {
    const time = clock(data.zone);
    const icon = L.divIcon({ className: "promesse-poi", html: data.glyph, iconSize: [data.size, data.size] });
    for (const { user, places, times, ends } of tracks(data)) {
      places.forEach((place, i) => {
        const when = times.length ? [`${time(times[i])} to ${time(ends[i])}`] : [];
        const lines = () => [data.title, user, ...when];
        L.marker(place, { icon, keyboard: false, zIndexOffset: data.rank, lines }).addTo(group);
      });
    }
    bindTexts(group);
  };

  /* Keep the original records below the protected ones when layers are hidden and shown again. */
  const keepBelow = (map, group) =>
    map.on("overlayadd", () => map.hasLayer(group) && group.eachLayer((layer) => layer.bringToBack()));

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

  /* Add scale and remarks, and show all data. A legend that would cover the zoom buttons opens on hover. */
  const addControls = (map, control, { corners, closest, remarks }) => {
    map.promesse = { control, corners, closest };
    L.control.scale({ imperial: false }).addTo(map);
    const note = L.control({ position: "bottomright" });
    note.onAdd = () => L.Util.extend(textBox(remarks), { className: "promesse-note" });
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
    const now = L.layerGroup().addTo(map);
    const draw = (moment) => {
      now.clearLayers();
      const places = new Map();
      for (const { user, colour, ...track } of all) {
        const place = placeAt(track, moment);
        if (!place) continue;
        if (places.has(user)) {
          const line = [places.get(user), nearest(places.get(user), place, track.period)];
          L.polyline(line, { renderer, className: "promesse-link", weight: 2, dashArray: "4 5" }).addTo(now);
        }
        places.set(user, place);
        const style = { renderer, className: "promesse-moving", color: "#fff", weight: 2, fillColor: colour, fillOpacity: 1 };
        L.circleMarker(place, { ...style, radius: 8 }).bindTooltip(() => textBox([user])).addTo(now);
      }
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

  return { records, pois, keepBelow, addControls, slider, moveTogether };
})();
