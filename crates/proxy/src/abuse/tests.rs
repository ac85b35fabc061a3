use std::fs;

use uuid::Uuid;

use super::*;

const DAY_MS: u64 = 86_400_000;

fn record(day: u64, target: Option<&str>) -> Record {
    let exit = Exit {
        exit: Uuid::now_v7(),
        proxy_account: "acme".into(),
        provider: Uuid::from_u128(1),
        port: 443,
        opened_at_ms: day * DAY_MS,
        closed_at_ms: day * DAY_MS + 5,
    };
    Record { exit, target: target.map(Into::into) }
}

fn files(days: u32, bytes_a_day: u64) -> (Files, PathBuf) {
    let folder = std::env::temp_dir().join(format!("holdfast-exits-{}", Uuid::now_v7().simple()));
    (Files::new(Keeping { folder: folder.clone(), days, bytes_a_day }), folder)
}

fn names(folder: &std::path::Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn a_day_has_its_file_and_old_ones_are_deleted() {
    let (mut files, folder) = files(2, 1 << 20);
    for day in 100..=105 {
        files.write(&[record(day, None), record(day, None)]);
    }
    // One of yesterday that comes late.
    files.write(&[record(104, None)]);
    fs::write(folder.join("somebody-elses.txt"), "x").unwrap();
    assert_eq!(names(&folder)[..3], ["exits-103.jsonl", "exits-104.jsonl", "exits-105.jsonl"]);
    let lines = fs::read_to_string(folder.join("exits-105.jsonl")).unwrap().lines().count();
    assert_eq!(lines, 3);
    files.write(&[record(200, None)]);
    assert_eq!(names(&folder), ["exits-200.jsonl", "somebody-elses.txt"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_days_file_has_a_bound_also_after_a_restart() {
    let (mut files, folder) = files(2, 1_000);
    for _ in 0..50 {
        files.write(&[record(100, None)]);
    }
    let mut again = Files::new(Keeping { folder: folder.clone(), days: 2, bytes_a_day: 1_000 });
    again.write(&[record(100, None)]);
    let length = fs::metadata(folder.join("exits-100.jsonl")).unwrap().len();
    assert!((500..=1_000).contains(&length), "{length}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_target_is_written_only_if_it_is_handed_in() {
    let (mut files, folder) = files(2, 1 << 20);
    files.write(&[record(100, None), record(100, Some("example.org:443"))]);
    let written = fs::read_to_string(folder.join("exits-100.jsonl")).unwrap();
    let with_target: Vec<_> = written.lines().map(|line| line.contains("target")).collect();
    assert_eq!(with_target, [false, true]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn records_beyond_the_bound_are_lost_and_counted() {
    let (records, _handed_in) = Records::new();
    for _ in 0..MAX_WAITING + 7 {
        records.hand_in(record(1, None));
    }
    assert_eq!(records.lost(), 7);
}
