//! Section `[lanes]`: classes of work, by who asks.

use super::apply::{Scope, apply};
use super::databases;
use super::model::Lane;
use super::table;
use crate::diagnostic::{Diagnostic, Report, quoted};
use crate::source::Place;
use crate::written::{Dialect, Group};

/// The lane of whoever is in no other. A declaration of this name gives it weight and share, and no patterns.
pub const PLAIN_LANE: &str = "default";

/// Most lanes, that one included.
pub const MAX_LANES: usize = 16;

/// Most that all lanes together may have guaranteed, of a hundred: what is left keeps the others moving.
pub const MOST_GUARANTEED_PERCENT: u32 = 90;

/// Most patterns of one lane and kind.
pub const MAX_PATTERNS: usize = 64;

/// Longest pattern.
pub const MAX_PATTERN_BYTES: usize = 256;

/// Longest name of a lane; it is a label of metrics.
pub const MAX_LANE_NAME_BYTES: usize = 63;

/// The lanes in the order in which they are tried, behind [`PLAIN_LANE`]; none if nothing is written.
pub(super) fn read(groups: &[Group], dialect: Dialect, report: &mut Report) -> Vec<Lane> {
    let mut lanes: Vec<(Lane, &Place)> = Vec::new();
    let mut plain = Lane { name: PLAIN_LANE.to_owned(), ..Lane::default() };
    let mut guaranteed = 0;
    for group in groups {
        if databases::is_unnamed("lane", group, report) {
            continue;
        }
        if group.name.len() > MAX_LANE_NAME_BYTES {
            let message = format!("the name of a lane has at most {MAX_LANE_NAME_BYTES} bytes");
            report.add(Diagnostic::error("bad-value", message).at(&group.place));
            continue;
        }
        let scope = Scope { section: "lanes", dialect };
        let mut lane = Lane { name: group.name.clone(), ..Lane::default() };
        let places = apply(table::LANES.iter(), &group.entries, scope, &mut lane, report);
        for (name, entry) in &places {
            check_patterns(lane.patterns(name), name, &entry.place, report);
        }
        guaranteed += lane.share_percent;
        if guaranteed > MOST_GUARANTEED_PERCENT {
            let message = format!(
                "the lanes have {guaranteed} % guaranteed up to here; at most {MOST_GUARANTEED_PERCENT} % may be, so that nobody starves"
            );
            let place = places.get("share_percent").map_or(&group.place, |entry| &entry.place);
            report.add(Diagnostic::error("too-much-guaranteed", message).at(place));
        }
        if lane.name == PLAIN_LANE {
            if let Some(entry) =
                places.iter().find(|(name, _)| !lane.patterns(name).is_empty()).map(|found| found.1)
            {
                let message =
                    format!("the lane `{PLAIN_LANE}` is for whoever is in no other; it has no patterns");
                report.add(Diagnostic::error("bad-value", message).at(&entry.key_place));
            }
            plain = lane;
            continue;
        }
        if lanes.iter().any(|(known, _)| known.name == lane.name) {
            let message = format!("the lane {} is written twice", quoted(&lane.name));
            report.add(Diagnostic::error("duplicate", message).at(&group.place));
            continue;
        }
        lanes.push((lane, &group.place));
        if lanes.len() + 1 > MAX_LANES {
            let message = format!("there are at most {MAX_LANES} lanes, `{PLAIN_LANE}` included");
            report.add(Diagnostic::error("too-many", message).at(&group.place));
            break;
        }
    }
    note_unreachable(&lanes, report);
    if groups.is_empty() {
        return Vec::new();
    }
    std::iter::once(plain).chain(lanes.into_iter().map(|(lane, _)| lane)).collect()
}

fn check_patterns(patterns: &[String], name: &str, place: &Place, report: &mut Report) {
    if patterns.len() > MAX_PATTERNS {
        let message = format!("`{name}` of a lane has at most {MAX_PATTERNS} patterns");
        report.add(Diagnostic::error("too-many", message).at(place));
    }
    if patterns.iter().any(|pattern| pattern.len() > MAX_PATTERN_BYTES) {
        let message = format!("a pattern has at most {MAX_PATTERN_BYTES} bytes");
        report.add(Diagnostic::error("bad-value", message).at(place));
    }
}

/// A lane without patterns takes everybody: those behind it are never reached.
fn note_unreachable(lanes: &[(Lane, &Place)], report: &mut Report) {
    let mut lanes = lanes.iter();
    let Some((catch_all, _)) = lanes.find(|(lane, _)| lane.matches("", "", "") && lane.takes_everybody())
    else {
        return;
    };
    if let Some((_, place)) = lanes.next() {
        let message = format!(
            "the lane {} has no patterns and takes everybody; this one is never reached",
            quoted(&catch_all.name)
        );
        report.add(Diagnostic::warning("unreachable", message).at(place));
    }
}

impl Lane {
    /// True if all its kinds of patterns are met; of the patterns of one kind, one is enough. `*` stands for any text;
    /// case matters.
    #[must_use]
    pub fn matches(&self, application_name: &str, user: &str, database: &str) -> bool {
        let meets = |patterns: &[String], text| {
            patterns.is_empty() || patterns.iter().any(|pattern| is_like(pattern, text))
        };
        meets(&self.application_name, application_name)
            && meets(&self.user, user)
            && meets(&self.database, database)
    }

    fn takes_everybody(&self) -> bool {
        self.application_name.is_empty() && self.user.is_empty() && self.database.is_empty()
    }

    fn patterns(&self, setting: &str) -> &[String] {
        match setting {
            "application_name" => &self.application_name,
            "user" => &self.user,
            "database" => &self.database,
            _ => &[],
        }
    }
}

/// Whether `text` is as `pattern` says, in which `*` is any text. Costs at most their lengths multiplied.
fn is_like(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut from) = (0, 0);
    // The last star, and where the text stood behind it.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(byte) if *byte == text[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((star_at, taken)) = star else { return false };
                star = Some((star_at, taken + 1));
                at = star_at + 1;
                from = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests;
