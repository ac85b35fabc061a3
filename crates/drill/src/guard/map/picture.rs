//! One field for each pooler: loads upwards, stalls to the right, and how many are answered as colour.

use std::fmt::Write as _;

use super::MapReport;
use crate::scenario::escaped;

const CELL_WIDTH: f64 = 74.0;
const CELL_HEIGHT: f64 = 40.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 76.0;
const GAP: f64 = 70.0;
const BOTTOM: f64 = 64.0;

pub(super) fn draw(report: &MapReport) -> String {
    let mut loads: Vec<f64> = report.cells.iter().map(|cell| cell.load).collect();
    let mut stalls: Vec<f64> = report.cells.iter().map(|cell| cell.stall_s).collect();
    for axis in [&mut loads, &mut stalls] {
        axis.sort_by(f64::total_cmp);
        axis.dedup();
    }
    let poolers: Vec<&str> =
        report.cells.first().into_iter().flat_map(|cell| &cell.spots).map(|spot| &*spot.pooler).collect();
    let field = CELL_WIDTH * stalls.len() as f64;
    let (width, bottom) =
        (LEFT + poolers.len() as f64 * (field + GAP), TOP + CELL_HEIGHT * loads.len() as f64);
    let height = bottom + BOTTOM;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"18\">Answered in time after a stall of the database is over</text>\n\
         <text x=\"{LEFT}\" y=\"42\" fill=\"#555\">Callers hang up after {} s; from 2 s after the stall on</text>\n",
        report.patience_s
    );
    // Writing to a String cannot fail.
    for (number, pooler) in poolers.iter().enumerate() {
        let left = LEFT + number as f64 * (field + GAP);
        let _ = writeln!(
            svg,
            "<text x=\"{left}\" y=\"{}\" font-size=\"14\">{}</text>",
            TOP - 10.0,
            escaped(pooler)
        );
        for (row, load) in loads.iter().rev().enumerate() {
            let y = TOP + CELL_HEIGHT * row as f64;
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{:.0} %</text>",
                left - 6.0,
                y + CELL_HEIGHT / 2.0 + 4.0,
                load * 100.0
            );
            for (column, stall) in stalls.iter().enumerate() {
                let is_here = |cell: &&super::Cell| {
                    cell.load.total_cmp(load).is_eq() && cell.stall_s.total_cmp(stall).is_eq()
                };
                let spot = report.cells.iter().find(is_here).and_then(|cell| cell.spots.get(number));
                let Some(spot) = spot else { continue };
                let x = left + CELL_WIDTH * column as f64;
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{CELL_WIDTH}\" height=\"{CELL_HEIGHT}\" fill=\"{}\" stroke=\"white\"/>\
                     <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{:.0} %</text>",
                    colour(spot.answered_after),
                    x + CELL_WIDTH / 2.0,
                    y + CELL_HEIGHT / 2.0 + 4.0,
                    spot.answered_after * 100.0
                );
            }
        }
        for (column, stall) in stalls.iter().enumerate() {
            let x = left + CELL_WIDTH * (column as f64 + 0.5);
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{stall} s</text>",
                bottom + 18.0
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{left:.1}\" y=\"{:.1}\" fill=\"#555\">stall of the database →, load of it ↑</text>",
            bottom + 40.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// From red (nobody) over yellow to green (everybody).
fn colour(share: f64) -> String {
    format!("hsl({:.0},62%,68%)", 120.0 * share.clamp(0.0, 1.0))
}
