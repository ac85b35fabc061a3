//! A drill as a picture: what was seen over time, with what was done marked, and the score below.

use std::fmt::Write as _;

use super::report::{Event, Report, View};
use crate::guard::{Bucket, SideReport};
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

/// A lane's name, its colour, and its value at a moment.
type Source<T, V> = (&'static str, &'static str, fn(&T) -> V);

/// Values over time.
struct Lane {
    name: String,
    colour: &'static str,
    /// One value a step.
    values: Vec<f64>,
    /// The upper edge, if it is given; else the highest value.
    most: Option<f64>,
}

pub(super) fn draw(report: &Report) -> String {
    let (lanes, step_s) = match &report.view {
        View::Customers { seconds, .. } => (customers(seconds), 1.0),
        View::Poolers { sides, bucket_s, .. } => (poolers(sides), *bucket_s),
    };
    let height = TOP + lanes.len() as f64 * (LANE + GAP) + 30.0 + 18.0 * report.checks.len() as f64;
    let steps = lanes.iter().map(|lane| lane.values.len()).max().unwrap_or(0).max(1);
    let seconds = steps as f64 * step_s;
    let x = |at_s: f64| LEFT + (WIDTH - LEFT - RIGHT) * (at_s / seconds).clamp(0.0, 1.0);
    let verdict = match (&report.not_measured, report.passed) {
        (Some(why), _) => format!("not measured: {why}"),
        (None, true) => "held".to_owned(),
        (None, false) => "did not hold".to_owned(),
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"18\">{}: {}</text>\n",
        escaped(&report.drill),
        escaped(&verdict),
    );
    for (index, shown) in lanes.iter().enumerate() {
        let base = TOP + index as f64 * (LANE + GAP) + LANE;
        lane(&mut svg, shown, step_s, &x, base);
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

fn customers(seconds: &[Second]) -> Vec<Lane> {
    let lanes: [Source<Second, u64>; 4] = [
        ("streams held", HELD, |second| second.held),
        ("answers a second", ROUNDS, |second| second.rounds),
        ("new streams a second", OPENED, |second| second.opened),
        ("refused or broken a second", REFUSED, |second| second.refused + second.broken),
    ];
    let lane = |(name, colour, value): Source<Second, u64>| Lane {
        name: name.to_owned(),
        colour,
        values: seconds.iter().map(|second| value(second) as f64).collect(),
        most: None,
    };
    lanes.map(lane).into()
}

/// The same scale for all poolers, or they could not be compared.
fn poolers(sides: &[SideReport]) -> Vec<Lane> {
    let lanes: [Source<Bucket, f64>; 2] = [
        ("answers in time, a second", ROUNDS, |bucket| bucket.good_per_s),
        ("given up, refused or broken, a second", REFUSED, |bucket| {
            bucket.gave_up_per_s + bucket.failed_per_s
        }),
    ];
    let mut shown = Vec::new();
    for (name, colour, value) in lanes {
        let most = sides.iter().flat_map(|side| &side.buckets).map(value).fold(1.0, f64::max);
        for side in sides {
            let values = side.buckets.iter().map(value).collect();
            shown.push(Lane { name: format!("{}: {name}", side.pooler), colour, values, most: Some(most) });
        }
    }
    shown
}

fn lane(svg: &mut String, shown: &Lane, step_s: f64, x: &impl Fn(f64) -> f64, base: f64) {
    let Lane { name, colour, values, most } = shown;
    let most = most.unwrap_or_else(|| values.iter().copied().fold(0.0, f64::max));
    let scale = LANE / most.max(1.0);
    let mut points = format!("{LEFT},{base}");
    for (index, value) in values.iter().enumerate() {
        let y = base - scale * value;
        let _ = write!(
            points,
            " {:.1},{y:.1} {:.1},{y:.1}",
            x(index as f64 * step_s),
            x((index + 1) as f64 * step_s)
        );
    }
    let _ = writeln!(
        svg,
        "<polygon points=\"{points} {:.1},{base}\" fill=\"{colour}\" fill-opacity=\"0.35\" stroke=\"{colour}\"/>\
         <text x=\"{LEFT}\" y=\"{:.1}\" fill=\"{colour}\">{}</text>\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{most:.0}</text>\
         <text x=\"{:.1}\" y=\"{base}\" text-anchor=\"end\" fill=\"#555\">0</text>",
        x(values.len() as f64 * step_s),
        base - LANE - 6.0,
        escaped(name),
        LEFT - 6.0,
        base - LANE + 10.0,
        LEFT - 6.0,
    );
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
