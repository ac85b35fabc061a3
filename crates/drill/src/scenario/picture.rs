//! A drill as a picture: what was held, what was answered, and what was refused, over time, with the faults marked.

use std::fmt::Write as _;

use super::report::{Event, Report};
use crate::traffic::Second;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 90.0;
const LANE: f64 = 90.0;
const GAP: f64 = 34.0;
/// Labels of events stand in so many rows, so that neighbours do not cover each other.
const LABEL_ROWS: usize = 3;
const LABEL_STEP: f64 = 14.0;

const HELD: &str = "#1f6f8b";
const ROUNDS: &str = "#5a8f3c";
const OPENED: &str = "#7a9e9f";
const REFUSED: &str = "#c0392b";

/// Its name, its colour, and its value in a second.
type Lane = (&'static str, &'static str, fn(&Second) -> u64);

pub(super) fn draw(report: &Report) -> String {
    let lanes: [Lane; 4] = [
        ("streams held", HELD, |second| second.held),
        ("answers a second", ROUNDS, |second| second.rounds),
        ("new streams a second", OPENED, |second| second.opened),
        ("refused or broken a second", REFUSED, |second| second.refused + second.broken),
    ];
    let height = TOP + lanes.len() as f64 * (LANE + GAP) + 30.0 + 18.0 * report.checks.len() as f64;
    let seconds = report.seconds.len().max(1) as f64;
    let x = |at_s: f64| LEFT + (WIDTH - LEFT - RIGHT) * (at_s / seconds).clamp(0.0, 1.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"18\">{}: {}</text>\n",
        escaped(&report.drill),
        if report.passed { "held" } else { "did not hold" },
    );
    for (index, (name, colour, value)) in lanes.iter().enumerate() {
        let base = TOP + index as f64 * (LANE + GAP) + LANE;
        lane(&mut svg, report, &x, base, name, colour, *value);
    }
    let bottom = TOP + lanes.len() as f64 * (LANE + GAP) - GAP;
    for (index, Event { at_s, what }) in report.events.iter().enumerate() {
        let (at, row) = (x(*at_s), 44.0 + LABEL_STEP * (index % LABEL_ROWS) as f64);
        let anchor = if *at_s > 0.8 * seconds { "end" } else { "start" };
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" y1=\"{row}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#888\" stroke-dasharray=\"3 3\"/>\
             <text x=\"{at:.1}\" y=\"{row}\" font-size=\"11\" text-anchor=\"{anchor}\">{}</text>",
            escaped(what)
        );
    }
    for (index, check) in report.checks.iter().enumerate() {
        let (mark, colour) = if check.passed { ("✓", ROUNDS) } else { ("✗", REFUSED) };
        let line = format!("{mark} {}: {} (must be {})", check.what, check.seen, check.bar);
        let y = bottom + 40.0 + 18.0 * index as f64;
        let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{y}\" fill=\"{colour}\">{}</text>", escaped(&line));
    }
    svg.push_str("</svg>\n");
    svg
}

fn lane(
    svg: &mut String,
    report: &Report,
    x: &impl Fn(f64) -> f64,
    base: f64,
    name: &str,
    colour: &str,
    value: fn(&Second) -> u64,
) {
    let most = report.seconds.iter().map(value).max().unwrap_or(0);
    let scale = LANE / (most.max(1) as f64);
    let mut points = format!("{LEFT},{base}");
    for (index, second) in report.seconds.iter().enumerate() {
        let y = base - scale * value(second) as f64;
        let _ = write!(points, " {:.1},{y:.1} {:.1},{y:.1}", x(index as f64), x(index as f64 + 1.0));
    }
    let _ = writeln!(
        svg,
        "<polygon points=\"{points} {:.1},{base}\" fill=\"{colour}\" fill-opacity=\"0.35\" stroke=\"{colour}\"/>\
         <text x=\"{LEFT}\" y=\"{:.1}\" fill=\"{colour}\">{name}</text>\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{most}</text>\
         <text x=\"{:.1}\" y=\"{base}\" text-anchor=\"end\" fill=\"#555\">0</text>",
        x(report.seconds.len() as f64),
        base - LANE - 6.0,
        LEFT - 6.0,
        base - LANE + 10.0,
        LEFT - 6.0,
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
