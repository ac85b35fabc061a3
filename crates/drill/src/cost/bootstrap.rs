//! A bound for a median that needs no assumption about the noise: the percentile bootstrap (Efron, 1979).

use serde::Serialize;

/// Resamples: the bound's own noise is then well below a percent of its distance.
const RESAMPLES: usize = 10_000;

/// Share of resampled medians beyond each bound.
const BEYOND: f64 = 0.05;

/// A median with its bounds. Each bound is one-sided: "the median is at most `upper_95`" holds with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// Median of the sample.
    pub median: f64,
    /// One-sided lower 95 % bound.
    pub lower_95: f64,
    /// One-sided upper 95 % bound.
    pub upper_95: f64,
}

/// The bound of a sample; none for an empty one. The same seed gives the same bound.
#[must_use]
pub fn median_bound(sample: &[f64], seed: u64) -> Option<Bound> {
    if sample.is_empty() {
        return None;
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut drawn = vec![0.0; sample.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            drawn.fill_with(|| sample[random.usize(..sample.len())]);
            median(&mut drawn)
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| medians[((RESAMPLES - 1) as f64 * share).round() as usize];
    Some(Bound { median: median(&mut sample.to_vec()), lower_95: at(BEYOND), upper_95: at(1.0 - BEYOND) })
}

/// The median, the mean of the two middle ones if their number is even; 0 for none. Sorts.
pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(center: f64, count: usize, seed: u64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..count).map(|_| center + (random.f64() - 0.5) * 0.2).collect()
    }

    #[test]
    fn a_sample_without_noise_is_its_own_bound() {
        let bound = median_bound(&[0.8; 9], 1).unwrap();
        assert_eq!(bound, Bound { median: 0.8, lower_95: 0.8, upper_95: 0.8 });
        assert_eq!(median_bound(&[], 1), None);
    }

    #[test]
    fn the_bounds_hold_the_true_median_about_as_often_as_they_say() {
        let misses =
            (0..200).filter(|seed| median_bound(&noisy(1.0, 15, *seed), 7).unwrap().upper_95 < 1.0).count();
        // 5 % of 200 are 10; the bootstrap of a small sample is a little off.
        assert!((1..=24).contains(&misses), "{misses}");
    }

    #[test]
    fn more_blocks_bring_the_bounds_nearer_and_one_outlier_moves_them_little() {
        let width = |count| {
            let bound = median_bound(&noisy(1.0, count, 3), 7).unwrap();
            bound.upper_95 - bound.lower_95
        };
        assert!(width(100) < width(10));
        let mut sample = noisy(1.0, 30, 3);
        sample.push(50.0);
        assert!(median_bound(&sample, 7).unwrap().upper_95 < 1.1);
    }

    #[test]
    fn the_same_seed_gives_the_same_bound() {
        let sample = noisy(1.0, 15, 3);
        assert_eq!(median_bound(&sample, 9), median_bound(&sample, 9));
    }
}
