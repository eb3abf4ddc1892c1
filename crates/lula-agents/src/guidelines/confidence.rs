//! How sure a run may be of its change: Bayesian logistic regression, written out.
//!
//! The weights have a Gaussian prior; what people did with earlier changes moves them (the
//! posterior's mode by Newton's method, its covariance by Laplace's approximation). Everything is
//! additions, multiplications and divisions in one order, so that a replay on any machine comes to
//! the same result. No dependency, no clock, no randomness.

use serde::{Deserialize, Serialize};

use super::features::{ConfidenceFeatures, FEATURES};

/// So many labels make a confidence calibrated.
pub const ENOUGH: u32 = 50;
/// A change is accepted by itself from here on.
const SURE: f64 = 0.9;
/// And looked at again down to here; below that another look changes nothing.
const HOPELESS: f64 = 0.35;
/// A larger standard deviation is unsure, whatever the mean.
const WIDE: f64 = 0.15;
/// Variance of each weight before anything is known.
const PRIOR_VARIANCE: f64 = 0.5;
/// Most steps of Newton's method; it takes about six.
const STEPS: u32 = 40;
const MICRO: f64 = 1_000_000.0;

/// What is believed of each feature before the operator has judged a change.
const PRIOR: [f64; FEATURES] = [
    0.5, 1.5, 0.7, 0.3, 0.5, -1.5, -3.0, 0.8, -1.0, -0.8, 1.2, -0.7,
];

type Vector = [f64; FEATURES];
type Matrix = [Vector; FEATURES];

/// What a person did with a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewLabel {
    /// It was agreed to.
    Approved,
    Merged,
    /// It was turned down.
    Rejected,
    /// It was taken back.
    Undone,
}

impl ReviewLabel {
    /// Whether it speaks for the change.
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Approved | Self::Merged)
    }
}

/// What is believed of the weights, in millionths: exact, so that a run's log holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfidenceCalibration {
    /// How many labels it was learned from.
    pub labels: u32,
    /// The mean of each weight, in the order of the features.
    mean: Vec<i64>,
    /// Their covariance, row by row.
    covariance: Vec<i64>,
}

/// How sure a run is of its change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeConfidence {
    /// The probability that a person keeps the change, in thousandths.
    pub permille: u32,
    /// Its standard deviation, in thousandths.
    pub deviation: u32,
    /// How many labels it was learned from.
    pub labels: u32,
    /// What it was computed from.
    pub features: ConfidenceFeatures,
    /// Whether a second look was taken.
    pub second_look: bool,
}

impl ChangeConfidence {
    /// Whether enough people's decisions stand behind it.
    pub const fn is_calibrated(&self) -> bool {
        self.labels >= ENOUGH
    }

    /// Whether a second look may change what is thought of the change.
    pub fn is_unsure(&self) -> bool {
        let p = f64::from(self.permille) / 1000.0;
        (HOPELESS..=SURE).contains(&p) || f64::from(self.deviation) / 1000.0 > WIDE
    }

    /// Whether the operator need not be asked.
    pub fn is_sure(&self) -> bool {
        self.is_calibrated() && f64::from(self.permille) / 1000.0 > SURE && !self.is_unsure()
    }

    /// The confidence as a sentence for the operator.
    pub fn spoken(&self) -> String {
        let calibrated = if self.is_calibrated() {
            format!("from {} labels", self.labels)
        } else {
            format!("uncalibrated: {} of {ENOUGH} labels", self.labels)
        };
        format!(
            "{}.{:02} ± {}.{:02} ({calibrated})",
            self.permille / 1000,
            self.permille % 1000 / 10,
            self.deviation / 1000,
            self.deviation % 1000 / 10,
        )
    }
}

