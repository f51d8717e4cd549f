//! Percentiles and histograms over what was measured. No interpolation: every figure is one that occurred.

use super::model::Percentiles;

/// The percentiles of a report.
pub fn percentiles(values: &[f64]) -> Percentiles {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    Percentiles {
        p50: nearest_rank(&sorted, 50),
        p95: nearest_rank(&sorted, 95),
        p99: nearest_rank(&sorted, 99),
    }
}

/// The smallest value that at least `percent` of 100 values do not exceed.
fn nearest_rank(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Events per second, in buckets of `width` seconds from 0 to `end`: (start of the bucket, rate).
pub fn rate(times: &[f64], width: f64, end: f64) -> Vec<(f64, f64)> {
    let buckets = bucket(end, width) + 1;
    let mut counts = vec![0_u32; buckets];
    for time in times.iter().filter(|t| **t >= 0.0) {
        if let Some(count) = counts.get_mut(bucket(*time, width)) {
            *count += 1;
        }
    }
    counts.iter().enumerate().map(|(i, n)| (i as f64 * width, f64::from(*n) / width)).collect()
}

/// Counts in `bins` equal parts between 0 and the largest value: (lower bound, count); and the width of a part.
pub fn histogram(values: &[f64], bins: usize) -> (Vec<(f64, u32)>, f64) {
    let top = values.iter().copied().filter(|v| v.is_finite()).fold(1.0_f64, f64::max);
    let width = top / bins as f64;
    let mut counts = vec![0_u32; bins];
    for value in values.iter().filter(|v| v.is_finite() && **v >= 0.0) {
        counts[bucket(*value, width).min(bins - 1)] += 1;
    }
    (counts.into_iter().enumerate().map(|(i, n)| (i as f64 * width, n)).collect(), width)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "never negative, far below usize::MAX"
)]
fn bucket(value: f64, width: f64) -> usize {
    (value / width).floor().max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::{histogram, percentiles, rate};

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let found = percentiles(&values);
        assert_eq!((found.p50, found.p95, found.p99), (Some(100.0), Some(190.0), Some(198.0)));
        assert_eq!(percentiles(&[7.0]).p99, Some(7.0));
        assert_eq!(percentiles(&[]).p50, None);
    }

    #[test]
    fn rate_counts_each_event_once_and_shows_silence() {
        let found = rate(&[0.1, 0.2, 2.4], 0.5, 2.6);
        assert_eq!(found.len(), 6);
        assert!((found[0].1 - 4.0).abs() < 1e-9);
        assert!(found[1].1.abs() < 1e-9, "silence is a point too");
        assert!((found[4].1 - 2.0).abs() < 1e-9);
    }

    #[test]
    fn histogram_keeps_the_largest_value() {
        let (bins, _) = histogram(&[0.0, 5.0, 10.0], 4);
        assert_eq!(bins.iter().map(|b| b.1).sum::<u32>(), 3);
        assert_eq!(bins[3].1, 1);
    }
}
