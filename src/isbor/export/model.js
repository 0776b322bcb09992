// Predictions of a model that isbor wrote as JSON (`isbor.export.to_json`), in plain JavaScript (ES2020).
//
//   const model = isborModel.read(JSON.parse(text));
//   model.predict({age: 41, colour: "red", income: null});
//   // {label, probabilities, score, responseScale, thresholds, noiseScale, excess, constant, functions}
//
// A row is an object with a value for each feature: a number, a category, or null for a missing cell.
// docs/export.md of isbor has the formulas, under the headings that the comments name.

"use strict";

const isborModel = (() => {
  // --- Numbers --------------------------------------------------------------------------------------------

  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const dot = (a, b) => {
    let total = 0;
    for (let i = 0; i < a.length; i++) total += a[i] * b[i];
    return total;
  };
  const clip = (x, low, high) => Math.min(Math.max(x, low), high);
  const times = (matrix, vector) => matrix.map((row) => dot(row, vector));
  // vector · matrix
  const combined = (vector, matrix) => {
    const total = new Array(matrix.length ? matrix[0].length : 0).fill(0);
    matrix.forEach((row, i) => row.forEach((value, j) => { total[j] += vector[i] * value; }));
    return total;
  };

  // The tail T(z) = Ψ(-z) exp(z²/2) √(2π) for z > 0: Laplace's continued fraction 1/(z + 1/(z + 2/(z + 3/…))),
  // evaluated by the method of Lentz.
  const tailFraction = (z) => {
    let f = z, c = z, d = 0;
    for (let k = 1; k < 1000; k++) {
      d = 1 / (z + k * d);
      c = z + k / c;
      const step = c * d;
      f *= step;
      if (Math.abs(step - 1) < 1e-16) break;
    }
    return 1 / f;
  };
  // Ψ(z) - ½ for small z: the series φ(z) (z + z³/3 + z⁵/(3·5) + …), whose terms all have the same sign.
  const nearMiddle = (z) => {
    let term = z, total = z;
    for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(total); k += 2) {
      term *= (z * z) / k;
      total += term;
    }
    return (total * Math.exp(-0.5 * z * z)) / ROOT_OF_2_PI;
  };
  const ROOT_OF_2_PI = Math.sqrt(2 * Math.PI);
  const FAR = 2; // from here on the continued fraction converges quickly

  /** Ψ(z), the standard normal distribution function. */
  const normalCdf = (z) => {
    if (Math.abs(z) < FAR) return 0.5 + nearMiddle(z);
    const tail = z * z < 3000 ? (tailFraction(Math.abs(z)) * Math.exp(-0.5 * z * z)) / ROOT_OF_2_PI : 0;
    return z < 0 ? tail : 1 - tail;
  };
  /** ln Ψ(z), accurate in both tails. */
  const logNormalCdf = (z) => {
    if (z > FAR) return Math.log1p(-normalCdf(-z));
    if (z > -FAR) return Math.log(normalCdf(z));
    return Math.log(tailFraction(-z) / ROOT_OF_2_PI) - 0.5 * z * z;
  };
  /** Ψ⁻¹(p) from ln p ≤ ln ½. Newton's method on the concave ln Ψ rises to the solution from the left. */
  const quantileOfLog = (logP) => {
    let z = -Math.sqrt(-2 * logP);
    if (!Number.isFinite(z)) return z;
    for (let k = 0; k < 100; k++) {
      const logCdf = logNormalCdf(z);
      const step = (logP - logCdf) * ROOT_OF_2_PI * Math.exp(logCdf + 0.5 * z * z);
      z += step;
      if (!(Math.abs(step) > 1e-15 * Math.max(1, -z))) break;
    }
    return z;
  };
  /** Ψ⁻¹(p) from ln p and ln(1 - p), of which the smaller one has more digits. */
  const normalScore = (logBelow, logAbove) =>
    logBelow < logAbove ? quantileOfLog(logBelow) : -quantileOfLog(logAbove);
  const logSum = (logs) => {
    const largest = Math.max(...logs);
    return largest === -Infinity ? largest : largest + Math.log(sum(logs.map((log) => Math.exp(log - largest))));
  };

  /** Eigenvalues and eigenvectors (columns of `vectors`) of a symmetric matrix, by Jacobi's rotations. */
  const eigen = (matrix) => {
    const n = matrix.length, a = matrix.map((row) => row.slice());
    const vectors = a.map((_, i) => a.map((__, j) => (i === j ? 1 : 0)));
    for (let sweep = 0; sweep < 60; sweep++) {
      let outside = 0, all = 0;
      a.forEach((row, i) => row.forEach((x, j) => { all += x * x; if (i !== j) outside += x * x; }));
      if (outside <= 1e-32 * all) break;
      for (let p = 0; p < n; p++) {
        for (let q = p + 1; q < n; q++) {
          if (a[p][q] === 0) continue;
          const ratio = (a[q][q] - a[p][p]) / (2 * a[p][q]);
          const t = (ratio < 0 ? -1 : 1) / (Math.abs(ratio) + Math.hypot(1, ratio));
          const c = 1 / Math.hypot(1, t), s = t * c;
          for (let i = 0; i < n; i++) {
            [a[i][p], a[i][q]] = [c * a[i][p] - s * a[i][q], s * a[i][p] + c * a[i][q]];
          }
          for (let i = 0; i < n; i++) {
            [a[p][i], a[q][i]] = [c * a[p][i] - s * a[q][i], s * a[p][i] + c * a[q][i]];
            [vectors[i][p], vectors[i][q]] =
              [c * vectors[i][p] - s * vectors[i][q], s * vectors[i][p] + c * vectors[i][q]];
          }
        }
      }
    }
    return { values: a.map((row, i) => row[i]), vectors };
  };

  // --- "From a row to columns" ----------------------------------------------------------------------------

  /** The cell of a feature: a number, the position of a category, -1 for an unseen one, null if missing. */
  const cell = (json, feature, row) => {
    if (!Object.prototype.hasOwnProperty.call(row, feature.name)) {
      throw new Error(`The row has no value of ${JSON.stringify(feature.name)}. Give null if it is missing.`);
    }
    const value = row[feature.name];
    if (value === null || value === undefined || Number.isNaN(value)) {
      if (json.refuses_missing) {
        throw new Error(`The value of ${JSON.stringify(feature.name)} is missing; this model needs all values.`);
      }
      return null;
    }
    if (feature.type === "number") {
      if (!(typeof value === "boolean" || Number.isFinite(value))) {
        throw new Error(
          `The value of ${JSON.stringify(feature.name)} is ${JSON.stringify(value)}; a finite number is needed.`);
      }
      return Number(value);
    }
    const known = feature.categories;
    if (known.length && typeof known[0] !== typeof value) {
      throw new Error(
        `The value of ${JSON.stringify(feature.name)} is ${JSON.stringify(value)}; training had categories ` +
        `such as ${JSON.stringify(known[0])}. Give a value of the same type.`);
    }
    return known.indexOf(value);
  };
  const encoded = (json, row) => {
    const cells = json.features.map((feature) => cell(json, feature, row));
    if (Object.keys(row).length > cells.length) {
      const unknown = Object.keys(row).find((name) => json.features.every((feature) => feature.name !== name));
      throw new Error(`The row has a value of ${JSON.stringify(unknown)}, which is no feature of the model.`);
    }
    return json.columns.map((column) => {
      const feature = json.features[column.feature], value = cells[column.feature];
      if (column.is === "number") return value === null ? column.fill : value;
      if (column.is === "missing") return value === null ? 1 : 0;
      const known = value !== null && value >= 0;
      if (column.is === "rank") return known ? value : column.fill;
      if (column.is === "category") return known && feature.categories[value] === column.category ? 1 : 0;
      return known || (value === null && feature.had_missing) ? 0 : 1; // "unseen"
    });
  };

  // --- "From columns to inputs" ---------------------------------------------------------------------------

  const scaled = (scaling, columns) => columns.map((x, j) =>
    clip((x - scaling.mean[j]) * scaling.lift[j] * scaling.factor[j], -1e100, 1e100));
  const warped = ({ knots, values }, x) => {
    const last = knots.length - 1;
    if (x <= knots[0]) return values[0];
    if (x >= knots[last]) return values[last];
    let low = 0, high = last;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (knots[middle] <= x) low = middle; else high = middle;
    }
    return values[low] + ((values[high] - values[low]) / (knots[high] - knots[low])) * (x - knots[low]);
  };
  const prepared = (json, columns) => {
    const z = scaled(json.scaling, columns);
    return json.inputs.map(({ column, warp }) => (warp ? warped(warp, z[column]) : z[column]));
  };

  // --- "The score of a model" -----------------------------------------------------------------------------

  const distance = (metric, x, z) => {
    let total = 0;
    for (let d = 0; d < metric.length; d++) total += metric[d] * (x[d] - z[d]) * (x[d] - z[d]);
    return total;
  };
  const functionValue = ({ shape, inputs, centre, metric, offset }, x) => {
    let argument = 0;
    for (let k = 0; k < inputs.length; k++) {
      const apart = x[inputs[k]] - centre[k];
      argument += metric[k] * (shape === "ramp" ? apart : -apart * apart);
    }
    return (shape === "ramp" ? Math.tanh(argument) : Math.exp(argument)) - offset;
  };
  const kernelValue = ({ kernel, gamma, degree, coef0 }, x, z) => {
    if (kernel === "linear") return dot(x, z);
    if (kernel === "poly") return (gamma * dot(x, z) + coef0) ** degree;
    let squared = 0;
    for (let d = 0; d < x.length; d++) squared += (x[d] - z[d]) * (x[d] - z[d]);
    return Math.exp(-gamma * squared);
  };
  /** Values of the functions of a score. */
  const functionValues = (score, x) => {
    if (score.kind === "functions") return score.functions.map((one) => functionValue(one, x));
    if (score.kind === "kernel") return score.rows.map((z) => kernelValue(score, x, z));
    return score.rows.map((z) =>
      sum(score.covariance.map(({ variance, metric }) => variance * Math.exp(-distance(metric, x, z)))));
  };
  const weightsOf = (score) =>
    score.kind === "functions" ? score.functions.map((one) => one.weight) : score.weights;
  const varianceOf = (score, values) => {
    if (score.kind === "kernel") return 0;
    if (score.kind === "functions") return sum(times(score.whitening, values).map((one) => one * one));
    const whitened = new Float64Array(values.length);
    let known = 0;
    for (let i = 0; i < values.length; i++) {
      const row = score.cholesky[i];
      let rest = values[i] * Math.sqrt(score.precision[i]);
      for (let j = 0; j < i; j++) rest -= row[j] * whitened[j];
      whitened[i] = rest / row[i];
      known += whitened[i] * whitened[i];
    }
    return Math.max(sum(score.covariance.map((part) => part.variance)) - known, score.least_variance);
  };

  // --- "Noise and thresholds that vary" -------------------------------------------------------------------

  const saturated = (x) => 3 * (1 - 2 / (1 + Math.exp(Math.min((2 / 3) * x, 80))));
  /** The part of gap l that lies on the way from the middle of t thresholds to threshold k. */
  const onTheWay = (t, k, l) => {
    const middle = 0.5 * (t - 1);
    const up = Math.min(k, l + 1) - Math.max(middle, l), down = Math.min(middle, l + 1) - Math.max(k, l);
    return Math.max(up, 0) - Math.max(down, 0);
  };
  /** How far the thresholds of the row are from those of the average row. */
  const thresholdShifts = ({ thresholds, patterns, weights, places }, values) => {
    const sums = weights.map((own) => saturated(dot(own, values)));
    const factors = patterns[0].map((_, l) => Math.exp(sum(sums.map((t, q) => patterns[q][l] * t))));
    const t = thresholds.length, gaps = factors.map((_, l) => thresholds[l + 1] - thresholds[l]);
    const shifts = thresholds.map((_, k) => sum(gaps.map((gap, l) => onTheWay(t, k, l) * gap * (factors[l] - 1))));
    return places.map((place) => shifts[place]);
  };

  /** The score of one model at prepared inputs: mean, variance, noise and thresholds, and its functions. */
  const latent = (json, model, x) => {
    const values = functionValues(model.score, x), { scale } = model, t2 = json.temperature ** 2;
    const noise = model.noise ? Math.exp(saturated(dot(model.noise, values))) : 1;
    const shifts = model.gaps ? thresholdShifts(model.gaps, values) : null;
    return {
      values,
      mean: scale * dot(weightsOf(model.score), values) + model.shift,
      variance: t2 * scale * scale * varianceOf(model.score, values),
      noiseVariance: t2 * (scale * noise) ** 2,
      thresholds: shifts ? model.thresholds.map((b, k) => b + scale * shifts[k]) : model.thresholds,
    };
  };

  // --- "Class probabilities" ------------------------------------------------------------------------------

  const standardised = ({ mean, variance, noiseVariance, thresholds }) =>
    thresholds.map((b) => (b - mean) / Math.sqrt(variance + noiseVariance));
  const withLapses = (json, probabilities) =>
    probabilities.map((p) => (1 - json.lapse) * p + json.lapse / probabilities.length);
  const classProbabilities = (json, part) => {
    const z = [-Infinity, ...standardised(part), Infinity];
    // Above the mean, upper tails: the difference of two numbers near 1 would lose digits.
    const between = (low, high) =>
      low > 0 ? normalCdf(-low) - normalCdf(-high) : normalCdf(high) - normalCdf(low);
    return withLapses(json, z.slice(1).map((high, k) => between(z[k], high)));
  };
  /** How far the farthest column is outside the range of the training rows, in widths of the range. */
  const excessOf = (drift, columns) => (drift === null ? 0 : Math.max(0, ...drift.columns.map((j, i) => {
    const half = 0.5 * columns[j], low = 0.5 * drift.low[i], high = 0.5 * drift.high[i];
    return Math.max(low - half, half - high) / Math.max(high - low, 2.2250738585072014e-308);
  })));
  const driftShare = (excess) => -Math.expm1(-(Math.min(excess, 100) ** 2) / 8);
  const cumulated = (values) => values.slice(0, -1).map((_, k) => sum(values.slice(0, k + 1)));

  // --- "Bands" --------------------------------------------------------------------------------------------

  const LARGEST_SCORE = 1e3;
  const bounded = (z) => clip(z, -LARGEST_SCORE, LARGEST_SCORE);
  /** Values of the functions of the reference process, without offsets. */
  const induced = ({ metric, rows, whitening }, x) =>
    combined(rows.map((z) => Math.exp(-distance(metric, x, z))), whitening);
  /** The share of the prior variance that the functions do not represent. */
  const notRepresented = (plain) => Math.max(1 - dot(plain, plain), 0);
  /** What the reference process knows of the thresholds in units of the noise: their mean and covariance. */
  const referenceLaw = (reference, columns) => {
    const x = scaled(reference.scaling, columns), plain = induced(reference.functions, x);
    const psi = plain.map((value, i) => value - reference.functions.offset[i]), m = psi.length;
    let t = 0, varianceOfT = 0;
    if (reference.noise) {
      const { functions, weights, directions, variances, amplitude } = reference.noise;
      const plainOfT = induced(functions, x);
      const psiOfT = plainOfT.map((value, i) => value - functions.offset[i]);
      t = 3 * Math.tanh(dot(psiOfT, weights) / 3);
      varianceOfT = dot(combined(psiOfT, directions).map((one) => one * one), variances);
      varianceOfT += amplitude * notRepresented(plainOfT);
    }
    const score = dot(psi, reference.weights), covariance = reference.covariance;
    const mean = reference.thresholds.map((b) => (b - score) * Math.exp(-t));
    const shared = combined(psi, covariance.slice(0, m)); // with all weights, then with all thresholds
    const ofScore = dot(shared.slice(0, m), psi) + reference.amplitude * notRepresented(plain);
    return {
      mean,
      covariance: mean.map((_, k) => mean.map((__, l) =>
        (covariance[m + k][m + l] - shared[m + k] - shared[m + l] + ofScore) * Math.exp(-2 * t) +
        varianceOfT * mean[k] * mean[l])),
    };
  };
  /** Normal scores π of the predicted cumulative probabilities, without lapses. */
  const normalScores = (json, at) => {
    if (at.parts.length === 1 && at.drift === 0) return standardised(at.parts[0]).map(bounded);
    const z = at.parts.map(standardised), base = json.drift ? cumulated(json.drift.base_rates) : [];
    const mixed = (k, sign) => {
      const inside = logSum(z.map((own, j) => Math.log(json.models[j].share) + logNormalCdf(sign * own[k])));
      if (at.drift === 0) return inside;
      const outside = Math.log(sign > 0 ? base[k] : 1 - base[k]) + Math.log(at.drift);
      return logSum([inside + Math.log1p(-at.drift), outside]);
    };
    return json.thresholds.map((_, k) => bounded(normalScore(mixed(k, 1), mixed(k, -1))));
  };
  /** Mean and covariance of the normal scores of the true cumulative probabilities. */
  const bandLaw = (json, at, pi) => {
    const { fitted, places, share } = json.reference, law = referenceLaw(json.reference, at.columns);
    const C = law.covariance, unit = C.map((row, k) => Math.sqrt(1 + row[k]));
    let B = C.map((row) => row.map(() => 0));
    if (at.parts.length > 1) {
      const z = at.parts.map((part) => {
        const own = standardised(part).map(bounded);
        return fitted.map((k) => own[k]);
      });
      const shares = json.models.map((model) => model.share);
      const apart = z.map((own) => own.map((value, k) => (value - dot(shares, z.map((one) => one[k]))) * unit[k]));
      B = unit.map((_, k) => unit.map((__, l) => sum(apart.map((own, j) => shares[j] * own[k] * own[l]))));
      const trace = sum(B.map((row, k) => row[k])), ofProcess = sum(C.map((row, k) => row[k]));
      B = B.map((row) => row.map((value) => (trace / (trace + ofProcess)) * value));
    }
    const own = pi.map((z, k) => Math.sqrt(1 + C[places[k]][places[k]] + B[places[k]][places[k]]) * z);
    const delta = law.mean.map((mean, k) => mean - own[fitted[k]]);
    const V = C.map((row, k) => row.map((value, l) =>
      value + (1 - share) * B[k][l] + share * (1 - share) * delta[k] * delta[l]));
    return {
      mean: own.map((m, k) => m + share * delta[places[k]]),
      covariance: places.map((k) => places.map((l) => V[k][l])),
    };
  };
  const quantile = (sorted, share) => {
    const place = share * (sorted.length - 1), below = Math.floor(place);
    const above = Math.min(below + 1, sorted.length - 1);
    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
  };
  const bandsAt = (json, at, predicted, coverage) => {
    const { mean, covariance: V } = bandLaw(json, at, normalScores(json, at)), { values, vectors } = eigen(V);
    const root = V.map((_, k) => V.map((__, l) =>
      sum(values.map((size, i) => vectors[k][i] * Math.sqrt(Math.max(size, 0)) * vectors[l][i]))));
    const draws = predicted.map(() => []);
    for (const normal of json.reference.draws) {
      let below = 0;
      mean.forEach((m, k) => {
        const next = Math.max(below, normalCdf(m + dot(root[k], normal)));
        draws[k].push(next - below);
        below = next;
      });
      draws[mean.length].push(1 - below);
    }
    const tail = 0.5 - 0.5 * coverage;
    const sorted = draws.map((own) => Float64Array.from(own).sort());
    const ends = [tail, 1 - tail].map((share) => withLapses(json, sorted.map((own) => quantile(own, share))));
    return {
      lower: predicted.map((p, k) => Math.min(ends[0][k], p)),
      upper: predicted.map((p, k) => Math.max(ends[1][k], p)),
    };
  };

  // --- Models ---------------------------------------------------------------------------------------------

  /** Return the model that a description holds, with the methods `predict`, `score` and `bands`. */
  const read = (json) => {
    if (json.format !== "isbor-model" || json.version !== 1) {
      throw new Error(`This is ${json.format} of version ${json.version}; isbor-model of version 1 is needed.`);
    }
    const { centre, unit } = json.reported;
    const reported = (x) => (x - centre) / unit;
    /** All that is known of a row. */
    const evaluate = (row) => {
      const columns = encoded(json, row), x = prepared(json, columns);
      const parts = json.models.map((model) => latent(json, model, x));
      const excess = excessOf(json.drift, columns);
      return { columns, parts, excess, drift: driftShare(excess) };
    };
    const averaged = (parts, of) => sum(parts.map((part, j) => json.models[j].share * of(part)));
    /** The part and the thresholds from which probabilities are computed. */
    const responses = (parts) => {
      if (!json.calibration) return parts;
      const { slope, thresholds } = json.calibration;
      return parts.map((part) => ({ ...part, mean: slope * part.mean, thresholds }));
    };
    const probabilitiesAt = (at) => {
      if (!json.probabilities) return null;
      const ofParts = responses(at.parts).map((part) => classProbabilities(json, part));
      const inside = json.classes.map((_, k) => sum(ofParts.map((p, j) => json.models[j].share * p[k])));
      if (at.drift === 0) return inside;
      return inside.map((p, k) => (1 - at.drift) * p + at.drift * json.drift.base_rates[k]);
    };
    /** The median class: the number of thresholds below which lies less than half of the probability. */
    const levelAt = ({ parts, drift }) => {
      const base = json.drift ? cumulated(json.drift.base_rates) : [];
      return json.thresholds.filter((_, k) => {
        const z = parts.map((part) => standardised(part)[k]);
        if (drift === 0 && z.length === 1) return z[0] < 0;
        const inside = (sign) => sum(z.map((own, j) => json.models[j].share * normalCdf(sign * own)));
        const below = (1 - drift) * inside(1) + (drift && drift * base[k]);
        const above = (1 - drift) * inside(-1) + (drift && drift * (1 - base[k]));
        return below < above;
      }).length;
    };
    const contributionsAt = ({ parts }) => parts.flatMap(({ values }, j) => {
      const { share, scale, score } = json.models[j], weights = weightsOf(score);
      return values.map((value, index) =>
        ({ model: j, index, value, contribution: (share * scale * weights[index] * value) / unit }));
    });

    return {
      json,
      /** Predict a row: label, class probabilities, score, and what each function adds to it. */
      predict: (row) => {
        const at = evaluate(row), { parts } = at, mean = averaged(parts, (part) => part.mean);
        return {
          label: json.classes[levelAt(at)],
          probabilities: probabilitiesAt(at),
          score: reported(mean),
          responseScale: Math.sqrt(averaged(parts, (part) =>
            part.variance + part.noiseVariance + (part.mean - mean) ** 2)) / unit,
          thresholds: json.thresholds.map((_, k) => reported(averaged(parts, (part) => part.thresholds[k]))),
          noiseScale: Math.sqrt(averaged(parts, (part) => part.noiseVariance)) / unit,
          excess: at.excess,
          constant: reported(sum(json.models.map((model) => model.share * model.shift))),
          functions: contributionsAt(at),
        };
      },
      /** The score alone, which is faster. */
      score: (row) => {
        const x = prepared(json, encoded(json, row));
        return reported(sum(json.models.map(({ share, scale, shift, score }) =>
          share * (scale * dot(weightsOf(score), functionValues(score, x)) + shift))));
      },
      /** The ends of the bands around the class probabilities, or null if the model has none. */
      bands: (row, coverage = 0.9) => {
        if (!json.reference) return null;
        const at = evaluate(row);
        return bandsAt(json, at, probabilitiesAt(at), coverage);
      },
    };
  };

  return { read, normalCdf, logNormalCdf, normalScore };
})();

if (typeof module === "object") module.exports = isborModel;