/// e to a power, by its series and squaring: the same on every machine.
fn exp(x: f64) -> f64 {
    let small = x.clamp(-60.0, 60.0) / 1024.0;
    let mut term = 1.0;
    let mut sum = 1.0;
    for number in 1..12 {
        term *= small / f64::from(number);
        sum += term;
    }
    for _ in 0..10 {
        sum *= sum;
    }
    sum
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

fn dot(a: &Vector, b: &Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The lower triangle of a symmetric positive definite matrix.
fn cholesky(matrix: &Matrix) -> Option<Matrix> {
    let mut lower = [[0.0; FEATURES]; FEATURES];
    for row in 0..FEATURES {
        for column in 0..=row {
            let known: f64 = (0..column).map(|k| lower[row][k] * lower[column][k]).sum();
            let rest = matrix[row][column] - known;
            lower[row][column] = if row == column {
                (rest > 0.0).then(|| rest.sqrt())?
            } else {
                rest / lower[column][column]
            };
        }
    }
    Some(lower)
}

fn solve(lower: &Matrix, right: &Vector) -> Vector {
    let mut solved = *right;
    for row in 0..FEATURES {
        let known: f64 = (0..row).map(|k| lower[row][k] * solved[k]).sum();
        solved[row] = (solved[row] - known) / lower[row][row];
    }
    for row in (0..FEATURES).rev() {
        let known: f64 = (row + 1..FEATURES).map(|k| lower[k][row] * solved[k]).sum();
        solved[row] = (solved[row] - known) / lower[row][row];
    }
    solved
}

/// The posterior: where the weights are, and how far they may be from there.
#[derive(Debug, Clone)]
struct Posterior {
    mean: Vector,
    covariance: Matrix,
}

impl Posterior {
    fn prior() -> Self {
        let mut covariance = [[0.0; FEATURES]; FEATURES];
        for (number, row) in covariance.iter_mut().enumerate() {
            row[number] = PRIOR_VARIANCE;
        }
        Self {
            mean: PRIOR,
            covariance,
        }
    }

    fn of(calibration: Option<&ConfidenceCalibration>) -> Self {
        let mut posterior = Self::prior();
        let Some(known) = calibration else {
            return posterior;
        };
        // One of another size was made by another version, and says nothing of these features.
        if known.mean.len() != FEATURES || known.covariance.len() != FEATURES * FEATURES {
            return posterior;
        }
        for (to, from) in posterior.mean.iter_mut().zip(&known.mean) {
            *to = from_micro(*from);
        }
        let cells = posterior.covariance.iter_mut().flatten();
        for (to, from) in cells.zip(&known.covariance) {
            *to = from_micro(*from);
        }
        posterior
    }

    /// Mean and variance of the probability.
    fn predict(&self, features: &Vector) -> (f64, f64) {
        let mean = dot(&self.mean, features);
        let spread = self
            .covariance
            .iter()
            .zip(features)
            .map(|(row, x)| x * dot(row, features))
            .sum::<f64>()
            .max(0.0);
        let p = sigmoid(mean / (1.0 + std::f64::consts::PI * spread / 8.0).sqrt());
        let slope = p * (1.0 - p);
        (p, slope * slope * spread)
    }
}

#[allow(clippy::cast_precision_loss)] // Weights are far below 2^52 millionths.
fn from_micro(value: i64) -> f64 {
    value as f64 / MICRO
}

#[allow(clippy::cast_possible_truncation)] // Weights are far below 2^63 millionths.
fn to_micro(value: f64) -> i64 {
    (value * MICRO).round() as i64
}

/// Which way the posterior rises, and how steeply.
fn slope(weights: &Vector, rows: &[(Vector, bool)]) -> Vector {
    let mut slope = [0.0; FEATURES];
    for number in 0..FEATURES {
        slope[number] = (PRIOR[number] - weights[number]) / PRIOR_VARIANCE;
    }
    for (x, good) in rows {
        let off = f64::from(u8::from(*good)) - sigmoid(dot(weights, x));
        for (sum, x) in slope.iter_mut().zip(x) {
            *sum += off * x;
        }
    }
    slope
}

/// How sharply it bends.
fn precision(weights: &Vector, rows: &[(Vector, bool)]) -> Matrix {
    let mut precision = [[0.0; FEATURES]; FEATURES];
    for (number, row) in precision.iter_mut().enumerate() {
        row[number] = 1.0 / PRIOR_VARIANCE;
    }
    for (x, _) in rows {
        let p = sigmoid(dot(weights, x));
        let bend = p * (1.0 - p);
        for (sums, left) in precision.iter_mut().zip(x) {
            for (sum, right) in sums.iter_mut().zip(x) {
                *sum += bend * left * right;
            }
        }
    }
    precision
}

/// A step towards the one peak, halved until it is not taken past it: where people agree the
/// surface is flat far from the peak, and a whole step of Newton's would go back and forth across it
/// for ever.
fn climb(from: &Vector, step: &Vector, rise: f64, rows: &[(Vector, bool)]) -> Vector {
    let mut length = 1.0;
    loop {
        let mut there = *from;
        for (weight, one) in there.iter_mut().zip(step) {
            *weight += length * one;
        }
        let past = dot(&slope(&there, rows), step) < -rise / 10.0;
        if !past || length < 1e-6 {
            return there;
        }
        length /= 2.0;
    }
}

/// Learns from what people did with changes.
pub fn learn(labelled: &[(ConfidenceFeatures, bool)]) -> ConfidenceCalibration {
    let rows: Vec<(Vector, bool)> = labelled
        .iter()
        .map(|(features, good)| (features.values(), *good))
        .collect();
    let mut posterior = Posterior::prior();
    let mut weights = PRIOR;
    for _ in 0..STEPS {
        let slope = slope(&weights, &rows);
        let Some(lower) = cholesky(&precision(&weights, &rows)) else {
            break;
        };
        let step = solve(&lower, &slope);
        let longest = step.iter().fold(0.0_f64, |most, one| most.max(one.abs()));
        weights = climb(&weights, &step, dot(&slope, &step), &rows);
        if longest < 1e-9 {
            break;
        }
    }
    let precision = precision(&weights, &rows);
    if let Some(lower) = cholesky(&precision) {
        posterior.mean = weights;
        for column in 0..FEATURES {
            let mut unit = [0.0; FEATURES];
            unit[column] = 1.0;
            let solved = solve(&lower, &unit);
            for (row, value) in solved.into_iter().enumerate() {
                posterior.covariance[row][column] = value;
            }
        }
    }
    ConfidenceCalibration {
        labels: u32::try_from(labelled.len()).unwrap_or(u32::MAX),
        mean: posterior.mean.iter().map(|one| to_micro(*one)).collect(),
        covariance: posterior
            .covariance
            .iter()
            .flatten()
            .map(|one| to_micro(*one))
            .collect(),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Between 0 and 1000.
fn permille(share: f64) -> u32 {
    (share.clamp(0.0, 1.0) * 1000.0).round() as u32
}

/// How sure to be of a change with these features.
pub fn weigh(
    calibration: Option<&ConfidenceCalibration>,
    features: ConfidenceFeatures,
    second_look: bool,
) -> ChangeConfidence {
    let (p, variance) = Posterior::of(calibration).predict(&features.values());
    ChangeConfidence {
        permille: permille(p),
        deviation: permille(variance.sqrt()),
        labels: calibration.map_or(0, |known| known.labels),
        features,
        second_look,
    }
}

/// What each feature adds to the odds, for the reader who wants to know why.
pub fn contributions(
    calibration: Option<&ConfidenceCalibration>,
    features: &ConfidenceFeatures,
) -> Vec<f64> {
    let posterior = Posterior::of(calibration);
    let values = features.values();
    posterior
        .mean
        .iter()
        .zip(values)
        .map(|(w, x)| w * x)
        .collect()
}

/// How good probabilities were: the mean squared miss (Brier), and the expected calibration error
/// over ten bins.
pub fn score(predicted: &[(f64, bool)]) -> (f64, f64) {
    let mut brier = 0.0;
    let mut bins = [(0.0_f64, 0.0_f64, 0.0_f64); 10];
    for (p, good) in predicted {
        let truth = f64::from(u8::from(*good));
        brier += (p - truth) * (p - truth);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Between 0 and 9.
        let bin = &mut bins[((p * 10.0) as usize).min(9)];
        bin.0 += 1.0;
        bin.1 += p;
        bin.2 += truth;
    }
    let count: f64 = bins.iter().map(|bin| bin.0).sum::<f64>().max(1.0);
    let miss = bins
        .iter()
        .filter(|bin| bin.0 > 0.0)
        .map(|bin| (bin.1 - bin.2).abs());
    (brier / count, miss.sum::<f64>() / count)
}
