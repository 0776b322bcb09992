// The page: controls of features, and what the model predicts for their values.

"use strict";

(() => {
  const model = isborModel.read(JSON.parse(document.getElementById("model").textContent));
  const { json } = model;
  const COVERAGE = 0.9;
  const MOST_SHOWN = 10; // features; the others are folded
  const MOST_IN_VIEW = 6; // classes whose probabilities stay in view
  const HARDLY = 0.005; // relevance below which a feature is folded
  const N_NEAREST = 5;
  const MOST_TERMS = 2e7; // computed for Shapley values
  const N_ORDERS = 32;
  const UNSEEN = "\u0000another category";

  const byId = (id) => document.getElementById(id);
  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const heading = (text) => element("th", { scope: "row" }, element("div", { textContent: text }));
  const svg = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // --- Texts ----------------------------------------------------------------------------------------------

  const minus = (text) => text.replace("-", "−");
  const number = (x) => {
    const size = Math.abs(x);
    if (size !== 0 && (size >= 1e9 || size < 1e-4)) return minus(x.toExponential(3));
    return minus(Number(x.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: size >= 1e4 ? 9 : 4 }));
  };
  // Scores are read beside the thresholds: a hundredth of their distance counts.
  const decimals = (() => {
    const { thresholds, reported: { unit } } = json;
    const range = (thresholds[thresholds.length - 1] - thresholds[0]) / unit;
    return range > 0 ? Math.min(Math.max(Math.ceil(2 - Math.log10(range)), 0), 9) : 2;
  })();
  const ofScore = (x) => minus(Math.abs(x) < 1e9 ? x.toFixed(decimals) : x.toExponential(2));
  const signed = (x) => `${x < 0 ? "" : "+"}${ofScore(x)}`;
  const percent = (p) => {
    if (p > 0.995 && p < 1) return "> 99 %";
    return p < 0.005 && p > 0 ? "< 1 %" : `${Math.round(100 * p)} %`;
  };
  const ofCategory = (category) => String(category);

  // --- Colours: from blue over grey to orange, apart for all kinds of colour vision, and by lightness ------

  const STOPS = [[31, 90, 160], [106, 152, 196], [168, 168, 168], [222, 160, 82], [186, 88, 0]];
  const colour = (k) => {
    const place = (json.classes.length < 2 ? 0 : k / (json.classes.length - 1)) * (STOPS.length - 1);
    const low = Math.min(Math.floor(place), STOPS.length - 2), share = place - low;
    return `rgb(${STOPS[low].map((c, i) => Math.round(c + share * (STOPS[low + 1][i] - c))).join(" ")})`;
  };

  // --- Rows -----------------------------------------------------------------------------------------------

  const typical = Object.fromEntries(json.features.map((feature) => [feature.name, feature.typical]));
  /** A row by JSON after the # of the address, for the features that it names. */
  const rowOfAddress = () => {
    try {
      const given = JSON.parse(decodeURIComponent(location.hash.slice(1) || "{}"));
      const found = { ...typical, ...given };
      model.score(found); // an error if there are other features
      return found;
    } catch {
      return { ...typical };
    }
  };
  const keepAddress = () => {
    const changed = json.features.filter(({ name }) => row[name] !== typical[name]);
    const given = Object.fromEntries(changed.map(({ name }) => [name, row[name]]));
    const hash = changed.length ? `#${encodeURIComponent(JSON.stringify(given))}` : "#";
    try { history.replaceState(null, "", hash); } catch { /* not allowed here */ }
  };
  const row = rowOfAddress();
  let start = { ...typical };

  // --- Controls -------------------------------------------------------------------------------------------

  /** Make the control of a feature; return the element and a function that shows the row's value. */
  const numberControl = (feature, id) => {
    const { name, low, high, whole } = feature, constant = !(high > low);
    const step = whole && high - low < 1e6 ? 1 : "any";
    const box = element("input", { id, type: "number", step: "any" });
    const slider = element("input", { type: "range", min: low, max: high, step, disabled: constant });
    slider.setAttribute("aria-label", `${name}, slider`);
    if (step === "any") slider.step = (high - low) / 500 || "any";
    const absent = element("input", { type: "checkbox" });
    absent.setAttribute("aria-label", `${name} missing`);
    let known = row[name] ?? feature.typical ?? low;
    const set = (value) => { row[name] = known = value; changed(); };
    box.addEventListener("input", () => { if (Number.isFinite(box.valueAsNumber)) set(box.valueAsNumber); });
    box.addEventListener("change", () => show());
    slider.addEventListener("input", () => set(Number(Number(slider.value).toPrecision(12))));
    absent.addEventListener("change", () => { row[name] = absent.checked ? null : known; changed(); });
    const show = () => {
      const value = row[name];
      if (value !== null) known = value;
      if (document.activeElement !== box || value === null) {
        box.value = value === null ? "" : String(Number(value.toPrecision(6)));
      }
      slider.value = known;
      slider.setAttribute("aria-valuetext", value === null ? "missing" : number(value));
      absent.checked = value === null;
      box.disabled = value === null;
      slider.disabled = constant || value === null;
    };
    const middle = feature.had_missing
      ? element("label", {}, absent, " missing")
      : element("span", { textContent: constant ? "always the same in training" : "" });
    const ends = element("div", { className: "ends" },
      element("span", { textContent: constant ? "" : number(low) }), middle,
      element("span", { textContent: constant ? "" : number(high) }));
    const head = element("div", { className: "name" }, element("label", { htmlFor: id, textContent: name }), box);
    return { parts: constant ? [head, ends] : [head, slider, ends], show };
  };
  const categoryControl = (feature, id) => {
    const { name, categories } = feature;
    const values = [...categories];
    const menu = element("select", { id });
    for (const category of categories) menu.append(element("option", { textContent: ofCategory(category) }));
    if (feature.had_missing) {
      values.push(null);
      menu.append(element("option", { textContent: "(missing)" }));
    }
    if (typeof categories[0] === "string") {
      values.push(UNSEEN);
      menu.append(element("option", { textContent: "(another category)" }));
    }
    menu.addEventListener("change", () => { row[name] = values[menu.selectedIndex]; changed(); });
    const show = () => {
      const place = values.indexOf(row[name]);
      menu.selectedIndex = place < 0 ? values.length - 1 : place;
    };
    return {
      parts: [element("div", { className: "name" }, element("label", { htmlFor: id, textContent: name }), menu)],
      show,
    };
  };
  const order = json.features.map((_, j) => j);
  const relevance = (j) => json.features[j].relevance;
  const known = json.features.every((_, j) => relevance(j) !== null);
  if (known) order.sort((i, j) => relevance(j) - relevance(i) || i - j);
  const shown = order.filter((j, place) => place < MOST_SHOWN && !(known && place > 2 && relevance(j) < HARDLY));
  const folded = order.slice(shown.length);
  const controls = json.features.map((feature, j) => {
    const made = (feature.type === "number" ? numberControl : categoryControl)(feature, `feature-${j}`);
    return { ...made, box: element("div", { className: "feature" }, ...made.parts) };
  });
  byId("controls").append(...shown.map((j) => controls[j].box));
  if (folded.length) {
    const more = byId("more");
    more.hidden = false;
    more.querySelector("summary").textContent =
      `${folded.length} more feature${folded.length > 1 ? "s" : ""}${known ? " that matter less" : ""}`;
    more.querySelector("div").append(...folded.map((j) => controls[j].box));
  }
  byId("reset").addEventListener("click", () => {
    start = { ...typical };
    Object.assign(row, typical);
    changed();
  });
  byId("keep").addEventListener("click", () => { start = { ...row }; changed(); });

  // --- Prediction -----------------------------------------------------------------------------------------

  const classRows = json.classes.map((label, k) => {
    const fill = element("div", { className: "fill" }), band = element("div", { className: "band", hidden: true });
    fill.style.background = colour(k);
    const value = element("td", { className: "number" });
    const track = element("div", { className: "track" }, fill, band);
    const line = element("tr", {}, heading(ofCategory(label)), element("td", { className: "bar" }, track), value);
    return { line, fill, band, value };
  });
  byId("classes").tBodies[0].append(...classRows.map(({ line }) => line));
  const strip = json.classes.map((_, k) => {
    const part = element("div");
    part.style.background = colour(k);
    return part;
  });
  byId("strip").append(...strip);
  byId("label-note").textContent = json.calibration
    ? "The predicted class is that of the machine's own thresholds; it need not be the most probable one."
    : "The predicted class is the median: the first that, with the classes before it, has half of the probability.";
  byId("result").classList.toggle("stays", json.classes.length <= MOST_IN_VIEW);

  const showPrediction = (found, bands) => {
    byId("label").textContent = ofCategory(found.label);
    found.probabilities.forEach((p, k) => {
      const { line, fill, band, value } = classRows[k];
      line.classList.toggle("predicted", json.classes[k] === found.label);
      fill.style.width = `${100 * p}%`;
      strip[k].style.flexGrow = p;
      value.replaceChildren(percent(p));
      if (bands) {
        const low = bands.lower[k], high = bands.upper[k];
        band.hidden = false;
        band.style.left = `${100 * low}%`;
        band.style.width = `${100 * (high - low)}%`;
        const text = high < 0.005 ? "" : `${Math.round(100 * low)}–${Math.round(100 * high)} %`;
        value.append(element("small", { textContent: text }));
      }
    });
    byId("bands-note").hidden = !bands;
    const drift = byId("drift");
    drift.hidden = !(found.excess > 0);
    drift.textContent = "Outside the range of the training rows, by "
      + `${percent(found.excess)} of its width: the model does not know this region, and its probabilities drift `
      + "to the class frequencies.";
    const result = byId("result");
    result.dataset.probabilities = JSON.stringify(found.probabilities);
    result.dataset.score = found.score;
    if (bands) result.dataset.bands = JSON.stringify(bands);
  };
  let speaking;
  const speak = (found) => {
    clearTimeout(speaking);
    const said = json.classes.map((label, k) => `${ofCategory(label)} ${percent(found.probabilities[k])}`);
    const text = `Predicted: ${ofCategory(found.label)}. ${said.join(", ")}.`;
    speaking = setTimeout(() => { byId("spoken").textContent = text; }, 500);
  };

  // --- Score ----------------------------------------------------------------------------------------------

  const showAxis = (found) => {
    const { score, thresholds, responseScale } = found, withCurve = !json.calibration;
    const width = Math.max(byId("axis").clientWidth, 240), top = withCurve ? 84 : 30, bottom = top + 16;
    const reach = withCurve ? 2.5 * responseScale : 0.25 * (thresholds[thresholds.length - 1] - thresholds[0]) || 1;
    const low = Math.min(thresholds[0], score) - reach;
    const high = Math.max(thresholds[thresholds.length - 1], score) + reach;
    const place = (x) => (width * (x - low)) / (high - low);
    const title = `Score ${ofScore(score)}; thresholds ${thresholds.map(ofScore).join(", ")}`;
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${bottom + 34}`, role: "img", "aria-label": title });
    const edges = [low, ...thresholds, high];
    json.classes.forEach((label, k) => {
      const left = place(edges[k]), right = place(edges[k + 1]);
      drawing.append(svg("rect", { x: left, y: top, width: Math.max(right - left, 0), height: 16, fill: colour(k) }));
      if (withCurve) {
        const from = Math.max(edges[k], score - 4 * responseScale);
        const to = Math.min(edges[k + 1], score + 4 * responseScale);
        if (from < to) {
          const points = [];
          for (let i = 0; i <= 40; i++) {
            const x = from + ((to - from) * i) / 40, z = (x - score) / responseScale;
            points.push(`${place(x).toFixed(2)},${(top - 2 - (top - 22) * Math.exp(-0.5 * z * z)).toFixed(2)}`);
          }
          points.push(`${place(to).toFixed(2)},${top - 2}`, `${place(from).toFixed(2)},${top - 2}`);
          drawing.append(svg("polygon", { points: points.join(" "), fill: colour(k), opacity: 0.85 }));
        }
      }
    });
    let free = -Infinity; // where there is room for the next label
    thresholds.forEach((b) => {
      const x = place(b), text = ofScore(b), half = 3.6 * text.length;
      drawing.append(svg("line", { x1: x, x2: x, y1: top - 4, y2: bottom + 5, stroke: "var(--ink)" }));
      if (x - half > free && x + half < width) {
        drawing.append(svg("text", { x, y: bottom + 18, "text-anchor": "middle" }, text));
        free = x + half + 4;
      }
    });
    const x = place(score), anchor = x < 50 ? "start" : x > width - 50 ? "end" : "middle";
    drawing.append(svg("line", { x1: x, x2: x, y1: 16, y2: bottom, stroke: "var(--ink)", "stroke-width": 2.5 }));
    drawing.append(svg("text", { x, y: 12, "text-anchor": anchor, class: "strong" }, ofScore(score)));
    drawing.append(svg("text", { x: 0, y: bottom + 31 }, ofCategory(json.classes[0]).slice(0, 20)));
    drawing.append(svg("text", { x: width, y: bottom + 31, "text-anchor": "end" },
      ofCategory(json.classes[json.classes.length - 1]).slice(0, 20)));
    byId("axis").replaceChildren(drawing);
    byId("axis-note").textContent = withCurve
      ? "The score, cut into classes by thresholds. The curve is the score with its noise and uncertainty; its "
        + "areas are about the probabilities."
      : "The score, cut into classes by thresholds; probabilities have a calibration of their own.";
  };

  // --- Contributions of the changes -----------------------------------------------------------------------

  /** Shapley values of the changed features: they add up to the change of the score. */
  const contributions = (names) => {
    const k = names.length, terms = sizeOfScore() * 2 ** k;
    const scoreOf = (isNew) => model.score({ ...row, ...Object.fromEntries(
      names.filter((_, i) => !isNew(i)).map((name) => [name, start[name]])) });
    const values = new Array(k).fill(0);
    if (k <= 12 && terms <= MOST_TERMS) {
      const scores = Array.from({ length: 2 ** k }, (_, set) => scoreOf((i) => (set >> i) & 1));
      const shares = [1 / k]; // 1 / (k · number of sets of this size of the others)
      for (let size = 1; size < k; size++) shares.push((shares[size - 1] * size) / (k - size));
      scores.forEach((score, set) => {
        const size = names.filter((_, i) => (set >> i) & 1).length;
        for (let i = 0; i < k; i++) {
          if (!((set >> i) & 1)) values[i] += shares[size] * (scores[set | (1 << i)] - score);
        }
      });
      return { values, exact: true };
    }
    // In random orders and their reverses; the same ones each time.
    let state = 1;
    const random = () => { state = (state * 48271) % 2147483647; return state / 2147483647; };
    for (let n = 0; n < N_ORDERS; n++) {
      const forth = names.map((_, i) => i);
      for (let i = k - 1; i > 0; i--) {
        const j = Math.floor(random() * (i + 1));
        [forth[i], forth[j]] = [forth[j], forth[i]];
      }
      for (const one of [forth, [...forth].reverse()]) {
        const isNew = new Array(k).fill(false);
        let before = scoreOf(() => false);
        for (const i of one) {
          isNew[i] = true;
          const after = scoreOf((j) => isNew[j]);
          values[i] += (after - before) / (2 * N_ORDERS);
          before = after;
        }
      }
    }
    return { values, exact: false };
  };
  const sizeOfScore = () => json.models.reduce((total, { score }) => total + (score.kind === "functions"
    ? score.functions.reduce((own, one) => own + one.inputs.length + 4, 0)
    : score.rows.length * (json.inputs.length + 4) * (score.covariance?.length ?? 1)), json.columns.length);

  const showChanges = (found) => {
    const names = json.features.map(({ name }) => name).filter((name) => row[name] !== start[name]);
    const { values, exact } = names.length ? contributions(names) : { values: [], exact: true };
    const largest = Math.max(...values.map(Math.abs), 1e-300);
    const lines = names.map((name, i) => ({ name, value: values[i] }))
      .sort((a, b) => Math.abs(b.value) - Math.abs(a.value))
      .map(({ name, value }) => {
        const half = (50 * Math.abs(value)) / largest, fill = element("div");
        fill.className = `fill ${value < 0 ? "down" : "up"}`;
        fill.style.left = `${value < 0 ? 50 - half : 50}%`;
        fill.style.width = `${half}%`;
        const track = element("div", { className: "track" }, fill, element("div", { className: "middle" }));
        return element("tr", {}, heading(name), element("td", { className: "bar" }, track),
          element("td", { className: "number", textContent: signed(value) }));
      });
    byId("changes").tBodies[0].replaceChildren(...lines);
    const from = model.score(start);
    byId("changes-note").textContent = names.length
      ? `From ${ofScore(from)} at the start to ${ofScore(found.score)}: ${signed(found.score - from)}, shared among `
        + `the changed features by ${exact ? "exact Shapley values" : `Shapley values of ${2 * N_ORDERS} orders`}. `
        + "They describe the model, not causes."
      : "Nothing differs from the start yet. Change a feature to see what it does to the score.";
    byId("keep").disabled = !names.length;
    byId("reset").disabled = json.features.every(({ name }) => row[name] === typical[name]) && !names.length;
    json.features.forEach(({ name }, j) =>
      controls[j].box.classList.toggle("changed", row[name] !== start[name]));
  };

  // --- Functions that are large here ----------------------------------------------------------------------

  /** The value of an input in units of the encoded column. */
  const inColumn = ({ column, warp }, value) => {
    const { mean, lift, factor } = json.scaling;
    let z = value;
    if (warp) {
      const { knots, values } = warp, last = knots.length - 1;
      const above = values.findIndex((own) => own >= value);
      if (above <= 0) z = above === 0 ? knots[0] : knots[last];
      else {
        const share = (value - values[above - 1]) / (values[above] - values[above - 1]);
        z = knots[above - 1] + share * (knots[above] - knots[above - 1]);
      }
    }
    return factor[column] > 0 ? mean[column] + z / factor[column] / lift[column] : mean[column];
  };
  /** A centre in words: the features that a function uses, with about their values. */
  const inWords = (inputs, centre) => {
    const byColumn = new Map();
    inputs.forEach((input, k) => {
      const { column, warp } = json.inputs[input];
      if (!warp || !byColumn.has(column)) byColumn.set(column, inColumn(json.inputs[input], centre[k]));
    });
    const of = (j, kinds) => [...byColumn].filter(([column]) =>
      json.columns[column].feature === j && kinds.includes(json.columns[column].is));
    return order.flatMap((j) => {
      const { name, type } = json.features[j];
      if (of(j, ["missing"]).some(([, value]) => value >= 0.5)) return [`${name} missing`];
      if (type === "number") return of(j, ["number"]).map(([, value]) => `${name} ${number(value)}`);
      const used = of(j, ["category", "unseen"]).sort((a, b) => b[1] - a[1]);
      const word = ([column]) => (json.columns[column].is === "unseen" ? "another" : ofCategory(json.columns[column].category));
      if (used.length && used[0][1] >= 0.5) return [`${name} ${word(used[0])}`];
      if (used.length && used.length < 4) return [`${name} not ${used.map(word).join(" or ")}`];
      return used.length ? [] : of(j, ["rank"]).map(([, value]) => `${name} of rank ${number(value + 1)}`);
    }).join(", ") || "everywhere";
  };
  const all = json.inputs.map((_, p) => p);
  /** How near a function's centre is, from 0 to 1; null if it has none. */
  const nearness = ({ model: j, index, value }) => {
    const { score } = json.models[j];
    if (score.kind === "functions") {
      const { shape, offset } = score.functions[index];
      return shape === "bump" ? value + offset : null;
    }
    if (score.kind === "process") return value / score.covariance.reduce((total, part) => total + part.variance, 0);
    return score.kernel === "rbf" ? value : null;
  };
  const centreOf = ({ model: j, index }) => {
    const { score } = json.models[j];
    if (score.kind !== "functions") return inWords(all, score.rows[index]);
    return inWords(score.functions[index].inputs, score.functions[index].centre);
  };
  const areRows = json.models.every(({ score }) => score.kind !== "functions");
  byId("nearest-title").textContent = areRows ? "Nearest training rows" : "Nearest basis functions";
  byId("centre-title").textContent = areRows ? "row" : "centre, about";

  const showNearest = (found) => {
    const near = found.functions.map((one) => ({ ...one, near: nearness(one) })).filter((one) => one.near !== null);
    const nearest = near.sort((a, b) => b.near - a.near).slice(0, N_NEAREST);
    byId("nearest").hidden = !nearest.length;
    byId("nearest").querySelector("tbody").replaceChildren(...nearest.map((one) => element("tr", {},
      element("td", { textContent: percent(one.near) }), element("td", { textContent: centreOf(one) }),
      element("td", { textContent: signed(one.contribution) }))));
    const n = found.functions.length, ramps = n - near.length;
    byId("nearest-note").textContent = `The score is a sum of ${n.toLocaleString("en")} function${n > 1 ? "s" : ""}`
      + `${ramps ? `, ${ramps} of which are ramps without a centre` : ""}. `
      + "A function is near if it is close to its largest value, 100 %.";
  };

  // --- All together ---------------------------------------------------------------------------------------

  const show = () => {
    controls.forEach((control) => control.show());
    const found = model.predict(row), bands = model.bands(row, COVERAGE);
    showPrediction(found, bands);
    showAxis(found);
    showChanges(found);
    showNearest(found);
    speak(found);
    keepAddress();
  };
  let waiting = false;
  const changed = () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => { waiting = false; guarded(show); });
  };
  /** Say on the page what went wrong, if anything does. */
  const guarded = (action) => {
    const failure = byId("failure");
    try {
      action();
      failure.hidden = true;
    } catch (error) {
      failure.hidden = false;
      failure.textContent = `This row cannot be predicted: ${error.message}`;
    }
  };
  addEventListener("resize", changed);
  addEventListener("hashchange", () => { Object.assign(row, rowOfAddress()); changed(); });

  const classes = json.classes.length, weight = json.training_weight;
  byId("about").textContent = `${json.estimator}, trained on ${number(weight)} row${weight === 1 ? "" : "s"}; `
    + `${classes} ordered classes, ${json.features.length} feature${json.features.length > 1 ? "s" : ""}. `
    + "Change the features to see what the model predicts.";
  const functions = json.models.reduce((total, { score }) => total + (score.functions ?? score.rows).length, 0);
  const trained = {
    "Estimator": json.parameters,
    ...(json.basis ? { "Basis functions": json.basis } : {}),
    "Training rows": `${number(weight)} (total weight)`,
    "Classes": json.classes.map(ofCategory).join(" < "),
    "Score": `${functions} functions in ${json.models.length} model${json.models.length > 1 ? "s" : ""}`,
    "Written by": json.made_by,
  };
  for (const [name, text] of Object.entries(trained)) {
    byId("trained").append(element("dt", { textContent: name }), element("dd", { textContent: text }));
  }
  guarded(show);
})();
