//! The plots of one run, as SVG text that needs nothing from outside.
//!
//! They draw what `report.json` holds; a long series is thinned for drawing, never for the figures.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::model::{FaultRecord, RunReport};
use super::stats;

const SIZE: (u32, u32) = (860, 240);
const POINTS_MAX: usize = 1500;
const STOCK: RGBColor = RGBColor(0x1f, 0x5f, 0x99);
const RATE: RGBColor = RGBColor(0x2e, 0x7d, 0x32);
const WAIT: RGBColor = RGBColor(0x6a, 0x4c, 0x93);
const FROZEN: RGBColor = RGBColor(0x8e, 0x24, 0xaa);
const OTHER: RGBColor = RGBColor(0x00, 0x83, 0x8f);
const EXPIRED: RGBColor = RGBColor(0xd8, 0x43, 0x15);
const MISSED: RGBColor = RGBColor(0xbd, 0xbd, 0xbd);

type Failed = Box<dyn Error + Send + Sync>;
pub(super) type Drawn = Result<String, Failed>;

/// Units in the stock row over time.
pub(super) fn stock(run: &RunReport) -> Drawn {
    let points = thinned(&run.series.stock);
    let top = points.iter().map(|p| p.1).max().unwrap_or(0).max(1);
    drawing(|root| {
        let mut chart = ChartBuilder::on(root)
            .margin(8)
            .x_label_area_size(34)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..end_of(run), 0..top + top / 10 + 1)?;
        chart.configure_mesh().x_desc("seconds").y_desc("units on hand").light_line_style(WHITE).draw()?;
        marks(&run.faults, |at, style| {
            chart.draw_series(LineSeries::new([(at, 0), (at, top)], style)).map(drop)
        })?;
        chart.draw_series(LineSeries::new(steps(&points), STOCK.stroke_width(2)))?;
        Ok(())
    })
}

/// Accepted orders per second over time, with a mark for each fault.
pub(super) fn rate(run: &RunReport) -> Drawn {
    let end = end_of(run);
    let width = if end > 12.0 { 0.5 } else { 0.25 };
    let points = stats::rate(&run.series.accepted, width, end);
    let top = points.iter().map(|p| p.1).fold(1.0, f64::max) * 1.1;
    drawing(|root| {
        let mut chart = ChartBuilder::on(root)
            .margin(8)
            .x_label_area_size(34)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..end, 0.0..top)?;
        chart.configure_mesh().x_desc("seconds").y_desc("accepted / s").light_line_style(WHITE).draw()?;
        chart.draw_series(
            points
                .iter()
                .map(|(at, n)| Rectangle::new([(*at, 0.0), (at + width, *n)], RATE.mix(0.55).filled())),
        )?;
        marks(&run.faults, |at, style| {
            chart.draw_series(LineSeries::new([(at, 0.0), (at, top)], style)).map(drop)
        })?;
        Ok(())
    })
}

/// How long accepted orders waited for their locks.
pub(super) fn waits(run: &RunReport) -> Drawn {
    let (bins, width) = stats::histogram(&run.series.lock_waits_ms, 60);
    let top = bins.iter().map(|b| b.1).max().unwrap_or(0).max(1);
    let right = width * 60.0;
    drawing(|root| {
        let mut chart = ChartBuilder::on(root)
            .margin(8)
            .x_label_area_size(34)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..right, 0..top + top / 10 + 1)?;
        chart.configure_mesh().x_desc("lock wait, ms").y_desc("orders").light_line_style(WHITE).draw()?;
        chart.draw_series(
            bins.iter().map(|(at, n)| Rectangle::new([(*at, 0), (at + width, *n)], WAIT.mix(0.6).filled())),
        )?;
        Ok(())
    })
}

fn drawing(paint: impl FnOnce(&DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Failed>) -> Drawn {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        paint(&root)?;
        root.present()?;
    }
    // Inside an HTML page the namespace is implied; without it the page names no address at all.
    Ok(svg.replace(" xmlns=\"http://www.w3.org/2000/svg\"", " role=\"img\""))
}

fn marks<E>(faults: &[FaultRecord], mut line: impl FnMut(f64, ShapeStyle) -> Result<(), E>) -> Result<(), E> {
    for fault in faults {
        let colour = match (fault.confirmed, fault.kind.as_str()) {
            (false, _) => MISSED,
            (true, "freeze-holder") => FROZEN,
            (true, "expire-holder") => EXPIRED,
            (true, _) => OTHER,
        };
        line(fault.at_s, colour.stroke_width(2))?;
    }
    Ok(())
}

fn end_of(run: &RunReport) -> f64 {
    let last =
        run.series.accepted.iter().copied().chain(run.series.stock.iter().map(|p| p.0)).fold(1.0, f64::max);
    run.faults.iter().map(|f| f.at_s).fold(last, f64::max) * 1.02
}

/// A row keeps its value until the next change.
fn steps(points: &[(f64, i64)]) -> Vec<(f64, i64)> {
    let mut line = Vec::with_capacity(points.len() * 2);
    for (at, units) in points {
        if let Some((_, before)) = line.last().copied() {
            line.push((*at, before));
        }
        line.push((*at, *units));
    }
    line
}

fn thinned(points: &[(f64, i64)]) -> Vec<(f64, i64)> {
    let every = points.len().div_ceil(POINTS_MAX).max(1);
    let mut kept: Vec<_> = points.iter().copied().step_by(every).collect();
    if let Some(last) = points.last().filter(|last| kept.last() != Some(last)) {
        kept.push(*last);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::{steps, thinned};

    #[test]
    fn thinning_keeps_the_end() {
        let points: Vec<(f64, i64)> = (0..10_000).map(|i| (i as f64, i)).collect();
        let kept = thinned(&points);
        assert!(kept.len() <= 1600);
        assert_eq!(kept.last(), points.last());
    }

    #[test]
    fn a_level_holds_until_the_next_change() {
        assert_eq!(steps(&[(0.0, 3), (1.0, 2)]), vec![(0.0, 3), (1.0, 3), (1.0, 2)]);
    }
}
