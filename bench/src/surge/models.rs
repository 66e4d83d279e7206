//! The probability distributions of SURGE.

use std::f64::consts::TAU;

use crate::random::Random;

/// A distribution. Pareto and Weibull distributions are unbounded, so each has a cut-off.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Model {
    /// A distribution whose logarithm is normal.
    Lognormal { mu: f64, sigma: f64 },
    /// Starts at `least`; values above `most` become `most`.
    Pareto { least: f64, alpha: f64, most: f64 },
    /// Values above `most` become `most`.
    Weibull { scale: f64, shape: f64, most: f64 },
}

impl Model {
    /// A random value.
    pub(crate) fn sample(self, random: &mut Random) -> f64 {
        match self {
            Self::Lognormal { mu, sigma } => (mu + sigma * normal(random)).exp(),
            Self::Pareto { least, alpha, most } => {
                (least * random.fraction().powf(-1.0 / alpha)).min(most)
            }
            Self::Weibull { scale, shape, most } => {
                (scale * (-random.fraction().ln()).powf(1.0 / shape)).min(most)
            }
        }
    }

    /// The share of values up to `value`, where a closed form exists.
    pub(crate) fn share_up_to(self, value: f64) -> Option<f64> {
        match self {
            Self::Lognormal { .. } => None,
            Self::Pareto { most, .. } | Self::Weibull { most, .. } if value >= most => Some(1.0),
            Self::Pareto { least, alpha, .. } => {
                Some(if value < least { 0.0 } else { 1.0 - (least / value).powf(alpha) })
            }
            Self::Weibull { scale, shape, .. } => {
                Some(1.0 - (-(value.max(0.0) / scale).powf(shape)).exp())
            }
        }
    }
}

/// An exponential value, for think times and times between arrivals.
pub(crate) fn exponential(mean: f64, random: &mut Random) -> f64 {
    -random.fraction().ln() * mean
}

/// The integer part of a number that is not negative.
#[expect(
    clippy::cast_sign_loss,
    reason = "counts are not negative, and a cast of a negative number gives 0"
)]
pub(crate) fn whole(value: f64) -> u64 {
    value as u64
}

/// A normal value with mean 0 and deviation 1 (Box and Muller 1958).
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * random.fraction().ln()).sqrt();
    radius * (TAU * random.fraction()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(model: Model) -> Vec<f64> {
        let mut random = Random(7);
        let mut all: Vec<f64> = (0..20_000).map(|_| model.sample(&mut random)).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    /// Compares samples with the closed form (Kolmogorov and Smirnov, far beyond 99.9 %).
    fn check(model: Model) {
        let all = sorted(model);
        for (rank, value) in all.iter().enumerate().filter(|(rank, _)| rank % 100 == 0) {
            let share = rank as f64 / all.len() as f64;
            let expected = model.share_up_to(*value).unwrap();
            assert!(expected > 0.999 || (share - expected).abs() < 0.015, "{share} {expected}");
        }
    }

    #[test]
    fn samples_a_lognormal_with_its_median_and_sigma() {
        let all = sorted(Model::Lognormal { mu: 9.357, sigma: 1.318 });
        assert!((all[10_000].ln() - 9.357).abs() < 0.05, "{}", all[10_000].ln());
        let within = all.iter().filter(|each| (each.ln() - 9.357).abs() < 1.318).count();
        assert!((within as f64 / 20_000.0 - 0.6827).abs() < 0.02, "{within}");
    }

    #[test]
    fn samples_pareto_and_weibull_as_their_closed_forms() {
        check(Model::Pareto { least: 1000.0, alpha: 1.0, most: 1e7 });
        check(Model::Pareto { least: 1.0, alpha: 1.5, most: 60.0 });
        check(Model::Weibull { scale: 1.46, shape: 0.382, most: 30.0 });
        let most = sorted(Model::Pareto { least: 1.0, alpha: 1.1, most: 9.0 });
        assert!(most.iter().all(|each| *each >= 1.0 && *each <= 9.0));
    }

    #[test]
    fn samples_an_exponential_with_its_mean() {
        let mut random = Random(3);
        let sum: f64 = (0..20_000).map(|_| exponential(7.0, &mut random)).sum();
        assert!((sum / 20_000.0 - 7.0).abs() < 0.2, "{sum}");
    }
}
